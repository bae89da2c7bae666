"""A keeper goes on, whoever asks it for something, until it ends; what a command leaves."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from infold.api import spark_sessions, warm_engines
from infold.api.spark_sessions import Home
from infold.cli.warm_engine import leaving
from infold.cli.warm_engine.client import carry_out
from infold.cli.warm_engine.keeper import Keeper
from infold.spark.jvm import lasting
from infold.spark.jvm.gateway import Jvm
from infold.spark.jvm.lasting import OfAnother, Offer
from infold.system import engine_socket as wire
from infold.system.circumstances import Began


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Keeper]:
    """One in this process, which has no JVM."""
    file = str(tmp_path / "engine.sock")
    given = {"pid": os.getpid(), "target": "dev", "idle": 1, "socket": file}
    with wire.listen(file) as listening:
        yield Keeper(given, "", listening)


def test_an_engine_that_begins_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its socket is that of a process which has ended; one that never begins is none."""
    monkeypatch.setattr(warm_engines, "BEGIN_SECONDS", 0.5)
    file = wire.socket_file(str(tmp_path), None)
    Path(file).parent.mkdir()
    here, there = socket.socketpair()
    process = os.fork()
    if process == 0:
        try:
            made = wire.listen(file)
            socket.send_fds(there, [b"."], [made.fileno()])
        finally:
            os._exit(0)
    os.waitpid(process, 0)
    _, (descriptor,), _, _ = socket.recv_fds(here, 1, 1)
    listening = socket.socket(fileno=descriptor)

    never = warm_engines.stop_engine(tmp_path, None)
    monkeypatch.setattr(warm_engines, "BEGIN_SECONDS", 60)
    monkeypatch.setattr(time, "sleep", lambda _: listening.listen())
    monkeypatch.setattr(wire, "next_reply", lambda _: (wire.CODE, 1))
    begun = warm_engines.stop_engine(tmp_path, None)
    for one in (here, there, listening):
        one.close()

    assert (never, begun) == (None, False)


def test_an_engine_that_is_replaced_leaves_its_name_before_it_answers(keeper: Keeper) -> None:
    """Otherwise it could take the name from the next one's socket, which nobody would find."""
    file = Path(keeper.given["socket"])
    keeper.inode = file.stat().st_ino
    with wire.connect(str(file)) as client:
        wire.send(client, wire.Request(wire.REPLACE, [b"", b""], b"elsewhere"))
        keeper._accept()
        assert wire.next_reply(client) == (wire.CODE, 1)
    assert keeper.ends
    assert not file.exists()

    with wire.listen(str(file)):
        keeper.leave_name()
        assert file.exists()


@pytest.mark.parametrize("way", ["nobody comes", "the socket goes", "the JVM dies"])
def test_it_ends_by_itself(keeper: Keeper, way: str) -> None:
    """Without a socket (or a project), a JVM, or commands for a while; else it goes on."""
    keeper.inode = Path(keeper.given["socket"]).stat().st_ino
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as jvm:
        keeper.given["watched"] = os.pidfd_open(jvm.pid)
        keeper.turn(0)
        keeper.look_around()
        assert not keeper.ends
        if way == "nobody comes":
            keeper.used -= 2
        elif way == "the socket goes":
            Path(keeper.given["socket"]).unlink()
        else:
            jvm.kill()
        keeper.turn(60 if way == "the JVM dies" else 0)
        keeper.look_around()

    assert keeper.ends


