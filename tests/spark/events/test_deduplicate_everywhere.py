"""``deduplicate: everywhere`` keeps one row for each key at
any time, in whatever order copies arrive.

The last class has the cases that today's session packages get wrong: a copy in a later
run is counted again, and one in another session of the same run is removed from either.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.events.clicks_project import MODEL, ClicksProject, shop_with

from infold import api
from infold.core.record import Receipt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


EVERYWHERE = MODEL.replace("timeseries", "deduplicate: everywhere\ntimeseries")
LATEST = EVERYWHERE.replace("deduplicate", "prefer: [v desc]\ndeduplicate")


@pytest.fixture
def shop(tmp_path: Path, warehouse: Path, spark: SparkSession) -> ClicksProject:
    """A project with one row for each id."""
    return shop_with(tmp_path, warehouse, EVERYWHERE)


def explained(shop: ClicksProject) -> list[tuple[str, str]]:
    """What ``infold explain clicks`` says of copies."""
    return list(api.explain(api.open_project(shop.root), "clicks").notes)


@pytest.mark.spark
class TestOneRowForEachKey:
    """The copy to keep depends on what the copies say, not on which arrived first."""

    def test_a_copy_on_another_day_in_a_later_run(self, shop: ClicksProject, size: str) -> None:
        """The earliest copy is kept: a later copy changes
        nothing, and an earlier one moves the event.
        """
        shop.put("a.csv", "1,2024-03-05,7", "2,2024-03-05,7", "3,2024-03-06,7")
        first = shop.run()
        assert (first.written, first.keys_scanned) == (3, 0)
        version = shop.version()

        shop.put("b.csv", "1,2024-03-08,7", "9,2024-03-08,7")
        later = shop.run()
        assert shop.changes(version) == [("2024-03-08", 1, 0)]
        assert (later.written, later.deduplicated, later.elsewhere) == (1, 1, 1)
        assert (later.conflicting, later.keys_scanned) == (0, 3)
        version = shop.version()

        shop.put("c.csv", "1,2024-03-01,7")
        earlier = shop.run()
        assert shop.rows() == [
            ("1", "2024-03-01", 7),
            ("2", "2024-03-05", 7),
            ("3", "2024-03-06", 7),
            ("9", "2024-03-08", 7),
        ]
        # both cells of a moved event are changes
        assert shop.changes(version) == [("2024-03-01", 1, 0), ("2024-03-05", 0, 1)]
        assert (earlier.written, earlier.removed, earlier.elsewhere) == (1, 1, 1)
        assert earlier.keys_scanned == 4
        assert shop.files() == {"a.csv": (3, 1), "b.csv": (2, 1), "c.csv": (1, 0)}
        assert shop.proven()

    def test_copies_in_one_delivery(self, shop: ClicksProject, size: str) -> None:
        """Copies in one file or several keep the same row, and each kind of copy is counted."""
        shop.put("a.csv", "1,2024-03-05,7", "1,2024-03-05,7", "1,2024-03-04,7", "2,2024-03-09,1")
        shop.put("b.csv", "1,2024-02-01,8", "1,2024-03-04,7", "2,2024-03-09,2")
        receipt = shop.run()
        assert [row[:2] for row in shop.rows()] == [("1", "2024-02-01"), ("2", "2024-03-09")]
        # of event 1 four copies that differ in v, all elsewhere; of event 2 one that differs in v
        assert (receipt.deduplicated, receipt.conflicting, receipt.elsewhere) == (5, 5, 4)
        assert shop.proven()

    @pytest.mark.parametrize("order", list(itertools.permutations("abc")))
    def test_three_copies_in_any_order(
        self, tmp_path: Path, warehouse: Path, spark: SparkSession, order: Sequence[str]
    ) -> None:
        """The preferred copy is kept, then the earliest one, in any order; NULL is never
        preferred.
        """
        shop = shop_with(tmp_path, warehouse, LATEST)
        copies = {"a": "1,2024-03-01,", "b": "1,2024-03-07,9", "c": "1,2024-03-04,9"}
        total = Receipt()
        for name in order:
            shop.put(f"{name}.csv", copies[name])
            total += shop.run()
        assert shop.rows() == [("1", "2024-03-04", 9)]
        assert shop.files() == {"a.csv": (1, 1), "b.csv": (1, 1), "c.csv": (1, 0)}
        assert (total.deduplicated, total.elsewhere) == (2, 2)
        assert shop.proven()

    def test_a_preferred_time(self, tmp_path: Path, warehouse: Path, spark: SparkSession) -> None:
        """If the event time itself is preferred, the latest copy can be kept."""
        shop = shop_with(tmp_path, warehouse, LATEST.replace("[v desc]", "[at desc]"))
        shop.put("a.csv", "1,2024-03-01,7", "1,2024-03-05,6")
        shop.run()
        shop.put("b.csv", "1,2024-03-03,9")
        shop.run()
        assert shop.rows() == [("1", "2024-03-05", 6)]
        assert shop.proven()

    def test_null_keys_are_set_aside(self, shop: ClicksProject) -> None:
        """Rows with a NULL key are copies of nothing and are set aside."""
        shop.put("a.csv", ",2024-03-01,7", "1,2024-03-01,7")
        shop.run()
        shop.put("b.csv", ",2024-03-02,7", ",2024-03-01,7")
        receipt = shop.run()
        assert (receipt.set_aside, receipt.deduplicated) == (2, 0)
        assert shop.rows() == [("1", "2024-03-01", 7)]
        assert shop.proven()

    def test_a_key_of_several_columns(
        self, tmp_path: Path, warehouse: Path, spark: SparkSession
    ) -> None:
        """A key of several columns tells events apart by all of them."""
        shop = shop_with(tmp_path, warehouse, EVERYWHERE.replace("[id]", "[id, v]"))
        shop.put("a.csv", "1,2024-03-01,7", "1,2024-03-01,8")
        shop.run()
        shop.put("b.csv", "1,2024-03-02,7", "1,2024-03-02,9")
        shop.run()
        assert shop.rows() == [
            ("1", "2024-03-01", 7),
            ("1", "2024-03-01", 8),
            ("1", "2024-03-02", 9),
        ]
        assert shop.proven()

    def test_the_key_changes_the_definition(self, shop: ClicksProject) -> None:
        """To declare the key, or to remove it, changes the definition and rebuilds the table."""
        shop.model("clicks", MODEL)
        shop.put("a.csv", "1,2024-03-01,7", "1,2024-03-05,7")
        shop.run()
        assert len(shop.rows()) == 2
        shop.model("clicks", EVERYWHERE)
        shop.run()
        assert shop.rows() == [("1", "2024-03-01", 7)]
        assert explained(shop) == [
            ("copies", "one row for each id, whatever its at"),
            ("", "a run that ingests rows searches the keys of all 1 stored rows"),
        ]
        shop.model("clicks", MODEL)
        shop.run()
        assert len(shop.rows()) == 2
        assert explained(shop) == [
            ("copies", "one row for each id and at, sought in the cells of new rows")
        ]


@pytest.mark.spark
class TestAKeptCopyLeaves:
    """When the kept copy's file is deleted, the best of the others is stored, in its own cell."""

    def test_the_file_of_the_kept_copy_is_deleted(self, shop: ClicksProject, size: str) -> None:
        """Of three copies on three days, the next best is
        kept each time the file of the best is deleted.
        """
        shop.put("a.csv", "1,2024-03-01,7", "2,2024-03-01,7")
        shop.put("b.csv", "1,2024-03-05,7")
        shop.run()
        shop.put("c.csv", "1,2024-03-03,8")
        shop.run()
        version = shop.version()
        shop.drop("a.csv")
        shop.run()
        assert shop.rows() == [("1", "2024-03-03", 8)]
        assert shop.changes(version) == [("2024-03-01", 0, 2), ("2024-03-03", 1, 0)]
        assert shop.files() == {"b.csv": (1, 1), "c.csv": (1, 0)}
        assert shop.proven()
        shop.drop("c.csv")
        shop.run()
        assert shop.rows() == [("1", "2024-03-05", 7)]
        assert shop.files() == {"b.csv": (1, 0)}
        shop.drop("b.csv")
        shop.run()
        assert shop.rows() == []
        assert shop.proven()

    def test_the_file_of_the_kept_copy_is_replaced(self, shop: ClicksProject, size: str) -> None:
        """The corrected copy competes again with the copy that had lost to the old one."""
        shop.put("a.csv", "1,2024-03-01,7", "2,2024-03-01,7")
        shop.put("b.csv", "1,2024-03-05,7")
        shop.run()
        shop.put("a.csv", "1,2024-03-08,7", "2,2024-03-02,7")
        shop.run()
        assert shop.rows() == [("1", "2024-03-05", 7), ("2", "2024-03-02", 7)]
        assert shop.files() == {"a.csv": (2, 1), "b.csv": (1, 0)}
        assert shop.proven()

    def test_a_better_copy_arrives_as_the_kept_one_is_deleted(
        self, shop: ClicksProject, size: str
    ) -> None:
        """In one run the kept copy's file is deleted and a
        new copy arrives: the best of all that remain is kept.
        """
        shop.put("a.csv", "1,2024-03-02,7")
        shop.put("b.csv", "1,2024-03-05,7")
        shop.run()
        shop.drop("a.csv")
        shop.put("c.csv", "1,2024-03-03,7")
        shop.run()
        assert shop.rows() == [("1", "2024-03-03", 7)]
        assert shop.files() == {"b.csv": (1, 1), "c.csv": (1, 0)}
        assert shop.proven()


