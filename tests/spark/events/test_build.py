"""Events tables: the outcome for each row, the copy kept of each event, and removal with files.

Cases are projects with a few drawn rows, run from the files to the table as a user would.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.events.clicks_project import COLUMNS, MODEL, SOURCE, ClicksProject, shop_with

from infold import api
from infold.core.files import ListedFile
from infold.core.formats import Format
from infold.core.interval import Interval
from infold.core.model import Materialization, Model, Source
from infold.core.project import Node, Reference
from infold.core.record import Receipt
from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def shop(tmp_path: Path, warehouse: Path, spark: SparkSession) -> Iterator[ClicksProject]:
    """A project with the model ``clicks``."""
    return ClicksProject(tmp_path, warehouse, MODEL, SOURCE)  # type: ignore[return-value]


@pytest.mark.spark
class TestCopies:
    """An event is stored once, whichever copies of it arrived in whatever order."""

    def test_equal_copies_are_one_event(self, shop: ClicksProject, size: str) -> None:
        """Equal copies in one file, across files or in later
        runs are one event; a repeated delivery changes nothing.
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
        assert shop.version() == version
        assert sum(rows for rows, _ in shop.files().values()) == 7
        assert sum(dropped for _, dropped in shop.files().values()) == 4
        assert shop.proven()

    @pytest.mark.parametrize(
        ("prefer", "best", "order"),
        [("v desc", "c", "abc"), ("v", "b", "cba"), ("v desc", "c", "bac"), ("v ASC", "b", "bac")],
    )
    def test_the_kept_copy_depends_on_content_only(
        self,
        tmp_path: Path,
        warehouse: Path,
        spark: SparkSession,
        prefer: str,
        best: str,
        order: str,
    ) -> None:
        """The preferred copy is kept, NULL last, in any
        order of arrival; the others count as conflicting.
        """
        model = MODEL.replace("timeseries", f"prefer: [{prefer}]\ntimeseries")
        shop = shop_with(tmp_path, warehouse, model)
        copies = {"a": "1,2024-03-01,", "b": "1,2024-03-01,2", "c": "1,2024-03-01,9"}
        total = Receipt()
        for name in order:
            shop.put(f"{name}.csv", copies[name])
            total += shop.run()
        assert shop.rows() == [("1", "2024-03-01", {"b": 2, "c": 9}[best])]
        assert total.conflicting == 2
        assert shop.files() == {f"{name}.csv": (1, int(name != best)) for name in order}
        assert shop.proven()

    def test_without_preference_the_hash_decides(self, shop: ClicksProject, tmp_path: Path) -> None:
        """Without a preference the hash decides, so that
        either order of arrival keeps the same row.
        """
        one, other = "1,2024-03-01,1", "1,2024-03-01,2"
        found = set()
        for name, waves in (
            ("x", [[one], [other]]),
            ("y", [[other], [one]]),
            ("z", [[one, other]]),
        ):
            own = shop_with(tmp_path / name, Path(api.open_project(shop.root).target.warehouse))
            for number, rows in enumerate(waves):
                own.put(f"{number}.csv", *rows)
                own.run()
            found.add(tuple(own.rows()))
        assert len(found) == 1

    def test_a_better_copy_replaces_the_stored_row(self, shop: ClicksProject) -> None:
        """A better copy replaces the stored row in its cell, and nothing else changes."""
        model = MODEL.replace("timeseries", "prefer: [v]\ntimeseries")
        shop.model("clicks", model)
        shop.put("a.csv", "1,2024-03-01,5", "2,2024-03-02,5")
        shop.run()
        version = shop.version()
        shop.put("b.csv", "1,2024-03-01,4")
        receipt = shop.run()
        assert shop.rows() == [("1", "2024-03-01", 4), ("2", "2024-03-02", 5)]
        assert shop.changes(version) == [("2024-03-01", 1, 1)]
        assert (receipt.written, receipt.removed, receipt.conflicting) == (1, 1, 1)
        assert shop.files() == {"a.csv": (2, 1), "b.csv": (1, 0)}


