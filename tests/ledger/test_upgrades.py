"""Ledgers of formats that were released become ledgers of the present, in both databases."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from infold.ledger.sql import SCHEMA
from tests.crash.scenario import living
from tests.ledger import released_ledgers
from tests.ledger.conftest import Place

from infold.ledger import database, postgresql, upgrades
from infold.ledger.database import FORMAT, FORMAT_ROW
from infold.messages.errors import InfoldError

NEXT = upgrades.Upgrade(
    FORMAT + 1,
    "a table has another column, and there is another table",
    (
        "ALTER TABLE left_out ADD COLUMN why TEXT",
        "CREATE TABLE notes ( name TEXT NOT NULL, PRIMARY KEY (name) )",
        "INSERT INTO notes (name) SELECT model FROM left_out",
    ),
)
"""What the format after the present one might be."""


@pytest.fixture
def next_format(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """The program is that of the next format."""
    with monkeypatch.context() as patch:
        patch.setattr(upgrades, "UPGRADES", (*upgrades.UPGRADES, NEXT))
        for module in (database, postgresql):
            patch.setattr(module, "FORMAT", upgrades.newest_format())
        yield patch


def test_the_present_format_is_kept_for_those_to_come() -> None:
    """Each format since the first release is stored, with the tables that a file of it has."""
    assert [*range(upgrades.RELEASED, FORMAT + 1)] == released_ledgers.FORMATS
    for format_ in released_ledgers.FORMATS:
        made = (released_ledgers.FOLDER / f"{format_}.sql").read_text(encoding="utf-8")
        tables = [text for text in made.splitlines() if text.startswith("CREATE TABLE")]
        assert [*upgrades.tables_of(format_, SCHEMA)] == tables


@pytest.mark.parametrize("format_", released_ledgers.FORMATS)
def test_a_released_ledger_becomes_one_of_today(format_: int, place: Place, there: Place) -> None:
    """All its rows stay, but for columns that are dropped; its tables are as in a new ledger."""
    before = released_ledgers.kept(released_ledgers.make(place, format_))
    there.open().acquire("r")

    ledger = place.open()
    ledger.acquire("r")
    ledger.release()

    assert released_ledgers.structure(place) == released_ledgers.structure(there)
    found = released_ledgers.stored_rows(place, before)
    assert found.keys() == before.keys()
    for table, rows in before.items():
        assert ordered(found[table]) == ordered(rows)


def test_any_sqlite_can_upgrade(tmp_path: Path) -> None:
    """One before 3.35 drops no column; tables are the same to the letter as in a new ledger."""
    for format_ in released_ledgers.FORMATS:
        old = Place(f"sqlite:///{tmp_path / str(format_) / 'ledger.db'}", "")
        released_ledgers.make(old, format_)
        old.open().left_out()
        with closing(sqlite3.connect(tmp_path / str(format_) / "ledger.db")) as file:
            made = {text for (text,) in file.execute("SELECT sql FROM sqlite_master") if text}
        assert made == set(SCHEMA)
        old.close()
    texts = " ".join(upgrades.texts_since(upgrades.RELEASED))
    assert "DROP COLUMN" not in texts
    assert "RENAME COLUMN" not in texts


def ordered(rows: list[dict[str, Any]]) -> list[str]:
    """Rows in some order, without that of the format; a file has numbers in place of booleans."""
    return sorted(
        repr(sorted((name, int(v) if isinstance(v, bool) else v) for name, v in row.items()))
        for row in rows
        if row.get("name") != FORMAT_ROW
    )


def test_the_next_format(place: Place, next_format: pytest.MonkeyPatch) -> None:
    """
    A reader upgrades what it opens, in one transaction, and once. Then programs of this format are
    told to upgrade, and change nothing.
    """
    released_ledgers.make(place, FORMAT)

    ledger = place.open()
    known = ledger.left_out()
    assert known
    with ledger.database.read() as query:
        assert [*query.stream("SELECT why FROM left_out")] == [(None,)] * len(known)
        assert len([*query.stream("SELECT name FROM notes")]) == len(known)
        assert query.one("meta", name=FORMAT_ROW)[0] == str(FORMAT + 1)
    assert place.open().left_out() == known

    next_format.undo()
    for use in (lambda: place.open().left_out(), lambda: place.open().acquire("r")):
        with pytest.raises(InfoldError, match="ledger-newer"):
            use()


@pytest.mark.usefixtures("next_format")
def test_an_upgrade_that_dies(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it is there then, and the next one does all of it."""
    released_ledgers.make(place, FORMAT)
    broken = upgrades.Upgrade(FORMAT + 1, "", (*NEXT.texts[:2], "INSERT INTO nowhere VALUES (1)"))
    with monkeypatch.context() as patch:
        patch.setattr(upgrades, "UPGRADES", (*upgrades.UPGRADES[:-1], broken))
        with pytest.raises(InfoldError):
            place.open().left_out()
    with living(1):
        place.open().left_out()

    ledger = place.open()
    known = ledger.left_out()
    assert known
    with ledger.database.read() as query:
        assert len([*query.stream("SELECT name FROM notes")]) == len(known)
