"""Rows of stored tables, and files of Iceberg sources, on tables that pyiceberg writes."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest
from tests.lake.iceberg.conftest import Warehouse
from tests.running.standing_tables import CATALOG

from infold.core.catalogs import Catalog
from infold.core.files import ListedFile
from infold.core.formats import Format
from infold.core.interval import parse_instant_text
from infold.core.model import Column, Source
from infold.core.snapshot_reader import TimeSpan
from infold.lake.iceberg.nulls import keep_null_lists
from infold.lake.iceberg.snapshots import IcebergSnapshotReader
from infold.lake.iceberg.sqlite_catalog import sqlite_catalog
from infold.lake.iceberg.tables import IcebergLake
from infold.lake.reading import iceberg_table
from infold.messages import errors


@cache
def three() -> pa.Table:
    """Three rows, as something else writes them."""
    return pa.table(
        {
            "id": pa.array(["a", "b", "c"]),
            "at": pa.array(
                [datetime(2024, 3, day, 12, tzinfo=UTC) for day in (8, 9, 10)],
                pa.timestamp("us", "UTC"),
            ),
            "day": pa.array([date(2024, 3, day) for day in (8, 9, 10)]),
            "n": pa.array([1, 2, None], pa.int64()),
            "_version": pa.array([1, 1, 1], pa.int64()),
        }
    )


@pytest.fixture(scope="module")
def lake(warehouse: Warehouse) -> IcebergLake:
    """Its tables, of which one has three rows in one file, and another got them one by one."""
    table = warehouse.write("events", schema=three().schema)
    table.append(three(), snapshot_properties={"infold.step": "r1-1"})
    warehouse.write("past", three().slice(0, 1), three())
    return warehouse.lake


class TestRows:
    """The rows that `show` prints."""

    def test_technical_columns_are_left_out(self, lake: IcebergLake, warehouse: Warehouse) -> None:
        """
        All rows with timestamps in UTC, or the columns asked for and no more rows than the limit.
        Unknown columns and tables are named. The head is read like those of the drawn metadata.
        """
        assert lake.rows("events").sort_by("id") == three().drop_columns("_version")
        found = lake.rows("events", columns=["n", "id"], limit=2)
        assert (set(found.column_names), found.num_rows) == ({"n", "id"}, 2)
        with pytest.raises(errors.InfoldError, match="unknown-column"):
            lake.rows("events", columns=["id", "_version"])
        with pytest.raises(errors.InfoldError, match="not-built"):
            lake.rows("sessions")
        head, [snapshot] = lake.metadata("events"), warehouse.snapshots("events")
        assert head is not None
        assert (head.snapshot, head.steps) == (snapshot, {"r1-1": snapshot})

    @pytest.mark.parametrize(
        ("where", "ids"),
        [
            ("ID = 'b' and n not in (1, 7)", "b"),
            ("day >= '2024-03-09'", "bc"),
            ("at < '2024-03-09 12:00:00'", "a"),
            ("at = '2024-03-09T14:00:00+02:00'", "b"),
            ("at in ('2024-03-08 12:00', '2024-03-10 12:00')", "ac"),
            ("_version = 1 and id <> 'a'", "bc"),
        ],
    )
    def test_where(self, lake: IcebergLake, where: str, ids: str) -> None:
        """Filters take dates and times as people write them and names in any case."""
        assert "".join(sorted(lake.rows("events", where=where).column("id").to_pylist())) == ids

    def test_rows_that_pass_one_of_several_filters(self, lake: IcebergLake) -> None:
        """Rows are returned with the filters that they pass; technical columns only when asked
        for.
        """
        tests = {"x": "n IS NULL", "y": "ID >= 'b' AND (day < '2024-04-01'\n)", "z": "id = 'd'"}
        found = lake.rows_matching("events", tests, by="by").sort_by("id")
        assert found.column_names == ["id", "at", "day", "n", "by"]
        rows = found.select(["id", "by"]).to_pylist()
        assert rows == [{"id": "b", "by": ["y"]}, {"id": "c", "by": ["x", "y"]}]
        found = lake.rows_matching("events", tests, by="by", beside=("_version", "_no"), limit=1)
        assert (found.num_rows, found["_version"].to_pylist()) == (1, [1])
        assert lake.rows_matching("events", {"z": tests["z"]}, by="by").num_rows == 0
        with pytest.raises(ValueError, match="only columns compared with values"):
            lake.rows_matching("events", {**tests, "w": "lower(id) = 'b'"}, by="by")
        with pytest.raises(errors.InfoldError, match="not-built"):
            lake.rows_matching("none", tests, by="by")


def test_a_list_that_is_null_is_not_empty(warehouse: Warehouse) -> None:
    """A NULL list, struct of lists or map is not an empty one, as a predicate and as a value."""
    one = pa.struct([("x", pa.int32())])
    values = [[{"x": 1}], None, []]
    rows = pa.table(
        {
            "id": pa.array(["one", "null", "empty"]),
            "items": pa.array(values, pa.list_(one)),
            "deep": pa.array(
                [{"items": some} for some in values], pa.struct([("items", pa.list_(one))])
            ),
            "named": pa.array([[("a", {"x": 1})], None, []], pa.map_(pa.string(), one)),
        }
    )
    keep_null_lists()  # pyiceberg loses them when it writes, too
    warehouse.write("listed", rows)
    lake = warehouse.lake

    found = lake.rows("listed")

    assert found.to_pydict() == rows.to_pydict()
    assert lake.rows("listed", where="id = 'null'").column("items").to_pylist() == [None]
    for name in ("items", "deep.items", "named"):
        with pytest.raises(errors.InfoldError) as caught:
            lake.rows("listed", where=f"{name} IS NULL")
        assert "takes Spark" in dict(caught.value.facts)["why"]


class TestSource:
    """The files of an Iceberg source."""

    def test_files_come_and_go_with_commits(self, warehouse: Warehouse) -> None:
        """An append adds a file, and a rewrite of rows replaces the file that contained them. A
        source may name its own catalog, relative to the project.
        """
        table, folder = warehouse.write("clicks", schema=three().schema), warehouse.folder
        own = Catalog(uri=f"sqlite:///{folder.name}/catalog.db")
        clicks = Source("raw.clicks", Format.ICEBERG, (), table="shop.clicks", catalog=own)

        def files() -> tuple[ListedFile, ...]:
            nowhere = sqlite_catalog(Path("/nowhere"))
            return iceberg_table.data_files(iceberg_table.location(folder.parent, clicks, nowhere))

        assert files() == ()
        table.append(three())
        (first,) = files()
        table.append(three())
        both = files()
        assert first in both
        assert len(both) == 2

        table.delete("id = 'a'")
        after = files()
        assert len(after) == 2
        assert not {file.path for file in both} & {file.path for file in after}

    def test_what_a_metadata_file_says_is_read_once(
        self, warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Until the table moves, and kept only where there is a ledger's folder."""
        table = warehouse.write("views", schema=three().schema)
        views = Source("raw.views", Format.ICEBERG, (), table="shop.views")
        own, real = warehouse.lake.catalog, iceberg_table.data_files
        read: list[str] = []

        def data_files(location: str, names: Collection[str]) -> tuple[ListedFile, ...]:
            read.append(location)
            return real(location, names)

        monkeypatch.setattr(iceberg_table, "data_files", data_files)

        def files() -> int:
            return len(iceberg_table.table_files(tmp_path, views, own))

        assert (files(), files(), len(read)) == (0, 0, 2)
        assert list(tmp_path.iterdir()) == []
        (tmp_path / ".infold").mkdir()
        assert (files(), files(), len(read)) == (0, 0, 3)
        table.append(three())
        assert (files(), files(), len(read)) == (1, 1, 4)
        (tmp_path / ".infold/sources/raw.views.json").write_text("torn")
        assert (files(), len(read)) == (1, 5)
        views = replace(views, columns=(Column("id", "string"),))
        assert (files(), files(), len(read)) == (1, 1, 6)

    def test_a_name_that_moves_to_another_column_changes_every_file(
        self, warehouse: Warehouse
    ) -> None:
        """Every file that is read for that name changes; others do not."""
        from pyiceberg.types import LongType

        number = pa.int32()
        struct = pa.struct([("x", number), ("y", number)])
        schema = pa.schema([("id", pa.string()), ("v", number), ("w", number), ("s", struct)])
        row = {"id": "a", "v": 1, "w": 2, "s": {"x": 1, "y": 2}}
        table = warehouse.write("renamed", pa.Table.from_pylist([row], schema=schema))

        def seen(*names: str) -> str:
            columns = tuple(Column(name, "int") for name in names)
            renamed = Source("raw.renamed", Format.ICEBERG, columns, table="shop.renamed")
            [file] = iceberg_table.table_files(warehouse.folder, renamed, warehouse.lake.catalog)
            return file.fingerprint

        def rename(old: str, new: str) -> None:
            with table.update_schema() as change:
                change.rename_column(old, new)

        every = [("id",), ("id", "v"), ("s",), ()]
        before = [seen(*names) for names in every]
        assert seen("v", "id") == seen("id", "v")
        rename("v", "old")
        rename("w", "v")
        after = [seen(*names) for names in every]
        assert [a == b for a, b in zip(before, after, strict=True)] == [True, False, True, False]

        rename("s.x", "z")
        rename("s.y", "x")
        parts = [seen(*names) for names in every]
        assert [a == b for a, b in zip(after, parts, strict=True)] == [True, True, False, False]

        with table.update_schema() as change:
            change.update_column("v", LongType())
        assert [seen(*names) for names in every] == parts, "a promotion keeps every value"

    def test_a_file_with_several_catalogs(self, tmp_path: Path) -> None:
        """
        Any catalog's table is found by the file, but not one of two; in the target's own file
        its own tables are found, and of others it is said how they would be.
        """
        made = sqlite3.connect(tmp_path / "catalog.db")
        made.execute(CATALOG)
        for name, table, at in (
            *(("a", "one", "/one"), ("a", "two", "/two"), ("b", "two", "/2")),
            *(("a", "same", "/same"), ("b", "same", "/same"), ("infold", "own", "/own")),
        ):
            row = (name, "shop", table, at, None, None)
            made.execute("INSERT INTO iceberg_tables VALUES (?, ?, ?, ?, ?, ?)", row)
        made.commit()
        made.close()
        own = sqlite_catalog(tmp_path / "catalog.db")

        def found(table: str, file: str | None = "catalog.db") -> str:
            catalog = None if file is None else Catalog(uri=f"sqlite:///{file}")
            source = Source("raw.x", Format.ICEBERG, (), table=f"shop.{table}", catalog=catalog)
            return iceberg_table.location(tmp_path, source, own)

        assert [found("one"), found("same"), found("own", None)] == ["/one", "/same", "/own"]
        with pytest.raises(errors.InfoldError, match="table-of-two-catalogs") as caught:
            found("two")
        assert dict(caught.value.facts)["catalogs"] == "a, b"
        with pytest.raises(errors.InfoldError, match="no-such-table") as missing:
            found("one", None)
        assert "another catalog (a)" in dict(missing.value.facts)["beside it"]

    @pytest.mark.parametrize("content", [None, "", "[]", "{}"])
    def test_a_source_without_its_metadata(self, content: str | None, tmp_path: Path) -> None:
        """It is named, whether it is gone or damaged; no library's error ends the plan."""
        file = tmp_path / "1.metadata.json"
        if content is not None:
            file.write_text(content)
        with pytest.raises(errors.InfoldError, match="metadata-missing") as caught:
            iceberg_table.data_files(str(file))
        facts = dict(caught.value.facts)
        assert facts["file"] == str(file)
        assert ("No such file" if content is None else "it is damaged: ") in facts["why"]


