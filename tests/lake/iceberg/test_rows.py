"""
Rows of stored tables, and files of Iceberg sources, on tables that pyiceberg writes.

Also the values of a column of texts, files that are lost, and tables that are set back.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyiceberg.transforms import (
    DayTransform,
    HourTransform,
    MonthTransform,
    Transform,
    YearTransform,
)
from tests.lake.iceberg.conftest import Warehouse
from tests.running.standing_tables import CATALOG

from infold.core.files import ListedFile
from infold.core.formats import Format
from infold.core.interval import Granularity, Interval, Ranges, parse_instant_text
from infold.core.model import Column, Source
from infold.core.ports import TimeSpan
from infold.core.storages import Catalog
from infold.lake.iceberg.scan import keep_null_lists
from infold.lake.iceberg.sql_catalog import sqlite_catalog
from infold.lake.iceberg.tables import IcebergLake, IcebergSnapshotReader, missing_data_files
from infold.lake.reading import iceberg_table
from infold.lake.stores.places import local_path
from infold.messages.errors import InfoldError


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


@pytest.mark.parametrize(
    ("unit", "transform"),
    [
        (Granularity.HOUR, HourTransform()),
        (Granularity.DAY, DayTransform()),
        (Granularity.MONTH, MonthTransform()),
        (Granularity.YEAR, YearTransform()),
    ],
)
def test_sizes_of_files(
    warehouse: Warehouse, unit: Granularity, transform: Transform[Any, Any]
) -> None:
    """Those of the partition that some times are in, by Iceberg's value of it."""
    times = [datetime(2024, 3, 9, 12, 30, tzinfo=UTC), datetime(1969, 2, 1, tzinfo=UTC), None]
    schema = pa.schema([("at", pa.timestamp("us", "UTC"))])
    files = [warehouse.folder / f"{unit.value}{rows}.parquet" for rows in (1, 2, 3)]
    for rows, (file, time) in enumerate(zip(files, times, strict=True), 1):
        parquet.write_table(pa.table({"at": [time] * rows}, schema), file, row_group_size=1)
    own = {"infold.partition": unit.value, "infold.column": "at"}
    name = f"by_{unit.value}"
    table = warehouse.catalog.create_table(f"shop.{name}", schema=schema, properties=own)
    with table.update_spec() as spec:
        spec.add_field("at", transform, name)
    table.add_files([str(file) for file in files])

    def sizes(at: str) -> Sequence[int]:
        minute = parse_instant_text(at)
        return warehouse.lake.file_sizes(name, Ranges((Interval(minute, minute + 1),)))

    assert sizes("2024-03-09T12:59") == [files[0].stat().st_size]
    assert sizes("1969-02-01T00:59") == [files[1].stat().st_size]
    assert sizes("2023-03-09T12:30") == []


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
        with pytest.raises(InfoldError, match="unknown-column"):
            lake.rows("events", columns=["id", "_version"])
        with pytest.raises(InfoldError, match="not-built"):
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
        with pytest.raises(InfoldError, match="not-built"):
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
        with pytest.raises(InfoldError) as caught:
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
        with pytest.raises(InfoldError, match="table-of-two-catalogs") as caught:
            found("two")
        assert dict(caught.value.facts)["catalogs"] == "a, b"
        with pytest.raises(InfoldError, match="no-such-table") as missing:
            found("one", None)
        assert "another catalog (a)" in dict(missing.value.facts)["beside it"]

    @pytest.mark.parametrize("content", [None, "", "[]", "{}"])
    def test_a_source_without_its_metadata(self, content: str | None, tmp_path: Path) -> None:
        """It is named, whether it is gone or damaged; no library's error ends the plan."""
        file = tmp_path / "1.metadata.json"
        if content is not None:
            file.write_text(content)
        with pytest.raises(InfoldError, match="metadata-missing") as caught:
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


@dataclass(frozen=True)
class Pages:
    """A table with one column, ``Url``, and a snapshot for each of its files."""

    lake: IcebergLake
    name: str
    snapshots: Sequence[int]

    def values(self, at: int = -1, limit: int = 100, column: str = "url") -> Sequence[str] | None:
        """The values at one of the snapshots, in order."""
        found = self.lake.string_values(self.name, column, self.snapshots[at], limit)
        return None if found is None else sorted(found.to_pylist())


Stored = Callable[..., Pages]


@pytest.fixture(scope="module")
def stored(warehouse: Warehouse) -> Stored:
    """Makes a table of so many files."""
    numbers = count()

    def make(*files: Iterable[object], type_: str = "string", renamed: str = "") -> Pages:
        parts = [pa.table({"Url": pa.array(values).cast(type_)}) for values in files]
        name = f"pages{next(numbers)}"
        table = warehouse.write(name, *parts)
        if renamed:
            with table.update_schema() as change:
                change.rename_column("Url", renamed)
            table.append(parts[0].rename_columns([renamed]))
        return Pages(warehouse.lake, name, warehouse.snapshots(name))

    return make


