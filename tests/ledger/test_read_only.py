"""A ledger on a disk that is only read: whoever only looks needs no file beside it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.declare import shop
from tests.hostile.landed import LANDED
from tests.hostile.test_disks import obeying

from infold.cli.main import cli
from infold.core.record import Receipt
from infold.ledger import SqlLedger
from infold.messages.errors import InfoldError


def test_commands_that_look(tmp_path: Path) -> None:
    """They find what was written there, and leave nothing; others say that it cannot be used."""
    root = shop.write(tmp_path / "shop", LANDED)
    file = root / ".infold" / "ledger.db"
    book = SqlLedger(file)
    book.acquire("r1")
    book.begin_run("r1", "run", 5, {})
    book.finish_run("r1", "done", Receipt())
    book.release()
    book.close()
    file.chmod(0o444)
    file.parent.chmod(0o555)
    try:
        with obeying():
            for word in ("status", "plan", "history"):
                done = CliRunner().invoke(cli, ["-C", str(root), word])
                assert done.exit_code == 0, done.output
            assert "r1" in done.output
            with pytest.raises(InfoldError, match="ledger-unusable"):
                SqlLedger(file).acquire("r2")
    finally:
        file.parent.chmod(0o755)
    assert [path.name for path in file.parent.iterdir()] == ["ledger.db"]


def test_what_another_machine_writes_is_seen(tmp_path: Path) -> None:
    """Who only looks opens the file anew each time."""
    file = tmp_path / "book" / "ledger.db"
    reader = SqlLedger(file)
    for run in ("r1", "r2"):
        writer = SqlLedger(file)
        writer.acquire(run)
        writer.begin_run(run, "run", 5, {})
        writer.release()
        writer.close()
        file.parent.chmod(0o555)
        file.chmod(0o444)
        try:
            with obeying():
                assert run in {one.id for one in reader.runs()}
        finally:
            file.parent.chmod(0o755)
            file.chmod(0o644)