@pytest.fixture
def past(lake: IcebergLake) -> IcebergSnapshotReader:
    """Looks at a table of one row, then of that and three."""
    return IcebergSnapshotReader(lake)


class TestPast:
    """Some rows of a table, as it is or was at a snapshot."""

    def test_rows_of_a_snapshot(self, past: IcebergSnapshotReader, warehouse: Warehouse) -> None:
        """They have the columns asked for, in that order, technical ones included. A missing
        table, snapshot or column gives no answer instead of an empty one.
        """
        snapshots = warehouse.snapshots("past")
        assert past.kept_snapshots("past") == set(snapshots)
        assert past.kept_snapshots("nope") == frozenset()
        before = past.rows_equal_to(
            "past", [{"id": "a"}], columns=["_version", "id"], snapshot=snapshots[0]
        )
        after = past.rows_equal_to("past", [{"id": "a"}])

        assert before is not None
        assert after is not None
        assert before.to_pylist() == [{"_version": 1, "id": "a"}]
        assert (after.num_rows, after.column_names) == (2, ["id", "at", "day", "n"])
        assert past.rows_equal_to("past", [{"id": "a"}], snapshot=1) is None
        assert past.rows_equal_to("past", [{"who": "a"}]) is None
        assert past.rows_equal_to("nope", [{"id": "a"}]) is None

    @pytest.mark.parametrize(
        ("any_of", "near", "ids"),
        [
            ([{"id": "a"}, {"id": "c"}], None, "aac"),
            ([{"ID": "a"}], None, "aa"),
            ([{"n": None}], None, "c"),
            ([{"n": "2"}], None, "b"),
            ([{"n": "two"}], None, ""),
            ([{"id": "it's"}], None, ""),
            ([{"id": "a", "n": 2}, {"id": "b", "n": 2}], None, "b"),
            ([{}], ("at", "2024-03-09T12:00", "2024-03-10T11:00"), "b"),
            ([{}], ("day", "2024-03-09", "2024-03-10"), "bc"),
        ],
    )
    def test_rows_found_by_value_and_time(
        self,
        past: IcebergSnapshotReader,
        any_of: list[dict[str, object]],
        near: tuple[str, str, str] | None,
        ids: str,
    ) -> None:
        """Rows are found that equal one of several values in a time span, both ends included."""
        span = near and TimeSpan(
            near[0], near[0], parse_instant_text(near[1]), parse_instant_text(near[2])
        )

        found = past.rows_equal_to("past", any_of, columns=["id"], near=span)

        assert found is not None
        assert "".join(sorted(found["id"].to_pylist())) == ids
