"""Commands that draw: what they read, what they print, and how they look where they print it."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.cli.conftest import FakeApi, Infold
from tests.page.history import history, lay_out

from infold import api
from infold.cli import terminal
from infold.cli.show_plot import BARS
from infold.render.pictures.look import NARROWEST


class TestLateness:
    """``infold lateness``."""

    def test_all_tables_of_events(self, tmp_path: Path, infold: Infold) -> None:
        """What came after the first run is counted: three rows of one day, four of another."""
        history(tmp_path / "shop")
        result = infold("-C", str(tmp_path / "shop"), "lateness")

        assert result.exit_code == 0, result.output
        assert "clicks: 7 rows of raw.clicks, by the runs in which they came" in result.stdout
        assert re.search(r"over a year +7 +100\.0 %  #{30}", result.stdout)
        assert result.stdout.isascii()

    def test_json(self, tmp_path: Path, infold: Infold) -> None:
        """One object, with the models that are named."""
        history(tmp_path / "shop")
        result = infold("-C", str(tmp_path / "shop"), "lateness", "cli*", "--json")
        (found,) = json.loads(result.stdout)["models"]

        assert (found["model"], found["how"], found["rows"]) == ("clicks", "runs", 7)
        assert found["picture"]["event_unit"] == found["picture"]["received_unit"]

    def test_before_the_first_run(self, tmp_path: Path, infold: Infold) -> None:
        """Nothing is known, and nothing fails."""
        lay_out(tmp_path / "shop")
        result = infold("-C", str(tmp_path / "shop"), "lateness")

        assert result.exit_code == 0
        assert "nothing is known yet" in result.stdout

    def test_models_in_which_no_rows_arrive(self, tmp_path: Path, infold: Infold) -> None:
        """Rows arrive in tables of events alone, and a name may be wrong."""
        lay_out(tmp_path / "shop")
        daily = infold("-C", str(tmp_path / "shop"), "lateness", "daily,names")
        wrong = infold("-C", str(tmp_path / "shop"), "lateness", "clikcs", "--json")

        assert daily.exit_code == wrong.exit_code == 2
        assert "not-events: daily, names are not tables of events" in daily.stderr
        assert json.loads(wrong.stdout)["error"]["slug"] == "unknown-model"


class TestDag:
    """``infold dag``."""

    def test_the_graph(self, tmp_path: Path, infold: Infold) -> None:
        """It follows from the files of the project: nothing was built."""
        lay_out(tmp_path / "shop")
        result = infold("-C", str(tmp_path / "shop"), "dag")

        assert result.stdout.split("\n")[2:] == [
            "o raw.clicks  source",
            "`-* clicks  events",
            "  |-* daily  table",
            "  `-* names  view",
            "",
        ]

    def test_some_models(self, tmp_path: Path, infold: Infold) -> None:
        """Terms choose models, as for other commands."""
        lay_out(tmp_path / "shop")
        result = infold("-C", str(tmp_path / "shop"), "dag", "+daily", "--json")

        found = json.loads(result.stdout)
        assert (found["project"], found["target"]) == ("shop", "dev")
        assert [(node["name"], node["kind"], node["reads"]) for node in found["nodes"]] == [
            ("raw.clicks", "source", []),
            ("clicks", "events", ["raw.clicks"]),
            ("daily", "table", ["clicks"]),
        ]

    @pytest.mark.parametrize(
        ("name", "start"), [("mermaid", "flowchart LR"), ("dot", "digraph"), ("svg", "<svg ")]
    )
    def test_other_formats(self, name: str, start: str, tmp_path: Path, infold: Infold) -> None:
        """Each is one text, to be written to a file."""
        lay_out(tmp_path / "shop")

        assert infold("-C", str(tmp_path / "shop"), "dag", "--format", name).stdout.startswith(
            start
        )


class TestStatus:
    """``infold status --plot``."""

    def test_the_picture(self, tmp_path: Path, infold: Infold) -> None:
        """The cells of the ledger, as far as they are asked for."""
        history(tmp_path / "shop")
        text = infold("-C", str(tmp_path / "shop"), "status", "--plot", "--since", "2024-03-03")

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


@pytest.fixture
def show(fake: FakeApi, infold: Infold, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The output of ``infold show TABLE --plot …`` of some columns, and what was read."""
    del fake

    def call(
        columns: Mapping[str, Any], *words: str, table: str = "daily", option: str = "--plot"
    ) -> tuple[Any, Shown]:
        shown = Shown(columns)
        monkeypatch.setattr(api, "show", shown)
        return infold("show", table, option, *words), shown

    return call


