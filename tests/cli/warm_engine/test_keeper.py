"""Commands that a keeper carries out are as they are by themselves; whatever happens to either."""

from __future__ import annotations

import fcntl
import mmap
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.cli.warm_engine.engines import COMMAND, HASTY, Engine, await_that, engine, runs, waits

from infold.cli.init import write_project
from infold.cli.warm_engine.keeper import TOUCHED, Command, Keeper
from infold.system import engine_socket as wire

pytestmark = pytest.mark.deep

GOOD = "3 models, 1 source, no findings in "
STOPPED = "Stopped. What was finished is kept; the next run goes on from there.\n"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The starter's project."""
    folder = tmp_path_factory.mktemp("warm") / "shop"
    write_project(folder)
    return folder


@pytest.fixture(scope="module")
def lasting(shop: Path) -> Iterator[Engine]:
    """Its engine, for all tests that leave it alive."""
    with engine(shop) as found:
        yield found


@pytest.fixture
def warm(lasting: Engine) -> Engine:
    """The same, and how many commands it has carried out so far."""
    lasting.before = 0
    lasting.before = lasting.served()
    return lasting


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Engine]:
    """An engine that a test may end, of another project."""
    write_project(tmp_path / "shop")
    with engine(tmp_path / "shop", HASTY) as found:
        yield found


class Held:
    """A pipe that is full: a command that writes to it waits."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.writer, False)
        with suppress(BlockingIOError):
            while True:
                os.write(self.writer, b"." * 4096)
        os.set_blocking(self.writer, True)

    def start(self, warm: Engine) -> subprocess.Popen[str]:
        """A command that waits, once its process has begun."""
        # As at a terminal: who runs the tests may have been started by nohup.
        found = warm.start("check", stdout=self.writer, preexec_fn=_hears_hangups)
        process = warm.command_process()
        output, held = Path(f"/proc/{process}/fd/1"), Path(f"/proc/self/fd/{self.writer}")
        await_that(lambda: output.readlink() == held.readlink())
        await_that(lambda: waits(process))  # it has checked the project, and printed what it can
        self.process = process
        return found

    def text(self) -> str:
        """What the command writes, now that somebody reads."""
        os.close(self.writer)
        with os.fdopen(self.reader) as opened:
            return opened.read().lstrip(".")


def _hears_hangups() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def test_a_command_is_as_it_is_by_itself(warm: Engine, shop: Path) -> None:
    """Output, errors and exit code are the same; changed files are read each time."""
    (shop / "models" / "bad.sql").write_text("SELECT nothing FROM nowhere\n")
    lines = (("check", "--json"), ("check", "--no-such-option"), ("show", "daily"))

    by_engine = [warm.run(*words) for words in lines]
    served = warm.served()
    alone = [warm.run("--no-engine", *words) for words in lines]
    (shop / "models" / "bad.sql").unlink()

    assert by_engine == alone
    assert {code for code, _, _ in alone} == {2}
    assert (served, warm.served()) == (3, 3)
    assert warm.run("check")[0] == 0


def test_input_and_output_are_those_of_the_command(warm: Engine, tmp_path: Path) -> None:
    """Files and pipes are the command's own; so are a full disk, and a reader that goes away."""
    file = tmp_path / "out.txt"  # a folder in which Python looks has to stay as it is
    with file.open("w") as opened:
        code, _, _ = warm.run("check", stdout=opened)
    with Path("/dev/full").open("w") as full:
        failed = warm.run("check", stdout=full)
    reader, writer = os.pipe()
    os.close(reader)
    gone = warm.run("check", stdout=writer)
    os.close(writer)

    assert code == 0
    assert file.read_text().startswith(GOOD)
    assert failed[0] == 1
    assert failed[2].startswith("output-failed: ")
    assert (gone[0], gone[2]) == (0, "")
    assert warm.served() == 3


