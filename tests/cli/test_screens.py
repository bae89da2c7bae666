"""Whole screens, as a user sees them. ``pytest tests/cli --rewrite`` rewrites the expected
files.
"""

from __future__ import annotations

from dataclasses import replace

from tests.cli import sample
from tests.cli.conftest import Infold, Screen

from infold.core.interval import EVER, Granularity, Interval, Ranges, parse_instant_text
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
from infold.core.record import Receipt
from infold.core.report import AppliedDefinition, Verdict, VerificationReport
from infold.core.trace import Cause, CellState, EarlierCells, Pending, Trace
from infold.inspecting.session_history import SessionHistories
from infold.render.explain import explain_screen
from infold.render.plan import nothing_screen, plan_screen
from infold.render.run import step_line, summary_screen
from infold.render.session_history import session_history_screen
from infold.render.status import history_screen, status_screen
from infold.render.table import table_screen
from infold.render.verification import verification_screen


class TestPlan:
    """The plan's screen: what arrived, what is built and why, what is skipped, what to do next."""

    def test_a_standard_run(self, screen: Screen) -> None:
        """The plan shows late and new rows, a replaced and a
        deleted file, and every step that follows from them.
        """
        text = plan_screen(sample.project(), sample.observed(), sample.plan(), sample.COVERED)

        screen("plan_standard", text)

    def test_a_first_run(self, screen: Screen) -> None:
        """On a first run every cell that files touch is shown as missing."""
        names = ("countries", "clicks", "sessions", "daily")
        files = FileDiff(
            "raw.clicks", new=(sample.seen_file("a.json"),), estimate=sample.NEWS.estimate
        )
        seen = {name: ModelObservation(files=files if name == "clicks" else None) for name in names}
        first = Reason(Cause.MISSING, "first run", Ranges.ever())
        steps = tuple(
            Step(name, Action.BUILD, Ranges.ever(), (first,), expected=name in names[2:])
            for name in names
        )

        text = plan_screen(
            sample.project(), Observations(sample.AS_OF, seen), Plan(steps, (), sample.AS_OF), {}
        )

        screen("plan_first", text)

    def test_files_not_read_beforehand(self, screen: Screen) -> None:
        """Without an estimate no cell is known, and the plan says so."""
        files = replace(sample.NEWS, estimate=None)
        ingest = replace(
            sample.INGEST, cells=Ranges(), reasons=(Reason(Cause.ARRIVED, "3 new files"),)
        )
        fold = replace(
            sample.FOLD,
            cells=Ranges(),
            reasons=(Reason(Cause.ARRIVED, "because clicks is built"),),
        )

        text = plan_screen(
            sample.project(),
            sample.observed(files),
            Plan((ingest, fold), (Skipped("daily", "not selected"),), sample.AS_OF),
            sample.COVERED,
            " --select clicks",
        )

        screen("plan_unread", text)

    def test_a_table_that_is_not_there_yet_is_not_explained(self) -> None:
        """One that is built apart has a name by which `explain` does not know it."""
        made = sample.plan()

        def last(*apart: str) -> str:
            project = replace(sample.project(), apart=dict.fromkeys(apart, "clicks"))
            return plan_screen(project, sample.observed(), made, sample.COVERED)

        first, *others = (step.model for step in made.steps)
        assert f"`infold explain {others[0]}" in last(first)
        assert "infold explain" not in last(first, *others)

    def test_ranges_from_far_apart(self, screen: Screen) -> None:
        """Ranges far apart are one column each: an event of 1999 beside today's is two columns."""
        old = Ranges(
            (Interval(parse_instant_text("1999-05-04"), parse_instant_text("1999-05-05")),)
        )
        step = replace(sample.FOLD, cells=old | sample.days("10"), expected=False)

        text = plan_screen(
            sample.project(sample.CLICKS, sample.SESSIONS),
            sample.observed(FileDiff("raw.clicks")),
            Plan((step,), (Skipped("clicks", "up to date"),), sample.AS_OF),
            sample.COVERED,
        )

        screen("plan_far_apart", text)

    def test_years_without_a_row(self, screen: Screen) -> None:
        """Years built or to be built from end to end are one column."""
        days = Ranges(
            (Interval(parse_instant_text("2016-05-04"), parse_instant_text("2016-05-06")),)
        ) | sample.days("8-9")
        every = Interval(parse_instant_text("2016-05-04"), sample.day(9).end)
        cells = tuple(
            CellState(cell, 1, 1) for part in days for cell in Granularity.DAY.cells(part)
        )
        step = replace(sample.RECOMPUTE, cells=Ranges((every,)), batches=1, expected=False)
        seen = sample.observed(FileDiff("raw.clicks"))
        daily = replace(seen.models["daily"], inputs=(InputDiff("sessions", 1, 2, (), cells),))

        text = plan_screen(
            sample.project(sample.CLICKS, sample.DAILY),
            replace(seen, models={**seen.models, "daily": daily}),
            Plan((step,), (Skipped("clicks", "up to date"),), sample.AS_OF),
            {"clicks": days, "daily": days},
        )

        screen("plan_years_between", text)

    def test_a_window(self, screen: Screen) -> None:
        """Stale cells outside the window are dots, and are listed as skipped."""
        step = replace(
            sample.RECOMPUTE,
            cells=sample.days("6"),
            reasons=(Reason(Cause.LATE, "140 rows in 1 cell of sessions", sample.days("6"), 140),),
            expected=False,
        )
        left = (
            Skipped("daily", "outside the window", sample.days("9-10")),
            *(Skipped(name, "up to date") for name in ("countries", "clicks", "sessions")),
        )

        text = plan_screen(
            sample.project(),
            sample.observed(FileDiff("raw.clicks", unchanged=100)),
            Plan((step,), left, sample.AS_OF),
            sample.COVERED,
            " --start 2024-03-06 --end 2024-03-07",
        )

        screen("plan_window", text)

    def test_nothing_to_do(self, screen: Screen) -> None:
        """A plan with nothing to do is one screen that says what was observed and what is left."""
        files = FileDiff("raw.clicks", settling=2, unchanged=101)

        screen(
            "plan_nothing",
            plan_screen(sample.project(), sample.observed(files), sample.nothing(), {}),
        )

    def test_dated_folders_that_are_left_out(self) -> None:
        """They are counted beside the files, in a plan that has nothing to do too."""
        files = FileDiff("raw.clicks", unchanged=101, folders=3, folders_left_out=97)

        found = plan_screen(sample.project(), sample.observed(files), sample.nothing(), {})

        assert "101 files as before; 3 dated folders listed, 97 left for a full listing" in found

    def test_a_run_with_nothing_to_do(self, screen: Screen) -> None:
        """A run with nothing to do prints the same screen as the plan."""
        screen("run_nothing", nothing_screen(sample.project(), None, sample.nothing()))