@pytest.mark.spark
class TestTheFuture:
    """A copy dated in the future competes once its time has come, and not before."""

    def test_a_copy_that_waits(
        self, tmp_path: Path, warehouse: Path, spark: SparkSession, size: str
    ) -> None:
        """A waiting copy replaces one it is preferred to when it is due, and not before."""
        shop = shop_with(tmp_path, warehouse, LATEST)
        shop.put("a.csv", "1,2024-03-20,9", "2,2024-03-20,1", "3,2024-03-09,1")
        shop.put("b.csv", "1,2024-03-01,7", "2,2024-03-02,7")
        first = shop.run()
        assert first.waiting == 2
        assert shop.rows() == [
            ("1", "2024-03-01", 7),
            ("2", "2024-03-02", 7),
            ("3", "2024-03-09", 1),
        ]
        version = shop.version()
        due = shop.run("2024-03-21")
        assert shop.rows() == [
            ("1", "2024-03-20", 9),
            ("2", "2024-03-02", 7),
            ("3", "2024-03-09", 1),
        ]
        assert shop.changes(version) == [("2024-03-01", 0, 1), ("2024-03-20", 1, 0)]
        assert (due.deduplicated, due.conflicting, due.elsewhere) == (2, 2, 2)
        shop.drop("a.csv")
        shop.run("2024-03-21")
        assert shop.rows() == [("1", "2024-03-01", 7), ("2", "2024-03-02", 7)]
        assert shop.proven()


