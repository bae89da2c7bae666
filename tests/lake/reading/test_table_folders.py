"""Sources of files whose folder is a table of Delta Lake, Iceberg or Hudi: refused by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.lake.reading.listing_store import ListingStore, listing_store

from infold.core.formats import Format
from infold.core.model import Source
from infold.core.object_store import Stores
from infold.core.project import Project
from infold.core.target import Target
from infold.lake.reading.listing import list_files, list_without
from infold.messages.errors import InfoldError

ROWS = pa.table({"id": [1, 2, 3], "day": ["2024-03-08", "2024-03-08", "2024-03-09"]})
DAY = "day=2024-03-08"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """
    A project beside tables that others wrote, with rows that they no longer have.

    ``lake/delta`` and ``lake/iceberg/sales/orders``; files of nobody's in ``lake/landed``.
    """
    from pyiceberg.catalog.sql import SqlCatalog

    root = tmp_path_factory.mktemp("project")
    delta = root / "lake" / "delta"
    delta.mkdir(parents=True)
    write_deltalake(delta.as_uri(), ROWS, partition_by=["day"])
    DeltaTable(delta.as_uri()).delete("id = 1")
    warehouse = root / "lake" / "iceberg"
    warehouse.mkdir()
    catalog = SqlCatalog("any", uri=f"sqlite:///{root}/catalog.db", warehouse=warehouse.as_uri())
    catalog.create_namespace("sales")
    orders = catalog.create_table("sales.orders", ROWS.schema, location=f"{warehouse}/sales/orders")
    with orders.update_spec() as spec:
        spec.add_identity("day")
    orders.append(ROWS)
    orders.delete("id = 1")
    landed = root / "lake" / "landed"
    landed.mkdir()
    pa.parquet.write_table(ROWS, landed / "a.parquet")
    return root


def reading(path: str, format_: Format = Format.PARQUET) -> Source:
    """A source with this path."""
    return Source("raw.orders", format_, (), path=path)


def listed(root: Path, source: Source, stores: Stores | None = None) -> list[str]:
    """The files that a source has."""
    target = Target("dev", stores=stores or Stores())
    project = Project("shop", root, None, {source.name: source}, (), target)
    return [file.path for file in list_files(project, source, 0)[0]]


def refused(root: Path, source: Source, **how: Any) -> dict[str, str]:
    """The facts of the error that listing raises, and what it says to do."""
    with pytest.raises(InfoldError) as raised:
        listed(root, source, **how)
    assert raised.value.slug == "files-of-a-table"
    return {**dict(raised.value.facts), "todo": raised.value.todo or ""}


def touch(root: Path, *paths: str) -> None:
    """Make empty files."""
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()


class TestFolders:
    """A pattern reaches a table's files from above, inside, or right at them."""

    @pytest.mark.parametrize(
        "path",
        [
            "lake/delta",
            "lake/**/*.parquet",
            "lake/**/day=*/*.parquet",
            "lake/d*/*/*.parquet",
            "lake/delta/day=*/*.parquet",
            f"lake/delta/{DAY}/*.parquet",
            f"lake/delta/{DAY}",
            "lake/delta/day={date}/*.parquet",
        ],
    )
    def test_of_delta_lake(self, lake: Path, path: str) -> None:
        """
        The error names the folder, one of its files, and the format that reads the table. Files
        that are too young are refused as well: once they are old enough they would be read.
        """
        for source in (reading(path), replace(reading(path), settle=10**18)):
            found = refused(lake, source)

            assert found["table"] == "lake/delta"
            assert found["file"].startswith(f"lake/delta/{DAY}/")
            assert "`format: delta` and `path: lake/delta`" in found["todo"]

    def test_seen_from_elsewhere(self, lake: Path, tmp_path: Path) -> None:
        """
        A path may be one file. Outside the project paths are whole, and so are those in the error.
        A listing that leaves dated folders out sees the table's metadata on its way.
        """
        (file, *_) = sorted((lake / "lake" / "delta" / DAY).iterdir())
        assert refused(lake, reading(str(file.relative_to(lake))))["table"] == "lake/delta"
        path = f"{lake}/lake/delta/{DAY}/*.parquet"
        assert refused(tmp_path, reading(path))["table"] == f"{lake}/lake/delta"
        source = reading("lake/delta/day={date}/*.parquet")
        project = Project("shop", lake, None, {source.name: source}, (), Target("dev"))
        with pytest.raises(InfoldError, match="files-of-a-table"):
            list_without(project, source, 0, {f"lake/delta/{DAY}"})

    @pytest.mark.parametrize(
        "path",
        [
            "lake/iceberg/sales/orders",
            "lake/iceberg/**/*.parquet",
            "lake/iceberg/*/*/data/*/*.parquet",
            "lake/iceberg/sales/orders/data/*/*.parquet",
            f"lake/iceberg/sales/orders/data/{DAY}/*.parquet",
        ],
    )
    def test_of_iceberg(self, lake: Path, path: str) -> None:
        """The same, with the keys of a table in a catalog."""
        found = refused(lake, reading(path))

        assert found["table"] == "lake/iceberg/sales/orders"
        assert found["file"].startswith(f"lake/iceberg/sales/orders/data/{DAY}/")
        assert "format: iceberg" in found["todo"]

    @pytest.mark.parametrize("path", ["in", "in/**/*.parquet", f"in/{DAY}/*.parquet"])
    def test_of_hudi(self, tmp_path: Path, path: str) -> None:
        """Its folder has a hidden one, and earlier forms of files beside the newest."""
        file = f"in/{DAY}/1_0-1-0_1.parquet"
        touch(tmp_path, file, "in/.hoodie/hoodie.properties")

        found = refused(tmp_path, reading(path))

        assert (found["table"], found["file"]) == ("in", file)
        assert "does not read tables of Hudi" in found["todo"]

    @pytest.mark.parametrize(
        "name", ["", ".0000000001.0000000002", ".80a083e8-7026-4e79-81be-64bd76c43a11"]
    )
    def test_a_log_of_checkpoints(self, tmp_path: Path, name: str) -> None:
        """The commits before one may be deleted: a table it is all the same."""
        ending = "json" if "-" in name else "parquet"
        touch(tmp_path, "in/a.parquet", f"in/_delta_log/{10:020}.checkpoint{name}.{ending}")

        assert refused(tmp_path, reading("in/*.parquet"))["table"] == "in"


