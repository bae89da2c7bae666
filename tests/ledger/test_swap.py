"""What a swap does to the ledger: tables get other keys, the versions of models go on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.ledger.conftest import Place
from tests.ledger.steps import change, next_run
from tests.planning.strips import day

from infold.core.environment import Environment, OwnTable
from infold.core.interval import Interval, Ranges
from infold.core.record import FULL_LISTING, LISTED, Outcome, QuarantinedSession
from infold.core.swap import Swap, SwapKind, SwappedTable
from infold.core.trace import (
    Cause,
    CellChange,
    CellState,
    Pending,
    Trace,
    Unchanged,
    net_changes,
    was_dropped,
)
from infold.ledger.store import SqlLedger

DAYS = tuple(map(day, range(1, 12)))
ONE, TWO, THREE = DAYS[2:5]
EVENTS, OWN_EVENTS = "events", "events__b"


def made(
    ledger: SqlLedger, model: str, version: int, *changes: CellChange, **inputs: int
) -> Outcome:
    """A step built a version of a table; its snapshot has the number of the step."""
    seq = sum(len(run.steps) for run in ledger.runs(100)) + 1
    step = f"s{seq}"
    outcome = Outcome(
        model, version, Trace(model, f"f of {model}", dict(inputs)), changes, snapshot=seq
    )
    ledger.begin_step("r1", step, seq, model, "build", {})
    ledger.finish_step(step, outcome)
    return outcome


@pytest.fixture
def ledger(sql: SqlLedger) -> SqlLedger:
    """
    Events and what reads them: ``daily`` and ``weekly``; the environment has its own of two.

    ``weekly`` has no table of its own there, and the own ``daily`` reads the own events. The events
    differ in one cell of three.
    """
    sql.acquire("r1")
    sql.begin_run("r1", "run", 5, {})
    made(sql, EVENTS, 1, change(ONE, 2))
    made(sql, EVENTS, 2, change(TWO, 3))
    made(sql, "daily", 1, change(ONE, 1), change(TWO, 1), events=2)
    made(sql, "weekly", 1, change(ONE, 1), daily=1)
    for version in range(1, 6):
        made(sql, OWN_EVENTS, version, change(DAYS[version + 1], version + 1))
    made(sql, "daily__b", 1, change(ONE, 1), change(TWO, 2), events__b=5)
    tables = (OwnTable(EVENTS, OWN_EVENTS, "i", "d"), OwnTable("daily", "daily__b", "i", "d"))
    sql.put_environment(Environment("dev", "me@here", 1, tables=tables))
    return sql


def swapped(there: str, kept: str, now: str, before: str) -> tuple[SwappedTable, ...]:
    """Both tables take the places of those before them."""
    return tuple(
        SwappedTable(
            name, f"{name}__{there}", f"{name}__{kept}", f"{now} {name}", f"{before} {name}"
        )
        for name in (EVENTS, "daily")
    )


PROMOTE = Swap(
    SwapKind.PROMOTE,
    "dev",
    swapped("b", "a", "new", "old"),
    applied={EVENTS: "new", "daily": "newer", "view": "newest"},
)
ROLLBACK = Swap(
    SwapKind.ROLLBACK,
    "dev",
    swapped("a", "c", "old", "new"),
    applied={EVENTS: "old", "daily": "", "view": ""},
    undoes="p1",
)


def swap(ledger: SqlLedger, what: Swap, step: str) -> None:
    """Tables are swapped by a step."""
    ledger.begin_step("r1", step, 0, what.environment, what.kind.value, {})
    ledger.finish_swap(step, what)


def net(ledger: SqlLedger, table: str, since: int) -> list[Interval]:
    """The cells of a table that differ from those of an earlier version."""
    return [one.cell for one in net_changes(ledger.changes(table, since)) if one.changes_rows]


class TestPromoted:
    """The own tables become production's, and production's are kept."""

    def test_the_own_table_is_that_of_the_model(self, ledger: SqlLedger) -> None:
        """Its cells, trace, snapshot; inputs by new names; the environment owns nothing."""
        cells, trace = ledger.cells("daily__b"), ledger.traces()["daily__b"]
        before = ledger.newest_versions()
        assert before[OWN_EVENTS].number == 5

        swap(ledger, PROMOTE, "p1")
        ledger.finish_swap("p1", PROMOTE)

        head, was = ledger.newest_versions(), before["daily__b"]
        now = head["daily"]
        assert ledger.cells("daily") == cells
        inputs = {EVENTS: head[EVENTS].number}
        assert ledger.traces()["daily"] == replace(trace, model="daily", inputs=inputs)
        assert ledger.traces().keys() == head.keys() == {EVENTS, "daily", "weekly"}
        assert (now.snapshot, now.step, now.run) == (was.snapshot, was.step, was.run)
        assert (now.number, now.rows, now.whole) == (3, 3, True)
        assert [version.number for version in ledger.versions(EVENTS)] == [1, 2, 3, 5]
        assert ledger.environments()["dev"].tables == ()

    def test_what_is_known_of_a_table_goes_with_it(self, ledger: SqlLedger) -> None:
        """Pending cells, quarantine, rows left out; no listing, and what is unchanged."""
        session = QuarantinedSession("ann", ONE.start, ONE.start + 1, 7)
        pending = (Pending(Cause.LATE, Ranges((ONE,))),)
        trace = replace(ledger.traces()["daily"], pending=pending)
        own = Outcome("daily__b", 2, Trace("daily__b", "f"), committed=False)
        for what in (
            replace(own, quarantined=(session,), left_out=3),
            Outcome("daily", 1, trace, committed=False),
        ):
            ledger.begin_step("r1", f"of {what.model}", 1, what.model, "build", {})
            ledger.finish_step(f"of {what.model}", what)
        listings = [
            {name: entry.format(name) for name in (EVENTS, OWN_EVENTS, "weekly")}
            for entry in (LISTED, FULL_LISTING)
        ]
        for names in listings:
            ledger.remember_locations(dict.fromkeys(names.values(), "digest"))
        same = Unchanged(frozenset({"day"}), Ranges((TWO,)))
        other = replace(PROMOTE.tables[1], unchanged=(same,))

        swap(ledger, replace(PROMOTE, tables=(PROMOTE.tables[0], other)), "p1")

        assert ledger.quarantined("daily") == (session,)
        assert ledger.left_out() == {"daily": 3}
        assert ledger.unchanged("daily", 1) == {2: [same], 3: [same]}
        for names in listings:
            assert ledger.locations().keys() & {*names.values()} == {names["weekly"]}
        assert ledger.traces()["daily"].pending == ()
        swap(ledger, ROLLBACK, "p2")
        assert ledger.traces()["daily"].pending == pending

    def test_definitions_are_applied_with_it(self, ledger: SqlLedger) -> None:
        """The definitions become the applied ones, others stay, and those before are remembered."""
        ledger.keep_definitions({}, {EVENTS: "old", "weekly": "w"}, {})

        swap(ledger, PROMOTE, "p1")

        found = {name: entry.digest for name, entry in ledger.applied().items()}
        assert found == {EVENTS: "new", "daily": "newer", "view": "newest", "weekly": "w"}
        assert ledger.swaps()[0].definitions == {
            EVENTS: ("old", "new"),
            "daily": ("", "newer"),
            "view": ("", "newest"),
            "weekly": ("w", "w"),
        }

    def test_a_step_that_was_given_up_is_not_finished(self, ledger: SqlLedger) -> None:
        """A step that did not happen cannot be finished later, nor one that never began."""
        ledger.begin_step("r1", "p1", 0, "dev", "promote", {})
        ledger.close_step("p1", "forgotten")

        with pytest.raises(ValueError, match="is forgotten"):
            ledger.finish_swap("p1", PROMOTE)
        with pytest.raises(ValueError, match="no step"):
            ledger.finish_swap("p2", PROMOTE)
        assert ledger.swaps() == ()


class TestRolledBack:
    """The kept tables get their names back."""

    def test_all_is_as_it_was_for_readers(self, ledger: SqlLedger) -> None:
        """Differing cells, no earlier snapshot; without a run in between nothing differs."""
        cells = {name: ledger.cells(name) for name in (EVENTS, "daily")}
        traces = ledger.traces()

        swap(ledger, PROMOTE, "p1")
        assert net(ledger, EVENTS, 2) == [THREE, *DAYS[5:7]]
        assert net(ledger, "daily", 1) == [TWO]
        assert was_dropped(ledger.versions("daily", 1))
        swap(ledger, ROLLBACK, "p2")

        assert {name: ledger.cells(name) for name in cells} == cells
        assert ledger.traces() == {name: traces[name] for name in (EVENTS, "daily", "weekly")}
        assert net(ledger, EVENTS, ledger.traces()["daily"].inputs[EVENTS]) == []
        assert net(ledger, "daily", ledger.traces()["weekly"].inputs["daily"]) == []

    def test_a_table_is_behind_by_what_came_in_between(self, ledger: SqlLedger) -> None:
        """Old tables lack what runs did after a promote; others are behind by it."""
        made(ledger, "other", 1, change(ONE, 1))
        made(ledger, "daily", 2, change(THREE, 1), events=2, other=1)
        swap(ledger, PROMOTE, "p1")
        made(ledger, "other", 2, change(TWO, 5))
        head = ledger.newest_versions()["daily"].number + 1
        made(ledger, "daily", head, change(DAYS[8], 2))
        made(ledger, "weekly", 2, change(TWO, 9), daily=head)

        swap(ledger, ROLLBACK, "p2")

        read = {name: trace.inputs for name, trace in ledger.traces().items()}
        assert net(ledger, "other", read["daily"]["other"]) == [TWO]
        assert net(ledger, "daily", read["weekly"]["daily"]) == [TWO, THREE, DAYS[8]]

    def test_the_ledger_keeps_what_a_kept_table_has_to_read(self, place: Place) -> None:
        """Changes that a kept table has not read are not pruned, however many versions pass."""
        ledger = place.open(keep=1)
        ledger.acquire("r1")
        ledger.begin_run("r1", "run", 5, {})
        made(ledger, "other", 1, change(ONE, 1))
        for name in ("daily", "daily__b"):
            made(ledger, name, 1, change(ONE, 1), other=1)
        tables = (SwappedTable("daily", "daily__b", "daily__a"),)
        swap(ledger, Swap(SwapKind.PROMOTE, "dev", tables), "p1")
        for version in range(2, 6):
            made(ledger, "other", version, change(DAYS[version + 2], 1))
        made(ledger, "daily", 4, change(TWO, 1), other=5)
        next_run(ledger, "r2")
        ledger.finish_run("r2", "done", ledger.runs()[0].receipt)

        assert net(ledger, "other", 1) == list(DAYS[4:8])
        ledger.close()

    def test_a_model_that_was_new_goes(self, ledger: SqlLedger) -> None:
        """It starts with the own table; after the rollback it has no table and no trace."""
        new = SwappedTable("new", "daily__b", None, "new daily")
        swap(ledger, Swap(SwapKind.PROMOTE, "dev", (new,)), "p1")
        assert [version.whole for version in ledger.versions("new")] == [True]
        assert not was_dropped(ledger.versions("new"))
        assert ledger.swaps()[0].kept == {"new": None}

        back = SwappedTable("new", None, "new__c", None, "new daily")
        swap(ledger, Swap(SwapKind.ROLLBACK, "dev", (back,), undoes="p1"), "p2")

        assert "new" not in ledger.traces()
        assert ledger.cells("new") == ()
        assert ledger.newest_versions()["new"].snapshot is None

    def test_the_promote_is_forgotten_and_the_rollback_remembered(self, ledger: SqlLedger) -> None:
        """It is taken back once; kept tables that are dropped are unknown."""
        swap(ledger, PROMOTE, "p1")
        swap(ledger, ROLLBACK, "p2")

        [left] = ledger.swaps()
        assert (left.id, left.kind) == ("p2", SwapKind.ROLLBACK)
        assert left.kept == {EVENTS: "events__c", "daily": "daily__c"}
        assert {name: entry.digest for name, entry in ledger.applied().items()} == {EVENTS: "old"}
        assert ledger.cells("daily__c") == (CellState(ONE, 1, 7), CellState(TWO, 2, 14))

        ledger.forget_swap("p2")

        assert (ledger.swaps(), ledger.cells("daily__c")) == ((), ())
        assert ledger.cells("daily") == (CellState(ONE, 1, 7), CellState(TWO, 1, 7))
