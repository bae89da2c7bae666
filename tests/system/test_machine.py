"""What there is on a machine: locks, memory, connections, kept files, git's branch."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from tests.declare.shop import INFOLD, SHOP, write

from infold.declare.load import branch_of, environment_of, environment_of_branch
from infold.messages.errors import InfoldError
from infold.system import circumstances, process_lock
from infold.system.kept_files import cache_dir, keep, kept, open_log, own_key, replace_file
from infold.system.postgresql_server import Fault, KeptConnection, Server
from infold.system.process_lock import lock_in_jvm, writer_lock

JAVAS_LOCK = """
import fcntl, sys
opened = open(sys.argv[1], "w")
fcntl.lockf(opened, fcntl.LOCK_EX)
print(flush=True)
sys.stdin.read()
"""
"""Another process that locks a file as Java does."""


class Jvm:
    """Locks a file in a process of its own."""

    def __init__(self) -> None:
        self.files: list[Path] = []
        self.process: subprocess.Popen[bytes] | None = None

    def lock(self, file: Path) -> Callable[[], None]:
        """What ``lock_in_jvm`` calls."""
        self.files.append(file)
        words = [sys.executable, "-c", JAVAS_LOCK, str(file)]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        self.process.stdout.readline()
        return self.end

    def end(self) -> None:
        """What unlocks it, here by its death."""
        assert self.process is not None
        self.process.kill()
        self.process.communicate()


@pytest.mark.deep
def test_a_jvm_that_outlives_its_process_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody writes to the target until it has ended."""
    jvm = Jvm()
    monkeypatch.setattr(process_lock, "WAIT_SECONDS", 0.2)
    with writer_lock(tmp_path, "dev"):
        pass
    jvm.lock(tmp_path / ".infold" / "dev.jvm-lock")  # of a process that was killed

    with pytest.raises(InfoldError, match="engine-busy"), writer_lock(tmp_path, "dev"):
        pytest.fail("two write")
    with writer_lock(tmp_path, "other"):
        pass
    jvm.end()
    with writer_lock(tmp_path, "dev"):
        pass


def test_a_jvm_locks_while_its_process_does(tmp_path: Path) -> None:
    """Once, however many sessions there are; not before, and not after the end of the run."""
    jvm = Jvm()
    lock_in_jvm(tmp_path, "dev", jvm.lock)
    assert jvm.files == []

    with writer_lock(tmp_path, "dev"):
        lock_in_jvm(tmp_path, "dev", jvm.lock)
        lock_in_jvm(tmp_path, "dev", jvm.lock)
        (file,) = jvm.files
        with file.open("r+") as opened, pytest.raises(BlockingIOError):
            fcntl.lockf(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)

    lock_in_jvm(tmp_path, "dev", jvm.lock)
    assert jvm.files == [file]
    with writer_lock(tmp_path, "dev"):
        pass


# -- memory is short when little of the machine's, or of the container's, is left


@pytest.mark.parametrize(
    ("machine", "container", "short"),
    [
        ((800, 1000), (None, 0), False),
        ((60, 1000), (None, 0), True),
        ((800, 1000), (100, 50), False),
        ((800, 1000), (100, 96), True),
    ],
)
def test_when_it_is_short(
    monkeypatch: pytest.MonkeyPatch,
    machine: tuple[int, int],
    container: tuple[int | None, int],
    short: bool,
) -> None:
    """Either is enough."""
    monkeypatch.setattr(circumstances, "_of_machine", lambda: machine)
    monkeypatch.setattr(circumstances, "_of_container", lambda: container)

    assert circumstances.is_memory_short() is short


def test_what_a_process_has() -> None:
    """A Python has some megabytes; a process that is gone has nothing."""
    assert circumstances.memory_of_process(os.getpid()) > 1_000_000
    assert circumstances.memory_of_process(2**22 + 1) == 0
    left, total = circumstances._of_machine()
    assert 0 < left < total


# -- a connection to a server is kept by the process that made it, and by no other


@dataclass
class Connection:
    """Stands for psycopg's: knows whether it was closed."""

    closed: bool = False

    def close(self) -> None:
        """Close it."""
        self.closed = True


@dataclass(frozen=True)
class Servers(Server):
    """A server that counts how often it was connected to."""

    made: list[Connection] = field(default_factory=list)

    def error(self, fault: Fault, place: str = "", why: str = "") -> InfoldError:
        """Nothing fails here."""
        raise NotImplementedError(fault, place, why)

    def connect(self) -> tuple[Any, str]:
        """Another connection."""
        self.made.append(Connection())
        return cast("Any", self.made[-1]), "the server"


def kept_one() -> tuple[KeptConnection, list[Connection]]:
    """A kept connection, and those that were made for it."""
    server = Servers("", Path(), "ledger")
    return KeptConnection(server), server.made