HUNG = """
import socket, sys, time
listening = socket.socket(socket.AF_UNIX)
listening.bind(sys.argv[2])
listening.listen()
print(flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("way", ["it hangs", "nobody listens", "it says nothing", "nonsense"])
def test_other_sockets_cost_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """The command is carried out by itself; only an engine that hangs is done away with."""
    monkeypatch.setattr(wire, "SILENCE_SECONDS", 0.2)
    monkeypatch.setenv("INFOLD_ENGINE", "on")
    file = tmp_path / ".infold" / "engine.sock"
    file.parent.mkdir()
    words = ["infold", "-C", str(tmp_path), "check"]
    if way == "it hangs":
        hung = [sys.executable, "-c", HUNG, wire.KEEPER, str(file)]
        with subprocess.Popen(hung, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            assert carry_out(words) is None
            assert process.wait(60) == -signal.SIGKILL
        return
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(file))
        if way != "nobody listens":
            listening.listen()
        with ThreadPoolExecutor(1) as pool:
            client = pool.submit(carry_out, words)
            if way == "nonsense":
                made, _ = listening.accept()
                made.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            assert client.result(60) is None


@pytest.mark.parametrize("kind", [wire.STATUS, wire.STOP, wire.RUN, b"nonsense"])
def test_a_client_that_goes_away_costs_nothing(keeper: Keeper, kind: bytes) -> None:
    """It does not wait for its answer."""
    for _ in range(2):
        with wire.connect(keeper.given["socket"]) as client:
            wire.send(client, wire.Request(kind))
        keeper._accept()

    assert keeper.waiting == []


SERVE = """
import io, mmap, os, socket, time
from pathlib import Path
from infold.cli.warm_engine import served
from infold.system import engine_socket as wire

tidy = Path(os.environ["TIDY"])

def tidy_up():
    until = time.monotonic() + 60
    while not tidy.exists() and time.monotonic() < until:
        time.sleep(0.01)
    return {}

served.lasting.has_attached = lambda: True
served.lasting.tidy_up = tidy_up
request = wire.Request(wire.RUN, [b"infold", b"--version"], b"", dict(os.environb))
client = socket.socket(fileno=int(os.environ["CLIENT"]))
offer = served.lasting.Offer(None, "", False)
served.serve(client, request, offer, mmap.mmap(-1, 16), io.StringIO())
"""


def test_a_reader_of_the_output_does_not_wait_until_the_jvm_is_tidy(tmp_path: Path) -> None:
    """Otherwise ``infold run | tail`` takes longer than ``infold run``."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    readable, writable = os.pipe()
    tidy = tmp_path / "tidy"
    given = {**os.environ, "TIDY": str(tidy), "CLIENT": str(there.fileno())}
    command = [sys.executable, "-c", SERVE]
    with here, subprocess.Popen(command, env=given, pass_fds=[there.fileno()]):
        there.close()
        assert (wire.next_reply(here) or (b"",))[0] == wire.READY
        wire.send_go(here, (0, writable, writable))
        os.close(writable)
        assert wire.next_reply(here) == (wire.CODE, 0)
        with os.fdopen(readable) as output:
            said = output.read()  # until nobody has the other end open
        waited = tidy.exists()
        tidy.touch()
    assert not waited
    assert said.startswith("infold")


@pytest.mark.parametrize(
    ("words", "found"), [(("run",), True), (("--target", "dev", "run"), False)]
)
def test_an_engine_that_stays_is_found_without_a_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], found: bool
) -> None:
    """One that a command with a target left, too, once a command without one knows which it is."""
    file = tmp_path / ".infold" / "engine-dev.sock"
    file.parent.mkdir()
    offer = Offer(Jvm(OfAnother(0, 0), 0, "1", "secret"), "needs", large=False)
    monkeypatch.setattr(sys, "argv", ["infold", *words])
    monkeypatch.setenv("INFOLD_ENGINE", "on")
    monkeypatch.setattr(spark_sessions, "home", lambda: Home("dev", str(file), 1))
    monkeypatch.setattr(lasting, "to_leave", lambda: offer)
    monkeypatch.setattr(leaving, "_may_replace", lambda *_: False)

    said = leaving.leave(Began())

    link = file.with_name("engine.sock")
    assert (said, link.is_symlink()) == ("", found)
    assert not found or str(link.readlink()) == file.name
