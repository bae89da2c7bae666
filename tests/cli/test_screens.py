"""Whole screens, as a user sees them. ``pytest tests/cli --rewrite`` writes the files again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date

import pytest
from tests.cli import sample
from tests.cli.conftest import Infold, Screen

from infold.core.interval import DAY, EVER, Granularity, Interval, Ranges, parse_instant_text
from infold.core.model import Kind
from infold.core.plan import (
    Action,
    FileDiff,
    InputDiff,
    ModelObservation,
    Observations,
    Plan,
    Reason,
    Skipped,
    Step,
)
from infold.core.project import Node
from infold.core.record import Receipt
from infold.core.report import AppliedDefinition, Verdict, VerificationReport
from infold.core.trace import Cause, CellState, EarlierCells, Pending, Trace
from infold.inspecting.session_history import SessionHistories
from infold.render.explain import explain_screen
from infold.render.plan import plan_screen
from infold.render.run import step_line, summary_screen
from infold.render.session_history import session_history_screen
from infold.render.status import history_screen, status_screen
from infold.render.table import table_screen
from infold.render.verification import verification_screen

DAYS_OF_2016 = Ranges(
    (Interval(parse_instant_text("2016-05-04"), parse_instant_text("2016-05-06")),)
)
QUIET = FileDiff("raw.clicks")


def plan_of(
    *steps: Step,
    left: tuple[Skipped, ...] = (),
    seen: Observations | None = None,
    covered: Mapping[str, Ranges] = sample.COVERED,
    nodes: tuple[Node, ...] = (),
    options: str = "",
) -> str:
    """The screen of a plan with these steps."""
    made = Plan(steps, left, sample.AS_OF)
    seen = seen or sample.observed(QUIET)
    return plan_screen(sample.project(*nodes), seen, made, covered, options)


def first_run() -> str:
    """Every cell that files touch is shown as missing."""
    names = ("countries", "clicks", "sessions", "daily")
    files = FileDiff("raw.clicks", new=(sample.seen_file("a.json"),), estimate=sample.NEWS.estimate)
    seen = {name: ModelObservation(files=files if name == "clicks" else None) for name in names}
    first = Reason(Cause.MISSING, "first run", Ranges.ever())
    steps = (
        Step(name, Action.BUILD, Ranges.ever(), (first,), expected=name in names[2:])
        for name in names
    )
    return plan_of(*steps, seen=Observations(sample.AS_OF, seen), covered={})


def unread() -> str:
    """Without an estimate of the files no cell is known, and the plan says so."""
    files, read = (
        Reason(Cause.ARRIVED, "3 new files"),
        Reason(Cause.ARRIVED, "because clicks is built"),
    )
    return plan_of(
        replace(sample.INGEST, cells=Ranges(), reasons=(files,)),
        replace(sample.FOLD, cells=Ranges(), reasons=(read,)),
        left=(Skipped("daily", "not selected"),),
        seen=sample.observed(replace(sample.NEWS, estimate=None)),
        options=" --select clicks",
    )


def far_apart() -> str:
    """An event of 1999 beside today's is two columns."""
    old = Interval(parse_instant_text("1999-05-04"), parse_instant_text("1999-05-05"))
    return plan_of(
        replace(sample.FOLD, cells=Ranges((old,)) | sample.days("10"), expected=False),
        left=(Skipped("clicks", "up to date"),),
        nodes=(sample.CLICKS, sample.SESSIONS),
    )


def years_between() -> str:
    """Years built or to be built from end to end are one column."""
    days = DAYS_OF_2016 | sample.days("8-9")
    every = Interval(DAYS_OF_2016.parts[0].start, sample.day(9).end)
    cells = tuple(CellState(cell, 1, 1) for part in days for cell in Granularity.DAY.cells(part))
    seen = sample.observed(QUIET)
    daily = replace(seen.models["daily"], inputs=(InputDiff("sessions", 1, 2, (), cells),))
    return plan_of(
        replace(sample.RECOMPUTE, cells=Ranges((every,)), batches=1, expected=False),
        left=(Skipped("clicks", "up to date"),),
        seen=replace(seen, models={**seen.models, "daily": daily}),
        covered={"clicks": days, "daily": days},
        nodes=(sample.CLICKS, sample.DAILY),
    )