@pytest.mark.spark
class TestFilesThatLeave:
    """A deleted file removes its rows, except those that another file has too."""

    def test_a_kept_copy_comes_back(self, shop: ClicksProject, size: str) -> None:
        """
        Files a, b and c have the same event, which is stored until the last of them is gone.

        | gone | event | change                             |
        |------|-------|------------------------------------|
        | a    | there | none: an equal copy takes its place |
        | b    | there | none                               |
        | c    | gone  | one row removed                    |
        """
        for name in ("a", "b", "c"):
            shop.put(f"{name}.csv", "1,2024-03-01,7", f"{name},2024-03-02,1")
        shop.run()
        for name, left in (("a", 3), ("b", 2)):
            version = shop.version()
            shop.drop(f"{name}.csv")
            shop.run()
            assert len(shop.rows()) == left
            assert ("1", "2024-03-01", 7) in shop.rows()
            assert shop.changes(version) == [("2024-03-02", 0, 1)]
        shop.drop("c.csv")
        shop.run()
        assert shop.rows() == []
        assert shop.files() == {}
        assert shop.proven()

    def test_a_copy_that_lost_returns(self, tmp_path: Path, warehouse: Path, spark: Any) -> None:
        """When the file of the kept copy is deleted, the copy that had lost is stored instead."""
        model = MODEL.replace("timeseries", "prefer: [v]\ntimeseries")
        shop = shop_with(tmp_path, warehouse, model)
        shop.put("a.csv", "1,2024-03-01,1")
        shop.put("b.csv", "1,2024-03-01,2")
        shop.put("c.csv", "1,2024-03-01,3")
        shop.run()
        version = shop.version()
        shop.drop("a.csv")
        shop.run()
        assert shop.rows() == [("1", "2024-03-01", 2)]
        assert shop.changes(version) == [("2024-03-01", 1, 1)]
        assert shop.files() == {"b.csv": (1, 0), "c.csv": (1, 1)}
        shop.drop("b.csv")
        shop.put("d.csv", "1,2024-03-01,4")
        shop.run()
        assert shop.rows() == [("1", "2024-03-01", 3)]
        assert shop.files() == {"c.csv": (1, 0), "d.csv": (1, 1)}
        assert shop.proven()

    def test_a_replaced_file(self, shop: ClicksProject) -> None:
        """When a file is replaced, rows in both versions
        are no change; the others are added or removed.
        """
        shop.put("a.csv", "1,2024-03-01,1", "2,2024-03-02,2", "3,2024-03-03,3")
        shop.put("b.csv", "2,2024-03-02,2")
        shop.run()
        version = shop.version()
        shop.put("a.csv", "1,2024-03-01,1", "3,2024-03-03,4", "5,2024-03-05,5", "6,2024-03-05,6")
        receipt = shop.run()
        assert shop.rows() == [
            ("1", "2024-03-01", 1),
            ("2", "2024-03-02", 2),
            ("3", "2024-03-03", 4),
            ("5", "2024-03-05", 5),
            ("6", "2024-03-05", 6),
        ]
        assert shop.changes(version) == [("2024-03-03", 1, 1), ("2024-03-05", 2, 0)]
        assert (receipt.files_new, receipt.files_removed) == (1, 1)
        assert shop.files() == {"a.csv": (4, 0), "b.csv": (1, 0)}
        assert shop.proven()

    def test_removing_copies_that_lost_commits_nothing(self, shop: ClicksProject) -> None:
        """Deleting a file whose every row had lost to another copy needs no commit."""
        shop.put("a.csv", "1,2024-03-01,1")
        shop.run()
        shop.put("b.csv", "1,2024-03-01,1")
        shop.run()
        version = shop.version()
        shop.drop("b.csv")
        assert shop.run().commits == 0
        assert shop.version() == version
        assert shop.files() == {"a.csv": (1, 0)}


