"""Observation: files that differ, versions that were not read, and what these mean to readers."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.arrivals.dry import Memory
from tests.declare.shop import project as declared
from tests.ledger.fresh import FreshLedger
from tests.planning.strips import DAILY, EVENTS, FIRST, SESSIONS, day, project, with_incremental
from tests.reference.tables import versions
from tests.reference.world import Row

from infold.core.definition import Category, How, Redefinition
from infold.core.files import (
    FileListing,
    FilesOutcome,
    IngestedFile,
    ListedFile,
    with_file_policy,
    written_at,
)
from infold.core.formats import Format
from infold.core.interval import DAY, EVER, Ranges
from infold.core.model import Drift, Source
from infold.core.plan import (
    Action,
    ChangedKeyRows,
    FileDiff,
    InputDiff,
    ModelObservation,
    Observations,
    Step,
)
from infold.core.ports import Lake
from infold.core.project import Match, Node, Stretch
from infold.core.record import LISTED, Outcome, Receipt
from infold.core.trace import CellChange, Trace, Unchanged
from infold.planning.planner import plan
from infold.running.execute import advance_traces
from infold.running.observe import Observer
from infold.running.read_columns import InputChanges
from infold.running.source_listings import (
    file_policy_fingerprint,
    is_gone,
    listed_changes,
    listing_digest,
)

WAITS_FOR = FIRST + DAY
TAKEN = IngestedFile(1, "a.csv", 10, "one", FIRST, next_due=WAITS_FOR, rows=3, waiting=1)
SEEN = ListedFile("a.csv", 10, 0, "one")
GREW = CellChange(day(0), 3, 0, 0, 3, 0, 77)


def ledger_of(*outcomes: Outcome) -> FreshLedger:
    """A ledger in which a run has recorded these."""
    ledger = FreshLedger()
    ledger.acquire("run")
    ledger.begin_run("run", "run", FIRST, {})
    ledger.register_files("raw.clicks", [SEEN])
    for number, outcome in enumerate(outcomes, 1):
        ledger.begin_step("run", f"run-{number}", number, outcome.model, "build", {})
        ledger.finish_step(f"run-{number}", outcome)
    return ledger


def taken() -> Outcome:
    """The first ingest: one file, with one row that waits for its day."""
    files = FilesOutcome("raw.clicks", ingested=(TAKEN,))
    return Outcome("events", 1, Trace("events", EVENTS.fingerprint), (GREW,), files=files)


def observer(
    ledger: FreshLedger, *present: ListedFile, settling: tuple[str, ...] = (), as_of: int = FIRST
) -> Observer:
    """One that finds these files, and those that are being written."""

    def listing(source: Source) -> tuple[tuple[ListedFile, ...], tuple[str, ...]]:
        del source
        return present, settling

    shop = replace(project(EVENTS, SESSIONS), root=Path("/nowhere"))
    return Observer(shop, ledger, cast(Lake, Memory()), listing, as_of)


def file_diff(*present: ListedFile, settling: tuple[str, ...] = (), as_of: int = FIRST) -> FileDiff:
    """What is new of the files of events, after the first ingest."""
    seen = observer(ledger_of(taken()), *present, settling=settling, as_of=as_of).observe()
    files = seen.models["events"].files
    assert files is not None
    return files


def test_a_known_file_that_is_being_written_again_stays_as_it_was() -> None:
    """Until it has settled; then rows are exchanged in one step. A waiting row becomes due at its
    exact instant and not before.
    """
    young, same = file_diff(settling=("a.csv",)), file_diff(SEEN)
    settled = file_diff(replace(SEEN, fingerprint="two"))

    assert (bool(young), young.settling) == (False, 1)
    assert (bool(same), same.unchanged) == (False, 1)
    assert [file.fingerprint for file in settled.new] == ["two"]
    assert (settled.removed, settled.replaced) == ((TAKEN,), 1)
    assert not file_diff(SEEN, as_of=WAITS_FOR - 1).come_due
    assert file_diff(SEEN, as_of=WAITS_FOR).come_due == (TAKEN,)


def test_a_reader_sees_what_changed_since_the_version_it_read() -> None:
    """All for a new one, none for one up to date."""
    read = Trace("sessions", SESSIONS.fingerprint, {"events": 0})
    behind = ledger_of(taken(), Outcome("sessions", 1, read))
    level = ledger_of(taken(), Outcome("sessions", 1, replace(read, inputs={"events": 1})))

    [seen] = observer(behind, SEEN).observe().models["sessions"].inputs
    [none] = observer(level, SEEN).observe().models["sessions"].inputs

    assert (seen.read_version, seen.newest_version, seen.changes) == (0, 1, (GREW,))
    assert (none.read_version, none.newest_version, none.changes) == (1, 1, ())


PLANS = {
    "infold.yml": "name: shop\nsources:\n  raw.plans:\n    path: plans/*.csv\n"
    "    may_be_empty: true\n    file_time_column: at\n    columns: {who: string}\n",
    "models/plans.sql": "---\nmaterialization: scd_type_2\nunique_key: [who]\n"
    "scd_type_2: {updated_at: at, columns: [who], invalidate_hard_deletes: true}\n---\n"
    "SELECT * FROM raw.plans",
}


def test_keys_of_a_lookup_that_was_dropped_are_not_searched() -> None:
    """What it was is gone: rows with changed keys may be everywhere."""
    gone = Outcome("events", 2, Trace("events", EVENTS.fingerprint), whole=True)
    read = Outcome("sessions", 1, Trace("sessions", SESSIONS.fingerprint, {"events": 1}), (GREW,))
    matching = replace(SESSIONS, matches=(Match("events", "raw.users", (("user", "user"),)),))

    def keys(model: Node) -> list[ChangedKeyRows | None]:
        looking = observer(ledger_of(taken(), read, gone))
        looking.project = replace(looking.project, nodes=(EVENTS, model))
        return [one.changed_keys for one in looking.observe().models["sessions"].inputs]

    assert keys(matching) == [ChangedKeyRows(everywhere=True)]
    assert keys(SESSIONS) == [None]


@pytest.mark.deep
def test_versions_by_random_snapshots() -> None:
    """
    However files with and without rows come, change and go, a run makes versions of all of them.

    Rows are kept as the versions of the source have them, and files without any as the ledger does.
    """
    draw, ledger, steps = Random(3), FreshLedger(), count(1)
    shop = replace(declared(PLANS), root=Path("/nowhere"))
    ledger.acquire("run")
    ledger.begin_run("run", "run", FIRST, {})
    times: dict[int, tuple[int, str]] = {}
    """The snapshots by time: the round in which each was written, and whose rows it has."""
    tables: dict[int, list[Row]] = {0: []}
    reasons: set[str] = set()

    def listing(source: Source) -> tuple[list[ListedFile], tuple[str, ...]]:
        del source
        return [
            ListedFile(f"plans/{at}.csv", 1, at, f"1:{number}.1:{at}000")
            for at, (number, _) in sorted(times.items())
        ], ()

    def rows_of_files() -> list[Row]:
        return [{"who": who, "at": at} for at, (_, every) in times.items() for who in every]

    def carried_out(step: Step) -> Outcome:
        query, diff = shop[step.model].versions, step.files
        assert step.trace is not None
        if query is not None:
            read = step.snapshots_read(query, ledger.files(step.model))
            return Outcome(step.model, step.version, step.trace, files=read)
        assert diff is not None
        ids = ledger.register_files(diff.source, diff.new)
        new = tuple(
            IngestedFile(ids[file.path], file.path, 1, file.fingerprint, 0, rows=len(every))
            for file in diff.new
            for _, every in [times[file.modified_at]]
        )
        files = FilesOutcome(diff.source, new, tuple(file.id for file in diff.removed))
        old, now = tables[max(tables)], rows_of_files()
        made = Outcome(step.model, step.version, step.trace, files=files)
        if sorted(map(str, old)) == sorted(map(str, now)):
            return replace(made, committed=False)
        tables[step.version] = now
        sizes = len(now), len(old), len(old), len(now)
        return replace(made, changes=(CellChange(EVER, *sizes, step.version - 1, step.version),))

    def made_of(rows: list[Row], empty: Iterable[int]) -> list[Row]:
        how: Mapping[str, Any] = {"key": ["who"], "time": "at", "compared": ["who"]}
        return sorted(versions(rows, snapshots=True, without_rows=empty, **how), key=str)

    for number in range(80):
        for at in draw.sample([*times], min(len(times), draw.randint(0, 2))):
            del times[at]
        for _ in range(draw.randint(0, 2)):
            times[draw.randint(1, 9)] = number, draw.choice(["", "a", "ab"])
        look = Observer(shop, ledger, cast(Lake, Memory()), listing, FIRST)
        while made := plan(shop, look.observe()).steps:
            step = next(step for step in made if not step.expected)
            reasons |= {one.detail.partition(" ")[2] for one in step.reasons}
            id_ = f"run-{next(steps)}"
            ledger.begin_step("run", id_, number, step.model, "build", {})
            ledger.finish_step(id_, carried_out(step))
        read = tables[ledger.traces()["plans"].inputs["raw.plans"]]
        taken_in = [written_at(file.fingerprint) for file in ledger.files("plans")]
        empty = [at for at, (_, every) in times.items() if not every]
        assert made_of(read, taken_in) == made_of(rows_of_files(), empty)
    assert {"snapshot without rows that came", "snapshot without rows that left"} <= reasons


@pytest.mark.parametrize(
    ("state", "action", "expected"),
    [
        ("done", Action.RECOMPUTE, (FIRST, False)),
        ("done", Action.EVOLVE, (FIRST, False)),
        ("failed", Action.RECOMPUTE, (FIRST, True)),
        ("running", Action.RECOMPUTE, (FIRST, True)),
        ("died", Action.RECOMPUTE, (FIRST, True)),
        ("failed", Action.EVOLVE, (None, False)),
        ("running", Action.EVOLVE, (None, False)),
    ],
)
def test_the_run_behind_a_table_with_a_cron(
    state: str, action: Action, expected: tuple[int | None, bool]
) -> None:
    """Its clock, and whether it is done; one that has read no inputs counts as not built."""
    ledger = ledger_of(Outcome("sessions", 1, Trace("sessions", "f")))
    ledger.begin_step("run", "run-9", 9, "daily", action.value, {})
    ledger.finish_step("run-9", Outcome("daily", 1, Trace("daily", "f")))
    if state == "died":
        ledger.acquire("another")
    elif state != "running":
        ledger.finish_run("run", state, Receipt())
    looking = observer(ledger)
    looking.project = project(SESSIONS, with_incremental(DAILY, cron="0 5 * * *"))

    seen = looking.observe_all().models["daily"]

    assert (seen.as_of, seen.unfinished) == expected


def test_a_listing_that_differs_later_in_a_run_is_not_remembered() -> None:
    """What is recorded as compared is what the last look found to be the same."""
    ledger = ledger_of(taken())
    looks = observer(ledger, SEEN)
    looks.observe()
    assert looks.compared

    files = FilesOutcome("raw.clicks", removed=(1,))
    outcome = Outcome("events", 2, Trace("events", EVENTS.fingerprint), (), files=files)
    ledger.begin_step("run", "run-9", 9, "events", "ingest", {})
    ledger.finish_step("run-9", outcome)
    looks.observe()

    assert looks.compared == {}


def test_a_ledger_is_let_go_of_with_its_observer() -> None:
    """A file has all once it is closed, and a backup beside an open log is not read."""
    gc.disable()
    try:
        looking = observer(ledger_of(taken()), SEEN)
        looking.observe()
        gone = weakref.ref(looking.ledger)
        del looking
        assert gone() is None
    finally:
        gc.enable()


# -- files that differ from the ingested ones

PLAIN = Source("raw.clicks", Format.CSV, (), path="*.csv")
BY_POLICY = replace(PLAIN, on_drift=Drift.SET_ASIDE)
POLICY = file_policy_fingerprint(BY_POLICY)


@st.composite
def ingested(draw: st.DrawFn) -> list[IngestedFile]:
    """Files as they may have been ingested, some under a policy, some set aside or waiting."""
    paths = draw(st.sets(st.sampled_from("abcdef"), max_size=5))
    return [
        IngestedFile(
            id_,
            path,
            draw(st.sampled_from([0, 10])),
            draw(st.sampled_from(["1", "2"])) + draw(st.sampled_from(["", "|old", f"|{POLICY}"])),
            FIRST,
            next_due=draw(st.sampled_from([None, 5, 6])),
            rows=draw(st.sampled_from([0, 3])),
            waiting=draw(st.sampled_from([0, 1])),
            set_aside=draw(st.sampled_from([0, 2])),
        )
        for id_, path in enumerate(sorted(paths), 1)
    ]


LISTINGS = st.dictionaries(
    st.sampled_from("abcdefgh"), st.tuples(st.sampled_from([0, 10]), st.sampled_from(["1", "2"]))
)


class Book(FreshLedger):
    """A ledger with these files of one model."""

    def __init__(self, files: Sequence[IngestedFile]) -> None:
        super().__init__()
        self.acquire("r")
        self.begin_run("r", "run", 0, {})
        listed = [ListedFile(one.path, one.size, 0, one.fingerprint) for one in files]
        assert list(self.register_files("raw.clicks", listed).values()) == [one.id for one in files]
        self.begin_step("r", "s", 0, "events", "ingest", {})
        there = FilesOutcome("raw.clicks", tuple(files))
        trace = Trace("events", EVENTS.fingerprint)
        self.finish_step("s", Outcome("events", 1, trace, files=there))
        self.read: list[frozenset[int] | None] = []
        self.compared = 0

    def files(self, model: str, ids: Iterable[int] | None = None) -> Sequence[IngestedFile]:
        """The files; which were asked for is noted."""
        self.read.append(None if ids is None else frozenset(ids))
        return super().files(model, None if ids is None else self.read[-1])

    def file_versions(self, model: str) -> Mapping[str, tuple[str, int]]:
        """The versions of all files; that they were asked for is noted."""
        self.compared += 1
        return super().file_versions(model)


@pytest.mark.deep
@given(ingested(), LISTINGS, st.sampled_from([PLAIN, BY_POLICY]), st.data())
def test_the_same_as_by_looking_at_every_file(
    files: list[IngestedFile],
    listing: dict[str, tuple[int, str]],
    source: Source,
    data: st.DataObject,
) -> None:
    """What differs is what a comparison of each file with all that is known of it finds."""
    young = data.draw(st.sets(st.sampled_from("abcdefgh")).map(lambda s: s - listing.keys()))
    found = [
        ListedFile(path, *values[:1], 0, values[1]) for path, values in sorted(listing.items())
    ]
    policy, known = file_policy_fingerprint(source), {file.path: file for file in files}

    made = listed_changes(Book(files), "events", source, found, sorted(young), as_of=5)

    present = [with_file_policy(file, known.get(file.path), policy) for file in found]
    here = {file.path: file for file in present}
    changed = [
        file
        for file in present
        if file.path not in known or known[file.path].fingerprint != file.fingerprint
    ]
    removed = [
        file for file in files if file.path not in young and is_gone(file, here.get(file.path))
    ]
    stays = [file for file in files if file not in removed]
    lost = [
        file
        for file in removed
        if (file.path not in here or not here[file.path].size) and (file.size or not here)
    ]
    added = [file for file in present if file.size and file.path not in known]
    assert list(made.changed) == changed
    assert list(made.removed) == removed
    assert list(made.replaced) == [file for file in changed if file.path in known]
    assert list(made.lost) == ([] if len(added) >= len(lost) else lost)
    assert list(made.due) == [f for f in stays if f.next_due is not None and f.next_due <= 5]
    assert made.unchanged == len(stays)


def test_only_the_files_that_differ_are_read() -> None:
    """Of a thousand files, one of them replaced and one deleted, two are read."""
    files = [IngestedFile(id_, f"{id_:04}", 10, "1", FIRST) for id_ in range(1, 1_001)]
    found = [ListedFile(file.path, 10, 0, "1") for file in files if file.id != 7]
    found[99] = replace(found[99], fingerprint="2")
    book = Book(files)

    made = listed_changes(book, "events", PLAIN, found, (), as_of=5)

    assert [file.id for file in made.removed] == [7, 101]
    assert book.read == [frozenset({7, 101})]


def test_a_listing_is_told_from_every_other() -> None:
    """A listing is known by its paths, its versions and its policy."""
    a, b = ListedFile("a", 1, 0, "1"), ListedFile("b", 1, 0, "2")
    listings = [(), (a,), (b,), (a, b), (replace(a, fingerprint="2"), b), (replace(a, path="a1"),)]

    found = {listing_digest(source, one) for source in (PLAIN, BY_POLICY) for one in listings}

    assert len(found) == 2 * len(listings)
    assert listing_digest(PLAIN, (a, b)) == listing_digest(PLAIN, (replace(a, modified_at=9), b))


def test_a_listing_that_was_compared_is_not_compared_again() -> None:
    """
    It is for the ledger once nothing differs: exactly the ingested files, none of which has yet to
    settle. With the recorded listing no file is compared; rows come due at their instant.
    """
    ledger = ledger_of(taken())
    same, other = observer(ledger, SEEN), observer(ledger)
    young = observer(ledger, SEEN, settling=("b.csv",))
    for looking in (same, other, young):
        looking.observe()
    assert same.compared.keys() == {LISTED.format("events")}
    assert other.compared == young.compared == {}

    book = Book([TAKEN])
    first = observer(book, SEEN)
    first.observe()
    book.remember_locations(first.compared)
    assert book.compared == 1
    again, due = (observer(book, SEEN, as_of=at).observe() for at in (FIRST, WAITS_FOR))
    other_file = observer(book, replace(SEEN, fingerprint="two")).observe()
    files = [seen.models["events"].files for seen in (again, due, other_file)]
    assert [bool(one) for one in files] == [False, True, True]
    assert [one.unchanged for one in files if one] == [1, 0]
    assert book.compared == 2


def test_a_listing_of_a_folder_is_that_of_its_files() -> None:
    """It has its files by path, as values, and the digest that these have."""
    listing = FileListing({"b": "7:5999", "a": "3:4000"})
    a, b = ListedFile("a", 3, 4, "3:4000"), ListedFile("b", 7, 5, "7:5999")

    assert ([*listing], listing[1], listing[:1], len(listing)) == ([a, b], b, (a,), 2)
    assert listing_digest(PLAIN, listing) == listing_digest(PLAIN, (a, b))


# -- what new versions of an input mean to readers of some of its columns


ID = frozenset({"id"})


def change(number: int, before: int, after: int) -> CellChange:
    """A day with three rows before and after, and with other content."""
    return CellChange(day(number), 3, 3, 3, 3, before, after)


def version(number: int, *changes: CellChange, unchanged: Ranges | None = None) -> Outcome:
    """A version of ``sessions`` that left the identifiers of some cells as they were."""
    left = () if unchanged is None else (Unchanged(ID, unchanged),)
    made = Outcome("sessions", number, Trace("sessions", "f"), changes, snapshot=number)
    return replace(made, unchanged=left)


BOTH = Ranges((day(1), day(2)))
VERSIONS = (
    version(1, change(1, 0, 1), change(2, 0, 1)),
    version(2, change(1, 1, 2), change(2, 1, 2), unchanged=BOTH),
    version(3, change(2, 2, 3)),
    version(4, change(1, 2, 4), change(2, 3, 4), unchanged=Ranges((day(1),))),
)


def seen(
    node: Node, read: int, upto: int, columns: frozenset[str] | None = ID
) -> tuple[int, list[CellChange]]:
    """The version to begin with and the changes, for a reader of some columns."""
    found = InputChanges(project(node), ledger_of(*VERSIONS[:upto]))
    found.__dict__["columns"] = lambda *_: columns
    since, changes = found.since(node, "sessions", read, upto)
    return since, list(changes)


def test_a_version_that_changes_nothing_for_a_reader_is_skipped() -> None:
    """
    Up to the first that matters; a reader of other columns, or of all, sees each. A fold compares
    rows of two versions, so it needs all cells that changed between them.
    """
    assert seen(DAILY, 1, 2) == (2, [])
    assert seen(DAILY, 1, 3) == (2, [change(2, 2, 3)])
    assert seen(DAILY, 2, 2) == (2, [])
    for columns in (frozenset({"id", "x"}), None):
        assert seen(DAILY, 1, 2, columns) == ALL
    second = replace(change(2, 2, 4), added=6, removed=6)
    assert seen(DAILY, 1, 4) == (2, [second])
    assert seen(SESSIONS, 1, 2) == (2, [])
    assert seen(SESSIONS, 1, 4) == (2, [change(1, 2, 4), second])


ALL = (1, [change(1, 1, 2), change(2, 1, 2)])


@pytest.mark.parametrize(
    ("reads", "expected"),
    [(ID, (2, [])), (frozenset({"id", "x"}), ALL), (None, ALL)],
    ids=["the same", "others", "all"],
)
def test_columns_of_earlier_definitions_count_too(
    reads: frozenset[str] | None,
    expected: tuple[int, list[CellChange]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A table with several definitions sees what changed for any of them."""
    now = project(DAILY)
    before = replace(now, name="before")
    found = InputChanges(now, ledger_of(*VERSIONS[:2]))
    by = {now.name: ID, before.name: reads}
    monkeypatch.setattr(found, "_columns_read", lambda of: lambda *_: by[of.name])
    stretch = Stretch(Ranges((day(1),)), "daily", before)

    since, changes = found.since(DAILY, "sessions", 1, 2, (stretch,))

    assert (since, list(changes)) == expected
    other = replace(stretch, project=project(replace(DAILY, inputs=())))
    assert found.since(DAILY, "sessions", 1, 2, (other,)) == (2, ())