def window() -> str:
    """Stale cells outside the window are dots, and are listed as skipped."""
    late = Reason(Cause.LATE, "140 rows in 1 cell of sessions", sample.days("6"), 140)
    return plan_of(
        replace(sample.RECOMPUTE, cells=sample.days("6"), reasons=(late,), expected=False),
        left=(
            Skipped("daily", "outside the window", sample.days("9-10")),
            *(Skipped(name, "up to date") for name in ("countries", "clicks", "sessions")),
        ),
        seen=sample.observed(FileDiff("raw.clicks", unchanged=100)),
        options=" --start 2024-03-06 --end 2024-03-07",
    )


def nothing_to_do(files: FileDiff) -> str:
    """What was observed, and what is left."""
    return plan_screen(sample.project(), sample.observed(files), sample.nothing(), {})


def summary(step: Step, receipt: Receipt) -> str:
    """The end of a run of one step."""
    return summary_screen(
        replace(sample.result(), steps=((step, receipt),), receipt=receipt, notes=()), verbose=True
    )


def everywhere() -> str:
    """Copies at other times are counted, and the rows that were searched for them."""
    found = replace(sample.RECEIPTS[0], scanned=2_010_317, keys_scanned=2_000_000, elsewhere=31)
    return summary(sample.INGEST, found)


def left() -> str:
    """Why a model is not stale, and what an earlier window left unbuilt."""
    pending = Pending(Cause.MISSING, sample.days("4-5"))
    return explain_screen(
        replace(
            sample.explanation(),
            step=None,
            why_left="outside the window",
            applied=AppliedDefinition("another", sample.AS_OF, same=False),
            trace=Trace("sessions", "another", {"clicks": 8}, (pending,)),
        )
    )


def not_compared() -> str:
    """A model that cannot be compared is not called verified, and the reason is shown."""
    note = "its definition changed since it was built: `infold run` rebuilds it"
    verdict = Verdict("daily", Kind.INCREMENTAL_TABLE, 0, 0, 0, equal=False, note=note)
    return verification_screen(VerificationReport((*sample.verification().models[:3], verdict)))


def whole() -> str:
    """A table without cells differs as a whole."""
    (verdict, *_) = sample.verification().models
    differs = replace(verdict, equal=False, differing=((EVER, 249, 250),))
    return verification_screen(VerificationReport((differs,)))


def beyond_bounds() -> str:
    """What rows beyond declared bounds would change is a difference, shown with what to do."""
    verdict = sample.verification().models[3]
    cell = parse_instant_text("2024-03-20")
    note = (
        "beyond its declared bounds it differs in 2024-03-20: "
        "daily: {before: 19 days} is enough for its present rows"
    )
    row = {"day": date(2024, 3, 20)}
    differs = replace(
        verdict,
        equal=False,
        differing=((Interval(cell, cell + DAY), 1, 1),),
        sample=(("stored", row | {"week": 2}), ("rebuilt", row | {"week": 3})),
        note=note,
        key=("day",),
        beyond_bounds=True,
    )
    return verification_screen(VerificationReport((differs,)))


def table() -> str:
    """Numbers are aligned right, NULL is written out, texts of any kind stay on one line."""
    rows = [
        [1, "ann", None, 1.5, True],
        [12_000, "x" * 60, "", 0.1, False],
        [3, "two\nlines", "é", None, None],
    ]
    return table_screen("t", ["n", "text", "other", "ratio", "flag"], rows, more=1_204)