class TestRun:
    """The run's screen: steps and receipt."""

    def test_a_receipt(self, screen: Screen) -> None:
        """A receipt shows every number of a run with its
        ratios, and the time of each step and of the run.
        """
        screen("summary", summary_screen(sample.result()))

    def test_a_receipt_without_arrivals(self, screen: Screen) -> None:
        """A receipt of a changed definition, where nothing
        arrived, shows no ratios and no sessions.
        """
        result = replace(
            sample.result(),
            steps=((sample.RECOMPUTE, sample.RECEIPTS[2]),),
            receipt=sample.RECEIPTS[2],
            notes=(),
        )

        screen("summary_no_arrivals", summary_screen(result))

    def test_copies_at_other_times(self, screen: Screen) -> None:
        """A receipt counts copies at other times, and the rows that were searched for them."""
        found = replace(sample.RECEIPTS[0], scanned=2_010_317, keys_scanned=2_000_000, elsewhere=31)
        result = replace(sample.result(), steps=((sample.INGEST, found),), receipt=found, notes=())

        screen("summary_everywhere", summary_screen(result))

    def test_step_lines(self, screen: Screen) -> None:
        """A step is one line with its facts in fixed columns."""
        lines = [
            step_line(i, step, receipt)
            for i, (step, receipt) in enumerate(sample.result().steps, 1)
        ]
        nothing = step_line(12, sample.FOLD, Receipt(cells_cut_off=4, seconds=125.4))

        screen("step_lines", "\n".join([*lines, nothing]))


class TestStatus:
    """The status screen: the state of each model."""

    def test_all_up_to_date(self, screen: Screen) -> None:
        """When nothing is stale, status says only that."""
        models = [replace(entry, stale=Ranges()) for entry in sample.status()[:2]]

        screen("status_up_to_date", status_screen(sample.project(), models, {}))