class TestValues:
    """Every value is found, each once."""

    def test_each_once_and_null_not_at_all(self, stored: Stored) -> None:
        """Over all rows and files of the snapshot asked for; NULL is no value."""
        made = stored(["/", "/a", None, "/"], [None, None], ["é", "/a", ""])
        assert made.values() == ["", "/", "/a", "é"]
        assert made.values(at=0) == ["/", "/a"]
        assert stored([None]).values() == []

    @pytest.mark.deep
    def test_values_that_do_not_repeat(self, stored: Stored) -> None:
        """Also where a file drops its dictionary because it becomes too large. More values than the
        limit are reported as too many.
        """
        many = [f"/{number:030}" for number in range(60_000)]
        made = stored([*many, *many])
        assert made.values(limit=60_000) == many
        found = made.values(limit=99)
        assert found is not None
        assert len(found) > 99

    def test_columns_that_give_no_answer(self, stored: Stored) -> None:
        """Bytes, numbers, missing columns and tables, and files with an older name."""
        assert stored([b"/"], type_="binary").values() is None
        numbers = stored([1, 2], type_="int64")
        [snapshot] = numbers.snapshots
        assert numbers.values() is None
        assert numbers.lake.string_values(numbers.name, "nothing", snapshot, 9) is None
        assert numbers.lake.string_values("no_table", "url", snapshot, 9) is None
        renamed = stored(["/"], renamed="page")
        assert renamed.values(at=0) == ["/"]
        assert renamed.values(at=1) is None
        assert renamed.values(at=1, column="page") is None


def files_of(folder: Path) -> tuple[str, dict[str, str]]:
    """The metadata of a table with one row, and its other files, each by what it is."""
    table = Warehouse(folder).write("events", pa.table({"n": pa.array([1])}))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    data = [str(path) for path in (folder / "shop" / "events" / "data").iterdir()]
    manifests = [str(path) for path in (folder / "shop" / "events" / "metadata").glob("*-m0.avro")]
    files = {"list": snapshot.manifest_list, "manifest": manifests[0], "data": data[0]}
    return table.metadata_location, {what: str(local_path(at)) for what, at in files.items()}


DAMAGE: dict[str, Callable[[Path], object]] = {
    "gone": Path.unlink,
    "empty": lambda file: file.write_bytes(b""),
    "half": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "other": lambda file: file.write_bytes(b"something else, which is longer than a number is"),
}


@pytest.mark.parametrize("how", DAMAGE)
@pytest.mark.parametrize("what", ["list", "manifest", "data"])
def test_what_is_gone_is_named(tmp_path: Path, what: str, how: str) -> None:
    """A damaged file that is there is none of them: who reads the table says what is wrong."""
    from pyiceberg import manifest

    location, files = files_of(tmp_path)
    assert missing_data_files(location) == ()
    DAMAGE[how](Path(files[what]))
    manifest.clear_manifest_cache()
    found = [str(local_path(at)) for at in missing_data_files(location)]
    assert found == ([files[what]] if how in ("gone", "empty") else [])


@pytest.fixture
def shop(tmp_path: Path) -> Warehouse:
    """Another program's, with an empty table; its paths are URLs."""
    found = Warehouse(tmp_path, "file://")
    found.write("daily", schema=pa.schema([("n", pa.int64())]))
    return found


def append(shop: Warehouse, *values: int) -> int:
    """Rows more; the snapshot."""
    shop.catalog.load_table("shop.daily").append(pa.table({"n": pa.array(values, pa.int64())}))
    return shop.snapshots("daily")[-1]


def numbers(shop: Warehouse) -> list[int]:
    """Those in the table."""
    return sorted(shop.catalog.load_table("shop.daily").scan().to_arrow()["n"].to_pylist())


def test_others_read_and_write_on(shop: Warehouse) -> None:
    """The rows are those of then; what is appended comes to them, and what was after is gone."""
    first = append(shop, 1, 2)
    last = append(shop, 3)

    assert shop.lake.can_set_back("daily", first)
    shop.lake.set_back("daily", first)

    assert numbers(shop) == [1, 2]
    assert shop.snapshots("daily") == [first, last, first]
    again = append(shop, 4)
    assert numbers(shop) == [1, 2, 4]
    snapshot = shop.catalog.load_table("shop.daily").snapshot_by_id(again)
    assert snapshot is not None
    assert snapshot.parent_snapshot_id == first
    assert not shop.lake.can_set_back("daily", last)


def test_what_is_not_set_back(shop: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    What somebody else commits between the look and the change is not overwritten. A snapshot with
    other columns is none to go back to: the table would keep those of now. Nor is one of no table,
    and none is made of infold's.
    """
    first = append(shop, 1)
    append(shop, 2)
    before = shop.lake.location("daily")
    append(shop, 3)
    with monkeypatch.context() as patch:
        patch.setattr(IcebergLake, "location", lambda *_: before)
        with pytest.raises(InfoldError, match="foreign-write"):
            shop.lake.set_back("daily", first)
    assert numbers(shop) == [1, 2, 3]

    with shop.catalog.load_table("shop.daily").update_schema() as change:
        change.rename_column("n", "number")
    shop.catalog.load_table("shop.daily").append(pa.table({"number": pa.array([2], pa.int64())}))
    assert not shop.lake.can_set_back("daily", first)
    with pytest.raises(ValueError, match="no snapshot"):
        shop.lake.set_back("daily", first)
    assert not shop.lake.can_set_back("weekly", 1)
    assert shop.lake.made_tables() == []
