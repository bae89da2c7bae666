"""Any byte of a ledger's file may be anything: it can be read, or it is damaged and told so."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.declare import shop
from tests.ledger.steps import change, do, kept_of, next_run, outcome

from infold.cli.main import cli
from infold.core.definition_text import digest_of
from infold.core.interval import DAY, Interval
from infold.core.record import Receipt
from infold.ledger import SqlLedger
from infold.ledger.damage import damage_of, entries_in
from infold.ledger.database import USED_FILES
from infold.messages.errors import InfoldError

SEEDS = 500
FLIPS = 20


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a ledger with some runs, definitions and changed cells."""
    path = tmp_path_factory.mktemp("whole") / "ledger.db"
    ledger = SqlLedger(path)
    ledger.acquire("r1")
    ledger.begin_run("r1", "run", 5, {})
    ledger.set_owner("shop", "warehouse")
    for number in range(1, 8):
        cells = [Interval(day * DAY, (day + 1) * DAY) for day in range(number)]
        do(ledger, outcome(number, *(change(cell, number) for cell in cells)), run=f"r{number}")
        kept = kept_of(f"m{number}", f"SELECT {number} AS a")
        ledger.keep_definitions({digest_of(kept): kept}, {kept.name: digest_of(kept)}, {})
        ledger.finish_run(f"r{number}", "done", Receipt())
        next_run(ledger, f"r{number + 1}")
    ledger.finish_run("r8", "done", Receipt())
    ledger.release()
    ledger.database.close()
    return path.read_bytes()


def test_flipped_bytes(whole: bytes, tmp_path: Path) -> None:
    """
    Whatever twenty bytes are, a command reads all that it asks for, or says that the file is none;
    and a repair finds it damaged and gives it another name.
    """
    found = {True: 0, False: 0}
    for seed in range(SEEDS):
        drawn = random.Random(seed)
        flipped = bytearray(whole)
        for _ in range(FLIPS):
            flipped[drawn.randrange(len(flipped))] = drawn.randrange(256)
        path = tmp_path / f"{seed}.db"
        path.write_bytes(flipped)
        ledger = SqlLedger(path)
        damage = damage_of(ledger)
        found[bool(damage)] += 1
        entries_in(path)
        if damage:
            assert Path(ledger.database.put_aside()).read_bytes() == flipped
            assert not path.exists()
        else:
            read(ledger)
        ledger.database.close()
    USED_FILES.clear()
    assert min(found.values()) > SEEDS / 20


def read(ledger: SqlLedger) -> None:
    """What most commands read."""
    ledger.owner()
    ledger.traces()
    ledger.newest_versions()
    ledger.changes("events", 0)
    ledger.cells("events")
    ledger.runs(100)


@pytest.mark.parametrize(
    "broken",
    [
        "UPDATE meta SET value = 'abc' WHERE name = 'infold.ledger'",
        "UPDATE meta SET value = x'ff' WHERE name = 'infold.project'",
        "UPDATE steps SET detail = cast(x'7bff7d' AS TEXT)",
        "UPDATE steps SET detail = '{'",
        "UPDATE steps SET outcome = '{}'",
        "UPDATE runs SET receipt = '[1]'",
        "UPDATE runs SET started_at = 9223372036854775807",
        "UPDATE runs SET as_of = 'now'",
        "UPDATE versions SET number = 'one' WHERE number = 1",
        "UPDATE cells SET cell_end = cell_start - 1",
        "UPDATE leases SET token = 'abc'",
        "DROP TABLE traces",
    ],
)
def test_a_value_that_is_none(broken: str, whole: bytes, tmp_path: Path) -> None:
    """SQLite takes any value for any column, and says of such a file that it is whole."""
    path = shop.write(tmp_path / "shop") / ".infold" / "ledger.db"
    path.parent.mkdir()
    path.write_bytes(whole)
    with closing(sqlite3.connect(path)) as file:
        assert file.execute(broken).rowcount
        file.commit()

    assert damage_of(SqlLedger(path)) != ""
    for command in (["history"], ["status"], ["repair", "--dry-run"]):
        done = CliRunner().invoke(cli, ["-C", str(tmp_path / "shop"), *command])
        assert "internal:" not in done.output
    assert "damaged" in done.output


def test_a_ledger_is_no_worse_than_it_is(whole: bytes, tmp_path: Path) -> None:
    """A whole one, none, and a database of somebody else's are not damaged."""
    path = tmp_path / "ledger.db"
    assert damage_of(SqlLedger(path)) == ""
    path.write_bytes(whole)
    assert damage_of(SqlLedger(path)) == ""
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as file:
        file.execute("CREATE TABLE theirs (a)")
    with pytest.raises(InfoldError) as caught:
        damage_of(SqlLedger(other))
    assert caught.value.slug == "not-a-ledger"
