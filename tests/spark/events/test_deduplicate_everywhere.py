"""
``deduplicate: everywhere`` keeps one row for each key at any time, in whatever order copies arrive.

The last test has the cases that today's session packages get wrong: a copy in a later run is
counted again, and one in another session of the same run is removed from either.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.events.clicks_project import MODEL, ClicksProject, having, shop_with

from infold import api

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

EVERYWHERE = having("deduplicate: everywhere")


@pytest.fixture
def shop(tmp_path: Path, warehouse: Path, spark: SparkSession) -> ClicksProject:
    """A project with one row for each id."""
    return shop_with(tmp_path, warehouse, EVERYWHERE)


def explained(shop: ClicksProject) -> list[tuple[str, str]]:
    """What ``infold explain clicks`` says of copies."""
    return list(api.explain(api.open_project(shop.root), "clicks").notes)


class TestOneRowForEachKey:
    """The copy to keep depends on what the copies say, not on which arrived first."""

    @pytest.mark.parametrize("size", ["large"], indirect=True)
    def test_a_copy_on_another_day(self, shop: ClicksProject, size: str) -> None:
        """
        The earliest copy is kept, in one delivery or in later ones: a later copy changes nothing,
        and an earlier one moves the event. Each kind of copy is counted; rows with a NULL key are
        copies of nothing.
        """
        shop.put("a.csv", "1,2024-03-05,7", "1,2024-03-05,7", "1,2024-03-04,7", "2,2024-03-09,1")
        shop.put("b.csv", "1,2024-02-01,8", "1,2024-03-04,7", "2,2024-03-09,2", ",2024-03-01,7")
        shop.put("c.csv", "3,2024-03-05,7", "4,2024-03-06,7")
        first = shop.run()
        assert [row[:2] for row in shop.rows()] == [
            ("1", "2024-02-01"),
            ("2", "2024-03-09"),
            ("3", "2024-03-05"),
            ("4", "2024-03-06"),
        ]
        # of event 1 four copies that differ in v, all elsewhere; of event 2 one that differs in v
        assert (first.deduplicated, first.conflicting, first.elsewhere) == (5, 5, 4)
        assert (first.written, first.set_aside, first.keys_scanned) == (4, 1, 0)
        version = shop.version()

        shop.put("d.csv", "3,2024-03-08,7", "9,2024-03-08,7", ",2024-03-02,7", ",2024-03-01,7")
        later = shop.run()
        assert shop.changes(version) == [("2024-03-08", 1, 0)]
        assert (later.written, later.deduplicated, later.elsewhere) == (1, 1, 1)
        assert (later.conflicting, later.set_aside, later.keys_scanned) == (0, 2, 4)
        version = shop.version()

        shop.put("e.csv", "3,2024-03-01,7")
        earlier = shop.run()
        assert [row[:2] for row in shop.rows()][2:] == [
            ("3", "2024-03-01"),
            ("4", "2024-03-06"),
            ("9", "2024-03-08"),
        ]
        # both cells of a moved event are changes
        assert shop.changes(version) == [("2024-03-01", 1, 0), ("2024-03-05", 0, 1)]
        assert (earlier.written, earlier.removed, earlier.elsewhere) == (1, 1, 1)
        assert earlier.keys_scanned == 5
        of_events = ("c.csv", "d.csv", "e.csv")
        assert [shop.files()[name] for name in of_events] == [(2, 1), (2, 1), (1, 0)]
        assert shop.proven()

    def test_other_keys_and_preferences(
        self, tmp_path: Path, warehouse: Path, spark: SparkSession
    ) -> None:
        """
        A key of several columns tells events apart by all of them. If the event time itself is
        preferred, the latest copy is kept.
        """
        shop = shop_with(tmp_path, warehouse, EVERYWHERE.replace("[id]", "[id, v]"))
        shop.model("newest", having("prefer: [at desc]", "deduplicate: everywhere"))
        shop.put("a.csv", "1,2024-03-01,7", "1,2024-03-01,8", "2,2024-03-01,7", "2,2024-03-05,6")
        shop.run()
        shop.put("b.csv", "1,2024-03-02,7", "1,2024-03-02,9", "2,2024-03-03,7")
        shop.run()
        assert shop.rows() == [
            ("1", "2024-03-01", 7),
            ("1", "2024-03-01", 8),
            ("1", "2024-03-02", 9),
            ("2", "2024-03-01", 7),
            ("2", "2024-03-05", 6),
        ]
        assert [row[:2] for row in shop.rows("newest")] == [
            ("1", "2024-03-02"),
            ("2", "2024-03-05"),
        ]

    def test_to_declare_it_changes_the_definition(self, shop: ClicksProject) -> None:
        """The table is built again; what runs will search is explained."""
        shop.model("clicks", MODEL)
        shop.put("a.csv", "1,2024-03-01,7", "1,2024-03-05,7")
        shop.run()
        assert len(shop.rows()) == 2
        assert explained(shop) == [
            ("copies", "one row for each id and at, sought in the cells of new rows")
        ]
        shop.model("clicks", EVERYWHERE)
        shop.run()
        assert shop.rows() == [("1", "2024-03-01", 7)]
        assert explained(shop) == [
            ("copies", "one row for each id, whatever its at"),
            ("", "a run that ingests rows searches the keys of all 1 stored rows"),
        ]


class TestAKeptCopyLeaves:
    """When the kept copy's file is deleted, the best of the others is stored, in its own cell."""

    @pytest.mark.parametrize("size", ["large"], indirect=True)
    def test_the_file_of_the_kept_copy_is_deleted(self, shop: ClicksProject, size: str) -> None:
        """
        In its own cell, and counted as such.

        | event | kept of | then in its place                                              |
        |-------|---------|----------------------------------------------------------------|
        | 1     | a       | c, the next best, then b                                       |
        | 2     | a       | nothing                                                        |
        | 3     | r       | s, which had lost: the corrected copy of r is on a later day   |
        | 4     | k       | n, which arrives as k is deleted and is better than m          |
        """
        shop.put("a.csv", "1,2024-03-01,7", "2,2024-03-01,7")
        shop.put("b.csv", "1,2024-03-05,7")
        shop.put("r.csv", "3,2024-03-10,7", "5,2024-03-10,7")
        shop.put("s.csv", "3,2024-03-12,7")
        shop.put("k.csv", "4,2024-03-20,7")
        shop.put("m.csv", "4,2024-03-25,7")
        shop.run("2024-04-01")
        shop.put("c.csv", "1,2024-03-03,8")
        shop.run("2024-04-01")
        version = shop.version()
        shop.drop("a.csv")
        shop.put("r.csv", "3,2024-03-18,7", "5,2024-03-11,7")
        shop.drop("k.csv")
        shop.put("n.csv", "4,2024-03-23,7")
        shop.run("2024-04-01")
        assert shop.rows() == [
            ("1", "2024-03-03", 8),
            ("3", "2024-03-12", 7),
            ("4", "2024-03-23", 7),
            ("5", "2024-03-11", 7),
        ]
        assert shop.changes(version) == [
            ("2024-03-01", 0, 2),
            ("2024-03-03", 1, 0),
            ("2024-03-10", 0, 2),
            ("2024-03-11", 1, 0),
            ("2024-03-12", 1, 0),
            ("2024-03-20", 0, 1),
            ("2024-03-23", 1, 0),
        ]
        assert shop.files() == {
            "b.csv": (1, 1),
            "c.csv": (1, 0),
            "m.csv": (1, 1),
            "n.csv": (1, 0),
            "r.csv": (2, 1),
            "s.csv": (1, 0),
        }
        shop.drop("c.csv")
        shop.run("2024-04-01")
        assert shop.rows()[0] == ("1", "2024-03-05", 7)
        assert shop.files()["b.csv"] == (1, 0)
        assert shop.proven()


