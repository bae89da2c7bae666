"""Requests to an engine that is kept warm, and which engine a command chooses."""

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
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.warm_engine.engines import PATIENCE

from infold.api import spark_sessions, warm_engines
from infold.api.spark_sessions import Home
from infold.cli.main import COMMANDS, cli
from infold.cli.warm_engine import client, early, leaving
from infold.cli.warm_engine.client import Typed, carry_out, is_on, starts_early
from infold.cli.warm_engine.keeper import Keeper, installed
from infold.core.target import Engine
from infold.spark.jvm import lasting
from infold.spark.jvm.gateway import Jvm
from infold.spark.jvm.lasting import ForeignProcess, Offer
from infold.system import circumstances, engine_socket
from infold.system import engine_socket as wire
from infold.system.circumstances import Began
from infold.system.engine_socket import Request


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
    monkeypatch.setattr(warm_engines, "BEGIN_SECONDS", 0.05)
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
    monkeypatch.setattr(wire, "SILENCE_SECONDS", 0.05)
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
import mmap, os, socket, time
from pathlib import Path
from infold.cli.warm_engine import keeper
from infold.system import engine_socket as wire

tidy = Path(os.environ["TIDY"])

def tidy_up():
    until = time.monotonic() + 60
    while not tidy.exists() and time.monotonic() < until:
        time.sleep(0.01)

keeper.lasting.has_attached = lambda: True
keeper.lasting.tidy_up = tidy_up
request = wire.Request(wire.RUN, [b"infold", b"--version"], b"", dict(os.environb))
client = socket.socket(fileno=int(os.environ["CLIENT"]))
offer = keeper.lasting.Offer(None, "", False)
keeper.serve(client, request, offer, mmap.mmap(-1, 16))
"""


@pytest.mark.deep
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
    offer = Offer(Jvm(ForeignProcess(0, 0), 0, "1", "secret"), "needs", large=False)
    monkeypatch.setattr(sys, "argv", ["infold", *words])
    monkeypatch.setenv("INFOLD_ENGINE", "on")
    monkeypatch.setattr(spark_sessions, "home", lambda: Home("dev", str(file), 1))
    monkeypatch.setattr(lasting, "to_leave", lambda: offer)
    monkeypatch.setattr(leaving, "_may_replace", lambda *_: False)

    said = leaving.leave(Began())

    link = file.with_name("engine.sock")
    assert (said, link.is_symlink()) == ("", found)
    assert not found or str(link.readlink()) == file.name


@pytest.mark.parametrize(
    ("line", "root", "target", "command", "off"),
    [
        ("run", ".", None, "run", False),
        ("-C shop run --target x", "shop", None, "run", False),
        ("--project=shop --target prod verify -s a", "shop", "prod", "verify", False),
        ("--no-engine --project shop test", "shop", None, "test", True),
        ("--help run", ".", None, "", False),
        ("-Cshop run", ".", None, "", False),
        ("-C", "", None, "", False),
        ("", ".", None, "", False),
    ],
)
def test_a_command_line_is_read(
    line: str, root: str, target: str | None, command: str, off: bool
) -> None:
    """Only its global options are; where one is unknown there is no command."""
    found = Typed(line.split())

    assert (found.root, found.target, found.command, found.off) == (root, target, command, off)


@pytest.mark.parametrize(
    ("environment", "terminal", "used", "early"),
    [
        ({}, True, True, True),
        ({}, False, False, False),
        ({"CI": "true"}, True, False, False),
        ({"CI": "true", "INFOLD_ENGINE": "on"}, False, True, False),
        ({"CI": "true", "INFOLD_ENGINE": "on"}, True, True, False),
        ({"INFOLD_ENGINE": "off"}, True, False, False),
        ({"INFOLD_ENGINE": "ON"}, False, True, False),
        ({"INFOLD_ENGINE": "on", "PYSPARK_GATEWAY_PORT": "1"}, True, False, False),
        ({"PYSPARK_GATEWAY_PORT": "1"}, True, False, False),
    ],
)
def test_where_an_engine_is_used(
    environment: dict[str, str], terminal: bool, used: bool, early: bool
) -> None:
    """Where a person waits, unless something else is said; by commands that there are. It is
    started early at a terminal alone.
    """
    assert COMMANDS.keys() >= client.COMMANDS | client.COMMANDS_BEFORE
    assert is_on(Typed(["run"]), environment, terminal=terminal) is used
    assert starts_early(Typed(["plan"]), environment, terminal=terminal) is early
    for words in (["--no-engine", "run"], ["history"]):
        assert not is_on(Typed(words), environment, terminal=terminal)
    for words in (["--no-engine", "plan"], ["run"], ["history"]):
        assert not starts_early(Typed(words), environment, terminal=terminal)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[list[str], str]]:
    """Processes that would start an engine: their words, and the folder that they begin in."""
    begun: list[tuple[list[str], str]] = []

    def begin(words: list[str], *, cwd: Path, **_: object) -> Any:
        at = words.index(wire.STARTER) + 2
        begun.append((words[at : at + int(words[at - 1])], str(cwd)))
        return SimpleNamespace(pid=os.getpid())

    monkeypatch.setattr(subprocess, "Popen", begin)
    monkeypatch.setattr(early, "starts_early", lambda *_, **__: True)
    monkeypatch.setattr(early, "free_memory", lambda: early.LEAST_FREE_BYTES)
    monkeypatch.chdir(tmp_path)
    return begun


def project(**engine: Any) -> Any:
    """What is asked of a project here."""
    return SimpleNamespace(target=SimpleNamespace(engine=Engine(**engine)))


def test_an_engine_is_started_once(started: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second command finds that one is starting; what `init` wrote is a folder of its own."""
    monkeypatch.setattr(sys, "argv", ["infold", "--target", "x", "plan"])
    said = [early.start(Began(), project(), 0) for _ in range(2)]
    monkeypatch.setattr(sys, "argv", ["infold", "init", "shop"])
    written = early.start(Began(), None, 0)

    assert "infold --target x engine status" in said[0]
    assert (said[1], "infold engine status" in written) == ("", True)
    assert started == [
        (["infold", "-C", ".", "--target", "x", "engine", "restart"], "."),
        (["infold", "-C", ".", "engine", "restart"], "shop"),
    ]