class TestShow:
    """``infold show --plot``."""

    def test_rows_over_time(self, show: Any) -> None:
        """All rows are read, but only the columns that are drawn."""
        result, shown = show(
            {"day": [date(2024, 3, 1), date(2024, 3, 2)], "n": [1, 2], "tags": [["a"], []]}
        )

        assert result.exit_code == 0, result.output
        assert "daily by day, a column is a day" in result.stdout
        assert "n: 1 to 2" in result.stdout
        assert "2 rows drawn." in result.stdout
        assert shown.asked == [(None, 1), (("day", "n"), 5_000_001)]

    def test_a_limit(self, show: Any) -> None:
        """With a limit there may be more rows, and the picture says so."""
        days = [date(2024, 3, at) for at in range(1, 11)]
        result, shown = show({"day": days, "n": list(range(10))}, "--limit", "4")

        assert shown.asked[-1] == (("day", "n"), 5)
        assert "4 rows drawn, there are more (--limit)." in result.stdout
        assert "n: 0 to 3" in result.stdout

    def test_a_view(self, show: Any) -> None:
        """Spark evaluates it once, so all columns are read, and fewer rows."""
        result, shown = show({"day": [date(2024, 3, 1)], "n": [1], "who": ["ann"]}, table="latest")

        assert result.exit_code == 0, result.output
        assert shown.asked == [(None, 100_001)]

    def test_rows_without_a_time(self, show: Any) -> None:
        """A bar for each of the first rows."""
        who = [f"user{at}" for at in range(BARS + 5)]
        result, _ = show({"who": who, "n": list(range(BARS + 5))}, table="countries")

        assert len(re.findall(r"^  user\d+ ", result.stdout, re.MULTILINE)) == BARS
        assert f"{BARS} rows drawn, there are more (--limit)." in result.stdout

    def test_lines(self, show: Any) -> None:
        """From the lowest value to the highest, with --plot or without."""
        days = [date(2024, 3, at) for at in range(1, 4)]
        columns = {"day": days, "n": [1001, 1003, 1002]}
        result, _ = show(columns, "--lines")
        alone, _ = show(columns, option="--lines")

        assert result.exit_code == 0, result.output
        assert "       1,001|" in result.stdout
        assert "n: 1,001 to 1,003" in result.stdout
        assert alone.stdout == result.stdout != show(columns)[0].stdout

    def test_lines_need_a_time(self, show: Any) -> None:
        """A line joins values over time; there is no picture without one."""
        result, _ = show({"who": ["ann"], "n": [1]}, "--lines")

        assert result.exit_code == 2
        assert "no-time-for-lines: daily has no column of times" in result.stderr
        assert "who, n" in result.stderr

    def test_no_rows(self, show: Any) -> None:
        """A table without rows, or a filter that none passes, is said as without --plot."""
        empty = pa.array([], pa.date32()), pa.array([], pa.int64())
        result, _ = show({"day": empty[0], "n": empty[1]}, "--where", "n > 3")

        assert (result.exit_code, result.stdout) == (0, "daily has no rows where n > 3.\n")

    def test_nothing_to_draw(self, show: Any) -> None:
        """Texts alone are no picture."""
        result, _ = show({"who": ["ann"]})

        assert result.exit_code == 2
        assert "nothing-to-plot: daily has no column of times or of numbers" in result.stderr


class Output(io.StringIO):
    """A standard output that is a terminal, or not."""

    def __init__(self, encoding: str, *, terminal: bool) -> None:
        super().__init__()
        self._encoding, self._terminal = encoding, terminal

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """As a terminal has it."""
        return self._encoding

    def isatty(self) -> bool:
        """Whether it is one."""
        return self._terminal


class TestLook:
    """Colours and signs beyond ASCII where they can be seen, and no more columns than fit."""

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
    def test_plain(
        self,
        is_terminal: bool,
        encoding: str,
        environment: Mapping[str, str],
        plain: bool,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Each of several reasons makes a picture plain."""
        for name in ("NO_COLOR", "TERM"):
            monkeypatch.delenv(name, raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "stdout", Output(encoding, terminal=is_terminal))

        assert terminal.look().plain is plain

    @pytest.mark.parametrize(
        ("columns", "width"), [("20", NARROWEST), ("40", 40), ("87", 87), ("500", 160)]
    )
    def test_width(self, columns: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """As wide as the terminal, within limits."""
        monkeypatch.setenv("COLUMNS", columns)

        assert terminal.look().width == width
