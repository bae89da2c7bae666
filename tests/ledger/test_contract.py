"""What every ledger does, keeps and notices: one suite for the file and for the server."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ledger import filled
from tests.ledger.conftest import Place
from tests.ledger.drawn import DAYS, any_outcomes, receipts
from tests.ledger.steps import change, do, kept_of, next_run, outcome
from tests.planning.strips import day

from infold.core.audits import AuditResult, AuditState, Severity
from infold.core.definition import digest_of
from infold.core.environment import BUILT_APART, Environment, OwnTable
from infold.core.erasure import ErasureRequest, KnownErasures
from infold.core.files import FileCell, FilesOutcome, IngestedFile, ListedFile
from infold.core.interval import EVER, MIN, Interval, Ranges
from infold.core.ports import Ledger
from infold.core.record import LISTED, Arrival, ForwardOnly, Outcome, Receipt
from infold.core.sessions import ManualEntry
from infold.core.trace import CellChange, CellState, EarlierCells, StoredCells, Trace, Unchanged
from infold.ledger import SqlLedger, codec
from infold.ledger.postgresql import MARK, escaped, unescaped
from infold.ledger.reader import SqlLedgerReader
from infold.messages import errors

ONE, TWO, THREE = DAYS[2:5]


class TestRuns:
    """Runs and their steps are recorded as they progress, and read newest first."""

    def test_a_run_is_running_until_it_is_finished(self, ledger: Ledger) -> None:
        """A run is running until it is finished; its state, receipt and times are then recorded."""
        assert [(run.id, run.state, run.as_of) for run in ledger.runs()] == [("r1", "running", 5)]
        receipt = Receipt(arrived=3, seconds=0.5)

        ledger.finish_run("r1", "done", receipt)

        run = ledger.runs()[0]
        assert (run.state, run.receipt, run.error) == ("done", receipt, None)
        assert run.started_at < (run.finished_at or 0)

    def test_runs_are_found_newest_first(self, ledger: Ledger) -> None:
        """By id or model, with all steps; one left running is marked died by the next."""
        do(ledger, outcome(1, change(ONE, 1)))
        do(ledger, Outcome("daily", 1, Trace("daily", "f")))
        for version, run in ((2, "r2"), (3, "r3")):
            next_run(ledger, run)
            do(ledger, outcome(version, change(TWO, 1)), run=run)

        found = [(run.id, run.state) for run in ledger.runs()]
        assert found == [("r3", "running"), ("r2", "died"), ("r1", "died")]
        assert [run.id for run in ledger.runs(limit=2)] == ["r3", "r2"]
        assert [run.id for run in ledger.runs(run="r1")] == ["r1"]
        assert list(ledger.runs(run="r9")) == []
        (one,) = ledger.runs(model="daily")
        steps = [(step.id, step.model) for step in one.steps]
        assert steps == [("r1-1", "events"), ("r1-2", "daily")]


class TestSteps:
    """A step goes from intent to prepared to done, and counts once it is done."""

    def test_a_later_run_finishes_a_prepared_step(self, ledger: Ledger) -> None:
        """Nothing counts before it is done; a version is of the run that committed it."""
        what = outcome(1, change(ONE, 3))
        ledger.begin_step("r1", "b", 2, "events", "fold", {"files": 2})
        ledger.begin_step("r1", "a", 1, "events", "fold", {})
        ledger.prepare_step("a", what)
        assert (ledger.newest_versions(), ledger.traces()) == ({}, {})
        assert (list(ledger.cells("events")), list(ledger.unfinished())) == ([], [])

        next_run(ledger, "r2")

        found = [(step.id, step.state, step.outcome, step.detail) for step in ledger.unfinished()]
        assert found == [("a", "prepared", what, {}), ("b", "intent", None, {"files": 2})]
        ledger.finish_step("a", replace(what, snapshot=99))
        head = ledger.newest_versions()["events"]
        assert (head.run, head.step, head.snapshot) == ("r1", "a", 99)
        assert [step.id for step in ledger.unfinished()] == ["b"]

    def test_a_done_step_stays_done(self, ledger: Ledger) -> None:
        """It keeps trace and receipt, is applied once, and cannot be closed."""
        what = replace(outcome(1, change(ONE, 3)), receipt=Receipt(written=3))
        step = do(ledger, what)

        ledger.finish_step(step, what)
        ledger.close_step(step, "forgotten")

        (found,) = ledger.runs()[0].steps
        assert (found.state, found.outcome) == ("done", replace(what, changes=()))
        assert ledger.newest_versions()["events"].rows == 3

    @pytest.mark.parametrize("state", ["failed", "forgotten"])
    def test_a_closed_step_changes_nothing_and_stays_closed(
        self, ledger: Ledger, state: str
    ) -> None:
        """It can neither be prepared nor finished, nor can one that never began."""
        what = outcome(1, change(ONE, 3))
        ledger.begin_step("r1", "a", 1, "events", "fold", {})
        ledger.close_step("a", state, "no luck")

        for finish, step in (
            (ledger.finish_step, "a"),
            (ledger.prepare_step, "a"),
            (ledger.finish_step, "nowhere"),
        ):
            with pytest.raises(ValueError, match=step):
                finish(step, what)
        (found,) = ledger.runs()[0].steps
        assert (found.state, found.error) == (state, "no luck")
        assert ledger.newest_versions() == {}


class TestVersions:
    """A commit is a version with its changes, and updates the table's cells."""

    def test_cells_within_ranges_are_those_that_overlap(self, ledger: Ledger) -> None:
        """Each once, of a few ranges or of hundreds, however these are queried."""
        do(ledger, outcome(1, change(ONE, 1), change(TWO, 2), change(THREE, 3)))
        for count in (2, 500):
            inside = [Interval(TWO.start + 2 * i, TWO.start + 2 * i + 1) for i in range(count)]
            found = ledger.cells("events", Ranges.of(inside))
            assert [state.cell for state in found] == [TWO]
        assert list(ledger.cells("events", Ranges())) == []
        assert len(ledger.cells("events", Ranges.ever())) == 3

    def test_cells_in_short_are_those_that_are_read(
        self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The database adds them up, but with a gap; tables without a row are left out."""
        do(ledger, outcome(1, change(ONE, 1), change(TWO, 2), change(THREE, 3)))
        with monkeypatch.context() as patch:
            patch.delattr(SqlLedgerReader, "cells")
            whole = Ranges((Interval(ONE.start, THREE.end),))
            assert ledger.stored() == {"events": StoredCells(whole, 6)}
        do(ledger, outcome(2, change(TWO, 0, before=2)))
        assert ledger.stored() == {"events": StoredCells(Ranges((ONE, THREE)), 4)}
        do(ledger, outcome(3, change(ONE, 0, before=1), change(THREE, 0, before=3)))
        assert ledger.stored() == {}

    def test_what_a_replacement_left_unchanged(self, ledger: Ledger) -> None:
        """Columns and cells that a version left as they were are kept with it."""
        do(ledger, outcome(1, change(ONE, 3), change(THREE, 1)))
        left = (
            Unchanged(frozenset({"a", "b"}), Ranges((ONE, THREE))),
            Unchanged(frozenset(), Ranges((THREE,))),
        )
        do(ledger, replace(outcome(2, change(ONE, 3, before=3), whole=True), unchanged=left))

        found = ledger.unchanged("events", 0)

        assert {number: set(some) for number, some in found.items()} == {2: set(left)}
        assert ledger.unchanged("events", 2) == {}
        assert ledger.unchanged("daily", 0) == {}

    def test_a_whole_replacement_empties_what_it_does_not_name(self, ledger: Ledger) -> None:
        """Readers see its cells removed."""
        do(ledger, outcome(1, change(ONE, 3), change(TWO, 2)))
        again = change(TWO, 5, before=2)
        do(ledger, outcome(2, again, whole=True))

        assert [state.cell for state in ledger.cells("events")] == [TWO]
        assert list(ledger.changes("events", 1)) == [change(ONE, 0, before=3), again]
        assert ledger.newest_versions()["events"].whole

    def test_changes_since_a_version_come_in_order(self, ledger: Ledger) -> None:
        """By version and cell, not netted; the last instant is known of the cell as it is."""
        do(ledger, outcome(1, change(ONE, 3)))
        do(ledger, outcome(2, change(TWO, 2), change(ONE, 0, before=3)))
        do(ledger, outcome(3, change(ONE, 1, last=7)))

        by_version = {2: [change(ONE, 0, before=3), change(TWO, 2)], 3: [change(ONE, 1)]}
        found = ledger.changes_by_version("events", 1)
        assert {number: list(some) for number, some in found.items()} == by_version
        assert list(ledger.changes("events", 1)) == [*by_version[2], *by_version[3]]
        assert list(ledger.changes("events", 3)) == []

    def test_versions_since_another(self, ledger: Ledger) -> None:
        """Oldest first, each table's own; and those in which cells of a span lost rows."""
        do(ledger, outcome(1, change(ONE, 3), change(TWO, 2)))
        do(ledger, outcome(2, change(ONE, 1, before=3), change(THREE, 1)))
        do(ledger, outcome(3, change(TWO, 0, before=2)))
        do(ledger, replace(outcome(1, change(TWO, 2)), model="other", trace=Trace("other", "g")))

        found = ledger.versions("events", since=1)
        versions = [(entry.number, entry.snapshot, entry.step, entry.rows) for entry in found]
        assert versions == [(2, 2, "r1-2", 4), (3, 3, "r1-3", 2)]
        heads = {name: head.rows for name, head in ledger.newest_versions().items()}
        assert heads == {"events": 2, "other": 2}
        assert [state.cell for state in ledger.cells("other")] == [TWO]
        for cell, numbers in ((EVER, [2, 3]), (TWO, [3]), (THREE, [])):
            assert list(ledger.versions_losing_rows("events", cell)) == numbers

    def test_the_same_rows_in_other_cells_are_no_version(self, ledger: Ledger) -> None:
        """Nor is a table that is right for newer versions of some inputs as it is."""
        do(ledger, outcome(1, change(ONE, 3), change(TWO, 2)))
        both = CellState(Interval(ONE.start, TWO.end), 5, 35, 9)
        trace = Trace("events", "g", {"raw": 1, "users": 5}, definition="d")
        do(ledger, Outcome("events", 2, trace, committed=False, cells=(both,)))
        assert ledger.traces() == {"events": trace}

        ledger.advance({"events": {"raw": 3}})

        assert list(ledger.cells("events")) == [both]
        assert ledger.newest_versions()["events"].number == 1
        assert [entry.cell for entry in ledger.changes("events", 0)] == [ONE, TWO]
        assert ledger.traces() == {"events": replace(trace, inputs={"raw": 3, "users": 5})}


class TestTraces:
    """A model's trace is replaced as a whole."""

    def test_rows_left_out_are_those_of_the_last_step_that_counted(self, ledger: Ledger) -> None:
        """They stay when a step does not count, and are replaced when a step counts none."""
        for number, rows in enumerate((3, None, 0, None), 1):
            do(ledger, replace(outcome(number), left_out=rows))
            assert ledger.left_out() == {"events": 3 if number < 3 else 0}
        ledger.forget("events")
        assert ledger.left_out() == {}

    def test_a_forgotten_model_is_as_if_never_built(self, ledger: Ledger) -> None:
        """Versions and history stay, so numbers continue; of a destroyed ledger nothing does."""
        taken = FilesOutcome("raw", (known(1),), cells=(FileCell(1, ONE, 3),))
        ledger.register_files("raw", [seen("a")])
        do(ledger, outcome(1, change(ONE, 3), files=taken))

        ledger.forget("events")

        left = (ledger.cells("events"), ledger.files("events"), ledger.file_cells("events"))
        assert ([*map(list, left)], ledger.traces()) == ([[], [], []], {})
        assert ledger.newest_versions()["events"].number == 1
        assert len(ledger.runs()[0].steps) == 1
        ledger.destroy()
        assert list(ledger.runs()) == []
        ledger.acquire("r2")
        ledger.begin_run("r2", "run", 0, {})
        assert [run.id for run in ledger.runs()] == ["r2"]

    def test_a_dropped_table_is_empty_from_then_on(self, ledger: Ledger) -> None:
        """In a version that removes its cells; files stay known, and one never built gets none."""
        ledger.begin_step("r1", "early", 8, "events", "forget", {})
        ledger.forget("events", step="early")
        assert ledger.newest_versions() == {}
        taken = FilesOutcome("raw", (known(1),), (), (FileCell(1, ONE, 3),))
        ledger.register_files("raw", [seen("a")])
        do(ledger, outcome(1, change(ONE, 3), files=taken))
        ledger.remember_locations({"events": "somewhere", "other": "elsewhere"})
        ledger.begin_step("r1", "dropping", 9, "events", "forget", {})

        ledger.forget("events", step="dropping")

        head = ledger.newest_versions()["events"]
        (gone,) = ledger.changes("events", 1)
        assert (head.number, head.snapshot, head.whole, head.rows) == (2, None, True, 0)
        assert (gone.cell, gone.removed, gone.rows_after) == (ONE, 3, 0)
        assert (ledger.traces(), list(ledger.cells("events"))) == ({}, [])
        assert [file.path for file in ledger.files("events")] == ["a"]
        assert ledger.locations() == {"other": "elsewhere"}


def seen(path: str, fingerprint: str = "1") -> ListedFile:
    """A file in a listing."""
    return ListedFile(path, 10, 0, fingerprint)


def known(id_: int, path: str = "a", fingerprint: str = "1", **values: int) -> IngestedFile:
    """A file that a model has taken in."""
    return IngestedFile(id_, path, 10, fingerprint, horizon=50, **values)


class TestFiles:
    """A version of a file keeps its id for good; models ingest files and remove them."""

    def test_ids_are_kept_and_never_used_again(self, ledger: Ledger) -> None:
        """Also among thousands; another version, or another source, gets another id."""
        first = ledger.register_files("raw", [seen("a"), seen("b")])
        again = ledger.register_files("raw", [seen("b"), seen("a", "2"), seen("c")])
        other = ledger.register_files("other", [seen("a")])
        many = ledger.register_files("raw", [seen("b"), *(seen(str(i)) for i in range(3_000))])

        assert again["b"] == first["b"] == many["b"]
        assert len({*first.values(), *again.values(), *other.values(), *many.values()}) == 3_005

    def test_files_are_asked_for_by_what_they_are(self, ledger: Ledger) -> None:
        """A few files are found by id, by rows that come due, and by rows that were set aside."""
        ids = ledger.register_files("raw", [seen("a", "one"), seen("b", "two"), seen("c", "three")])
        a = known(ids["a"], "a", "one", waiting=2, next_due=60)
        b = known(ids["b"], "b", "two", waiting=1, next_due=61)
        c = known(ids["c"], "c", "three", set_aside=4)
        assert ledger.file_versions("events") == {}
        do(ledger, outcome(1, files=FilesOutcome("raw", (c, a, b))))

        assert ledger.file_versions("events") == {
            "a": ("one", a.id),
            "b": ("two", b.id),
            "c": ("three", c.id),
        }
        assert ledger.file_versions("other") == {}
        assert list(ledger.files("events", [c.id, a.id, 99])) == [a, c]
        assert list(ledger.files("events", [])) == []
        assert list(ledger.files("events", range(1_000))) == [a, b, c]
        assert ledger.files_due("events", 59) == ()
        assert ledger.files_due("events", 60) == (a,)
        assert ledger.files_due("events", 61) == (a, b)
        assert list(ledger.files_set_aside("events")) == [c]
        assert list(ledger.files_set_aside("other")) == []

    def test_a_compared_listing_holds_until_files_come_or_go(self, ledger: Ledger) -> None:
        """What a listing was compared with changes with the next ingest, or when it is dropped."""
        name, other = LISTED.format("events"), LISTED.format("other")
        ledger.register_files("raw", [seen("a")])

        def left() -> set[str]:
            there = ledger.locations().keys() & {name, other}
            ledger.remember_locations({name: "digest", other: "digest"})
            return there

        left()
        do(ledger, outcome(1, change(ONE, 3)))
        assert left() == {name, other}
        do(ledger, outcome(2, files=FilesOutcome("raw", (known(1),))))
        assert left() == {other}
        do(ledger, outcome(3, files=FilesOutcome("raw", removed=(1,))))
        assert left() == {other}
        ledger.forget("events")
        assert left() == {other}

    def test_arrivals_have_time_and_cells(self, ledger: Ledger) -> None:
        """Arrivals are listed newest first with run time and cells; only added rows count."""
        started = ledger.runs()[0].started_at
        gone = change(TWO, 0, before=1)
        do(ledger, outcome(1, change(ONE, 3), change(TWO, 1), files=FilesOutcome("raw")))
        do(ledger, outcome(2, change(THREE, 4), gone, files=FilesOutcome("raw")))
        do(ledger, Outcome("daily", 1, Trace("daily", "f"), (change(ONE, 9),)))

        found = ledger.arrivals("events")

        assert [(entry.version, entry.cell, entry.rows) for entry in found] == [
            (2, THREE, 4),
            (1, TWO, 1),
            (1, ONE, 3),
        ]
        assert all(entry.received.start == started < entry.received.end for entry in found)
        assert list(ledger.arrivals("daily")) == []
        assert [type(entry) for entry in ledger.arrivals("events", limit=1)] == [Arrival]


def test_requests_to_erase_are_numbered_and_kept_with_hashes_alone(ledger: Ledger) -> None:
    """One number for all erasures, as a trace has one; columns and secret are the newest ones."""
    assert ledger.known_erasures() == KnownErasures({}, {})
    assert ledger.erasures() == ()
    first = ErasureRequest(0, "a", "person", ("1f", "2f", "1f"), reason="by letter")
    second = ErasureRequest(0, "b", "device", ("1f",), source="raw.orders", before=7)

    [kept] = ledger.add_erasures([first], {("person", "raw.clicks"): "user_id"}, "secret")
    both = {("person", "raw.clicks"): "user_id", ("device", "raw.orders"): "device"}
    [later] = ledger.add_erasures([second], both, "secret")

    assert (kept.number, later.number) == (1, 2)
    assert ledger.erasures() == (replace(kept, keys=("1f", "2f")), later)
    assert ledger.erasures(1) == (later,)
    newest = {("person", None): 1, ("device", "raw.orders"): 2}
    assert ledger.known_erasures() == KnownErasures(newest, both, "secret")


def test_manual_entries_are_numbered_by_model(ledger: Ledger) -> None:
    """From 1, without a lease and before a model is built; they outlive it when it is forgotten."""
    bot = ManualEntry(0, "bob", in_quarantine=True, reason="bot")
    ledger.add_entries("visits", [bot])
    ledger.add_entries("sessions", [ManualEntry(0, "ann", in_quarantine=True, start=5, end=9)])
    back, eve = (
        ManualEntry(0, who, in_quarantine=of) for who, of in (("bob", None), ("eve", True))
    )
    ledger.add_entries("visits", [back, eve])
    ledger.forget("sessions")

    assert [replace(one, made_at=0) for one in ledger.entries("visits")] == [
        replace(one, number=number, made_at=0) for number, one in enumerate((bot, back, eve), 1)
    ]
    [entry] = ledger.entries("sessions")
    assert (entry.owner, entry.start, entry.end) == ("ann", 5, 9)
    assert entry.made_at > 0
    assert ledger.newest_entries() == {"visits": 3, "sessions": 1}


def test_failed_audits_stay_until_the_same_cells_are_judged(ledger: Ledger) -> None:
    """What passed is replaced by anything; stored rows are judged apart from steps."""

    def found(state: AuditState, cells: Interval, *, stored: bool = False) -> AuditResult:
        return AuditResult(
            "events", "few", Severity.ERROR, state, 1, "1 row", ("{}",), cells, "a", 3, stored
        )

    def kept() -> list[tuple[AuditResult, str]]:
        return [(one.result, one.step) for one in ledger.audits()]

    bad, good = found(AuditState.FAILED, ONE), found(AuditState.PASSED, TWO)
    ledger.begin_step("r1", "r1-1", 1, "events", "build", {})
    ledger.close_step("r1-1", "failed", "no", [bad])
    do(ledger, replace(outcome(1, change(TWO, 1)), audits=(good,)))
    assert sorted(kept(), key=str) == sorted([(bad, "r1-1"), (good, "r1-2")], key=str)

    stored = found(AuditState.FAILED, EVER, stored=True)
    ledger.record_audits("events", [stored])
    again = found(AuditState.PASSED, ONE)
    do(ledger, replace(outcome(2, change(ONE, 1)), audits=(again,)))
    assert kept() == [(again, "r1-3"), (stored, "")]

    ledger.forget("events")
    assert kept() == []


def test_definitions_are_kept_for_good(ledger: Ledger) -> None:
    """By digest, also once another is applied; what is left out is applied no more."""
    first, second, weekly = kept_of("daily"), kept_of("daily", "SELECT 2"), kept_of("weekly")
    every = {digest_of(one): one for one in (first, second, weekly)}
    one, two, third = every

    ledger.keep_definitions({one: first}, {"daily": one}, {})
    ledger.keep_definitions({two: second, third: weekly}, {"daily": two, "weekly": third}, {})

    assert ledger.definitions([*every, "unknown"]) == every
    before, kept = ledger.applied(), [ledger.kept_at(digest) for digest in every]
    assert {name: entry.digest for name, entry in before.items()} == {"daily": two, "weekly": third}
    assert kept == sorted(filter(None, kept))
    ledger.keep_definitions(every, {"daily": two, "weekly": third}, {})
    assert ledger.applied() == before
    ledger.keep_definitions({two: second}, {"daily": two}, {})
    assert ledger.applied() == {"daily": before["daily"]}
    assert [ledger.kept_at(digest) for digest in (*every, "unknown")] == [*kept, None]


def test_a_trace_keeps_which_definition_is_in_force_where(ledger: Ledger) -> None:
    """Cells of earlier definitions are read back, each with its own; another definition with the
    same rows takes the place of the newest alone, with its fingerprint, and joins cells of its own.
    """
    earlier = (
        EarlierCells(Ranges((Interval(MIN, DAYS[0].start), DAYS[1])), "d1"),
        EarlierCells(Ranges((DAYS[0],)), "d2"),
    )
    built = outcome(1, change(DAYS[0], 3))
    trace = replace(built.trace, definition="d3", earlier=earlier)
    do(ledger, replace(built, trace=trace))
    assert ledger.traces() == {"events": trace}

    same = replace(kept_of("events"), fingerprint="another")
    ledger.keep_definitions({"d4": same}, {}, {"events": "d4"})
    adopted = replace(trace, definition="d4", fingerprint="another")
    assert ledger.traces() == {"events": adopted}
    ledger.keep_definitions({"d2": same}, {}, {"events": "d2"})
    joined = replace(adopted, definition="d2", earlier=earlier[:1])
    assert ledger.traces() == {"events": joined}

    do(ledger, outcome(2, change(DAYS[0], 4, before=3)))
    assert ledger.traces()["events"].earlier == ()


def test_a_forward_only_change_is_kept_until_it_is_carried_out(ledger: Ledger) -> None:
    """Or another one is applied, or the model is forgotten."""
    one, two = kept_of("events"), kept_of("events", "SELECT 2")
    both = {"d1": one, "d2": two}
    asked = {"events": ForwardOnly("d1", 5)}
    built = outcome(1, change(DAYS[0], 3))

    ledger.keep_definitions(both, {"events": "d1"}, {}, asked)
    ledger.keep_definitions(both, {"events": "d1"}, {})
    assert ledger.forward_only() == asked
    do(ledger, replace(built, trace=replace(built.trace, definition="d0")))
    assert ledger.forward_only() == asked
    again = outcome(2, change(DAYS[0], 4, before=3))
    do(ledger, replace(again, trace=replace(again.trace, definition="d1")))
    assert ledger.forward_only() == {}

    ledger.keep_definitions(both, {"events": "d2"}, {}, {"events": ForwardOnly("d2", None)})
    assert ledger.forward_only() == {"events": ForwardOnly("d2", None)}
    ledger.keep_definitions(both, {"events": "d1"}, {})
    assert ledger.forward_only() == {}

    ledger.keep_definitions(both, {"events": "d1"}, {}, asked)
    ledger.forget("events")
    assert ledger.forward_only() == {}


def test_environments_have_definitions_and_tables_of_their_own(ledger: Ledger) -> None:
    """What is applied in an environment is not applied in production, nor the other way round."""
    daily, other = kept_of("daily"), kept_of("daily", "SELECT 2")
    table = OwnTable("daily", "daily__12345678", "1234", digest_of(other), digest_of(daily))
    left = OwnTable("daily", "daily__87654321", "8765", digest_of(daily), current=False)
    dev = Environment("dev", "ann@host", 1, 9, 3, None, (table, left))

    ledger.keep_definitions({digest_of(daily): daily}, {"daily": digest_of(daily)}, {})
    ledger.keep_definitions(
        {digest_of(other): other}, {"daily": digest_of(other)}, {}, environment="dev"
    )
    ledger.put_environment(dev)
    ledger.put_environment(Environment("empty", "bob@host", 2))

    assert ledger.environments() == {"dev": dev, "empty": Environment("empty", "bob@host", 2)}
    assert ledger.own_tables() == {"dev": (table, left)}
    assert dev.own == {"daily": "daily__12345678"}
    assert [dev.is_over(now) for now in (8, 9)] == [False, True]
    assert ledger.applied()["daily"].digest == digest_of(daily)
    assert ledger.applied("dev")["daily"].digest == digest_of(other)
    ledger.put_environment(Environment(BUILT_APART, "infold", 1))  # as earlier versions did
    ledger.put_own_tables(BUILT_APART, [left])
    ledger.remove_environment("dev")
    assert list(ledger.environments()) == ["empty"]
    assert ledger.own_tables() == {BUILT_APART: (left,)}
    assert (len(ledger.applied("dev")), len(ledger.applied())) == (0, 1)


def test_a_table_that_leaves_its_environment_is_erased(ledger: Ledger) -> None:
    """Nothing of a dropped table stays but the runs that built it; other tables are untouched."""
    do(ledger, outcome(1, change(DAYS[0], 3)))
    before = ledger.traces(), ledger.newest_versions(), ledger.cells("events")
    tables = tuple(OwnTable("events", key, key, "d") for key in ("events__a", "events__b"))
    ledger.put_environment(Environment("dev", "ann@host", 1, tables=tables))
    for table in tables:
        built = outcome(1, change(DAYS[1], 5))
        do(ledger, replace(built, model=table.key, trace=Trace(table.key, "f")))
        ledger.add_entries(table.key, [ManualEntry(0, "ann", in_quarantine=True)])
        ledger.remember_locations({table.key: "here"})

    ledger.put_environment(Environment("dev", "ann@host", 1, tables=tables[:1]))
    assert ledger.traces().keys() == {"events", "events__a"}
    assert not ledger.cells("events__b")
    assert not ledger.changes("events__b", 0)
    assert not ledger.entries("events__b")
    ledger.remove_environment("dev")

    assert (ledger.traces(), ledger.newest_versions(), ledger.cells("events")) == before
    assert not ledger.locations()


def test_steps_are_known_for_good_and_others_are_not(ledger: Ledger) -> None:
    """Whatever its outcome; those found in tables are done from then on."""
    done = do(ledger, outcome(1, change(ONE, 2)))
    ledger.begin_step("r1", "r1-2", 2, "sessions", "fold", {})
    ledger.close_step("r1-2", "forgotten")
    steps, known = [done, "r1-2", "theirs-1"], {done: "events", "r1-2": "sessions"}
    assert ledger.step_models(steps) == known

    ledger.know_steps({"r1-2": "daily", "theirs-1": "daily"})

    assert ledger.step_models(steps) == {**known, "theirs-1": "daily"}
    assert ledger.closed_steps(steps) == {"r1-2"}


def test_which_project_owns_the_ledger(ledger: Ledger) -> None:
    """None until a run writes one into it; locations that are not given stay."""
    assert ledger.owner() is None
    ledger.set_owner("shop", "warehouse")
    assert ledger.owner() == ("shop", "warehouse")
    ledger.remember_locations({"a": "1", "b": "1"})
    ledger.remember_locations({"b": "2"})
    assert ledger.locations() == {"a": "1", "b": "2"}


def test_writing_without_the_lease_is_refused(ledger: Ledger) -> None:
    """A write without the lease is refused before anything is written."""
    ledger.release()

    for write in (
        lambda: ledger.begin_run("r2", "run", 0, {}),
        lambda: ledger.finish_run("r1", "done", Receipt()),
        lambda: ledger.register_files("raw", [seen("a")]),
        lambda: ledger.forget("events"),
        lambda: ledger.keep_definitions({}, {"events": "d"}, {}),
        lambda: ledger.put_environment(Environment("dev", "ann@host", 1)),
        lambda: ledger.put_own_tables("dev", ()),
        lambda: ledger.remove_environment("dev"),
    ):
        with pytest.raises(errors.InfoldError, match="lease-lost"):
            write()
    assert [run.state for run in ledger.runs()] == ["running"]


# -- what a ledger notices of rows that are gone from it, in both databases


FIRST_DAY, SECOND_DAY = day(1), day(2)


@pytest.fixture
def built(place: Place) -> SqlLedger:
    """Events of two versions, and a daily table that has read the first of them."""
    ledger = place.open()
    ledger.acquire("r1")
    ledger.begin_run("r1", "run", 0, {})
    do(ledger, outcome(1, change(FIRST_DAY, 3)))
    trace = Trace("daily", "f", {"events": 1})
    do(ledger, Outcome("daily", 1, trace, (change(FIRST_DAY, 1),), snapshot=7, whole=True))
    do(ledger, outcome(2, change(SECOND_DAY, 2)))
    return ledger


def test_a_sound_ledger(built: SqlLedger) -> None:
    """Nothing contradicts anything, also once a model was forgotten."""
    assert built.contradictions() == {}

    built.forget("daily")

    assert built.contradictions() == {}


@pytest.mark.parametrize(
    ("statement", "table", "noticed"),
    [
        ("drop_cells", "events", {"events": "its cells have 0 rows, and its newest version 5"}),
        ("erase_changes", "events", {"events": "the changes of version 2 do not add up"}),
        (
            "erase_versions",
            "events",
            {
                "events": "its versions are missing",
                "daily": "it was built from version 1 of events, which is missing",
            },
        ),
        ("drop_trace", "daily", {"daily": "its trace is missing"}),
    ],
)
def test_rows_that_are_gone(
    built: SqlLedger, statement: str, table: str, noticed: dict[str, str]
) -> None:
    """What is written twice is noticed in one of both places; erased tables leave steps alone."""
    key = "model" if statement == "drop_trace" else "table_name"
    with built.database.write(None) as query:
        assert query.run(statement, **{key: table})

    assert dict(built.contradictions()) == noticed

    built.erase_tables(["events", "daily"])

    assert (built.contradictions(), built.traces(), built.newest_versions()) == ({}, {}, {})
    assert built.step_models(["r1-1"]) == {"r1-1": "events"}


# -- outcomes, receipts, traces and texts come back from a ledger exactly as they went in


@given(any_outcomes, receipts)
def test_an_outcome_is_decoded_as_encoded(outcome: Outcome, receipt: Receipt) -> None:
    """With hashes at both ends of 64 bits and names in any script. Zeros of a receipt are left out,
    so a field added later reads as zero.
    """
    assert codec.load_outcome(codec.dump_outcome(outcome)) == outcome
    assert codec.load_receipt(codec.dump_receipt(receipt)) == receipt
    assert codec.dump_receipt(Receipt()) == "{}"


def test_a_done_outcome_keeps_what_has_no_table_of_its_own() -> None:
    """Trace and receipt are kept; changes and files have tables of their own."""
    kept = Outcome("m", 1, Trace("m", "f", {"raw": 1}), snapshot=9, receipt=Receipt(written=1))
    change, cells = CellChange(EVER, 1, 0, 0, 1, 0, 7), (CellState(EVER, 1, 7),)
    whole = replace(kept, changes=(change,), files=FilesOutcome("raw"), cells=cells)

    assert codec.without_rows_of_tables(whole) == kept


texts = st.text(st.sampled_from(f"\0{MARK}01a")) | st.text()


@given(texts, texts)
def test_every_text_comes_back(one: str, other: str) -> None:
    """What is read is what was written, and NUL is not stored; keys that differ still do."""
    assert unescaped(escaped(one)) == one
    assert "\0" not in escaped(one)
    assert (escaped(one) == escaped(other)) == (one == other)


def test_cleaning_keeps_what_is_there(ledger: Ledger) -> None:
    """All rows stay, and the run that has the lease goes on."""
    assert isinstance(ledger, SqlLedger)
    do(ledger, outcome(1))
    ledger.add_entries("sessions", [ManualEntry(0, "ann", in_quarantine=True)])
    before = filled.rows_of(ledger)
    ledger.database.clean()
    assert filled.rows_of(ledger) == before
    ledger.note_purged(3)


def test_purges(ledger: Ledger) -> None:
    """When each was; earlier versions of infold noted the number alone."""
    ask = ErasureRequest(0, "a", "person", ("1f",))
    ledger.add_erasures([ask], {}, "s")
    assert ledger.known_erasures().purged == 0
    ledger.note_purged(3)
    ledger.note_purged(5)
    known = ledger.known_erasures()
    assert [number for number, at in known.purges if at is not None] == [3, 5]
    assert known.purged == 5
    assert codec.load_purges("3 5@17") == ((3, None), (5, 17))