SESSIONS = """---
materialization: sessions
sessions: {user: user_id, gap: 30 minutes}
---
SELECT count(*) AS events, sum(v) AS revenue FROM clicks"""

DAILY = """---
materialization: table
timeseries: {event_time_column: session_start, partition_column: day, granularity: day}
incremental: {}
---
SELECT cast(session_start AS date) AS day, sum(events) AS events FROM sessions GROUP BY 1"""

CLICKS = EVERYWHERE.replace("SELECT id, at, v", "SELECT id, user_id, at, v")
SOURCE = """    event_time_column: at
    columns: {id: string, user_id: string, at: timestamp, v: int}
"""


class Site(ClicksProject):
    """Clicks, sessions of them and a daily table."""

    def deliver(self, name: str, *rows: str) -> None:
        """A file of clicks: id, user, time, value."""
        self.put(name, *rows, header="id,user_id,at,v")

    def sessions(self) -> list[tuple[str, str, int, int]]:
        """User, start, events and revenue of each session."""
        return [(row[1], row[2], row[4], row[5]) for row in sorted(self.rows("sessions"), key=_at)]

    def days(self) -> list[tuple[str, int]]:
        """Events of each day."""
        return sorted((str(day), events) for day, events in self.rows("daily"))


def _at(row: Sequence[str]) -> tuple[str, str]:
    return row[1], row[2]


