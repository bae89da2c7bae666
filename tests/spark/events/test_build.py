"""Events tables: the outcome for each row, the copy kept of each event, and removal with files.

Cases are projects with a few drawn rows, run from the files to the table as a user would.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
from tests.spark.events.clicks_project import (
    COLUMNS,
    MODEL,
    ClicksProject,
    NewShop,
    having,
)

from infold import api
from infold.core.files import ListedFile
from infold.core.formats import Format
from infold.core.interval import Interval
from infold.core.model import Materialization, Model, Source
from infold.core.project import Node, Reference
from infold.core.record import Receipt
from infold.messages.errors import InfoldError


@pytest.fixture
def shop(new_shop: NewShop) -> ClicksProject:
    """A project with the model ``clicks``."""
    return new_shop()


@pytest.mark.spark
class TestCopies:
    """An event is stored once, whichever copies of it arrived in whatever order."""

    @pytest.mark.usefixtures("many_rows")
    def test_equal_copies_are_one_event(self, shop: ClicksProject) -> None:
        """
        Equal copies in one file, across files or in later runs are one event; a repeated delivery
        changes nothing, and neither does its deletion.
        """
        shop.put("a.csv", "1,2024-03-01,7", "1,2024-03-01,7", "2,2024-03-01,7")
        shop.put("b.csv", "1,2024-03-01,7", "1,2024-03-02,7")
        first = shop.run()
        assert shop.rows() == [
            ("1", "2024-03-01", 7),
            ("1", "2024-03-02", 7),
            ("2", "2024-03-01", 7),
        ]
        assert (first.arrived, first.written, first.deduplicated) == (5, 3, 2)
        version = shop.version()
        shop.put("c.csv", "2,2024-03-01,7", "1,2024-03-02,7")
        again = shop.run()
        assert (again.arrived, again.written, again.deduplicated, again.commits) == (2, 0, 2, 0)
        assert sum(rows for rows, _ in shop.files().values()) == 7
        assert sum(dropped for _, dropped in shop.files().values()) == 4
        shop.drop("c.csv")
        assert shop.run().commits == 0
        assert shop.version() == version
        assert set(shop.files()) == {"a.csv", "b.csv"}
        said = "one row for each id and at, sought in the cells of new rows"
        assert api.explain(shop.project(), "clicks").notes == (("copies", said),)

    def test_the_kept_copy_depends_on_content_only(self, new_shop: NewShop) -> None:
        """
        In any order of arrival the preferred copy is kept, or the one that the hash chooses;
        everywhere, of the most preferred copies the earliest. NULL is never preferred. If the event
        time itself is preferred, the latest copy is kept.
        """
        shop = new_shop(having("prefer: [v desc]"))
        shop.model("hashed", MODEL)
        shop.model("best", having("prefer: [v desc]", "deduplicate: everywhere"))
        shop.model("latest", having("prefer: [at desc]", "deduplicate: everywhere"))
        copies = {
            "near": {"a": "2024-03-01,", "b": "2024-03-01,2", "c": "2024-03-01,9"},
            "far": {"a": "2024-03-01,", "b": "2024-03-07,9", "c": "2024-03-04,9"},
        }
        events = [(kind, order) for kind in copies for order in permutations("abc")]
        total = Receipt()
        for number in range(3):
            shop.put(
                f"{number}.csv",
                *(
                    f"{kind} {''.join(order)},{copies[kind][order[number]]}"
                    for kind, order in events
                ),
            )
            total += shop.run()

        def kept(table: str, kind: str) -> Counter[object]:
            return Counter(row[1:] for row in shop.rows(table) if row[0].startswith(kind))

        assert kept("clicks", "near") == kept("best", "near") == {("2024-03-01", 9): 6}
        assert kept("best", "far") == {("2024-03-04", 9): 6}
        assert kept("latest", "far") == {("2024-03-07", 9): 6}
        assert kept("hashed", "near").total() == 6
        assert kept("clicks", "far").total() == kept("hashed", "far").total() == 18
        assert total.conflicting == 12
        assert shop.files() == {f"{number}.csv": (12, 4) for number in range(3)}
        assert shop.files("best") == {f"{number}.csv": (12, 8) for number in range(3)}
        assert shop.proven(), "of all copies at once the same are kept"


@pytest.mark.spark
class TestFilesThatLeave:
    """A deleted file removes its rows, except those that another file has too."""

    @pytest.mark.usefixtures("many_rows")
    def test_a_copy_that_lost_returns(self, new_shop: NewShop) -> None:
        """
        When the file of a kept copy goes or is replaced, the best of the other copies is stored.

        | event | copies in | least v |                                                      |
        |-------|-----------|---------|------------------------------------------------------|
        | 1     | x y z     | equal   | stays while one of them does, and nothing changes     |
        | 2     | a b c     | a       | b, then c returns, though d comes, which has no v;   |
        |       |           |         | then e is better                                     |
        | 3 to 6 | r s      | equal   | rows in both versions of r are no change             |
        """
        shop = new_shop(having("prefer: [v]"))
        for name in "xyz":
            shop.put(f"{name}.csv", "1,2024-03-01,7", f"{name},2024-03-02,1")
        for v, name in enumerate("abc", 1):
            shop.put(f"{name}.csv", f"2,2024-03-03,{v}")
        shop.put("r.csv", "3,2024-03-04,1", "4,2024-03-05,2", "5,2024-03-06,3")
        shop.put("s.csv", "4,2024-03-05,2")
        shop.run()
        version = shop.version()
        shop.drop("x.csv")
        shop.drop("a.csv")
        shop.run()
        assert {("1", "2024-03-01", 7), ("2", "2024-03-03", 2)} < {*shop.rows()}
        assert shop.changes(version) == [("2024-03-02", 0, 1), ("2024-03-03", 1, 1)]
        assert (shop.files()["b.csv"], shop.files()["c.csv"]) == ((1, 0), (1, 1))

        version = shop.version()
        shop.drop("y.csv")
        shop.drop("b.csv")
        shop.put("d.csv", "2,2024-03-03,")
        shop.put("r.csv", "3,2024-03-04,1", "5,2024-03-06,4", "6,2024-03-08,5", "7,2024-03-08,6")
        receipt = shop.run()
        assert shop.rows() == [
            ("1", "2024-03-01", 7),
            ("2", "2024-03-03", 3),
            ("3", "2024-03-04", 1),
            ("4", "2024-03-05", 2),
            ("5", "2024-03-06", 4),
            ("6", "2024-03-08", 5),
            ("7", "2024-03-08", 6),
            ("z", "2024-03-02", 1),
        ]
        assert shop.changes(version) == [
            ("2024-03-02", 0, 1),
            ("2024-03-03", 1, 1),
            ("2024-03-06", 1, 1),
            ("2024-03-08", 2, 0),
        ]
        assert (receipt.files_new, receipt.files_removed) == (2, 3)
        assert shop.files() == {
            "c.csv": (1, 0),
            "d.csv": (1, 1),
            "r.csv": (4, 0),
            "s.csv": (1, 0),
            "z.csv": (2, 0),
        }

        version = shop.version()
        shop.drop("z.csv")
        shop.put("e.csv", "2,2024-03-03,0")
        receipt = shop.run()
        assert shop.changes(version) == [
            ("2024-03-01", 0, 1),
            ("2024-03-02", 0, 1),
            ("2024-03-03", 1, 1),
        ]
        assert (receipt.written, receipt.removed, receipt.conflicting) == (1, 3, 1)
        assert shop.rows()[0] == ("2", "2024-03-03", 0)
        assert shop.proven()


@pytest.mark.spark
class TestRules:
    """A row's values decide whether it is stored, set aside or waits."""

    def test_each_reason(self, shop: ClicksProject) -> None:
        """
        Each reason sets a row aside with its file; an empty string is a key like any other. Rows
        set aside are replaced and deleted with their files, and a rebuild repeats none.
        """
        shop.put(
            "a.csv",
            "1,2024-03-01,1",
            '"",2024-03-01,1',
            ",2024-03-01,1",
            "2,,1",
            "3,0000-12-31,1",
            "4,2024-03-01,x",
            "5,not a time,1",
            "6,2024-03-01,1,,,,",
        )
        shop.put("b.csv", ",2024-03-01,1")
        receipt = shop.run()
        assert shop.rows() == [("", "2024-03-01", 1), ("1", "2024-03-01", 1)]
        assert shop.aside() == [
            ("a.csv", "invalid event time"),
            ("a.csv", "null event time"),
            ("a.csv", "null key: id"),
            ("a.csv", "unparsable: at is not timestamp"),
            ("a.csv", "unparsable: v is not int"),
            ("a.csv", "unparsable: wrong number of fields"),
            ("b.csv", "null key: id"),
        ]
        assert (receipt.arrived, receipt.written, receipt.set_aside) == (9, 2, 7)
        assert dict(receipt.set_aside_by) == {
            "invalid event time": 1,
            "null event time": 1,
            "null key": 2,
            "unparsable": 3,
        }

        shop.put("a.csv", "1,2024-03-02,1", ",2024-03-02,2")
        shop.run()
        assert shop.aside() == [("a.csv", "null key: id"), ("b.csv", "null key: id")]
        shop.drop("b.csv")
        shop.model("clicks", MODEL.replace("v FROM", "v + 1 AS v FROM"))
        shop.run()
        assert shop.aside() == [("a.csv", "null key: id")]
        assert shop.rows() == [("1", "2024-03-02", 2)]

    @pytest.mark.usefixtures("many_rows")
    def test_rows_dated_in_the_future_wait(self, shop: ClicksProject) -> None:
        """Rows dated in the future wait, and each is stored once, when its time has come."""
        shop.put("a.csv", "1,2024-03-01,1", "2,2024-03-11,1", "3,2024-03-20,1", "4,,1")
        first = shop.run("2024-03-10")
        assert (first.written, first.waiting) == (1, 2)
        assert shop.run("2024-03-10 23:59").arrived == 0
        second = shop.run("2024-03-11")
        assert (second.arrived, second.written, second.waiting) == (0, 1, 1)
        assert shop.rows() == [("1", "2024-03-01", 1), ("2", "2024-03-11", 1)]
        shop.put("b.csv", "2,2024-03-11,1", "3,2024-03-20,1")
        shop.drop("a.csv")
        shop.run("2024-03-13")
        assert shop.rows() == [("2", "2024-03-11", 1)]
        assert shop.run("2025-01-01").written == 1
        assert shop.files() == {"b.csv": (2, 0)}
        assert shop.aside() == []

    def test_by_which_time_a_row_is_judged(self, new_shop: NewShop) -> None:
        """
        Where the source declares no event time, the model's column is used: NULL is set aside, the
        future waits. With a received column, a row dated later than received plus tolerance is set
        aside for good.
        """
        source = f"""    columns: {COLUMNS}
  raw.seen:
    path: seen.csv
    event_time_column: at
    received_column: seen
    future_tolerance: 1 hour
    columns: {{id: string, at: timestamp, seen: timestamp}}
"""
        shop = new_shop(source=source)
        shop.model("seen", MODEL.replace("id, at, v FROM raw.clicks", "id, at FROM raw.seen"))
        (shop.root / "seen.csv").write_text(
            "id,at,seen\n"
            "1,2099-01-01T01:00:00,2099-01-01\n"
            "2,2099-01-01T01:00:01,2099-01-01\n"
            "3,2024-03-01,\n"
        )
        shop.put("a.csv", "1,2024-03-02,7", "2,,7", "3,2024-04-01,7", "1,2024-03-02,7")
        first = shop.run()
        assert (first.arrived, first.set_aside, first.waiting, first.deduplicated) == (4, 1, 1, 1)
        assert shop.rows() == [("1", "2024-03-02", 7)]
        assert shop.rows("seen") == [("1", "2099-01-01 01:00")]
        assert shop.aside() == [
            ("a.csv", "null event time"),
            ("seen.csv", "future: later than received"),
            ("seen.csv", "null received"),
        ]
        shop.put("b.csv", "4,2024-03-01,7")
        shop.run("2024-04-02")
        assert [row[0] for row in shop.rows()] == ["1", "3", "4"]
        assert shop.changes(1) == [("2024-03-01", 1, 0), ("2024-04-01", 1, 0)]