def test_other_circumstances_are_not_served(warm: Engine, shop: Path) -> None:
    """Another environment, folder, limit or mask: the command is carried out by itself, as ever."""
    other = warm.run("check", environment={"AWS_REGION": "mars"})
    terminal = warm.run("check", environment={"COLUMNS": "80", "TERM": "dumb"})
    elsewhere = subprocess.run(
        [*("sh", "-c", f"umask 0777; cd / && exec {' '.join(COMMAND)} -C {shop} check")],
        env=warm.environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert {(code, err) for code, _, err in (other, terminal)} == {(0, "")}
    assert (elsewhere.returncode, elsewhere.stderr) == (0, "")
    assert warm.served() == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_signals_reach_the_command(warm: Engine, number: int, code: int) -> None:
    """Ctrl-C and the like end the command, with its own line and exit code; the engine stays."""
    held = Held()
    with held.start(warm) as client:
        client.send_signal(number)
        _, err = client.communicate(timeout=60)

    assert (client.returncode, err) == (code, STOPPED)
    await_that(lambda: not runs(held.process))
    assert warm.run("check")[0] == 0
    assert warm.served() == 2


EARLY = """
import os, signal, sys
from infold.cli.warm_engine import client
from infold.system import engine_socket as wire

sys.path[0] = os.getcwd()  # as `python -m` has it
go = wire.send_go

def later(connection, files):
    os.kill(os.getpid(), signal.SIGTERM)
    go(connection, files)

wire.send_go = later
os._exit(client.carry_out(["infold", "check"]))
"""
"""A client that gets a signal once it has a process, and before that has begun."""


def test_no_signal_is_too_early(warm: Engine, shop: Path) -> None:
    """Before the command has begun it has the handlers of the keeper, and means itself."""
    done = subprocess.run(
        [sys.executable, "-c", EARLY],
        cwd=shop,
        env=warm.environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert (done.returncode, done.stdout, done.stderr) == (143, "", STOPPED)
    assert warm.run("check")[0] == 0
    assert warm.served() == 2


def test_client_and_command_die_together(warm: Engine) -> None:
    """Where the client is killed its command is, and the other way round."""
    held = Held()
    with held.start(warm) as client:
        client.kill()
    await_that(lambda: not runs(held.process))
    assert warm.run("check")[0] == 0
    assert warm.served() == 2

    other = Held()
    with other.start(warm) as client:
        os.kill(other.process, signal.SIGKILL)
        client.communicate(timeout=60)
    assert client.returncode == -signal.SIGKILL


def test_a_killed_command_lets_go_of_the_target(own: Engine) -> None:
    """The lock that it shares with the keeper and a JVM, which go on."""
    point = "ledger begin_run: before commit"

    code, _, err = own.run("run", environment={"INFOLD_CRASH_AT": point})
    with (own.root / ".infold" / "dev.lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    assert (code, err) == (-signal.SIGKILL, "")
    assert runs(own.jvm)
    assert own.served() == 1


def test_a_killed_keeper_costs_nothing(own: Engine) -> None:
    """The command goes on and ends well; then the JVM ends too, and the next one is by itself."""
    held, keeper = Held(), own.keeper
    with held.start(own) as client:
        os.kill(keeper, signal.SIGKILL)
        await_that(lambda: not runs(keeper))
        assert runs(held.process)
        assert runs(own.jvm)
        out = held.text()
        _, err = client.communicate(timeout=60)

    assert (client.returncode, err) == (0, "")
    assert out.startswith(GOOD)
    await_that(lambda: not runs(own.jvm))
    assert own.run("check")[0] == 0


def test_a_second_command_does_not_wait(warm: Engine) -> None:
    """While the engine is busy, another command is carried out by itself."""
    held = Held()
    with held.start(warm) as first:
        second = warm.run("check")
        served = warm.served()
        busy = first.poll() is None
        first.kill()

    assert (second[0], second[2]) == (0, "")
    assert (busy, served) == (True, 1)


def test_stop_ends_all_of_it(own: Engine) -> None:
    """Keeper, JVM and socket are gone; then there is nothing to stop."""
    keeper = own.keeper

    assert own.run("engine", "stop")[:2] == (0, "The engine has ended.\n")
    await_that(lambda: not runs(keeper) and not runs(own.jvm))
    assert not (own.root / ".infold" / "engine-dev.sock").exists()
    assert own.run("engine", "stop")[:2] == (0, "No engine was running.\n")
    assert own.run("check")[0] == 0


def test_what_a_client_sends_is_the_command_s_to_read(tmp_path: Path) -> None:
    """A command that is killed as it begins is told of, however the two processes take turns."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "engine.sock"))
        listening.listen()
        for _ in range(40):
            client, ours = socket.socketpair()
            ours.settimeout(2)
            process = os.fork()
            if process == 0:
                ours.settimeout(None)
                ours.recv(1)
                os.kill(os.getpid(), signal.SIGKILL)
            command = Command(process, os.pidfd_open(process), ours, mmap.mmap(-1, 2))
            keeper = Keeper({"watched": -1, "locks": {}}, "", listening, command=command)

            client.sendall(wire.GO)
            while keeper.command is not None:
                keeper.turn(60)

            with client:
                assert wire.next_reply(client) == (wire.SIGNAL, signal.SIGKILL)


def test_a_jvm_of_a_killed_command_s_own_keeps_others_out(tmp_path: Path) -> None:
    """It may finish a commit in its last moment: only once it is gone the lock is free."""
    file = tmp_path / "dev.lock"
    locked = os.open(file, os.O_RDWR | os.O_CREAT)
    fcntl.flock(locked, fcntl.LOCK_EX)
    with (
        socket.socket(socket.AF_UNIX) as listening,
        subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True) as offered,
        subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=[locked]) as own,
    ):
        process = os.fork()
        if process == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        marks = mmap.mmap(-1, 2)
        marks[TOUCHED] = 1
        command = Command(process, os.pidfd_open(process), None, marks)
        given = {
            "pid": offered.pid,
            "watched": os.pidfd_open(offered.pid),
            **dict.fromkeys(("input", "port", "secret", "needs", "large"), ""),
            "locks": {str(file): locked},
        }
        listening.bind(str(tmp_path / "engine.sock"))
        listening.listen()
        keeper = Keeper(given, "", listening, command=command)
        while keeper.command is not None:
            keeper.turn(60)

        assert keeper.ends
        with file.open("r+") as other:
            with pytest.raises(BlockingIOError):
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            own.kill()
            own.wait()
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        offered.kill()
