"""The events of sessions over views, and of users that are computed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.spark.sessions.history_lines import PROBE, arrived

from infold import api
from infold.inspecting.session_events import BY_SPARK
from infold.inspecting.session_history import SessionHistory

pytestmark = pytest.mark.spark

PROJECT = """
name: shop
sources:
  raw.clicks:
    path: clicks/*.csv
    event_time_column: ts
    columns: {id: string, who: string, cur: string, ts: timestamp}
  raw.taps:
    path: taps/*.csv
    event_time_column: tapped
    columns: {tap: string, person: string, tapped: timestamp}
  raw.rates:
    path: rates/*.csv
    columns: {cur: string, rate: int}
"""
EVENTS = (
    "---\nmaterialization: events\nunique_key: [{}]\ntimeseries: {{event_time_column: {}}}\n---\n"
)
VIEW = "---\nmaterialization: view\n---\n"
SESSIONS = "---\nmaterialization: sessions\nsessions: {{user: {}, gap: 30 minutes}}\n---\n"
MODELS = {
    "clicks": EVENTS.format("id", "ts") + "SELECT * FROM raw.clicks",
    "taps": EVENTS.format("tap", "tapped") + "SELECT * FROM raw.taps",
    "renamed": VIEW + "SELECT c.who AS person, c.ts AS at, c.id FROM clicks c WHERE c.cur <> 'x'",
    "both": VIEW
    + """SELECT id, who AS u, ts AS at, 'web' AS src FROM clicks WHERE cur <> 'x'
UNION ALL
SELECT tap, person, tapped, 'app' FROM taps""",
    "priced": VIEW + """SELECT b.*, r.rate FROM both b LEFT JOIN raw.rates r ON r.cur = b.src""",
    "by_renamed": SESSIONS.format("person") + "SELECT count(*) AS n FROM renamed WHERE id <> 'a9'",
    "by_both": SESSIONS.format("u")
    + "SELECT count(*) AS n, count_if(src = 'app') AS taps FROM both",
    "by_price": SESSIONS.format("u") + "SELECT count(*) AS n, sum(rate) AS rates FROM priced",
    "by_lower": SESSIONS.format("lower(who)") + "SELECT count(*) AS n FROM clicks",
}
FILES = (
    {
        "clicks/a.csv": "id,who,cur,ts a0,ann,eur,10:00 a1,ann,eur,10:10 a2,ann,x,10:12 "
        "a3,bob,eur,10:05 a4,ANN,eur,10:20",
        "taps/t.csv": "tap,person,tapped t0,ann,10:15 t1,bob,10:15",
        "rates/r.csv": "cur,rate web,2 app,3",
    },
    {
        "clicks/b.csv": "id,who,cur,ts b0,ann,eur,10:05",
        "clicks/c.csv": "id,who,cur,ts c0,ann,eur,10:07 c1,eve,eur,10:07",
        "taps/u.csv": "tap,person,tapped u0,ann,10:30",
    },
)


def landed(root: Path, files: Mapping[str, str]) -> None:
    """Files of lines with blanks between them, which end in a time of one day."""
    for name, text in files.items():
        first, *lines = text.split(" ")
        (root / name).parent.mkdir(exist_ok=True)
        times = not name.startswith("rates")
        rows = [
            f"{a}{',2024-03-09T' if times else ','}{b}{':00Z' if times else ''}"
            for a, _, b in (line.rpartition(",") for line in lines)
        ]
        (root / name).write_text("\n".join([first, *rows]) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Clicks and taps of one person in one session, some of them late."""
    root = tmp_path_factory.mktemp("views") / "shop"
    (root / "models").mkdir(parents=True)
    (root / "infold.yml").write_text(PROJECT, encoding="utf-8")
    for name, text in MODELS.items():
        (root / "models" / f"{name}.sql").write_text(text, encoding="utf-8")
    for files in FILES:
        landed(root, files)
        assert api.run(api.open_project(root)).state == "done"
    return root


def history(root: Path, model: str, *, deep: bool = False) -> SessionHistory:
    """The history of ann's one session in a model."""
    project = api.open_project(root)
    rows = api.lake(project).rows(model).to_pylist()
    (id_,) = {row["session_id"] for row in rows if "ann" in row.values()}
    (found,) = api.session_history(project, id_, model, deep=deep).histories
    return found


def by_input(found: SessionHistory) -> dict[str, list[str]]:
    """What brought the events, by the table that they are in."""
    return {
        name: arrived(tuple(one for one in found.event_batches if one.input == name))
        for name in found.inputs
    }


OF_CLICKS = [
    "v1 2 in time 10:00-10:10 clicks/a.csv",
    "v2 2 late 10:05-10:07 clicks/b.csv clicks/c.csv",
]
OF_TAPS = ["v1 1 in time 10:15-10:15 taps/t.csv", "v2 1 late 10:30-10:30 taps/u.csv"]


def test_renamed_columns(shop: Path) -> None:
    """A view that renames columns is resolved, and its WHERE and the model's are applied."""
    found = history(shop, "by_renamed")

    assert (found.why_no_events, found.notes) == ("", ())
    assert by_input(found) == {"clicks": OF_CLICKS}


def test_events_of_two_tables(shop: Path) -> None:
    """Web and app events in one session are each listed with their table, without Spark."""
    found = history(shop, "by_both")

    assert (found.why_no_events, found.notes) == ("", ())
    assert by_input(found) == {"clicks": OF_CLICKS, "taps": OF_TAPS}


def test_on_the_screen(shop: Path) -> None:
    """The command names the table of each arrival, and starts no Spark."""
    words = ["-C", str(shop), "explain", "by_both", history(shop, "by_both").id]
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *words], capture_output=True, text=True, check=True
    )

    assert done.stderr == "[]\n"
    assert "Its 6 events in clicks and taps, by arrival" in done.stdout


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("by_price", "they are seen through the view priced"),
        ("by_lower", "the owner of an event follows from lower(who)"),
    ],
)
def test_events_that_only_spark_can_find(shop: Path, model: str, why: str) -> None:
    """Where only Spark can find the events, the history
    says so and what helps; changes by runs are listed.
    """
    found = history(shop, model)

    assert found.why_no_events == f"{why}, {BY_SPARK}"
    assert [str(change.verb) for change in found.session_changes] == ["created", "extended"]


def test_a_view_with_a_lookup(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a view with a lookup, Spark finds the rows of each table, several runs at once."""
    monkeypatch.setattr("infold.spark.session_events.AT_ONCE", 2)

    found = history(shop, "by_price", deep=True)

    assert (found.why_no_events, found.notes) == ("", ())
    assert by_input(found) == {"clicks": OF_CLICKS, "taps": OF_TAPS}


def test_a_computed_user(shop: Path) -> None:
    """For a computed user, Spark finds the events (ANN is
    ann) without applying the view's WHERE again.
    """
    found = history(shop, "by_lower", deep=True)

    assert (found.why_no_events, found.notes) == ("", ())
    assert by_input(found) == {
        "clicks": [
            "v1 4 in time 10:00-10:20 clicks/a.csv",
            "v2 2 late 10:05-10:07 clicks/b.csv clicks/c.csv",
        ]
    }