def test_a_copy_that_waits(tmp_path: Path, warehouse: Path, spark: SparkSession) -> None:
    """A copy dated in the future replaces one it is preferred to when it is due, not before."""
    shop = shop_with(tmp_path, warehouse, having("prefer: [v desc]", "deduplicate: everywhere"))
    shop.put("a.csv", "1,2024-03-20,9", "2,2024-03-20,1", "3,2024-03-09,1")
    shop.put("b.csv", "1,2024-03-01,7", "2,2024-03-02,7")
    assert shop.run().waiting == 2
    assert shop.rows() == [("1", "2024-03-01", 7), ("2", "2024-03-02", 7), ("3", "2024-03-09", 1)]
    version = shop.version()
    due = shop.run("2024-03-21")
    assert shop.rows() == [("1", "2024-03-20", 9), ("2", "2024-03-02", 7), ("3", "2024-03-09", 1)]
    assert shop.changes(version) == [("2024-03-01", 0, 1), ("2024-03-20", 1, 0)]
    assert (due.deduplicated, due.conflicting, due.elsewhere) == (2, 2, 2)
    shop.drop("a.csv")
    shop.run("2024-03-21")
    assert shop.rows() == [("1", "2024-03-01", 7), ("2", "2024-03-02", 7)]


SESSIONS = """---
materialization: sessions
sessions: {user: user_id, gap: 30 minutes}
---
SELECT count(*) AS events, sum(v) AS revenue FROM clicks"""

