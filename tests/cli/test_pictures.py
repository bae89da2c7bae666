"""Commands that draw: what they read, what they print, and how they look where they print it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from datetime import date
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from tests.cli.conftest import FakeApi, Infold
from tests.page.history import history, lay_out

from infold import api
from infold.cli import output
from infold.cli.show_plot import BARS
from infold.render.pictures.look import NARROWEST


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
            (
                NONE,
                "daily --plot --where n>3",
                ("daily has no rows where n>3.\n",),
                (("day", "n"), EVERY),
            ),
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
        """From the lowest value to the highest, with --plot or without."""
        monkeypatch.setattr(api, "show", Shown(march(1001, 1003, 1002)))
        alone, both, plot = (
            infold("show", "daily", *words.split())
            for words in ("--lines", "--plot --lines", "--plot")
        )

        assert both.exit_code == 0, both.output
        assert "       1,001|" in both.stdout
        assert "n: 1,001 to 1,003" in both.stdout
        assert alone.stdout == both.stdout != plot.stdout

    def test_nothing_to_draw(
        self, fake: FakeApi, infold: Infold, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A line joins values over time, and texts alone are no picture."""
        for columns, option, why in (
            ({"who": ["ann"], "n": [1]}, "--lines", "no-time-for-lines: daily has no"),
            ({"who": ["ann"]}, "--plot", "nothing-to-plot: daily has no"),
        ):
            monkeypatch.setattr(api, "show", Shown(columns))
            result = infold("show", "daily", option)

            assert (result.exit_code, why in result.stderr) == (2, True)


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
        stdout = SimpleNamespace(encoding=encoding, isatty=lambda: is_terminal)
        monkeypatch.setattr(sys, "stdout", stdout)

        assert output.terminal_look().plain is plain

    @pytest.mark.parametrize(
        ("columns", "width"), [("20", NARROWEST), ("40", 40), ("87", 87), ("500", 160)]
    )
    def test_width(self, columns: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """As wide as the terminal, within limits."""
        monkeypatch.setenv("COLUMNS", columns)

        assert output.terminal_look().width == width
