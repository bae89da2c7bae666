"""Sources of files whose folder is a table of Delta Lake, Iceberg or Hudi: refused by name."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlparse

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog

from infold.core.formats import Format
from infold.core.model import Source
from infold.core.object_store import StorageOptions, Stores
from infold.core.project import Project
from infold.core.target import Target
from infold.lake.reading.dated_folders import list_without
from infold.lake.reading.listing import list_files
from infold.messages.errors import InfoldError

ROWS = pa.table({"id": [1, 2, 3], "day": ["2024-03-08", "2024-03-08", "2024-03-09"]})
DAY = "day=2024-03-08"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """
    A project beside tables that others wrote, with rows that they no longer have.

    ``lake/delta`` and ``lake/iceberg/sales/orders``; files of nobody's in ``lake/landed``.
    """
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
        """The error names the folder, one of its files, and the format that reads the table."""
        found = refused(lake, reading(path))

        assert found["table"] == "lake/delta"
        assert found["file"].startswith(f"lake/delta/{DAY}/")
        assert "`format: delta` and `path: lake/delta`" in found["todo"]

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
        for file in (f"in/{DAY}/1_0-1-0_1.parquet", "in/.hoodie/hoodie.properties"):
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).touch()

        found = refused(tmp_path, reading(path))

        assert (found["table"], found["file"]) == ("in", f"in/{DAY}/1_0-1-0_1.parquet")
        assert "does not read tables of Hudi" in found["todo"]

    def test_a_single_file(self, lake: Path) -> None:
        """A path without a pattern is one too."""
        (file, *_) = sorted((lake / "lake" / "delta" / DAY).iterdir())

        assert refused(lake, reading(str(file.relative_to(lake))))["table"] == "lake/delta"

    def test_outside_the_project(self, lake: Path, tmp_path: Path) -> None:
        """Paths are whole there, and so are those in the error."""
        path = f"{lake}/lake/delta/{DAY}/*.parquet"

        assert refused(tmp_path, reading(path))["table"] == f"{lake}/lake/delta"

    def test_files_that_are_too_young(self, lake: Path) -> None:
        """They are refused as well: once they are old enough they would be read."""
        source = Source("raw.orders", Format.PARQUET, (), path="lake/delta", settle=10**18)

        assert refused(lake, source)["table"] == "lake/delta"

    def test_without_some_dated_folders(self, lake: Path) -> None:
        """A listing that leaves folders out sees the table's metadata on its way."""
        source = reading("lake/delta/day={date}/*.parquet")
        project = Project("shop", lake, None, {source.name: source}, (), Target("dev"))

        with pytest.raises(InfoldError, match="files-of-a-table"):
            list_without(project, source, 0, {f"lake/delta/{DAY}"})


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
            "metadata/columns.json",
            "metadata/v1.metadata.json.bak",
            "metadata/about.metadata.json",
            "_delta_log/readme.txt",
            "_delta_log/1.json",
            ".hoodie/readme.txt",
        ],
    )
    def test_folders_of_such_names(self, tmp_path: Path, other: str) -> None:
        """It takes a file that has the name of a table's metadata."""
        for path in ("in/a.parquet", f"in/{other}"):
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).touch()

        assert listed(tmp_path, reading("in/*.parquet")) == ["in/a.parquet"]

    def test_a_file_of_such_a_name(self, tmp_path: Path) -> None:
        """A file in the place of the folder is no table."""
        (tmp_path / "data").mkdir()
        for name in ("_delta_log", "metadata", "data/a.parquet"):
            (tmp_path / name).touch()

        assert listed(tmp_path, reading("data/*.parquet")) == ["data/a.parquet"]

    @pytest.mark.parametrize(
        "name",
        [
            "00000000000000000010.checkpoint.parquet",
            "00000000000000000010.checkpoint.0000000001.0000000002.parquet",
            "00000000000000000010.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json",
        ],
    )
    def test_a_log_of_checkpoints(self, tmp_path: Path, name: str) -> None:
        """The commits before one may be deleted: a table it is all the same."""
        for path in ("in/a.parquet", f"in/_delta_log/{name}"):
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).touch()

        assert refused(tmp_path, reading("in/*.parquet"))["table"] == "in"