class TestHistory:
    """The screen of past runs."""

    def test_of_one_model(self, screen: Screen) -> None:
        """History of one model lists only the steps of that model."""
        screen("history_model", history_screen(sample.history()[-1:], "sessions"))

    def test_no_runs(self) -> None:
        """History of an empty ledger names the command that makes the first run."""
        assert history_screen(()) == "No runs yet: `infold run` makes the first."
        assert history_screen((), "daily") == (
            "No runs of daily yet: `infold run` makes the first."
        )


class TestExplain:
    """The screens that explain one model or one cell."""

    def test_a_model(self, screen: Screen) -> None:
        """Explain shows a model's definition, inputs,
        trace, why it is stale, layout and latest runs.
        """
        screen("explain_model", explain_screen(sample.explanation()))

    def test_a_model_that_is_not_stale(self, screen: Screen) -> None:
        """Explain says why a model is not stale, and what an earlier window left unbuilt."""
        pending = Pending(Cause.MISSING, sample.days("4-5"))
        value = replace(
            sample.explanation(),
            step=None,
            why_left="outside the window",
            applied=AppliedDefinition("another", sample.AS_OF, same=False),
            trace=Trace("sessions", "another", {"clicks": 8}, (pending,)),
        )

        screen("explain_left", explain_screen(value))

    def test_a_cell_of_an_earlier_definition(self) -> None:
        """A cell that keeps the rows of an earlier definition was not built by the present one."""
        value = sample.explanation(sample.day(6))
        assert value.trace is not None
        old = EarlierCells(sample.days("6"), "another")
        value = replace(value, trace=replace(value.trace, earlier=(old,)))

        assert "built by an earlier definition, the one in force here," in explain_screen(value)


class TestSessionHistory:
    """The screen that explains one session."""

    def test_in_quarantine(self, screen: Screen) -> None:
        """A session's history shows what is known, what is
        missing and why, and since when snapshots are kept.
        """
        screen(
            "session_history_quarantined",
            session_history_screen(sample.histories(quarantined=True)),
        )

    def test_a_long_history(self) -> None:
        """A long history shows the newest changes and the number of older ones."""
        (history,) = sample.histories().histories
        long = replace(history, session_changes=history.session_changes[:3] * 10)

        text = session_history_screen(SessionHistories(history.id, (long,)))

        assert "  6 earlier changes not shown (--json shows all)" in text.splitlines()
        assert text.count("extended") == 8


class TestVerification:
    """The screen of a verification report."""

    def test_not_compared(self, screen: Screen) -> None:
        """A model that cannot be compared is not called verified, and the reason is shown."""
        note = "its definition changed since it was built: `infold run` rebuilds it"
        verdict = Verdict("daily", Kind.INCREMENTAL_TABLE, 0, 0, 0, equal=False, note=note)
        found = sample.verification().models[:3]

        screen(
            "verification_not_compared", verification_screen(VerificationReport((*found, verdict)))
        )

    def test_no_tables(self) -> None:
        """Without tables nothing is called verified."""
        assert verification_screen(VerificationReport(())).endswith(
            "Nothing to verify: no table was built yet."
        )

    def test_a_table_without_cells(self, screen: Screen) -> None:
        """A table without cells differs as a whole."""
        verdict = replace(
            sample.verification().models[0], equal=False, differing=((EVER, 249, 250),)
        )

        screen("verification_whole", verification_screen(VerificationReport((verdict,))))


class TestTable:
    """The screen of a table's rows."""

    def test_rows(self, screen: Screen) -> None:
        """Numbers are aligned right, NULL is written out,
        long and unprintable texts stay on one line.
        """
        rows = [
            [1, "ann", None, 1.5, True],
            [12_000, "x" * 60, "", 0.1, False],
            [3, "two\nlines", "é", None, None],
        ]

        screen(
            "table", table_screen("t", ["n", "text", "other", "ratio", "flag"], rows, more=1_204)
        )

    def test_no_rows(self) -> None:
        """A table without rows is one sentence."""
        assert table_screen("daily", ["day"], []) == "daily has no rows."

    def test_more_rows_uncounted(self) -> None:
        """With a filter the rows that are not shown are not counted."""
        text = table_screen("t", ["n"], [[1]], more=None, note="where n = 1")

        assert text == ("n\n-\n1\n\n1 row shown, there are more (--limit 0 for all) where n = 1.")


def test_help(infold: Infold, screen: Screen) -> None:
    """`--help` lists the commands in the order in which a user meets them."""
    screen("help", infold("--help").stdout)
