"""Changed events follow from stored rows where the ledger shows that no copy decided anything."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.planning.strips import (
    EVENTS,
    SESSIONS,
    USERS,
    built,
    day,
    planned,
    project,
    step_of,
    with_trace,
)

from infold.core.definition import Category, Derivation, How, Redefinition
from infold.core.files import FileCell, IngestedFile, ListedFile
from infold.core.interval import Ranges
from infold.core.model import Deduplicate
from infold.core.plan import (
    Action,
    FileDiff,
    InputDiff,
    ModelObservation,
    Observations,
    Plan,
    PlanOptions,
)
from infold.core.project import Input, Node
from infold.core.trace import Cause
from infold.planning.derivations import FOLLOWS
from infold.planning.planner import plan

OLD = replace(EVENTS, fingerprint="old")
SAME = (("id", "`id`"), ("ts", "`ts`"))
DROPPED = Derivation(SAME, stored=("id", "ts", "v"))
NARROWED = Derivation(SAME, where=("v > 1",), stored=("id", "ts", "v"))
ADDED = Derivation((*SAME, ("url", "")), stored=("id", "ts"), from_files=("url",))
OTHER = replace(DROPPED, other_source_columns=True)


def file(number: int, rows: int = 10, **counts: int) -> IngestedFile:
    """An ingested file."""
    return IngestedFile(number, f"{number}.csv", 100, f"v{number}", 0, rows=rows, **counts)


def seen(
    derivation: Derivation,
    *files: IngestedFile,
    cells: tuple[FileCell, ...] = (),
    gone: tuple[int, ...] = (),
) -> ModelObservation:
    """An events table of another definition, and its files; some of them are gone."""
    trace = built(OLD).trace
    change = Redefinition(
        "events", Category.BREAKING, (), How.DERIVE, OLD, EVENTS, derivation=derivation
    )
    there = tuple(
        ListedFile(one.path, one.size, 0, one.fingerprint) for one in files if one.id not in gone
    )
    lost = tuple(one for one in files if one.id in gone)
    cells = cells or tuple(FileCell(one.id, day(one.id), one.rows, one.dropped) for one in files)
    diff = FileDiff("raw.clicks", there, lost, ingested=files, cells=cells, lost=lost)
    return replace(built(OLD), trace=trace, files=diff, redefined=change)


def made(model: ModelObservation, node: Node = EVENTS, **asked: frozenset[str]) -> Plan:
    """The plan for the events."""
    return planned(node, asked=PlanOptions(**asked), events=model)  # type: ignore[arg-type]


def detail(model: ModelObservation, node: Node = EVENTS) -> str:
    """What the plan says of the step; empty where all files are ingested again."""
    [step] = made(model, node).steps
    return step.reasons[0].detail if step.action is Action.DERIVE else ""


def test_the_step() -> None:
    """It reads nothing, has the new fingerprint, and leaves what the ledger knows of files."""
    step, trace = step_of(made(seen(DROPPED, file(1), file(2))))

    assert (step.action, step.derivation) == (Action.DERIVE, DROPPED)
    assert [(one.cause, one.detail, one.rows) for one in step.reasons] == [
        (Cause.DEFINITION, FOLLOWS, 0)
    ]
    assert (trace.fingerprint, trace.pending) == (EVENTS.fingerprint, ())
    assert step.files is not None
    assert (step.files.new, step.files.reingest, step.files.new_columns_of) == ((), (), ())
    assert (step.contested, step.expected) == (Ranges(), False)
    model = seen(DROPPED, file(1))
    assert model.files is not None
    assert not made(model).notes
    new = (*model.files.new, ListedFile("late.csv", 1, 0, "v"))
    [note] = made(replace(model, files=replace(model.files, new=new))).notes
    assert "files that came, changed or went since are ingested" in note


@pytest.mark.parametrize(
    ("derivation", "counts", "derived"),
    [
        (DROPPED, {"set_aside": 1, "waiting": 1}, True),
        (ADDED, {"set_aside": 1, "waiting": 1}, True),
        (NARROWED, {}, True),
        (NARROWED, {"set_aside": 1}, False),
        (NARROWED, {"waiting": 1}, False),
        (OTHER, {}, True),
        (OTHER, {"waiting": 1}, True),
        (OTHER, {"set_aside": 1}, False),
    ],
)
def test_rows_beside_the_table(
    derivation: Derivation, counts: dict[str, int], derived: bool
) -> None:
    """A condition may leave out rows that are set aside or wait, and other columns other rows."""
    assert bool(detail(seen(derivation, file(1, **counts), file(2)))) is derived


def test_copies() -> None:
    """Cells with copies are read from the files that have rows there, unless most files do."""
    files = file(1, dropped=1), file(2), file(3), file(4), file(5)
    cells = (
        FileCell(1, day(1), 10, 1),
        FileCell(2, day(1), 5),
        FileCell(2, day(2), 5),
        *(FileCell(number, day(number), 10) for number in (3, 4, 5)),
    )
    [step] = made(seen(DROPPED, *files, cells=cells)).steps

    assert step.contested == Ranges((day(1),))
    assert step.files is not None
    assert [one.id for one in step.files.reingest] == [1, 2]
    assert step.rows_to_read == 20
    assert step.reasons[0].detail == "2 files read again where copies of events were left out"
    assert not detail(seen(DROPPED, *files[:3], cells=cells[:4]))
    everywhere = replace(EVENTS, model=replace(EVENTS.model, deduplicate=Deduplicate.EVERYWHERE))
    assert not detail(seen(DROPPED, *files, cells=cells), everywhere)
    assert detail(seen(DROPPED, file(1), file(2)), everywhere) == FOLLOWS


def test_a_column_of_the_files() -> None:
    """Files with stored rows are read for it; all of them if the source did not have it."""
    files = file(1), file(2), file(3, rows=0), file(4, rows=2, dropped=2)
    cells = FileCell(1, day(1), 10), FileCell(2, day(2), 10), FileCell(4, day(4), 2, 2)

    assert detail(seen(ADDED, *files[:3])) == "column url: 2 files read again for it"
    two = replace(ADDED, columns=(*ADDED.columns, ("n", "")), from_files=("url", "n"))
    assert detail(seen(two, *files[:3])) == "columns url, n: 2 files read again for them"
    other = replace(ADDED, other_source_columns=True)
    assert detail(seen(other, *files[:3])) == "column url: 3 files read again for it"
    assert detail(seen(ADDED, *files, cells=cells)) == (
        "column url: 2 files read again for it; "
        "1 file read again where copies of events were left out"
    )


def test_files_that_are_not_what_they_were() -> None:
    """What has to be read and is gone or changed is built again; what is not read may be gone."""
    files = file(1), file(2)
    other = replace(file(2), fingerprint="other")

    assert detail(seen(DROPPED, *files, gone=(2,))) == FOLLOWS
    assert not detail(seen(ADDED, *files, gone=(2,)))
    changed = seen(ADDED, *files)
    assert changed.files is not None
    listed = (changed.files.new[0], ListedFile("2.csv", 9, 0, other.fingerprint))
    assert not detail(replace(changed, files=replace(changed.files, new=listed)))


@pytest.mark.parametrize(
    ("derivation", "action"), [(DROPPED, Action.DERIVE), (ADDED, Action.BUILD)]
)
def test_lookups(derivation: Derivation, action: Action) -> None:
    """Rows follow from those of a join; files are not read again, as the lookup may be another."""
    joined = replace(EVENTS, inputs=(*EVENTS.inputs, Input("users")))
    model = seen(derivation, file(1))
    model = replace(with_trace(model, inputs={"users": 1}), inputs=(InputDiff("users", 1, 2),))
    observed = Observations(0, {"events": model, "users": built(USERS)})
    step, trace = step_of(plan(project(USERS, joined), observed))

    assert step.action is action
    if action is Action.DERIVE:
        assert step.inputs == {"users": (1, 1)}
        assert trace.inputs == {"users": 1}


def test_what_is_asked_for() -> None:
    """Restated events, and those with other types, are ingested again."""
    for asked in (
        PlanOptions(not_derived=frozenset({"events"})),
        PlanOptions(restated={"events": Ranges.ever()}),
    ):
        [step] = planned(EVENTS, asked=asked, events=seen(DROPPED, file(1))).steps
        assert step.action is Action.BUILD


@pytest.mark.parametrize(
    ("files", "models"),
    [
        ((file(1), file(2)), ["events"]),
        ((file(1, dropped=1), file(2), file(3)), ["events", "sessions"]),
        ((file(1, rows=90, dropped=1), file(2)), ["events", "sessions"]),
    ],
    ids=["derived", "copies", "built"],
)
def test_readers_of_columns_that_stay(files: tuple[IngestedFile, ...], models: list[str]) -> None:
    """They are left alone, unless another copy of an event may have other values there."""
    sessions = replace(built(SESSIONS), inputs_kept=frozenset({"events"}))
    observed = Observations(0, {"events": seen(DROPPED, *files), "sessions": sessions})

    found = plan(project(EVENTS, SESSIONS), observed)
    assert [step.model for step in found.steps] == models