@pytest.mark.spark
class TestRules:
    """A row's values decide whether it is stored, set aside or waits."""

    def test_each_reason(self, shop: ClicksProject, size: str) -> None:
        """Each reason sets a row aside with its file and
        raw text; an empty string is a key like any other.
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
        receipt = shop.run()
        assert shop.rows() == [("", "2024-03-01", 1), ("1", "2024-03-01", 1)]
        assert shop.aside() == [
            ("a.csv", "invalid event time"),
            ("a.csv", "null event time"),
            ("a.csv", "null key: id"),
            ("a.csv", "unparsable: at is not timestamp"),
            ("a.csv", "unparsable: v is not int"),
            ("a.csv", "unparsable: wrong number of fields"),
        ]
        assert (receipt.arrived, receipt.written, receipt.set_aside) == (8, 2, 6)
        assert dict(receipt.set_aside_by) == {
            "invalid event time": 1,
            "null event time": 1,
            "null key": 1,
            "unparsable": 3,
        }

    def test_rows_set_aside_follow_their_files(self, shop: ClicksProject) -> None:
        """Rows set aside are replaced and deleted with their files, and a rebuild repeats none."""
        shop.put("a.csv", "1,,1", "2,2024-03-01,1")
        shop.put("b.csv", ",2024-03-01,1")
        shop.run()
        assert shop.aside() == [("a.csv", "null event time"), ("b.csv", "null key: id")]
        shop.put("a.csv", "1,2024-03-02,1", ",2024-03-02,2")
        shop.run()
        assert shop.aside() == [("a.csv", "null key: id"), ("b.csv", "null key: id")]
        shop.model("clicks", MODEL.replace("v FROM", "v + 1 AS v FROM"))
        shop.run()
        assert shop.aside() == [("a.csv", "null key: id"), ("b.csv", "null key: id")]
        assert shop.rows() == [("1", "2024-03-02", 2)]
        shop.drop("b.csv")
        shop.put("a.csv", "1,2024-03-02,1")
        shop.run()
        assert shop.aside() == []

    def test_rows_dated_in_the_future_wait(self, shop: ClicksProject, size: str) -> None:
        """Rows dated in the future wait, and each is stored once, when its time has come."""
        shop.put("a.csv", "1,2024-03-01,1", "2,2024-03-11,1", "3,2024-03-20,1", "4,,1")
        first = shop.run("2024-03-10")
        assert (first.written, first.waiting) == (1, 2)
        assert shop.run("2024-03-10 23:59").arrived == 0
        second = shop.run("2024-03-11")
        assert (second.arrived, second.written, second.waiting) == (0, 1, 1)
        assert shop.rows() == [("1", "2024-03-01", 1), ("2", "2024-03-11", 1)]
        shop.put("b.csv", "2,2024-03-11,1", "3,2024-03-20,1")
        shop.run("2024-03-12")
        shop.drop("a.csv")
        shop.run("2024-03-13")
        assert shop.rows() == [("2", "2024-03-11", 1)]
        assert shop.run("2025-01-01").written == 1
        assert shop.files() == {"b.csv": (2, 0)}
        assert shop.aside() == []

    def test_with_a_received_column_nothing_waits(
        self, tmp_path: Path, warehouse: Path, spark: SparkSession
    ) -> None:
        """With a received column, a row dated later than
        received plus tolerance is set aside for good.
        """
        columns = "{id: string, at: timestamp, seen: timestamp}"
        shop = shop_with(
            tmp_path,
            warehouse,
            MODEL.replace("id, at, v", "id, at"),
            "    event_time_column: at\n    received_column: seen\n"
            f"    future_tolerance: 1 hour\n    columns: {columns}\n",
        )
        shop.put(
            "a.csv",
            "1,2099-01-01T01:00:00,2099-01-01",
            "2,2099-01-01T01:00:01,2099-01-01",
            "3,2024-03-01,",
            header="id,at,seen",
        )
        shop.run()
        assert shop.rows() == [("1", "2099-01-01 01:00")]
        assert shop.aside() == [
            ("a.csv", "future: later than received"),
            ("a.csv", "null received"),
        ]


@pytest.mark.spark
class TestQuery:
    """The model's query runs as it was written."""

    @pytest.mark.parametrize(
        "query",
        [
            "SELECT * FROM raw.clicks",
            "SELECT `id`, at, v, `a.b``c`, `order` FROM raw.clicks -- all",
            "SELECT clicks.* FROM raw.clicks;",
            "SELECT c.* /* from */ FROM raw.clicks AS c\n-- the end",
        ],
    )
    def test_names_and_star(
        self, tmp_path: Path, warehouse: Path, spark: SparkSession, query: str
    ) -> None:
        """Reserved words, dots and quotes in names work, and `*` shows no technical column."""
        shop = shop_with(tmp_path, warehouse, MODEL.rpartition("---\n")[0] + "---\n" + query)
        shop.put("a.csv", "1,2024-03-01,1,x,5", "2,,1,y,6")
        shop.run()
        assert shop.rows() == [("1", "2024-03-01", 1, "x", 5)]
        assert shop.aside() == [("a.csv", "null event time")]

    def test_where_removes_rows_but_not_unreadable_ones(self, shop: ClicksProject) -> None:
        """Rows that WHERE removes are neither stored nor set aside; unreadable rows are set
        aside.
        """
        shop.model(
            "clicks",
            MODEL.replace("FROM raw.clicks", "FROM raw.clicks WHERE v > 1 OR v = 0 -- few"),
        )
        shop.put("a.csv", "1,2024-03-01,1", "2,2024-03-01,2", "3,2024-03-01,x", ",2024-03-01,1")
        receipt = shop.run()
        assert shop.rows() == [("2", "2024-03-01", 2)]
        assert shop.aside() == [("a.csv", "unparsable: v is not int")]
        assert (receipt.arrived, receipt.written, receipt.set_aside) == (4, 1, 1)
        shop.put("b.csv", "4,2024-03-01,1", "5,2024-03-01,")
        receipt = shop.run()
        assert receipt.commits == 0
        assert shop.files() == {"a.csv": (1, 0), "b.csv": (0, 0)}

    def test_a_query_that_fails_on_a_row_fails_the_step(self, shop: ClicksProject) -> None:
        """A query that fails on a row is an error that names
        the model, and nothing is written until it is fixed.
        """
        shop.model("clicks", MODEL.replace("id, at, v", "id, at, 10 / v AS v"))
        shop.put("a.csv", "1,2024-03-01,1")
        shop.run()
        shop.put("b.csv", "2,2024-03-01,0", ",2024-03-01,1")
        with pytest.raises(InfoldError) as raised:
            shop.run()
        assert raised.value.slug == "step-failed"
        assert "clicks" in raised.value.what
        assert shop.aside() == []
        assert len(shop.rows()) == 1
        shop.put("b.csv", "2,2024-03-01,5")
        shop.run()
        assert len(shop.rows()) == 2

    def test_drift_stops_the_step_before_anything_is_written(self, shop: ClicksProject) -> None:
        """Schema drift stops the step before it stores or sets aside any row."""
        shop.put("a.csv", "1,2024-03-01,1", ",2024-03-01,1")
        shop.put("b.csv", "2", header="id")
        with pytest.raises(InfoldError) as raised:
            shop.run()
        assert raised.value.slug == "drift"
        assert shop.aside() == []
        shop.drop("b.csv")
        shop.run()
        assert shop.rows() == [("1", "2024-03-01", 1)]

    def test_a_drifted_file_can_be_set_aside(
        self, tmp_path: Path, warehouse: Path, spark: SparkSession
    ) -> None:
        """A file with schema drift can be set aside with
        all its rows counted; a corrected one is ingested.
        """
        shop = shop_with(tmp_path, warehouse, source=SOURCE + "    on_drift: set_aside\n")
        shop.put("a.csv", "1,2024-03-01,1")
        shop.put("b.csv", "2", "3", header="id")
        receipt = shop.run()
        missing = "; ".join(f"missing column {name}" for name in ("at", "v", "a.b`c", "order"))
        assert shop.aside() == [("b.csv", f"drift: {missing}")] * 2
        assert receipt.set_aside_by == (("drift", 2),)
        shop.put("b.csv", "2,2024-03-01,1")
        shop.run()
        assert len(shop.rows()) == 2
        assert shop.aside() == []


