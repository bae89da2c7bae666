"""A ledger is taken to another place: all of it or nothing, and only one of the two goes on."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial

import pytest
from tests.ledger import filled
from tests.ledger.conftest import Place, killed

from infold.core.audits import AuditResult
from infold.core.report import LedgerCopy
from infold.core.session_rules import ManualEntry
from infold.ledger import SqlLedger, copying, whole_tables
from infold.ledger.copying import copy_ledger
from infold.ledger.lease import NAME, Holder
from infold.ledger.schema import metadata
from infold.messages.errors import InfoldError

NewPlace = Callable[[], Place]


def copied(original: SqlLedger, to: SqlLedger, run: str = "copying") -> LedgerCopy:
    """A copy, as the command makes it."""
    return copy_ledger(original, to, at="here", place="there", run=run)


def refusal(use: Callable[[], object]) -> str:
    """The name of the error of something that is refused."""
    with pytest.raises(InfoldError) as raised:
        use()
    return raised.value.slug


def test_all_tables_are_known_with_all_their_columns() -> None:
    """What is read from the texts is what the schema has: name, kind, NULL and key."""
    known = {table.name: table for table in whole_tables.TABLES}

    assert {*known, whole_tables.LEASES} == set(metadata.tables)
    for name, table in known.items():
        columns = metadata.tables[name].columns
        assert [
            (column.name, column.kind, column.null, column.bits) for column in table.columns
        ] == [
            (
                column.name,
                column.type.python_type,
                column.nullable,
                32 if type(column.type).__name__ == "Integer" else 64,
            )
            for column in columns
        ]
        assert set(table.key) == {column.name for column in columns if column.primary_key}


class TestCopy:
    """The copy is the ledger, and the original is closed."""

    def test_every_row_of_every_table_is_copied(self, original: SqlLedger, there: Place) -> None:
        """
        Also texts and numbers at the ends of what a database can store, and into a ledger without
        rows, as `infold doctor` leaves one. Nobody has the lease, and no token is given out twice.
        """
        empty = there.open()
        empty.acquire("r9")
        empty.release()
        before = filled.rows_of(original)
        assert all(before.values())

        done = copied(original, there.open())

        to, (last, _) = there.open(), filled.token_of(original)
        assert filled.rows_of(to) == filled.rows_of(original) == before
        assert done.rows == {name: len(rows) for name, rows in before.items()}
        assert not done.again
        assert filled.token_of(to) == (last, None)
        to.acquire("r2")
        assert filled.token_of(to) == (last + 1, "r2")
        assert to.owner() == ("shop", "warehouse")
        to.close()

    def test_the_original_is_closed(self, original: SqlLedger, place: Place, there: Place) -> None:
        """Nobody writes to it again, with the lease or without, nor takes it for the ledger."""
        copied(original, there.open())
        entry = ManualEntry(0, "ann", True, 1, 2, "")
        other = place.open()

        for use in (
            lambda: other.acquire("r2"),
            lambda: other.add_entries("m", [entry]),
            lambda: other.record_audits("m", tuple[AuditResult, ...]()),
            other.owner,
            lambda: copied(other, there.open()),
        ):
            assert refusal(use) == "ledger-moved"
        assert filled.token_of(other)[1] is None
        assert other.locations()

    def test_a_copy_goes_back_to_a_new_place_only(
        self, original: SqlLedger, place: Place, there: Place, new_place: NewPlace
    ) -> None:
        """What was closed is not written over; elsewhere a copy of the copy is the ledger."""
        before = filled.rows_of(original)
        copied(original, there.open())

        assert refusal(lambda: copied(there.open(), place.open())) == "ledger-not-empty"
        back = new_place()
        copied(there.open(), back.open())

        assert filled.rows_of(back.open()) == before
        assert refusal(lambda: there.open().owner()) == "ledger-moved"
        back.open().owner()


class TestRefusals:
    """Nothing is written over, and nothing is copied while somebody writes."""

    def test_a_place_with_a_ledger(self, original: SqlLedger, place: Place, there: Place) -> None:
        """Whatever is in it: a run is enough. Nor the same place: it would be closed."""
        other = there.open()
        other.acquire("r9")
        other.begin_run("r9", "run", 0, {})
        other.release()
        before = filled.rows_of(other)

        for to in (there, place):
            assert refusal(partial(copied, original, to.open())) == "ledger-not-empty"

        assert filled.rows_of(other) == before
        assert original.owner()

    def test_a_place_where_somebody_was_a_moment_sooner(
        self, original: SqlLedger, there: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What they wrote stays."""
        to, other = there.open(), there.open()
        real = to.acquire

        def acquire(run: str) -> None:
            other.add_entries("theirs", [ManualEntry(0, "ann", True, 1, 2, "")])
            real(run)

        monkeypatch.setattr(to, "acquire", acquire)

        assert refusal(lambda: copied(original, to)) == "ledger-not-empty"

        assert [entry.owner for entry in other.entries("theirs")] == ["ann"]
        assert original.owner()
        other.acquire("r9")

    @pytest.mark.parametrize("where", ["original", "copy"])
    def test_a_run_at_work(
        self, original: SqlLedger, place: Place, there: Place, where: str
    ) -> None:
        """In either place: it is named, and nothing is copied."""
        far = Holder("away", "away:boot:ns", 1, "1")
        busy = (place if where == "original" else there).open(holder=far)
        busy.acquire("theirs")

        assert refusal(lambda: copied(original, there.open())) == "locked"

        assert busy.database.lost is None
        busy.release()
        copied(original, there.open())

    def test_nobody_writes_meanwhile(
        self, original: SqlLedger, place: Place, there: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Not even what needs no lease: it would be lost."""
        real, tried = copying.fill, []

        def fill(*words: object, **how: object) -> object:
            done = real(*words, **how)  # type: ignore[arg-type]
            if place.url.startswith("sqlite"):
                file = place.url.removeprefix("sqlite:///")
                with closing(sqlite3.connect(file, timeout=0)) as connection:
                    try:
                        connection.execute("BEGIN IMMEDIATE")
                    except sqlite3.OperationalError as error:
                        tried.append(str(error))
            return done

        monkeypatch.setattr(copying, "fill", fill)
        copied(original, there.open())

        assert tried == ["database is locked"] * place.url.startswith("sqlite")

    def test_what_is_read_back_has_to_be_the_same(
        self, original: SqlLedger, there: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A copy that lacks a row is not kept, and the original goes on."""
        real = whole_tables.add_rows

        def add_rows(query: object, table: whole_tables.WholeTable, rows: list[object]) -> None:
            real(query, table, rows[table.name == "steps" :])  # type: ignore[arg-type]

        monkeypatch.setattr(whole_tables, "add_rows", add_rows)

        with pytest.raises(InfoldError, match="ledger-copy-differs") as raised:
            copied(original, there.open())

        assert ("tables", "steps") in raised.value.facts
        with there.open().database.read() as query:
            assert whole_tables.is_empty(query)
        assert original.owner()


POINTS = [
    f"ledger {write}: {when} commit"
    for write in ("create", "acquire", "copy", "release", "move")
    for when in ("before", "after")
]


def test_the_points_of_a_copy(original: SqlLedger, there: Place, points: list[str]) -> None:
    """The copy is committed before the original is closed."""
    copied(original, there.open())

    assert set(points) == set(POINTS)
    order = [point for point in points if "copy" in point or "move" in point]
    assert order == POINTS[4:6] + POINTS[8:]


def dying(place: Place, there: Place, point: str) -> bool:
    """A process that copies a ledger is killed."""
    return killed(point, lambda: copied(place.open(), there.open(), "dying"))


@pytest.mark.parametrize("point", [*POINTS[1:2], *POINTS[4:6], *POINTS[8:]])
def test_a_kill_leaves_all_or_nothing(
    original: SqlLedger, place: Place, there: Place, point: str
) -> None:
    """Nothing or all is there, the original is as it was, and the same command does the rest."""
    before = filled.rows_of(original)
    original.close()

    assert dying(place, there, point)

    whole, closed = POINTS.index(point) >= 5, point == POINTS[-1]
    with there.open().database.read() as query:
        assert whole_tables.is_empty(query) is not whole
    assert filled.rows_of(place.open()) == before
    if whole:
        assert filled.rows_of(there.open()) == before
    if closed:
        assert refusal(lambda: place.open().owner()) == "ledger-moved"
    else:
        assert place.open().owner()
        done = copied(place.open(), there.open())
        assert done.again is whole
        assert filled.rows_of(there.open()) == before
        assert refusal(lambda: place.open().owner()) == "ledger-moved"
    to = there.open()
    to.acquire("r2")
    to.close()


@pytest.mark.parametrize("where", ["original", "copy"])
def test_a_copy_that_is_no_longer_the_same_is_a_ledger_of_its_own(
    original: SqlLedger, place: Place, there: Place, where: str
) -> None:
    """After a kill between the two, whoever goes on in either place is not lost."""
    original.close()
    assert dying(place, there, POINTS[5])
    entry = ManualEntry(0, "ann", True, 1, 2, "")
    (place if where == "original" else there).open().add_entries("new", [entry])

    assert refusal(lambda: copied(place.open(), there.open())) == "ledger-not-empty"

    with suppress(InfoldError):
        place.close()
    with place.open().database.read() as query:
        assert query.one("lease", name=NAME)[2] is None
    assert place.open().owner()