@pytest.mark.spark
class TestQuery:
    """The model's query runs as it was written."""

    def test_names_stars_and_conditions(self, new_shop: NewShop) -> None:
        """
        Reserved words, dots and quotes in names work, and `*` shows no technical column. Rows that
        WHERE removes are neither stored nor set aside; unreadable rows are set aside.
        """
        few = MODEL.replace("FROM raw.clicks", "FROM raw.clicks WHERE v > 1 OR v = 0 -- few")
        shop = new_shop(few)
        queries = (
            "SELECT `id`, at, v, `a.b``c`, `order` FROM raw.clicks -- all",
            "SELECT clicks.* FROM raw.clicks;",
            "SELECT c.* /* from */ FROM raw.clicks AS c\n-- the end",
        )
        for number, query in enumerate(queries):
            shop.model(f"all{number}", MODEL.rpartition("---\n")[0] + "---\n" + query)
        shop.put("a.csv", "1,2024-03-01,1,x,5", "2,,1", "3,2024-03-01,2", "4,2024-03-01,x", ",,1")
        receipt = shop.run()
        for number in range(len(queries)):
            assert shop.rows(f"all{number}") == [
                ("1", "2024-03-01", 1, "x", 5),
                ("3", "2024-03-01", 2, None, None),
            ]
            assert [why for _, why in shop.aside(f"all{number}")] == [
                *["null event time"] * 2,
                "unparsable: v is not int",
            ]
        assert shop.rows() == [("3", "2024-03-01", 2)]
        assert shop.aside("clicks") == [("a.csv", "unparsable: v is not int")]
        assert (receipt.arrived, receipt.written, receipt.set_aside) == (5, 1, 1)
        shop.put("b.csv", "4,2024-03-01,1", "5,2024-03-01,")
        assert shop.run().commits == 0
        assert shop.files() == {"a.csv": (1, 0), "b.csv": (0, 0)}

    def test_what_stops_a_step(self, shop: ClicksProject) -> None:
        """
        An empty folder makes an empty table, and files may come later. Schema drift and a query
        that fails on a row, an error that names the model, stop the step before it stores or sets
        aside any row.
        """
        shop.model("clicks", MODEL.replace("id, at, v", "id, at, 10 / v AS v"))
        assert shop.run().written == 0
        assert shop.rows() == []
        shop.put("empty.csv")
        shop.run()
        shop.put("a.csv", "1,2024-03-01,1", ",2024-03-01,1")
        for slug, write in (
            ("drift", lambda: shop.put("b.csv", "2", header="id")),
            ("step-failed", lambda: shop.put("b.csv", "2,2024-03-01,0")),
        ):
            write()
            with pytest.raises(InfoldError) as raised:
                shop.run()
            assert raised.value.slug == slug
            assert shop.aside() == shop.rows() == []
        assert "clicks" in raised.value.what
        shop.put("b.csv", "2,2024-03-01,5")
        shop.run()
        assert [row[0] for row in shop.rows()] == ["1", "2"]
        assert shop.aside() == [("a.csv", "null key: id")]