CLICKS = EVERYWHERE.replace("SELECT id, at, v", "SELECT id, user_id, at, v")
SOURCE = """    event_time_column: at
    columns: {id: string, user_id: string, at: timestamp, v: int}
"""


class Site(ClicksProject):
    """Clicks and sessions of them."""

    def deliver(self, name: str, *rows: str) -> None:
        """A file of clicks of March: id, user, time, value."""
        dated = (row.replace(",03-", ",2024-03-") for row in rows)
        self.put(name, *dated, header="id,user_id,at,v")

    def sessions(self) -> list[tuple[str, str, int, int]]:
        """User, start, events and revenue of each session."""
        return [
            (row[1], row[2].removeprefix("2024-"), row[4], row[5])
            for row in sorted(self.rows("sessions"), key=_at)
        ]


def _at(row: Sequence[str]) -> tuple[str, str]:
    return row[1], row[2]


def test_sessions_of_events_that_came_twice(
    tmp_path: Path, warehouse: Path, spark: SparkSession
) -> None:
    """
    Events that today's packages count twice, or remove from a session, are in sessions once.

    Of ann a copy comes days later, with a later time. Bob has copies in two sessions of one run,
    and cat has one of them: the earlier session keeps it. Of dan and eve earlier copies come, which
    move the event: the session it leaves shrinks or vanishes, the other grows. A conflicting copy
    that is kept makes fay's event guy's.
    """
    site = Site(tmp_path, warehouse, CLICKS, SOURCE)
    site.model("sessions", SESSIONS)
    site.deliver("1.csv", "a1,ann,03-01T09:00,5", "a2,ann,03-01T09:10,5")
    site.deliver(
        "2.csv",
        "b1,bob,03-02T09:00,5",
        "b2,bob,03-02T12:00,1",
        "b1,bob,03-02T12:10,5",
        "b1,cat,03-03T08:00,5",
    )
    site.deliver("3.csv", "d1,dan,03-05T09:00,5", "d3,dan,03-05T09:20,1", "d2,dan,03-04T09:00,2")
    site.deliver("4.csv", "e1,eve,03-06T09:00,1", "f1,fay,03-09T09:00,5")
    site.run()
    bob = [("bob", "03-02 09:00", 1, 5), ("bob", "03-02 12:00", 1, 1)]
    first = [
        ("ann", "03-01 09:00", 2, 10),
        *bob,
        ("dan", "03-04 09:00", 1, 2),
        ("dan", "03-05 09:00", 2, 6),
        ("eve", "03-06 09:00", 1, 1),
        ("fay", "03-09 09:00", 1, 5),
    ]
    assert site.sessions() == first

    before = {name: site.version(name) for name in ("clicks", "sessions")}
    site.deliver("5.csv", "a1,ann,03-04T12:00,5")
    receipt = site.run()
    assert (receipt.deduplicated, receipt.elsewhere, receipt.commits) == (1, 1, 0)
    assert site.sessions() == first
    assert {name: site.version(name) for name in before} == before

    site.deliver("6.csv", "d1,dan,03-04T09:15,5", "e1,eve,03-02T10:00,1", "f1,guy,03-08T09:00,5")
    receipt = site.run()
    assert (receipt.deduplicated, receipt.conflicting, receipt.elsewhere) == (3, 1, 3)
    assert site.sessions() == [
        ("ann", "03-01 09:00", 2, 10),
        *bob,
        ("dan", "03-04 09:00", 2, 7),
        ("dan", "03-05 09:20", 1, 1),
        ("eve", "03-02 10:00", 1, 1),
        ("guy", "03-08 09:00", 1, 5),
    ]

    site.drop("6.csv")
    site.run()
    assert site.sessions() == first
    assert site.proven()