@pytest.mark.parametrize(
    ("given", "code", "free"),
    [
        (project(), 2, early.LEAST_FREE_BYTES),
        (project(), 0, early.LEAST_FREE_BYTES - 1),
        (project(start="when_needed"), 0, early.LEAST_FREE_BYTES),
        (project(start="off"), 0, early.LEAST_FREE_BYTES),
        (project(remote="sc://here"), 0, early.LEAST_FREE_BYTES),
        (None, 0, early.LEAST_FREE_BYTES),
    ],
)
def test_no_engine_is_started_early(
    started: Any, monkeypatch: pytest.MonkeyPatch, given: Any, code: int, free: int
) -> None:
    """After a mistake, with little memory, or where the project says so or has none of its own."""
    monkeypatch.setattr(sys, "argv", ["infold", "plan"])
    monkeypatch.setattr(early, "free_memory", lambda: free)

    assert early.start(Began(), given, code) == ""
    assert started == []


def test_a_command_waits_for_an_engine_that_starts(tmp_path: Path) -> None:
    """Until whoever starts it has ended, however that is."""
    file = str(tmp_path / "engine.sock")
    wire.await_start(file)  # nobody starts one
    lock = wire.lock_start(file)
    assert lock is not None
    assert wire.lock_start(file) is None

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(wire.await_start, file)
        time.sleep(0.2)
        waited = not waiting.done()
        os.close(lock)
        waiting.result(PATIENCE)

    assert waited


def test_an_engine_that_has_only_begun_to_start_is_ended(tmp_path: Path) -> None:
    """The command's own Spark is there sooner; nobody else is ended."""
    file = str(tmp_path / "engine.sock")
    words = [sys.executable, "-c", "import time; time.sleep(60)"]
    for more, expected in (([wire.STARTER], -signal.SIGTERM), ([], None)):
        lock = wire.lock_start(file)
        assert lock is not None
        with subprocess.Popen([*words, *more]) as starter:
            wire.name_starter(lock, starter.pid)
            wire.await_start(file, at_least=60)
            ended = starter.wait(PATIENCE) if more else starter.poll()
            starter.kill()
        os.close(lock)

        assert ended == expected