@pytest.mark.spark
@pytest.mark.usefixtures("many_rows")
def test_sources_without_a_key(new_shop: NewShop) -> None:
    """
    A landed source stores equal rows as often as they arrived, and removes them with their files. A
    lookup without event time is one cell, and no rule about time applies.
    """
    source = """    event_time_column: at
    columns: {id: string, at: timestamp}
  raw.names:
    path: names/*.csv
    columns: {id: string, n: int}
"""
    counted = """---
materialization: table
---
SELECT (SELECT count(*) FROM raw.clicks) AS n, (SELECT max(id) FROM raw.names) AS id"""
    shop = new_shop(counted, source)
    (shop.root / "names").mkdir()
    shop.put("a.csv", "1,2024-03-01", "1,2024-03-01", ",2024-03-02", "2,", header="id,at")
    shop.put("b.csv", "1,2024-03-01", header="id,at")
    shop.put("../names/a.csv", "1,1", "2,", "3,x", header="id,n")
    shop.run()
    assert shop.rows("raw.clicks") == [
        ("1", "2024-03-01"),
        ("1", "2024-03-01"),
        ("1", "2024-03-01"),
        (None, "2024-03-02"),
    ]
    assert shop.rows("raw.names") == [("1", 1), ("2", None)]
    assert shop.rows() == [(4, "2")]
    assert shop.aside() == [
        ("a.csv", "null event time"),
        ("names/a.csv", "unparsable: n is not int"),
    ]
    for name in ("a.csv", "../names/a.csv"):
        shop.drop(name)
    shop.put("c.csv", "1,2024-03-01", "3,2024-03-03", header="id,at")
    shop.put("../names/b.csv", "4,4", header="id,n")
    receipt = shop.run(model="raw.clicks")
    assert shop.rows("raw.clicks") == [
        ("1", "2024-03-01"),
        ("1", "2024-03-01"),
        ("3", "2024-03-03"),
    ]
    assert (receipt.written, receipt.removed) == (2, 3)
    assert shop.rows("raw.names") == [("4", 4)]
    assert shop.rows() == [(3, "4")]
    assert shop.aside() == []