SCREENS: dict[str, Callable[[], str]] = {
    "plan_first": first_run,
    "plan_unread": unread,
    "plan_far_apart": far_apart,
    "plan_years_between": years_between,
    "plan_window": window,
    "plan_nothing": lambda: nothing_to_do(FileDiff("raw.clicks", unchanged=101, settling=2)),
    # nothing arrived: no ratios and no sessions
    "summary_no_arrivals": lambda: summary(sample.RECOMPUTE, sample.RECEIPTS[2]),
    "summary_everywhere": everywhere,
    "status_up_to_date": lambda: status_screen(
        sample.project(), [replace(one, stale=Ranges()) for one in sample.status()[:2]], {}
    ),
    "history_model": lambda: history_screen(sample.history()[-1:], "sessions"),
    "explain_model": lambda: explain_screen(sample.explanation()),
    "explain_left": left,
    "session_history_quarantined": lambda: session_history_screen(
        sample.histories(quarantined=True)
    ),
    "verification_not_compared": not_compared,
    "verification_whole": whole,
    "verification_beyond_bounds": beyond_bounds,
    "table": table,
}
"""Those that no command in test_commands.py prints of the sample."""


@pytest.mark.parametrize("name", SCREENS)
def test_screens(screen: Screen, name: str) -> None:
    """Each is as a user should see it."""
    screen(name, SCREENS[name]())


def test_a_table_that_is_not_there_yet_is_not_explained() -> None:
    """One that is built apart has a name by which `explain` does not know it."""
    made = sample.plan()

    def last(*apart: str) -> str:
        project = replace(sample.project(), apart=dict.fromkeys(apart, "clicks"))
        return plan_screen(project, sample.observed(), made, sample.COVERED)

    first, *others = (step.model for step in made.steps)
    assert f"`infold explain {others[0]}" in last(first)
    assert "infold explain" not in last(first, *others)


def test_parts_of_screens() -> None:
    """Folders left out, steps that wrote nothing, long histories, empty tables."""
    folders = nothing_to_do(FileDiff("raw.clicks", unchanged=101, folders=3, folders_left_out=97))
    assert "101 files as before; 3 dated folders listed, 97 left for a full listing" in folders

    line = step_line(12, sample.FOLD, Receipt(cells_cut_off=4, seconds=125.4))
    assert line.endswith(" fold        2 min 5 s  0 cells (4 cut off), 0 read, 0 written")

    cell = sample.explanation(sample.day(6))
    assert cell.trace is not None
    old = EarlierCells(sample.days("6"), "another")
    text = explain_screen(replace(cell, trace=replace(cell.trace, earlier=(old,))))
    assert "built by an earlier definition, the one in force here," in text

    (history,) = sample.histories().histories
    long = replace(history, session_changes=history.session_changes[:3] * 10)
    text = session_history_screen(SessionHistories(history.id, (long,)))
    assert "  6 earlier changes not shown (--json shows all)" in text.splitlines()
    assert text.count("extended") == 8

    assert history_screen(()) == "No runs yet: `infold run` makes the first."
    assert history_screen((), "daily").startswith("No runs of daily yet: ")
    assert verification_screen(VerificationReport(())).endswith("no table was built yet.")


def test_what_any_result_will_do_for_is_not_verified() -> None:
    """Columns that an override leaves open are named, and tables of them are not called equal."""
    one, two = sample.verification().models[:2]
    note = "allow_nondeterministic: its rows are not compared"
    open_rows = replace(two, left_out=("*",), note=note, equal=True)
    found = verification_screen(VerificationReport((replace(one, left_out=("url",)), open_rows)))

    said, rows = found.splitlines(), f"{one.rows:,}"
    assert said[0].startswith("  model")
    assert said[1].endswith("equal")
    assert said[2].endswith("not compared")
    assert f"{two.model}: {note}" in said
    end = f"Not compared: {one.model}.url, {two.model}."
    assert said[-1] == f"Verified: 1 table of {rows} rows equal a full rebuild. {end}"
    assert verification_screen(VerificationReport((open_rows,))).endswith(
        f"Nothing was verified. Not compared: {two.model}."
    )
    assert table_screen("daily", ["day"], []) == "daily has no rows."
    uncounted = table_screen("t", ["n"], [[1]], more=None, note="where n = 1")
    assert uncounted.endswith("1 row shown, there are more (--limit 0 for all) where n = 1.")


def test_help(infold: Infold, screen: Screen) -> None:
    """`--help` lists the commands in the order in which a user meets them."""
    screen("help", infold("--help").stdout)