@pytest.fixture
def site(tmp_path: Path, warehouse: Path, spark: SparkSession) -> Site:
    """A project with sessions."""
    found = Site(tmp_path, warehouse, CLICKS, SOURCE)
    found.model("sessions", SESSIONS)
    found.model("daily", DAILY)
    return found


@pytest.mark.spark
class TestSessionsOfEventsThatCameTwice:
    """Events that today's packages count twice, or remove
    from a session, are in sessions exactly once.
    """

    def test_a_copy_in_a_later_run_is_not_counted_again(self, site: Site) -> None:
        """A copy delivered days later with a later time changes nothing downstream."""
        site.deliver("1.csv", "e1,ann,2024-03-01T09:00,5", "e2,ann,2024-03-01T09:10,5")
        site.run()
        before = {name: site.version(name) for name in ("clicks", "sessions", "daily")}
        site.deliver("2.csv", "e1,ann,2024-03-04T12:00,5")
        receipt = site.run()
        assert (receipt.deduplicated, receipt.elsewhere, receipt.commits) == (1, 1, 0)
        assert site.sessions() == [("ann", "2024-03-01 09:00", 2, 10)]
        assert site.days() == [("2024-03-01", 2)]
        assert {name: site.version(name) for name in before} == before
        assert site.proven()

    def test_a_copy_in_another_session_of_the_same_run(self, site: Site) -> None:
        """An event with copies in two sessions of one run stays in the earlier session only."""
        site.deliver(
            "1.csv",
            "e1,ann,2024-03-01T09:00,5",
            "e2,ann,2024-03-01T12:00,1",
            "e1,ann,2024-03-01T12:10,5",
            "e1,bob,2024-03-02T08:00,5",
        )
        site.run()
        assert site.sessions() == [
            ("ann", "2024-03-01 09:00", 1, 5),
            ("ann", "2024-03-01 12:00", 1, 1),
        ]
        assert site.proven()

    def test_an_earlier_copy_moves_the_event_and_its_sessions(self, site: Site) -> None:
        """An earlier copy moves the event: the session it leaves
        shrinks or vanishes, the other grows, both days change.
        """
        site.deliver("1.csv", "e1,ann,2024-03-05T09:00,5", "e3,ann,2024-03-05T09:20,1")
        site.deliver("2.csv", "e2,ann,2024-03-01T09:00,2", "e4,bob,2024-03-06T09:00,1")
        site.run()
        site.deliver("3.csv", "e1,ann,2024-03-01T09:15,5", "e4,bob,2024-03-02T10:00,1")
        site.run()
        assert site.sessions() == [
            ("ann", "2024-03-01 09:00", 2, 7),
            ("ann", "2024-03-05 09:20", 1, 1),
            ("bob", "2024-03-02 10:00", 1, 1),
        ]
        assert site.days() == [("2024-03-01", 2), ("2024-03-02", 1), ("2024-03-05", 1)]
        site.drop("3.csv")
        site.run()
        assert site.sessions() == [
            ("ann", "2024-03-01 09:00", 1, 2),
            ("ann", "2024-03-05 09:00", 2, 6),
            ("bob", "2024-03-06 09:00", 1, 1),
        ]
        assert site.days() == [("2024-03-01", 1), ("2024-03-05", 2), ("2024-03-06", 1)]
        assert site.proven()

    def test_a_conflicting_copy_changes_the_user(self, site: Site) -> None:
        """A conflicting copy that is kept decides the
        event's user; the session of the other user vanishes.
        """
        site.deliver("1.csv", "e1,ann,2024-03-05T09:00,5")
        site.run()
        site.deliver("2.csv", "e1,bob,2024-03-01T09:00,5")
        receipt = site.run()
        assert (receipt.deduplicated, receipt.conflicting, receipt.elsewhere) == (1, 1, 1)
        assert site.sessions() == [("bob", "2024-03-01 09:00", 1, 5)]
        assert site.days() == [("2024-03-01", 1)]
        assert site.proven()