CARRIED = "`_infold_row` AS `_infold_row_last`"
PASS = " OR `_infold_row`.problem IS NOT NULL"


class TestCarrying:
    """The model's query is rewritten with one more column
    and a WHERE that lets rows with a problem pass.
    """

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("SELECT a FROM raw.c", f"SELECT a , {CARRIED} FROM raw.c"),
            (
                "select a -- x from y\nfrom raw.c where a or b -- end",
                f"select a -- x from y\n, {CARRIED} from raw.c where ( a or b){PASS}",
            ),
            (
                "SELECT day(t), 'where from' FROM raw.c WHERE (a);",
                f"SELECT day(t), 'where from' , {CARRIED} FROM raw.c WHERE ( (a)){PASS}",
            ),
        ],
    )
    def test_the_query_is_edited_in_place(self, before: str, after: str) -> None:
        """The model's text is edited at places, not parsed
        and printed, so the rest stays as written.
        """
        from infold.spark.events.arrivals import with_carried_column

        at = before.index("raw.c")
        model = Model("m", Materialization.EVENTS, before)
        node = Node(model, (), (Reference("raw.c", at, at + 5),), "", ())
        found = with_carried_column(node)
        assert found.model.sql == after
        (reference,) = found.references
        assert after[reference.start : reference.end] == "raw.c"


