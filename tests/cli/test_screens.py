"""What commands print: screens, pictures, and in a notebook."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, assert_type

import duckdb
import pyarrow as pa
import pytest
from tests.cli import sample
from tests.cli.conftest import FakeApi, Infold, Screen
from tests.declare.shop import DAILY, write
from tests.page.history import history, lay_out

import infold as package
from infold import api
from infold.api import notebook
from infold.api.notebook import SHOWN_ROWS, Project, Table
from infold.cli import output
from infold.cli.show import BARS
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
from infold.core.ports import SilentProgress
from infold.core.project import Node
from infold.core.record import Receipt
from infold.core.report import (
    AppliedDefinition,
    Explanation,
    ModelStatus,
    RunResult,
    Verdict,
    VerificationReport,
)
from infold.core.trace import Cause, CellState, EarlierCells, Pending, Trace
from infold.inspecting.session_history import SessionHistories
from infold.messages.errors import InfoldError
from infold.render.explain import explain_screen
from infold.render.pictures.look import NARROWEST
from infold.render.plan import plan_screen
from infold.render.run import step_line, summary_screen
from infold.render.session_history import session_history_screen
from infold.render.status import history_screen, status_screen
from infold.render.table import table_screen
from infold.render.verification import verification_screen

if TYPE_CHECKING:
    import polars as pl

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
        sample.project(),
        [
            replace(one, stale=Ranges(), model_state=None, erasures=())
            for one in sample.status()[:2]
        ],
        {},
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


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A project that never ran."""
    return str(lay_out(tmp_path_factory.mktemp("files") / "shop"))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The project after two runs."""
    return str(history(tmp_path_factory.mktemp("history") / "shop"))


def test_lateness(shop: str, files: str, infold: Infold) -> None:
    """Where no column says when rows were received that is said, before a first run too; rows
    arrive in tables of events alone.
    """
    result = infold("-C", shop, "lateness")
    (found,) = json.loads(infold("-C", shop, "lateness", "cli*", "--json").stdout)["models"]
    before = infold("-C", files, "lateness")
    daily = infold("-C", files, "lateness", "daily,names")
    wrong = infold("-C", files, "lateness", "clikcs", "--json")

    assert (result.exit_code, before.exit_code) == (0, 0)
    for shown in (result.stdout, before.stdout):
        assert "clicks: raw.clicks has no `received_column` that the table keeps" in shown
        assert shown.isascii()
    assert (found["model"], found["how"], found["picture"]) == ("clicks", "nothing", None)
    assert daily.exit_code == wrong.exit_code == 2
    assert "not-events: daily, names are not tables of events" in daily.stderr
    assert json.loads(wrong.stdout)["error"]["slug"] == "unknown-model"


def test_the_graph(files: str, infold: Infold) -> None:
    """It follows from the files of the project: nothing was built. Terms choose models."""
    assert infold("-C", files, "dag").stdout.split("\n")[2:] == [
        "o raw.clicks  source",
        "`-* clicks  events",
        "  |-* daily  table",
        "  `-* names  view",
        "",
    ]
    found = json.loads(infold("-C", files, "dag", "+daily", "--json").stdout)
    assert (found["project"], found["target"]) == ("shop", "dev")
    assert [(node["name"], node["kind"], node["reads"]) for node in found["nodes"]] == [
        ("raw.clicks", "source", []),
        ("clicks", "events", ["raw.clicks"]),
        ("daily", "table", ["clicks"]),
    ]
    for name, start in (("mermaid", "flowchart LR"), ("dot", "digraph"), ("svg", "<svg ")):
        assert infold("-C", files, "dag", "--format", name).stdout.startswith(start)


def test_the_picture_of_the_status(shop: str, infold: Infold) -> None:
    """The cells of the ledger, as far as they are asked for."""
    text = infold("-C", shop, "status", "--plot", "--since", "2024-03-03")

    assert text.exit_code == 0, text.output
    lines = text.stdout.split("\n")
    assert lines[3].split() == ["03", "04", "05", "06"]
    assert re.fullmatch(r"  clicks  ## ## ## ::  +57", lines[4])


class Shown:
    """Stands in for ``api.show``: one table, and what was asked of it."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self.table, self.asked = pa.table(dict(columns)), list[tuple[Any, Any]]()

    def __call__(self, _: Any, __: str, **asked: Any) -> pa.Table:
        """Its columns and first rows."""
        self.asked.append((asked["columns"], asked["limit"]))
        columns = asked["columns"] or self.table.column_names
        return self.table.select(list(columns)).slice(0, asked["limit"])