class _Lister(BaseHTTPRequestHandler):
    """A store that lists; ``asked`` are the prefixes that it was asked for."""

    protocol_version = "HTTP/1.1"
    keys: tuple[str, ...] = ()
    asked: list[str] = []  # noqa: RUF012 - of all of its requests

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        """All objects with a prefix, in one page."""
        prefix = parse_qs(urlparse(self.path).query).get("prefix", [""])[0]
        self.asked.append(prefix)
        found = "".join(
            f"<Contents><Key>{key}</Key><LastModified>2024-03-09T12:00:00.000Z</LastModified>"
            "<ETag>&quot;1&quot;</ETag><Size>9</Size></Contents>"
            for key in sorted(self.keys)
            if key.startswith(prefix)
        )
        answer = f"<ListBucketResult><IsTruncated>false</IsTruncated>{found}</ListBucketResult>"
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer.encode())


@pytest.fixture
def stores(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stores]:
    """A store with a table of each kind, and files of nobody's."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Lister)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setenv("STORE_KEY", "a")
    key = "${env:STORE_KEY}"
    uuid = "80a083e8-7026-4e79-81be-64bd76c43a11"
    days = [f"day=2024-03-{day:02}" for day in range(1, 30)]
    monkeypatch.setattr(
        _Lister,
        "keys",
        (
            f"delta/_delta_log/{0:020}.json",
            *(f"delta/{day}/part-0.parquet" for day in days),
            f"orders/metadata/00000-{uuid}.metadata.json",
            *(f"orders/data/{day}/0.parquet" for day in days),
            *(f"landed/{day}/0.parquet" for day in days),
        ),
    )
    monkeypatch.setattr(_Lister, "asked", [])
    at = f"http://127.0.0.1:{server.server_address[1]}"
    yield Stores(StorageOptions(at, access_key_id=key, secret_access_key=key))
    server.shutdown()
    server.server_close()


class TestInAStore:
    """There the pages of the listing show it."""

    @pytest.mark.parametrize(
        ("path", "requests"),
        [
            ("delta/*/*.parquet", 1),
            ("**/*.parquet", 1),
            (f"delta/{DAY}/*.parquet", 4),
        ],
    )
    def test_of_delta_lake(self, tmp_path: Path, stores: Stores, path: str, requests: int) -> None:
        """The error names the place by which the table is read."""
        found = refused(tmp_path, reading(f"s3://lake/{path}"), stores=stores)

        assert found["table"] == "s3://lake/delta"
        assert found["file"].startswith("s3://lake/delta/day=")
        assert "`format: delta` and `path: s3://lake/delta`" in found["todo"]
        assert len(_Lister.asked) == requests

    @pytest.mark.parametrize("path", ["orders/**/*.parquet", f"orders/data/{DAY}/*.parquet"])
    def test_of_iceberg(self, tmp_path: Path, stores: Stores, path: str) -> None:
        """The same from above and from inside."""
        found = refused(tmp_path, reading(f"s3://lake/{path}"), stores=stores)

        assert found["table"] == "s3://lake/orders"
        assert "format: iceberg" in found["todo"]

    @pytest.mark.parametrize(
        ("path", "files", "requests"), [("landed/*/*", 29, 1), (f"landed/{DAY}/*", 1, 4)]
    )
    def test_files_of_nobody(
        self, tmp_path: Path, stores: Stores, path: str, files: int, requests: int
    ) -> None:
        """No request for a file, and three where a path begins in what may be a partition."""
        found = listed(tmp_path, reading(f"s3://lake/{path}"), stores)

        assert (len(found), len(_Lister.asked)) == (files, requests)
