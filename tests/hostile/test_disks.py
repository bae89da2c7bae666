"""Unreadable folders and files, full disks, and files that are no ledger.

The tests may run as root, who may do everything: so the processes here give
that up (they drop CAP_DAC_OVERRIDE), or get a limit for the size of files.
"""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.declare.shop import write
from tests.hostile.landed import LANDED
from tests.hostile.outcome import command, ended, judged

pytestmark = pytest.mark.deep

_DROP_A_RIGHT = 24  # PR_CAPBSET_DROP
_VERSION = 0x20080522  # of capget and capset
_OVERRIDE, _READ_SEARCH = 1, 2  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH


def _without_rights() -> None:
    libc = ctypes.CDLL(None)
    for right in (_OVERRIDE, _READ_SEARCH):
        libc.prctl(_DROP_A_RIGHT, right, 0, 0, 0)


@contextmanager
def obeying() -> Iterator[None]:
    """This thread obeys the modes of files, even that of root; afterwards it need not again."""
    libc, words = ctypes.CDLL(None), (ctypes.c_uint32 * 6)()
    head = (ctypes.c_uint32 * 2)(_VERSION, 0)
    assert libc.capget(head, words) == 0
    usual = words[0]
    words[0] &= ~(1 << _OVERRIDE | 1 << _READ_SEARCH)
    assert libc.capset(head, words) == 0
    try:
        yield
    finally:
        words[0] = usual
        assert libc.capset(head, words) == 0


@contextmanager
def full() -> Iterator[None]:
    """No file of this process can grow; afterwards they can again."""
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)


def _without_files() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (12, 12))


def infold(
    folder: Path,
    *words: str,
    before: Callable[[], None] = _without_rights,
    env: Mapping[str, str] | None = None,
) -> str:
    """What is wrong with how a command of its own ended."""
    done = subprocess.run(
        [sys.executable, "-m", "infold", "-C", str(folder), *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=before,
        env={**os.environ, **(env or {})},
    )
    return ended(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A project that never ran."""
    return write(tmp_path / "shop", LANDED)


CLOSED = [".", "infold.yml", "models", "models/daily.sql", "landing", "landing/clicks"]
CLOSED += ["landing/clicks/a.json", "countries.csv", ".infold", "warehouse"]


@pytest.mark.parametrize("mode", [0o000, 0o444, 0o555], ids=["closed", "list only", "no writing"])
def test_unreadable_and_unwritable_files(
    mode: int, shop: Path, record_property: Callable[[str, object], None]
) -> None:
    """Commands name the file without permission, or work without it."""
    for name in (".infold", "warehouse"):
        (shop / name).mkdir()
    wrong = {}
    for place in CLOSED:
        at = shop / place
        usual = at.stat().st_mode
        at.chmod(mode & (0o777 if at.is_dir() else 0o666))
        try:
            with obeying():
                for word in ("check", "plan", "status", "history"):
                    wrong[f"{place} {word}"] = command(shop, word)
        finally:
            at.chmod(usual)
    record_property("hostile", len(wrong))

    judged(f"mode {mode:o}", {n: what for n, what in wrong.items() if what}, list(wrong))


def test_a_full_disk(shop: Path, record_property: Callable[[str, object], None]) -> None:
    """A full disk is a named error, whatever a command would write there."""
    wrong = {}
    with full(), pytest.raises(OSError, match="File too large"):
        (shop / "any").write_text("any")
    for words in (
        ["check"],
        ["plan"],
        ["init", str(shop / "new")],
        ["manifest", str(shop / "out")],
        ["quarantine", "add", "sessions", "a"],
    ):
        with full():
            wrong[words[0]] = command(shop, *words)
    record_property("hostile", len(wrong))

    judged("disk", {name: what for name, what in wrong.items() if what}, list(wrong))


def test_odd_circumstances(shop: Path, record_property: Callable[[str, object], None]) -> None:
    """Few open files, no folder to keep things in, other letters: a named error, or none."""
    wrong = {
        "few open files": infold(shop, "plan", before=_without_files),
        "no home": infold(shop, "plan", env={"HOME": "/nobody", "INFOLD_CACHE": "/nobody/cache"}),
        "no folder for what is passing": infold(
            shop, "plan", env={"TMPDIR": "/nobody", "COLUMNS": "1"}
        ),
        "another tongue": infold(
            shop, "plan", env={"LC_ALL": "C", "PYTHONUTF8": "0", "COLUMNS": "wide"}
        ),
        "letters of one byte": infold(shop, "plan", env={"PYTHONIOENCODING": "ascii"}),
    }
    record_property("hostile", len(wrong))

    judged("odd", {name: what for name, what in wrong.items() if what}, list(wrong))


def _another(ledger: Path) -> None:
    with sqlite3.connect(ledger) as made:
        made.execute("CREATE TABLE customers (id int)")


def _cut_off(ledger: Path) -> None:
    _another(ledger)
    ledger.write_bytes(ledger.read_bytes()[:1_000])


LEDGERS: dict[str, Callable[[Path], object]] = {
    "garbage": lambda ledger: ledger.write_bytes(bytes(range(256)) * 64),
    "empty": lambda ledger: ledger.write_bytes(b""),
    "another": _another,
    "cut off": _cut_off,
    "text": lambda ledger: ledger.write_text("version https://git-lfs.github.com/spec/v1\n"),
    "folder": Path.mkdir,
    "dangling": lambda ledger: ledger.symlink_to("/nobody/ledger.db"),
    "a journal alone": lambda ledger: ledger.with_name("ledger.db-wal").write_bytes(b"\0" * 4096),
}


@pytest.mark.parametrize("place", [".infold/ledger.db", "warehouse/catalog.db"])
def test_a_file_that_is_no_ledger(
    place: str, shop: Path, record_property: Callable[[str, object], None]
) -> None:
    """A file that is no ledger is named and never overwritten."""
    wrong = {}
    for name, spoil in LEDGERS.items():
        at = shop / place
        shutil.rmtree(at.parent, ignore_errors=True)
        at.parent.mkdir()
        spoil(at)
        for line in ("plan", "status", "history", "show sessions", "explain daily"):
            wrong[f"{name} {line}"] = command(shop, *line.split())
    record_property("hostile", len(wrong))

    judged(place, {name: what for name, what in wrong.items() if what}, list(wrong))