def march(*values: int) -> dict[str, list[Any]]:
    """A value for each day of March."""
    days = [date(2024, 3, at) for at in range(1, len(values) + 1)]
    return {"day": days, "n": list(values)}


WHO = {"who": [f"user{at}" for at in range(BARS + 5)], "n": list(range(BARS + 5))}
EVERY = 5_000_001
"""Rows that are read at most, and one."""
NONE = {"day": pa.array([], pa.date32()), "n": pa.array([], pa.int64())}


class TestShow:
    """``infold show --plot``."""

    @pytest.mark.parametrize(
        ("columns", "words", "says", "asked"),
        [
            (  # over time: all rows are read, but only the columns that are drawn
                march(1, 2) | {"tags": [["a"], []]},
                "daily --plot",
                ("daily by day, a column is a day", "n: 1 to 2", "2 rows drawn."),
                (("day", "n"), EVERY),
            ),
            (  # with a limit there may be more rows
                march(*range(10)),
                "daily --plot --limit 4",
                ("4 rows drawn, there are more (--limit).", "n: 0 to 3"),
                (("day", "n"), 5),
            ),
            (  # Spark evaluates a view once, so all columns are read, and fewer rows
                march(1) | {"who": ["ann"]},
                "latest --plot",
                ("n: 1",),
                (None, 100_001),
            ),
            (  # without a time there is a bar for each of the first rows
                WHO,
                "countries --plot",
                (f"user{BARS - 1} ", f"{BARS} rows drawn, there are more (--limit)."),
                (("who", "n"), EVERY),
            ),
            (NONE, "daily --plot --where n>3", ("daily has no rows where n>3.\n",),
             (("day", "n"), EVERY)),
        ],
    )  # fmt: skip
    def test_pictures(
        self,
        fake: FakeApi,
        infold: Infold,
        monkeypatch: pytest.MonkeyPatch,
        columns: Mapping[str, Any],
        words: str,
        says: tuple[str, ...],
        asked: tuple[Any, Any],
    ) -> None:
        """No more is read than is drawn, and what is not drawn is said."""
        shown = Shown(columns)
        monkeypatch.setattr(api, "show", shown)

        result = infold("show", *words.split())

        assert result.exit_code == 0, result.output
        assert [one for one in says if one not in result.stdout] == []
        assert shown.asked[-1] == asked

    def test_lines(self, fake: FakeApi, infold: Infold, monkeypatch: pytest.MonkeyPatch) -> None:
        """From the lowest value to the highest, with --plot or without. A line joins values over
        time, and texts alone are no picture.
        """
        monkeypatch.setattr(api, "show", Shown(march(1001, 1003, 1002)))
        alone, both, plot = (
            infold("show", "daily", *words.split())
            for words in ("--lines", "--plot --lines", "--plot")
        )

        assert both.exit_code == 0, both.output
        assert "       1,001|" in both.stdout
        assert "n: 1,001 to 1,003" in both.stdout
        assert alone.stdout == both.stdout != plot.stdout
        for columns, option, why in (
            ({"who": ["ann"], "n": [1]}, "--lines", "no-time-for-lines: daily has no"),
            ({"who": ["ann"]}, "--plot", "nothing-to-plot: daily has no"),
        ):
            monkeypatch.setattr(api, "show", Shown(columns))
            result = infold("show", "daily", option)
            assert (result.exit_code, why in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("is_terminal", "encoding", "environment", "plain"),
    [
        (True, "utf-8", {}, False),
        (True, "UTF8", {"NO_COLOR": ""}, False),
        (False, "utf-8", {}, True),
        (True, "utf-8", {"NO_COLOR": "1"}, True),
        (True, "utf-8", {"TERM": "dumb"}, True),
        (True, "latin-1", {}, True),
        (True, "unheard-of", {}, True),
    ],
)
def test_a_picture_is_plain(
    is_terminal: bool,
    encoding: str,
    environment: Mapping[str, str],
    plain: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of several reasons makes it so; it is as wide as the terminal, within limits."""
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    stdout = SimpleNamespace(encoding=encoding, isatty=lambda: is_terminal)
    monkeypatch.setattr(sys, "stdout", stdout)

    assert output.terminal_look().plain is plain
    for columns, width in (("20", NARROWEST), ("40", 40), ("87", 87), ("500", 160)):
        monkeypatch.setenv("COLUMNS", columns)
        assert output.terminal_look().width == width


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("plan", lambda p: p.plan()),
        ("run", lambda p: p.run()),
        ("status", lambda p: p.status()),
        ("explain daily", lambda p: p.explain("daily")),
        ("explain daily 2024-03-09", lambda p: p.explain("daily", "2024-03-09")),
        ("explain daily 2024-03-09", lambda p: p.explain("daily", date(2024, 3, 9))),
        ("verify", lambda p: p.verify()),
    ],
)
def test_results_print_as_the_commands(
    fake: FakeApi, infold: Infold, words: str, asked: Callable[[Project], Any]
) -> None:
    """Each is the screen of its command, as text and as HTML, and its JSON as a dictionary."""
    found = asked(package.open())
    printed, as_json = infold(*words.split()), infold(*words.split(), "--json")

    assert repr(found)
    assert printed.stdout.endswith(f"{found!r}\n")
    assert found.to_dict() == json.loads(as_json.stdout)
    assert found._repr_html_().startswith("<pre ")
    assert found.value is not None


def test_what_is_asked_is_handed_on(fake: FakeApi) -> None:
    """Terms, windows and the clock are as in the commands; results have a truth."""
    project = package.open()
    at = date(2024, 3, 1)
    project.run("daily+", exclude=["x"], start=at, end="2024-03-08", as_of="2024-03-09", jobs=2)
    asked = fake.asked["run"]

    assert asked["select"] == ("daily+",)
    assert (asked["exclude"], asked["jobs"]) == (["x"], 2)
    assert str(asked["asked"].window) == str(sample.days("1-7").parts[0])
    assert asked["as_of"] == sample.day(9).start
    project.plan(start=datetime(2024, 3, 1))  # noqa: DTZ001 (without an offset it is UTC)
    assert fake.asked["make_plan"]["asked"].window.start == sample.day(1).start
    assert project.plan(), "there is something to do"
    assert bool(project.verify()) == fake.verified.equal


def test_a_run_prints_its_steps(
    fake: FakeApi, infold: Infold, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line for each step while it goes on, and then the summary: what the command prints."""
    found = package.open().run()
    lines = capsys.readouterr().out

    assert lines.startswith("  1. ")
    assert f"{lines}\n{found!r}\n" == infold("run").stdout
    package.open().run(progress=SilentProgress())
    assert capsys.readouterr().out == ""


ROWS = pa.table(
    {
        "day": [date(2024, 3, 8), date(2024, 3, 9)],
        "who": ["<script>alert(1)</script>", None],
        "revenue": [Decimal("1.50"), Decimal("2.25")],
    }
)


class TestTable:
    """Rows of a table as other libraries have them."""

    @pytest.fixture
    def table(self) -> Table:
        """A table with two rows."""
        return Table("daily", lambda most: ROWS.slice(0, most))

    @pytest.mark.deep  # imports two libraries
    def test_conversions(self, table: Table) -> None:
        """All rows, with values and types; a relation of DuckDB is in the given connection."""
        import pandas as pd
        import polars as pl

        assert table.to_arrow() == ROWS
        assert table.to_arrow().to_pandas().equals(table.to_pandas())
        assert isinstance(table.to_pandas(), pd.DataFrame)
        assert isinstance(table.to_polars(), pl.DataFrame)
        assert table.to_polars().to_dicts() == ROWS.to_pylist()
        assert table.to_duckdb().aggregate("sum(revenue)").fetchall() == [(Decimal("3.75"),)]
        with duckdb.connect() as connection:
            connection.execute("CREATE TABLE factors AS SELECT 2 AS factor")
            joined = table.to_duckdb(connection).join(connection.table("factors"), "factor > 0")
            assert joined.aggregate("sum(revenue * factor)").fetchall() == [(Decimal("7.50"),)]

    def test_it_is_drawn_with_its_values_escaped(self, table: Table) -> None:
        """As text and as HTML; what is in a row is text in a notebook."""
        html = table._repr_html_()

        assert "<script>" not in html
        assert "&lt;script&gt;" in html
        assert '<td style="text-align:right">1.50</td>' in html
        assert html.endswith("<p>daily: 2 rows.</p>")
        assert "NULL" in html
        assert repr(table).splitlines()[0].split() == ["day", "who", "revenue"]

    @pytest.mark.parametrize(("limit", "shown", "more"), [(None, SHOWN_ROWS, True), (3, 3, False)])
    def test_the_first_rows_are_drawn(self, limit: int | None, shown: int, more: bool) -> None:
        """A large table is not read for that, and it is said that there are more rows."""
        asked: list[int | None] = []

        def read(most: int | None) -> pa.Table:
            asked.append(most)
            return pa.table({"n": range(1000)}).slice(0, most)

        html = Table("big", read, limit)._repr_html_()

        assert html.count("<tr>") == shown + 1
        assert ("there are more" in html) is more
        assert max(one or 1000 for one in asked) <= SHOWN_ROWS + 1

    def test_rows_are_read_when_they_are_asked_for(self, fake: FakeApi, monkeypatch: Any) -> None:
        """Naming a table reads nothing; a limit, columns and a condition are those of `show`."""
        asked: list[tuple[str, dict[str, Any]]] = []

        def show(_: Any, name: str, **more: Any) -> pa.Table:
            asked.append((name, more))
            return ROWS

        monkeypatch.setattr("infold.api.show", show)
        table = package.open().table("daily", columns=["day"], where="day > '2024-03-08'", limit=1)

        assert asked == []
        assert table.to_arrow().num_rows == 1
        more = {"columns": ["day"], "where": "day > '2024-03-08'", "limit": 1}
        assert asked == [("daily", more)]

    @pytest.mark.parametrize("name", ["pandas", "polars", "duckdb"])
    def test_a_library_that_is_missing_is_named(
        self, table: Table, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        """None of them comes with infold."""
        monkeypatch.setattr("importlib.util.find_spec", lambda _: None)

        with pytest.raises(InfoldError) as raised:
            getattr(table, f"to_{name}")()

        assert (raised.value.slug, name in raised.value.what) == ("package-missing", True)


class TestFiles:
    """A project's files."""

    def test_an_edited_model_counts_at_once(self, tmp_path: Path) -> None:
        """Each call reads the files again."""
        project = package.open(write(tmp_path))
        assert project.models == ("clicks", "sessions", "daily")

        (tmp_path / "models" / "weekly.sql").write_text(DAILY)

        assert "weekly" in project.models
        assert "weekly" in repr(project)
        assert "models/weekly.sql" in repr(project.explain("weekly"))

    def test_mistakes_are_raised_as_messages(self, tmp_path: Path) -> None:
        """A notebook shows the message without a traceback, as IPython asks for it."""
        write(tmp_path)
        (tmp_path / "models" / "daily.sql").write_text(DAILY.replace("revenue", "revenu"))

        with pytest.raises(InfoldError) as raised:
            package.open(tmp_path)

        shown = "\n".join(raised.value._render_traceback_())
        assert shown == str(raised.value)
        assert "models/daily.sql:" in shown

    @pytest.mark.parametrize(
        ("asked", "slug"),
        [
            (lambda p: p.plan("dialy"), "unknown-model"),
            (lambda p: p.explain("dialy"), "unknown-model"),
            (lambda p: p.explain("daily", "soon"), "not-an-instant"),
            (lambda p: p.plan(as_of="soon"), "not-an-instant"),
            (lambda p: p.plan(start="2024-03-09T05:00"), "window-unaligned"),
            (lambda p: p.table("dialy").to_arrow(), "unknown-table"),
            (lambda p: repr(p.table("daily")), "not-built"),
        ],
    )
    def test_wrong_names_and_times(
        self, tmp_path: Path, asked: Callable[[Project], Any], slug: str
    ) -> None:
        """They are raised as in the commands."""
        project = package.open(write(tmp_path))

        with pytest.raises(InfoldError) as raised:
            asked(project)

        assert raised.value.slug == slug


def test_importing_it_imports_nothing_slow() -> None:
    """`import infold` is at hand at once, and needs no optional library."""
    program = "import infold, sys; print([m for m in sys.modules if m.startswith(('inf', 'py'))])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "['infold']"
    assert not {"pd", "pl", "duckdb"} & set(vars(notebook))


def check_types(project: Project, table: Table) -> None:
    """The types that others get, for mypy: this is not run."""
    assert_type(package.open("."), Project)
    assert_type(project.plan("daily").value, Plan)
    assert_type(project.run().value, RunResult)
    assert_type(project.status().value, tuple[ModelStatus, ...])
    assert_type(project.verify().value.equal, bool)
    assert_type(project.explain("daily", date(2024, 3, 9)).value, Explanation)
    assert_type(project.table("daily"), Table)
    assert_type(project.plan().to_dict(), dict[str, Any])
    assert_type(table.to_polars(), pl.DataFrame)
    assert_type(table.to_duckdb(), duckdb.DuckDBPyRelation)