def test_it_is_made_once_and_again_when_it_was_closed() -> None:
    """The one who opens is told whether it is new; to close twice does no harm."""
    one, made = kept_one()
    one.close()

    assert [one.open()[1], one.open()[1]] == [True, False]
    one.close()
    one.close()
    assert one.current is None
    assert one.open()[1]
    assert [each.closed for each in made] == [True, False]
    assert one.shown == "the server"


def test_a_forked_child_makes_its_own() -> None:
    """It sees none, and closes its parent's neither by hand nor as it makes one of its own."""
    one, made = kept_one()
    one.open()
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            found = [one.current is None]
            one.close()
            found.append(one.open()[1])
            one.close()
            found += [each.closed for each in made]
            os.write(write, repr(found).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(write)

    with os.fdopen(read) as told:
        assert told.read() == repr([True, True, False, True])
    assert not one.open()[1]


# -- what is kept in a project's folder counts only for the user who kept it


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where something is kept, by the key in a cache of its own."""
    monkeypatch.setenv("INFOLD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "kept"


def test_what_was_kept_is_there(file: Path) -> None:
    """In a later process too; the key can be read by nobody else."""
    keep(file, b"this")
    script = "from infold.system.kept_files import kept; from pathlib import Path; import sys; "
    script += "print(kept(Path(sys.argv[1])))"
    later = subprocess.run(
        [sys.executable, "-c", script, file], capture_output=True, text=True, check=True
    )

    assert later.stdout == "b'this'\n"
    assert (cache_dir() / "key").stat().st_mode & 0o777 == 0o600


def test_anything_else_is_as_if_it_were_missing(file: Path) -> None:
    """A file without a digest, cut, longer, of other bytes, and none."""
    keep(file, b"this")
    whole = file.read_bytes()
    for other in (b"", b"this", whole[:-1], whole + b"!", whole.replace(b"this", b"that")):
        file.write_bytes(other)

        assert kept(file) is None
    file.unlink()
    assert kept(file) is None


def test_nothing_is_kept_without_a_key(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no home, the cache is a file, or others can read the key."""
    own_key(cache_dir())
    key = cache_dir() / "key"
    key.chmod(0o644)
    own_key.cache_clear()
    keep(file, b"this")
    monkeypatch.setenv("INFOLD_CACHE", str(key))
    keep(file, b"this")

    assert not file.exists()
    assert kept(file) is None


def test_no_link_is_followed(file: Path) -> None:
    """A project may come with links in the place of what commands write, to anything."""
    precious = file.with_name("precious")
    for put in (
        lambda: keep(file, b"this"),
        lambda: replace_file(file, b"this"),
        lambda: open_log(file).close(),
    ):
        precious.write_text("precious")
        file.unlink(missing_ok=True)
        file.symlink_to(precious)

        put()

        assert precious.read_text() == "precious"
        assert not file.is_symlink()


def test_a_pipe_is_not_waited_for(file: Path) -> None:
    """Nobody writes into one that came with a project."""
    os.mkfifo(file)
    assert kept(file) is None

    open_log(file).close()

    assert file.is_file()


# -- the environment of git's branch, read from git's files


@pytest.mark.parametrize(
    ("branch", "name"),
    [
        (None, None),
        ("main", None),
        ("master", None),
        ("feature/new totals", "feature-new-totals"),
        ("1-fix", "_1-fix"),
        ("über", "_-ber"),
        ("-x", "_-x"),
        ("a" * 60, "a" * 40),
    ],
)
def test_the_name_follows_from_the_branch(branch: str | None, name: str | None) -> None:
    """Whatever is in no name becomes a dash; the main branch is production."""
    assert environment_of(branch) == name


def test_where_the_branch_is_written(tmp_path: Path) -> None:
    """A folder inside of a repository or of a worktree of one has its branch; others have none."""
    inner = tmp_path / "repo" / "shop"
    inner.mkdir(parents=True)
    assert branch_of(inner) is None
    git = tmp_path / "repo" / ".git"
    git.mkdir()
    (git / "HEAD").write_text("ref: refs/heads/a/b\n", encoding="utf-8")
    assert branch_of(inner) == "a/b"
    (git / "HEAD").write_text("1234abcd\n", encoding="utf-8")
    assert branch_of(inner) is None

    (git / "worktrees" / "one").mkdir(parents=True)
    (git / "worktrees" / "one" / "HEAD").write_text("ref: refs/heads/c\n", encoding="utf-8")
    tree = tmp_path / "one"
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {git}/worktrees/one\n", encoding="utf-8")
    assert branch_of(tree) == "c"


def test_only_where_the_target_asks_for_it(tmp_path: Path) -> None:
    """A branch means an environment in targets that say so, and nowhere else."""
    write(tmp_path, {**SHOP, "infold.yml": INFOLD + "  own: {environment_from_branch: true}\n"})
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/fix\n", encoding="utf-8")

    assert environment_of_branch(tmp_path, "own") == "fix"
    assert environment_of_branch(tmp_path, None) is None
    assert environment_of_branch(tmp_path / "models", "own") is None