class TestNoTables:
    """What only looks like a table, or only lies beside one, is read."""

    def test_files_beside_tables(self, lake: Path) -> None:
        """Folders that a pattern does not lead into do not matter."""
        assert listed(lake, reading("lake/landed/*.parquet")) == ["lake/landed/a.parquet"]
        assert listed(lake, reading("lake/[l]*/*.parquet")) == ["lake/landed/a.parquet"]
        assert listed(lake, reading("lake/**/a.parquet")) == ["lake/landed/a.parquet"]

    def test_metadata_as_a_source(self, lake: Path) -> None:
        """Who reads manifests and logs wants these very files."""
        manifests = reading("lake/iceberg/*/*/metadata/*.avro", Format.AVRO)
        log = reading("lake/delta/_delta_log/*.json", Format.JSON)

        assert listed(lake, manifests)
        assert len(listed(lake, log)) == 2

    @pytest.mark.parametrize(
        "other",
        [
            *("metadata/columns.json", "metadata/v1.metadata.json.bak"),
            *("metadata/about.metadata.json", "_delta_log/readme.txt", "_delta_log/1.json"),
            *(".hoodie/readme.txt", "_delta_log", "metadata"),
        ],
    )
    def test_folders_of_such_names(self, tmp_path: Path, other: str) -> None:
        """It takes a folder of that name, with a file that has the name of a table's metadata."""
        touch(tmp_path, "in/a.parquet", f"in/{other}")

        assert listed(tmp_path, reading("in/*.parquet")) == ["in/a.parquet"]


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[ListingStore]:
    """A store with a table of each kind, and files of nobody's."""
    days = [f"day=2024-03-{day:02}" for day in range(1, 30)]
    with listing_store(monkeypatch) as found:
        found.keys = [
            f"delta/_delta_log/{0:020}.json",
            *(f"delta/{day}/part-0.parquet" for day in days),
            *(f"landed/{day}/0.parquet" for day in days),
            *(f"orders/data/{day}/0.parquet" for day in days),
            "orders/metadata/00000-80a083e8-7026-4e79-81be-64bd76c43a11.metadata.json",
        ]
        yield found


class TestInAStore:
    """There the pages of the listing show it."""

    @pytest.mark.parametrize(
        ("path", "requests"),
        [("delta/*/*.parquet", 1), ("**/*.parquet", 1), (f"delta/{DAY}/*.parquet", 4)],
    )
    def test_of_delta_lake(
        self, tmp_path: Path, store: ListingStore, path: str, requests: int
    ) -> None:
        """The error names the place by which the table is read."""
        found = refused(tmp_path, reading(f"s3://lake/{path}"), stores=Stores(store.options))

        assert found["table"] == "s3://lake/delta"
        assert found["file"].startswith("s3://lake/delta/day=")
        assert "`format: delta` and `path: s3://lake/delta`" in found["todo"]
        assert len(store.asked) == requests

    @pytest.mark.parametrize("path", ["orders/**/*.parquet", f"orders/data/{DAY}/*.parquet"])
    def test_of_iceberg(self, tmp_path: Path, store: ListingStore, path: str) -> None:
        """The same from above and from inside."""
        found = refused(tmp_path, reading(f"s3://lake/{path}"), stores=Stores(store.options))

        assert found["table"] == "s3://lake/orders"
        assert "format: iceberg" in found["todo"]

    @pytest.mark.parametrize(
        ("path", "files", "requests"), [("landed/*/*", 29, 1), (f"landed/{DAY}/*", 1, 4)]
    )
    def test_files_of_nobody(
        self, tmp_path: Path, store: ListingStore, path: str, files: int, requests: int
    ) -> None:
        """No request for a file, and three where a path begins in what may be a partition."""
        found = listed(tmp_path, reading(f"s3://lake/{path}"), Stores(store.options))

        assert (len(found), len(store.asked)) == (files, requests)