def test_traces_advance_over_skipped_versions() -> None:
    """The ledger records the version that a reader may begin with. A model without a trace, or with
    that version in it, costs no write.
    """
    ledger = ledger_of(Outcome("daily", 1, Trace("daily", "f", {"sessions": 1, "users": 1})))
    trace = ledger.traces()["daily"]
    inputs = (InputDiff("sessions", 2, 3, (change(2, 2, 3),)), InputDiff("users", 1, 1))
    observed = Observations(0, {"daily": ModelObservation(trace, inputs=inputs)})
    advance_traces(ledger, observed)
    assert ledger.traces()["daily"].inputs == {"sessions": 2, "users": 1}

    known, new = Trace("daily", "f", {"sessions": 2}), (InputDiff("sessions", 2, 3),)
    found = {
        "daily": ModelObservation(known, inputs=new), "new": ModelObservation(inputs=new)
    }  # fmt: skip
    advance_traces(FreshLedger(), Observations(0, found))  # it cannot be written to: no lease


@pytest.mark.parametrize(
    ("kept", "read", "expected"),
    [
        ({"id", "x"}, {"id"}, True),
        ({"id"}, {"id", "x"}, False),
        (set(), set(), False),
        ({"id"}, None, False),
    ],
    ids=["some", "more", "nothing proven", "all"],
)
def test_a_changed_definition_keeps_what_a_reader_reads(
    kept: set[str], read: set[str] | None, expected: bool
) -> None:
    """All columns that a reader reads have to be among those that are proven to stay."""
    found = InputChanges(project(DAILY), FreshLedger())
    found.__dict__["columns"] = lambda *_: None if read is None else frozenset(read)
    other = Redefinition(
        "sessions", Category.ADDITIVE, (), How.REBUILD, None, SESSIONS, frozenset(kept)
    )

    assert found.keeps(DAILY, "sessions", other) is expected
