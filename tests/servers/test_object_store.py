"""What only a store of S3's protocol does, without Spark; what all do is in ``test_stores``."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.docs.pages import DOCS, code
from tests.lake.conftest import TABLES
from tests.servers.in_store import Landing
from tests.servers.object_store import ObjectStore

from infold.cli import cli
from infold.core.formats import Format
from infold.lake.iceberg.sql_catalog import sqlite_catalog
from infold.lake.iceberg.tables import IcebergLake
from infold.lake.stores import places
from infold.messages.errors import InfoldError

pytestmark = pytest.mark.servers


@pytest.fixture
def landing(object_store: ObjectStore, tmp_path: Path) -> Iterator[Landing]:
    """A bucket of its own."""
    yield Landing(object_store, tmp_path / "shop")
    places.forget_ways()


def test_the_same_bytes_are_the_same_object(landing: Landing) -> None:
    """Whenever they were written; where that time is a column they are other rows."""
    landing.put("in/a.json", b"1")
    (first,), (timed,) = landing.files(), landing.files(file_time_column="at")
    time.sleep(1.1)  # the time of an object has whole seconds
    landing.put("in/a.json", b"1")
    (same,), (other,) = landing.files(), landing.files(file_time_column="at")
    assert same.fingerprint == first.fingerprint
    assert same.modified_at > first.modified_at
    assert landing.changed(same) == []
    assert landing.changed(first) == [first.path], "it was replaced"
    assert other.fingerprint != timed.fingerprint


def test_a_listing_has_pages(landing: Landing, object_store: ObjectStore) -> None:
    """Of a thousand objects each, and all of them are there."""
    folder = object_store.folder / landing.shop.bucket / "in"
    folder.mkdir()
    for number in range(2_001):
        (folder / f"{number:05}.json").write_text("x")
    landing.store.seen.clear()
    assert len(landing.files()) == 2_001
    assert landing.store.seen["GET"] == 3


def test_names_that_spark_does_not_read(landing: Landing) -> None:
    """They are errors, and never passed over."""
    landing.put("in/a:b.json")
    assert "cannot be read by Spark" in str(landing.refused())
    landing.put("at/_a.json")
    assert landing.names("at/*.json") == []
    assert "cannot be read by Spark" in str(landing.refused("at/_*.json"))


def test_views_for_readers(landing: Landing, tmp_path: Path) -> None:
    """Their metadata is in the store; old versions and those of dropped tables are deleted."""
    with closing(sqlite3.connect(catalog_db := tmp_path / "views.db")) as catalog:
        catalog.execute(TABLES)
    lake = IcebergLake(sqlite_catalog(catalog_db), "shop", f"{landing.base}/w")
    table = f"{landing.base}/w/shop/daily/metadata/1.metadata.json"
    for columns in (["day"], ["day", "n"], ["day", "n", "m"]):
        fields = [{"id": at, "name": name, "type": "long"} for at, name in enumerate(columns)]
        schema = {"schema-id": 0, "fields": fields}
        places.write(table, json.dumps({"current-schema-id": 0, "schemas": [schema]}).encode())
        with closing(sqlite3.connect(catalog_db)) as catalog, catalog:
            catalog.execute(
                "INSERT OR REPLACE INTO iceberg_tables"
                " VALUES ('infold', 'shop', 'daily', ?, NULL, 'TABLE')",
                (table,),
            )
        assert lake.refresh_views(["daily"]) == []

    location = lake.catalog.locations("shop_views")["daily"]
    folder = places.folder_of(location)
    assert folder.startswith(f"{landing.base}/w/shop_views/daily__")
    assert len([*places.file_names(folder)]) == 2
    assert b"SELECT `day`, `n`, `m` FROM" in places.read(location)
    lake.refresh_views([])
    assert not places.is_folder(folder)


def test_files_of_a_table(landing: Landing) -> None:
    """A pattern that leads to them is refused, from above and from within."""
    iceberg = "metadata/00000-80a083e8-7026-4e79-81be-64bd76c43a11.metadata.json"
    for kind, mark in (("delta", f"_delta_log/{0:020}.json"), ("iceberg", iceberg)):
        for name in (mark, "data/day=1/0.parquet", "day=1/0.parquet"):
            landing.put(f"{kind}/table/{name}")
        for path in ("**/*.parquet", "table/data/day=1/*.parquet", "table/day=1/*"):
            with pytest.raises(InfoldError, match="files-of-a-table") as refused:
                landing.files(f"{kind}/{path}", format=Format.PARQUET)
            assert dict(refused.value.facts)["table"] == f"{landing.base}/{kind}/table"


def with_options(declared: str, options: str) -> str:
    """A project whose target reaches its stores in another way."""
    indented = "".join(f"    {line}\n" for line in options.splitlines())
    return declared[: declared.index("    storage_options")] + indented


def test_what_the_page_declares(tmp_path: Path) -> None:
    """`check` accepts the projects of the page, each with the options for its store."""
    assert CliRunner().invoke(cli, ["init", str(tmp_path / "shop")]).exit_code == 0
    s3, profile, google, azure, hdfs = code(DOCS / "object-stores.md", "yaml")
    in_azure = re.sub("gs://(landing|lake)", r"abfss://\1@shop.dfs.core.windows.net", google)
    (tmp_path / "shop" / "models" / "daily.sql").unlink()
    (tmp_path / "shop" / "models" / "sessions.sql").unlink()
    clicks = tmp_path / "shop" / "models" / "clicks.sql"
    clicks.write_text(clicks.read_text().replace(", amount", ""))
    for text in (s3, with_options(s3, profile), google, with_options(in_azure, azure), hdfs):
        (tmp_path / "shop" / "infold.yml").write_text(f"name: shop\n{text}")
        done = CliRunner().invoke(cli, ["-C", str(tmp_path / "shop"), "check"])
        assert done.exit_code == 0, done.output