@pytest.mark.spark
class TestWithoutKey:
    """Sources without a key store every row of every file."""

    def test_a_landed_source(
        self, tmp_path: Path, warehouse: Path, spark: SparkSession, size: str
    ) -> None:
        """A landed source stores equal rows as often as
        they arrived, and removes them with their files.
        """
        counted = "---\nmaterialization: table\n---\nSELECT count(*) AS n FROM raw.clicks"
        columns = "{id: string, at: timestamp}"
        source = f"    event_time_column: at\n    columns: {columns}\n"
        shop = shop_with(tmp_path, warehouse, counted, source)
        shop.put("a.csv", "1,2024-03-01", "1,2024-03-01", ",2024-03-02", "2,", header="id,at")
        shop.put("b.csv", "1,2024-03-01", header="id,at")
        shop.run()
        assert shop.rows("raw.clicks") == [
            ("1", "2024-03-01"),
            ("1", "2024-03-01"),
            ("1", "2024-03-01"),
            (None, "2024-03-02"),
        ]
        shop.drop("a.csv")
        shop.put("c.csv", "1,2024-03-01", "3,2024-03-03", header="id,at")
        receipt = shop.run(model="raw.clicks")
        assert shop.rows("raw.clicks") == [
            ("1", "2024-03-01"),
            ("1", "2024-03-01"),
            ("3", "2024-03-03"),
        ]
        assert (receipt.written, receipt.removed) == (2, 3)
        assert shop.rows() == [(3,)]
        assert shop.aside() == []
        assert shop.proven()

    def test_a_lookup(self, tmp_path: Path, warehouse: Path, spark: SparkSession) -> None:
        """A lookup without event time is one cell, and no rule about time applies."""
        looked = "---\nmaterialization: table\n---\nSELECT max(id) AS id FROM raw.clicks"
        shop = shop_with(tmp_path, warehouse, looked, "    columns: {id: string, n: int}\n")
        shop.put("a.csv", "1,1", "2,", "3,x", header="id,n")
        shop.run()
        assert shop.rows("raw.clicks") == [("1", 1), ("2", None)]
        shop.put("b.csv", "4,4", header="id,n")
        shop.run()
        shop.drop("a.csv")
        shop.run()
        assert shop.rows("raw.clicks") == [("4", 4)]
        assert shop.rows() == [("4",)]
        assert shop.proven()

    def test_an_empty_folder(self, shop: ClicksProject) -> None:
        """An empty folder makes an empty table, and files may come later."""
        shop.model("clicks", MODEL.replace("FROM raw.clicks", "FROM raw.clicks WHERE v > 0"))
        assert shop.run().written == 0
        assert shop.rows() == []
        shop.put("empty.csv")
        shop.run()
        shop.put("a.csv", "1,2024-03-01,1")
        shop.run()
        assert shop.rows() == [("1", "2024-03-01", 1)]


