"""`infold explain session ID` shows what was done to the files and what each run did."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.spark.sessions.history_lines import PROBE, arrived, change_lines

from infold import api
from infold.core.project import Project
from infold.inspecting.session_events import BY_SPARK
from infold.inspecting.session_history import SessionHistory
from infold.messages.errors import InfoldError
from infold.render.session_history import session_history_screen

pytestmark = pytest.mark.spark

PROJECT = """
name: shop
sources:
  raw.clicks:
    path: landing/*.csv
    event_time_column: ts
    columns: {id: string, who: string, basket: string, ts: timestamp}
"""
MODELS = {
    "clicks": """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: ts}
---
SELECT id, who, basket, ts FROM raw.clicks""",
    "visits": """---
materialization: sessions
sessions: {user: who, gap: 30 minutes}
---
SELECT count(*) AS clicks, last(basket, true) AS basket FROM clicks WHERE who != 'robot'""",
    "stays": """---
materialization: sessions
sessions: {user: who, gap: 30 minutes, quarantine_after: 1 hour}
---
SELECT count(*) AS clicks FROM clicks WHERE length(who) > 0""",
    "baskets": """---
materialization: sessions
sessions: {identifier: basket, user: who, without_identifier: {gap: 30 minutes}}
---
SELECT max(id) AS newest FROM clicks WHERE length(id) > 1""",
    "people": """---
materialization: view
---
SELECT id, who, ts FROM clicks WHERE length(who) < 4""",
    "walks": """---
materialization: sessions
sessions: {user: who, gap: 30 minutes}
---
SELECT count(*) AS clicks FROM people""",
}


class HistoryProject:
    """A project whose files come and go, run in this process."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("models", "landing"):
            (root / folder).mkdir(parents=True)
        (root / "infold.yml").write_text(PROJECT, encoding="utf-8")
        for name, text in MODELS.items():
            (root / "models" / f"{name}.sql").write_text(text, encoding="utf-8")

    @property
    def project(self) -> Project:
        """The project, read again as each command does."""
        return api.open_project(self.root)

    def run(self, files: Mapping[str, str]) -> None:
        """Land files, each of lines ``who time`` or ``who time basket``, and run."""
        for name, text in files.items():
            lines = ["id,who,basket,ts"]
            for number, line in enumerate(text.split(", ")):
                who, time, basket = (*line.split(), "")[:3]
                lines.append(f"{name}{number},{who},{basket},2024-03-09T{time}:00Z")
            path = self.root / "landing" / f"{name}.csv"
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        assert api.run(self.project).state == "done"

    def histories(self, id_: str, model: str) -> tuple[SessionHistory, ...]:
        """The histories of a session."""
        return api.session_history(self.project, id_, model).histories

    def id(self, model: str, start: str) -> str:
        """The id of ann's session that starts then."""
        where = f"who = 'ann' AND session_start = '2024-03-09 {start}'"
        (row,) = api.lake(self.project).rows(model, where=where).to_pylist()
        return str(row["session_id"])


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> HistoryProject:
    """Two sessions; one is extended; a late event bridges them; its file goes, and comes back."""
    found = HistoryProject(tmp_path_factory.mktemp("history") / "shop")
    found.run({"a": "ann 10:00 b1, ann 10:10, ann 11:20, bob 09:00, robot 10:05"})
    found.run({"b": "ann 10:20"})
    found.run({"c": "ann 10:50 b1, bob 15:00"})
    (found.root / "landing" / "c.csv").rename(found.root / "c.csv")
    found.run({"d": "bob 18:00"})
    (found.root / "c.csv").rename(found.root / "landing" / "c.csv")
    found.run({})
    return found


class TestSessions:
    """The history of a user's session."""

    def test_the_changes_of_each_run(self, shop: HistoryProject) -> None:
        """The history lists created, extended, merged by a
        late event, split as its file is deleted, merged again.
        """
        (history,) = shop.histories(shop.id("visits", "10:00"), "visits")

        assert change_lines(history.session_changes) == [
            "v1 created  > 10:00-10:10 (2)",
            "v1 created  > 11:20-11:20 (1)",
            "v2 extended 10:00-10:10 (2) > 10:00-10:20 (3)",
            "v3 merged 10:00-10:20 (3) 11:20-11:20 (1) > 10:00-11:20 (5)",
            "v4 split 10:00-11:20 (5) > 10:00-10:20 (3) 11:20-11:20 (1)",
            "v5 merged 10:00-10:20 (3) 11:20-11:20 (1) > 10:00-11:20 (5)",
        ]
        assert history.oldest_kept is None

    def test_events_by_arrival(self, shop: HistoryProject) -> None:
        """Current events are listed by the run that brought
        them; those after the session was created are late.
        """
        (history,) = shop.histories(shop.id("visits", "10:00"), "visits")

        assert arrived(history.event_batches) == [
            "v1 3 in time 10:00-11:20 landing/a.csv",
            "v2 1 late 10:20-10:20 landing/b.csv",
            "v5 1 late 10:50-10:50 landing/c.csv",
        ]
        assert history.notes == ()

    def test_on_the_screen(self, shop: HistoryProject) -> None:
        """The command finds the session in all models and names existing runs, without Spark."""
        id_ = shop.id("visits", "10:00")

        words = ["-C", str(shop.root), "explain", "session", id_]
        done = subprocess.run(
            [sys.executable, "-c", PROBE, *words], capture_output=True, text=True, check=True
        )

        runs = [run.id for run in api.history(shop.project)]
        assert done.stderr == "[]\n"
        assert all(run in done.stdout for run in runs)
        assert f"session {id_} of visits" in done.stdout
        assert f"session {id_} of walks" in done.stdout  # the same user, the same first event

    def test_events_through_a_view_are_not_listed(self, shop: HistoryProject) -> None:
        """Events behind a view that only Spark can evaluate are not listed; changes by runs are."""
        (history,) = shop.histories(shop.id("walks", "10:00"), "walks")

        assert history.why_no_events == f"they are seen through the view people, {BY_SPARK}"
        assert [session_change.verb for session_change in history.session_changes][-2:] == [
            "split",
            "merged",
        ]

    def test_an_unknown_id(self, shop: HistoryProject) -> None:
        """An unknown id is an error that names where it was searched."""
        with pytest.raises(InfoldError, match="unknown-session"):
            shop.histories("nobody", "visits")


class TestIdentifiers:
    """The history of sessions by identifier."""

    def test_all_sessions_of_an_identifier(self, shop: HistoryProject) -> None:
        """A session can be found by its identifier as well as by its id."""
        (history,) = shop.histories("b1", "baskets")

        assert history.owner == ("session_identifier", "b1")
        assert arrived(history.event_batches) == [
            "v1 1 in time 10:00-10:00 landing/a.csv",
            "v5 1 late 10:50-10:50 landing/c.csv",
        ]
        (note,) = history.notes
        assert note.startswith("What `WHERE length(id) > 1` leaves out may be among its events:")
        assert [line.split(" ")[1] for line in change_lines(history.session_changes)] == [
            "created",
            "extended",
            "shortened",
            "extended",
        ]

    def test_a_session_without_an_identifier(self, shop: HistoryProject) -> None:
        """The events of a user's session without identifier
        are that user's events without identifier.
        """
        (history,) = shop.histories(shop.id("baskets", "10:10"), "baskets")

        assert history.owner == ("who", "ann")
        assert arrived(history.event_batches) == [
            "v1 1 in time 10:10-10:10 landing/a.csv",
            "v2 1 late 10:20-10:20 landing/b.csv",
        ]


class TestQuarantine:
    """The history of a session that is too long."""

    def test_a_session_is_found_by_an_earlier_id(self, shop: HistoryProject) -> None:
        """A session is found by an earlier id, and its
        history shows it entering and leaving quarantine.
        """
        id_ = shop.id("visits", "10:00")  # the same user, the same first event
        (history,) = shop.histories(id_, "stays")

        assert history.session is None
        assert history.quarantined is not None
        assert history.quarantined.events == 5
        assert change_lines(history.session_changes) == [
            "v1 created  > 10:00-10:10 (2)",
            "v1 created  > 11:20-11:20 (1)",
            "v2 extended 10:00-10:10 (2) > 10:00-10:20 (3)",
            "v3 quarantined 10:00-10:20 (3) > ",
            "v3 quarantined 11:20-11:20 (1) > ",
            "v4 returned  > 10:00-10:20 (3)",
            "v4 returned  > 11:20-11:20 (1)",
            "v5 quarantined 10:00-10:20 (3) > ",
            "v5 quarantined 11:20-11:20 (1) > ",
        ]
        assert arrived(history.event_batches)[-1] == "v5 1 late 10:50-10:50 landing/c.csv"
        assert history.notes == ()  # there are as many events as the session has
        assert "in quarantine  longer than 1 hour" in session_history_screen(
            api.session_history(shop.project, id_)
        )
