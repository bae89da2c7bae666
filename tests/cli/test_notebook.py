"""`infold.open`: results of a project print as the commands do, and draw themselves."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, assert_type

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.cli import sample
from tests.cli.conftest import FakeApi, Infold
from tests.declare.shop import DAILY, write

import infold as package
from infold.api import notebook
from infold.api.notebook import SHOWN_ROWS, Project, Table
from infold.core.plan import Plan
from infold.core.ports import SilentProgress
from infold.core.report import Explanation, ModelStatus, RunResult
from infold.messages.errors import InfoldError


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

    def test_conversions(self, table: Table) -> None:
        """All rows, with values and types; a relation of DuckDB is in the given connection."""
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
