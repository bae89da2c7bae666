"""`infold explain session ID` shows what was done to the files and what each run did."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.spark.project import VIEW, SparkProject

from infold import api
from infold.inspecting.session_events import BY_SPARK
from infold.inspecting.session_history import EventBatch, SessionChange, SessionHistory
from infold.messages.errors import InfoldError
from infold.render.session_history import session_history_screen

pytestmark = pytest.mark.spark

PROJECT = """
name: shop
sources:
  raw.clicks:
    path: clicks/*.csv
    event_time_column: ts
    columns: {id: string, who: string, basket: string, ts: timestamp}
  raw.taps:
    path: taps/*.csv
    event_time_column: tapped
    columns: {tap: string, person: string, basket: string, tapped: timestamp}
  raw.rates:
    path: rates/*.csv
    columns: {src: string, rate: int}
"""
EVENTS = (
    "---\nmaterialization: events\nunique_key: [{}]\ntimeseries: {{event_time_column: {}}}\n---\n"
    "SELECT * FROM raw.{}"
)
SESSIONS = "---\nmaterialization: sessions\nsessions: {{{}}}\n---\nSELECT {}"
CLICKS = EVENTS.format("id", "ts", "clicks")
OF_TABLES = {
    "clicks": CLICKS,
    "visits": SESSIONS.format(
        "user: who, gap: 30 minutes",
        "count(*) AS clicks, last(basket, true) AS basket FROM clicks WHERE who != 'robot'",
    ),
    "stays": SESSIONS.format(
        "user: who, gap: 30 minutes, quarantine_after: 1 hour",
        "count(*) AS clicks FROM clicks WHERE length(who) > 0",
    ),
    "baskets": SESSIONS.format(
        "identifier: basket, user: who, without_identifier: {gap: 30 minutes}",
        "max(id) AS newest FROM clicks WHERE length(id) > 1",
    ),
}
OF_VIEWS = {
    "clicks": CLICKS,
    "taps": EVENTS.format("tap", "tapped", "taps"),
    "both": f"""{VIEW}SELECT c.id, c.who AS u, c.ts AS at, 'web' AS src FROM clicks c
WHERE c.basket <> 'x' UNION ALL SELECT tap, person, tapped, 'app' FROM taps""",
    "priced": f"{VIEW}SELECT b.*, r.rate FROM both b LEFT JOIN raw.rates r ON r.src = b.src",
    "by_both": SESSIONS.format(
        "user: u, gap: 30 minutes", "count_if(src = 'app') AS taps FROM both WHERE id <> 'a9'"
    ),
    "by_price": SESSIONS.format("user: u, gap: 30 minutes", "sum(rate) AS rates FROM priced"),
    "by_lower": SESSIONS.format("user: lower(who), gap: 30 minutes", "count(*) AS n FROM clicks"),
}

PROBE = """
import sys
from infold.cli import cli

try:
    cli(sys.argv[1:])
finally:
    print(sorted({"pyspark", "py4j"} & set(sys.modules)), file=sys.stderr)
"""
"""Runs a command, and prints which modules of Spark it imported."""


def change_lines(session_changes: tuple[SessionChange, ...]) -> list[str]:
    """``v2 extended 10:00-10:10 (2) > 10:00-10:20 (3)``."""
    lines = []
    for made in session_changes:
        was, now = (
            " ".join(f"{clock(one.start)}-{clock(one.end)} ({one.events})" for one in some or ())
            for some in (made.change.before, made.change.after)
        )
        lines.append(f"v{made.change.version.number} {made.verb} {was} > {now}")
    return lines


def arrived(groups: tuple[EventBatch, ...], of: str = "clicks") -> list[str]:
    """``v2 1 late 10:20-10:20 clicks/b.csv``, of the events of one table."""
    return [
        f"v{group.version.number if group.version else '?'} {group.events} "
        f"{'late' if group.late else 'in time'} {clock(group.first)}-{clock(group.last)} "
        + " ".join(group.files)
        for group in groups
        if group.input == of
    ]


def clock(at: int) -> str:
    """An instant's time of day."""
    minutes = at // 60_000_000 % 1440
    return f"{minutes // 60:02}:{minutes % 60:02}"


class HistoryProject(SparkProject):
    """A project whose files of clicks and taps come and go."""

    def __init__(self, root: Path, models: Mapping[str, str]) -> None:
        super().__init__(root, PROJECT, "clicks", "taps")
        self.write("rates/r.csv", "src,rate\nweb,2\napp,3\n")
        self.models(**models)

    def run(self, **files: str) -> None:
        """Land files of clicks or taps, each of lines ``who time`` or ``who time basket``; run."""
        for name, text in files.items():
            taps = name.startswith("t")
            lines = ["tap,person,basket,tapped" if taps else "id,who,basket,ts"]
            for number, line in enumerate(text.split(", ")):
                who, time, basket = (*line.split(), "")[:3]
                lines.append(f"{name}{number},{who},{basket},2024-03-09T{time}:00Z")
            self.write(f"{'taps' if taps else 'clicks'}/{name}.csv", "\n".join(lines) + "\n")
        assert self.go(allow_removals=False).state == "done"

    def history(self, id_: str, model: str, *, deep: bool = False) -> SessionHistory:
        """The history of a session in a model."""
        (found,) = api.session_history(self.project(), id_, model, deep=deep).histories
        return found

    def id(self, model: str, start: str, who: str = "ann") -> str:
        """The id of somebody's session that starts then."""
        rows = api.lake_of(self.project()).rows(
            model, where=f"session_start = '2024-03-09 {start}'"
        )
        (id_,) = {row["session_id"] for row in rows.to_pylist() if who in row.values()}
        return str(id_)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> HistoryProject:
    """A session; the file of an event in its middle goes, and comes back."""
    found = HistoryProject(tmp_path_factory.mktemp("history") / "shop", OF_TABLES)
    at_first = "ann 10:00 b1, ann 10:10, ann 11:20, bob 09:00, robot 10:05"
    found.run(a=at_first, b="ann 10:20", c="ann 10:50 b1, bob 15:00")
    (found.root / "clicks" / "c.csv").rename(found.root / "c.csv")
    found.run(d="bob 09:20")
    (found.root / "c.csv").rename(found.root / "clicks" / "c.csv")
    found.run(e="ann 11:30")
    return found


class TestTables:
    """Sessions of events that are read as they are stored."""

    def test_the_changes_of_each_run_and_events_by_arrival(self, shop: HistoryProject) -> None:
        """The history lists created, split, merged by a late event, and extended.

        Current events are listed by the run that brought
        them; those after the session was created are late.
        """
        history = shop.history(shop.id("visits", "10:00"), "visits")

        assert change_lines(history.session_changes) == [
            "v1 created  > 10:00-11:20 (5)",
            "v2 split 10:00-11:20 (5) > 10:00-10:20 (3) 11:20-11:20 (1)",
            "v3 merged 10:00-10:20 (3) 11:20-11:20 (1) > 10:00-11:30 (6)",
        ]
        assert history.oldest_kept is None
        assert arrived(history.event_batches) == [
            "v1 4 in time 10:00-11:20 clicks/a.csv clicks/b.csv",
            "v3 2 late 10:50-11:30 clicks/c.csv clicks/e.csv",
        ]
        assert history.notes == ()
        history = shop.history(shop.id("visits", "09:00", "bob"), "visits")
        assert change_lines(history.session_changes)[1:] == [
            "v2 extended 09:00-09:00 (1) > 09:00-09:20 (2)"
        ]
        with pytest.raises(InfoldError, match="unknown-session"):
            shop.history("nobody", "visits")

    def test_on_the_screen(self, shop: HistoryProject) -> None:
        """The command finds the session in all models and names existing runs, without Spark."""
        id_ = shop.id("visits", "10:00")

        words = ["-C", str(shop.root), "explain", "session", id_]
        done = subprocess.run(
            [sys.executable, "-c", PROBE, *words], capture_output=True, text=True, check=True
        )

        runs = [run.id for run in api.history(shop.project())]
        assert done.stderr == "[]\n"
        assert all(run in done.stdout for run in runs)
        assert f"session {id_} of visits" in done.stdout
        assert f"session {id_} of stays" in done.stdout  # the same user, the same first event
        assert "in quarantine  longer than 1 hour" in done.stdout

    def test_sessions_by_identifier(self, shop: HistoryProject) -> None:
        """A session can be found by its identifier as well as by its id.

        The events of a session without one are that user's events without one.
        """
        history = shop.history("b1", "baskets")
        assert history.owner == ("session_identifier", "b1")
        assert arrived(history.event_batches) == [
            "v1 1 in time 10:00-10:00 clicks/a.csv",
            "v3 1 late 10:50-10:50 clicks/c.csv",
        ]
        (note,) = history.notes
        assert note.startswith("What `WHERE length(id) > 1` leaves out may be among its events:")
        verbs = [str(one.verb) for one in history.session_changes]
        assert verbs == ["created", "shortened", "extended"]

        history = shop.history(shop.id("baskets", "10:10"), "baskets")
        assert history.owner == ("who", "ann")
        assert arrived(history.event_batches) == [
            "v1 2 in time 10:10-10:20 clicks/a.csv clicks/b.csv",
        ]

    def test_a_session_is_found_by_an_earlier_id(self, shop: HistoryProject) -> None:
        """Its history shows it entering and leaving quarantine."""
        id_ = shop.id("visits", "10:00")  # the same user, the same first event
        history = shop.history(id_, "stays")

        assert history.session is None
        assert history.quarantined is not None
        assert history.quarantined.events == 6
        assert change_lines(history.session_changes)[-4:] == [
            "v2 returned  > 10:00-10:20 (3)",
            "v2 returned  > 11:20-11:20 (1)",
            "v3 quarantined 10:00-10:20 (3) > ",
            "v3 quarantined 11:20-11:20 (1) > ",
        ]
        expected = "v3 2 late 10:50-11:30 clicks/c.csv clicks/e.csv"
        assert arrived(history.event_batches)[-1] == expected
        assert history.notes == ()  # there are as many events as the session has


OF_CLICKS = [
    "v1 2 in time 10:00-10:10 clicks/a.csv",
    "v2 2 late 10:05-10:07 clicks/b.csv clicks/c.csv",
]
OF_TAPS = ["v1 1 in time 10:15-10:15 taps/t.csv", "v2 1 late 10:30-10:30 taps/t2.csv"]


def test_events_through_views(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events of two tables in one session are each listed with their table, without Spark.

    Where only Spark can find the events, as through a lookup or of a computed user, the history
    says so and what helps; changes by runs are listed. Spark finds them, several runs at once.
    """
    monkeypatch.setattr("infold.spark.session_events.GROUPS_AT_ONCE", 2)
    shop = HistoryProject(tmp_path / "shop", OF_VIEWS)
    shop.run(
        a="ann 10:00 e, ann 10:10 e, ann 10:12 x, bob 10:05 e, ANN 10:20 e",
        t="ann 10:15, bob 10:15",
    )
    shop.run(b="ann 10:05 e", c="ann 10:07 e, eve 10:07 e", t2="ann 10:30")

    id_ = shop.id("by_both", "10:00")
    found = shop.history(id_, "by_both")
    assert (found.why_no_events, found.notes) == ("", ())
    assert arrived(found.event_batches) == OF_CLICKS
    assert arrived(found.event_batches, "taps") == OF_TAPS
    screen = session_history_screen(api.session_history(shop.project(), id_, "by_both"))
    assert "Its 6 events in clicks and taps, by arrival" in screen

    for model, why in (
        ("by_price", "they are seen through the view priced"),
        ("by_lower", "the owner of an event follows from lower(who)"),
    ):
        id_ = shop.id(model, "10:00")
        found = shop.history(id_, model)
        assert found.why_no_events == f"{why}, {BY_SPARK}"
        assert [str(one.verb) for one in found.session_changes] == ["created", "extended"]

        found = shop.history(id_, model, deep=True)
        assert (found.why_no_events, found.notes) == ("", ())
        if model == "by_price":
            assert arrived(found.event_batches) == OF_CLICKS
            assert arrived(found.event_batches, "taps") == OF_TAPS
        else:  # ANN is ann
            assert arrived(found.event_batches) == [
                "v1 4 in time 10:00-10:20 clicks/a.csv",
                "v2 2 late 10:05-10:07 clicks/b.csv clicks/c.csv",
            ]