class TestTally:
    """The counts of rows by file and cell that a step records."""

    def test_counts_of_files_ingested_before(self) -> None:
        """A file whose rows came due adds to its counts; other files get only the difference."""
        from infold.core.files import FileCell, IngestedFile
        from infold.spark.events.ingest import IngestCounts

        cell, other = Interval(0, 10), Interval(10, 20)
        due = IngestedFile(1, "a", 1, "f", 5, next_due=12, rows=2, waiting=3, set_aside=4)
        tally = IngestCounts()
        tally.rows[1, other] += 1
        tally.dropped[1, cell] += 1
        tally.dropped[2, cell] -= 1
        tally.dropped[3, cell] += 1
        found = tally.files(
            "raw.c", {1: due}, [FileCell(1, cell, 2, 0)], [3], horizon=15, received_at=9
        )
        kept = replace(due, horizon=15, next_due=None, rows=3, waiting=0, dropped=1)
        assert found.ingested == (kept,)
        assert found.cells == (FileCell(1, cell, 2, 1), FileCell(1, other, 1, 0))
        assert found.dropped == (FileCell(2, cell, 0, -1),)
        assert found.removed == (3,)


class TestChanged:
    """A file that changes while it is read fails the step."""

    def test_a_changed_and_a_missing_file(self, tmp_path: Path) -> None:
        """Size and time of modification at the listing tell a changed file and a missing one."""
        from infold.core.project import Project
        from infold.core.target import Target
        from infold.spark.reading.source_rows import refuse_changed

        path = tmp_path / "a.csv"
        path.write_text("id\n1\n")
        stat = path.stat()
        seen = ListedFile("a.csv", stat.st_size, 0, f"{stat.st_size}:{stat.st_mtime_ns}")
        source = Source("raw.c", Format.CSV, ())
        project = Project("p", tmp_path, None, {}, (), Target("dev"))
        refuse_changed(project, source, [seen])
        os.utime(path, ns=(0, 0))
        for _ in range(2):
            with pytest.raises(InfoldError) as raised:
                refuse_changed(project, source, [seen])
            assert raised.value.slug == "source-changed"
            path.unlink(missing_ok=True)


EVERYWHERE = having("deduplicate: everywhere")


@pytest.fixture
def everywhere(new_shop: NewShop) -> ClicksProject:
    """A project with one row for each id."""
    return new_shop(EVERYWHERE)