def test_a_process_that_is_just_being_loaded_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its words are empty for a moment; it is not left to run for that."""
    file = str(tmp_path / "engine.sock")
    lock = wire.lock_start(file)
    assert lock is not None
    wire.name_starter(lock, os.getpid())
    asked: list[int] = []

    def kill(process: int, *_: object) -> bool:
        asked.append(process)
        return len(asked) == 2

    monkeypatch.setattr(wire, "_kill", kill)
    wire.await_start(file, at_least=60)
    os.close(lock)

    assert asked == [os.getpid()] * 2


TEXT = st.binary(max_size=8).filter(lambda text: b"\0" not in text)
NAME = TEXT.filter(lambda text: text != b"" and b"=" not in text)


@given(st.lists(TEXT), TEXT, st.dictionaries(NAME, TEXT))
def test_a_request_comes_as_it_was_sent(
    words: list[bytes], place: bytes, environment: dict[bytes, bytes]
) -> None:
    """Whatever words and variables there are."""
    here, there = socket.socketpair()
    with here, there:
        engine_socket.send(here, Request(b"run", words, place, environment))
        found = engine_socket.receive(there)

    expected = b"run", tuple(words), place, environment
    assert (found.kind, found.words, found.place, found.environment) == expected


@pytest.mark.parametrize("data", [b"", b"\0\0", b"\0\0\0\5run", b"\0\0\0\3run", b"\xff" * 8])
def test_what_is_no_request_is_refused(data: bytes) -> None:
    """It ends early, is too long, or makes no sense."""
    here, there = socket.socketpair()
    with there:
        here.sendall(data)
        here.close()
        with pytest.raises((ValueError, OSError)):
            engine_socket.receive(there)


def test_only_the_owner_reaches_a_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else may open it, and a client trusts no other user's."""
    file = tmp_path / ("x" * 90) / "engine.sock"
    file.parent.mkdir()
    with engine_socket.listen(str(file)):
        assert file.stat().st_mode & 0o777 == 0o600
        with engine_socket.connect(str(file)) as made:
            assert engine_socket.peer(made) == (os.getpid(), os.geteuid())
        monkeypatch.setattr(os, "geteuid", lambda: 4711)
        with pytest.raises(PermissionError):
            engine_socket.connect(str(file))
    with pytest.raises(OSError):
        engine_socket.connect(str(file))


def test_elsewhere_than_on_linux_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the system lacks what one needs, it is asked for nothing of that."""
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.delattr(os, "O_PATH")
    monkeypatch.delattr(os, "pidfd_open")

    for word, verb in (("status", "is"), ("stop", "was"), ("restart", "was")):
        done = CliRunner().invoke(cli, ["-C", str(tmp_path), "engine", word])

        assert done.exit_code == 0
        assert done.output.startswith(f"No engine {verb} running")


def test_a_place_is_what_a_process_cannot_change_for_a_jvm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another folder, mask, or path of modules is another place. Of the environment, what differs
    between terminals does not matter, and everything else does.
    """
    here = circumstances.place(["a"])
    mask = os.umask(0o027)
    try:
        masked = circumstances.place(["a"])
    finally:
        os.umask(mask)
    other_path, again = circumstances.place(["b"]), circumstances.place(["a"])
    monkeypatch.chdir(tmp_path)

    assert here == again
    assert len({here, masked, other_path, circumstances.place(["a"])}) == 4
    one = {b"TERM": b"xterm", b"SSH_CLIENT": b"1", b"HOME": b"/root"}
    other = {b"COLUMNS": b"80", b"HOME": b"/root", b"INFOLD_ENGINE": b"on"}
    matters = circumstances.that_matters(one)
    assert matters == circumstances.that_matters(other)
    assert circumstances.that_matters({**one, b"AWS_REGION": b"x"}) != matters


def test_a_changed_file_of_the_program_is_seen(tmp_path: Path) -> None:
    """Written, made, or removed."""
    (tmp_path / "part").mkdir()
    file = tmp_path / "part" / "one.py"
    file.write_text("x = 1")
    first = installed(tmp_path)
    again = installed(tmp_path)
    file.write_text("x = 22")
    written = installed(tmp_path)
    (tmp_path / "two.py").touch()
    made = installed(tmp_path)

    assert first == again
    assert len({first, written, made}) == 3