PASS = " OR `_infold_row`.problem IS NOT NULL"


class TestCarrying:
    """The model's query is rewritten with one more column
    and a WHERE that lets rows with a problem pass.
    """

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("SELECT a FROM raw.c", "SELECT a , `_infold_row` FROM raw.c"),
            (
                "select a -- x from y\nfrom raw.c where a or b -- end",
                f"select a -- x from y\n, `_infold_row` from raw.c where ( a or b){PASS}",
            ),
            (
                "SELECT day(t), 'where from' FROM raw.c WHERE (a);",
                f"SELECT day(t), 'where from' , `_infold_row` FROM raw.c WHERE ( (a)){PASS}",
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


@pytest.mark.spark
def test_a_source_without_event_time_takes_the_models(
    tmp_path: Path, warehouse: Path, spark: SparkSession
) -> None:
    """Where the source declares no event time, the model's
    column is used: NULL is set aside, the future waits.
    """
    shop = shop_with(tmp_path, warehouse, source=f"    columns: {COLUMNS}\n")
    shop.put("a.csv", "1,2024-03-02,7", "2,,7", "3,2024-04-01,7", "1,2024-03-02,7")
    first = shop.run()
    assert (first.arrived, first.set_aside, first.waiting, first.deduplicated) == (4, 1, 1, 1)
    assert shop.rows() == [("1", "2024-03-02", 7)]
    shop.put("b.csv", "4,2024-03-01,7")
    shop.run("2024-04-02")
    assert [row[0] for row in shop.rows()] == ["1", "3", "4"]
    assert shop.changes(1) == [("2024-03-01", 1, 0), ("2024-04-01", 1, 0)]
    assert shop.proven()


class TestTally:
    """The counts of rows by file and cell that a step records."""

    def test_counts_of_files_ingested_before(self) -> None:
        """A file whose rows came due adds to its counts; other files get only the difference."""
        from infold.core.files import FileCell, IngestedFile
        from infold.spark.events.ingest_counts import IngestCounts

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