@pytest.mark.spark
class TestOneRowForEachKey:
    """The copy to keep depends on what the copies say, not on which arrived first."""

    @pytest.mark.usefixtures("many_rows")
    def test_a_copy_on_another_day(self, everywhere: ClicksProject) -> None:
        """
        The earliest copy is kept, in one delivery or in later ones: a later copy changes nothing,
        and an earlier one moves the event. Each kind of copy is counted; rows with a NULL key are
        copies of nothing.
        """
        everywhere.put(
            "a.csv", "1,2024-03-05,7", "1,2024-03-05,7", "1,2024-03-04,7", "2,2024-03-09,1"
        )
        everywhere.put(
            "b.csv", "1,2024-02-01,8", "1,2024-03-04,7", "2,2024-03-09,2", ",2024-03-01,7"
        )
        everywhere.put("c.csv", "3,2024-03-05,7", "4,2024-03-06,7")
        first = everywhere.run()
        assert [row[:2] for row in everywhere.rows()] == [
            ("1", "2024-02-01"),
            ("2", "2024-03-09"),
            ("3", "2024-03-05"),
            ("4", "2024-03-06"),
        ]
        # of event 1 four copies that differ in v, all elsewhere; of event 2 one that differs in v
        assert (first.deduplicated, first.conflicting, first.elsewhere) == (5, 5, 4)
        assert (first.written, first.set_aside, first.keys_scanned) == (4, 1, 0)
        version = everywhere.version()

        everywhere.put(
            "d.csv", "3,2024-03-08,7", "9,2024-03-08,7", ",2024-03-02,7", ",2024-03-01,7"
        )
        later = everywhere.run()
        assert everywhere.changes(version) == [("2024-03-08", 1, 0)]
        assert (later.written, later.deduplicated, later.elsewhere) == (1, 1, 1)
        assert (later.conflicting, later.set_aside, later.keys_scanned) == (0, 2, 4)
        version = everywhere.version()

        everywhere.put("e.csv", "3,2024-03-01,7")
        earlier = everywhere.run()
        assert [row[:2] for row in everywhere.rows()][2:] == [
            ("3", "2024-03-01"),
            ("4", "2024-03-06"),
            ("9", "2024-03-08"),
        ]
        # both cells of a moved event are changes
        assert everywhere.changes(version) == [
            ("2024-03-01", 1, 0),
            ("2024-03-05", 0, 1),
        ]
        assert (earlier.written, earlier.removed, earlier.elsewhere) == (1, 1, 1)
        assert earlier.keys_scanned == 5
        of_events = ("c.csv", "d.csv", "e.csv")
        assert [everywhere.files()[name] for name in of_events] == [
            (2, 1),
            (2, 1),
            (1, 0),
        ]
        assert api.explain(everywhere.project(), "clicks").notes == (
            ("copies", "one row for each id, whatever its at"),
            ("", "a run that ingests rows searches the keys of all 5 stored rows"),
        )
        assert everywhere.proven()


@pytest.mark.spark
class TestAKeptCopyLeaves:
    """When the kept copy's file is deleted, the best of the others is stored, in its own cell."""

    @pytest.mark.usefixtures("many_rows")
    def test_the_file_of_the_kept_copy_is_deleted(self, everywhere: ClicksProject) -> None:
        """
        In its own cell, and counted as such.

        | event | kept of | then in its place                                              |
        |-------|---------|----------------------------------------------------------------|
        | 1     | a       | c, the next best, then b                                       |
        | 2     | a       | nothing                                                        |
        | 3     | r       | s, which had lost: the corrected copy of r is on a later day   |
        | 4     | k       | n, which arrives as k is deleted and is better than m          |
        """
        everywhere.put("a.csv", "1,2024-03-01,7", "2,2024-03-01,7")
        everywhere.put("b.csv", "1,2024-03-05,7")
        everywhere.put("r.csv", "3,2024-03-10,7", "5,2024-03-10,7")
        everywhere.put("s.csv", "3,2024-03-12,7")
        everywhere.put("k.csv", "4,2024-03-20,7")
        everywhere.put("m.csv", "4,2024-03-25,7")
        everywhere.run("2024-04-01")
        everywhere.put("c.csv", "1,2024-03-03,8")
        everywhere.run("2024-04-01")
        version = everywhere.version()
        everywhere.drop("a.csv")
        everywhere.put("r.csv", "3,2024-03-18,7", "5,2024-03-11,7")
        everywhere.drop("k.csv")
        everywhere.put("n.csv", "4,2024-03-23,7")
        everywhere.run("2024-04-01")
        assert everywhere.rows() == [
            ("1", "2024-03-03", 8),
            ("3", "2024-03-12", 7),
            ("4", "2024-03-23", 7),
            ("5", "2024-03-11", 7),
        ]
        assert everywhere.changes(version) == [
            ("2024-03-01", 0, 2),
            ("2024-03-03", 1, 0),
            ("2024-03-10", 0, 2),
            ("2024-03-11", 1, 0),
            ("2024-03-12", 1, 0),
            ("2024-03-20", 0, 1),
            ("2024-03-23", 1, 0),
        ]
        assert everywhere.files() == {
            "b.csv": (1, 1),
            "c.csv": (1, 0),
            "m.csv": (1, 1),
            "n.csv": (1, 0),
            "r.csv": (2, 1),
            "s.csv": (1, 0),
        }
        everywhere.drop("c.csv")
        everywhere.run("2024-04-01")
        assert everywhere.rows()[0] == ("1", "2024-03-05", 7)
        assert everywhere.files()["b.csv"] == (1, 0)
        assert everywhere.proven()
