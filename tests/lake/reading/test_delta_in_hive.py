"""
Delta tables that a source names in a Hive metastore, which is made up here.

What a real one has is in ``tests/servers/test_delta_in_hive.py``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.lake.made_up_hive import MadeUpHive, connected

from infold.core.catalogs import Catalog, CatalogType
from infold.core.files import ListedFile
from infold.core.formats import Format
from infold.core.model import Source
from infold.core.object_store import StorageOptions, Stores
from infold.core.project import Project
from infold.core.target import Target
from infold.lake.reading import delta_table
from infold.lake.reading.delta_table import table_files
from infold.lake.stores import places
from infold.messages.errors import InfoldError

SOURCE = Source(
    "raw.orders",
    Format.DELTA,
    (),
    table="Sales.Orders",
    catalog=Catalog(CatalogType.HIVE, uri="thrift://hms:9083"),
)


_S3 = ("s3", "s3a", "s3n")
_HOST = "own.dfs.core.windows.net"


@pytest.fixture
def hive(monkeypatch: pytest.MonkeyPatch) -> MadeUpHive:
    """A metastore with a namespace of others."""
    found = connected(monkeypatch)
    found.databases.add("sales")
    return found


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """One with tables in a bucket, and a container beside it."""
    stores = Stores(buckets=((f"a@{_HOST}", StorageOptions(account_key="k")),))
    target = Target("dev", warehouse="s3://own/w", stores=stores)
    return Project("shop", tmp_path / "project", None, {}, (), target)


def made(folder: Path, *ids: int) -> Path:
    """A table of Delta Lake."""
    folder.mkdir(parents=True)
    write_deltalake(folder.as_uri(), pa.table({"id": list(ids)}))
    return folder


def files(project: Project) -> tuple[ListedFile, ...]:
    """Those of the source."""
    return table_files(project, SOURCE)


def problem(project: Project) -> InfoldError:
    """What listing raises."""
    with pytest.raises(InfoldError) as raised:
        files(project)
    return raised.value


@pytest.mark.parametrize("form", ["file:{}", "file://{}", "{}", "file:{}/"])
def test_a_folder_of_this_machine(
    project: Project, hive: MadeUpHive, tmp_path: Path, form: str
) -> None:
    """
    In each form that engines write; nothing in it is escaped, names have small letters, and Trino
    writes the provider in capital ones. By its path it has the same files: none is read again.
    """
    folder = made(tmp_path / "a b#é%" / "orders", 1, 2)
    hive.put("sales", "orders", form.format(folder), **{"spark.sql.sources.provider": "DELTA"})

    (file,) = found = files(project)

    assert Path(file.path).parent == folder
    by_path = replace(SOURCE, table=None, catalog=None, path=str(folder))
    assert found == table_files(project, by_path)


@pytest.mark.parametrize(
    ("at", "place"),
    [
        *((f"{scheme}://own/lake/orders/", "s3://own/lake/orders") for scheme in _S3),
        ("s3a://other/orders", "s3://other/orders"),
        (f"abfss://a@{_HOST}/orders", f"abfss://a@{_HOST}/orders"),
    ],
)
def test_a_store_of_the_target(
    project: Project, hive: MadeUpHive, monkeypatch: pytest.MonkeyPatch, at: str, place: str
) -> None:
    """By one name, however engines call it: else each other form would be other files."""
    asked: list[str] = []
    monkeypatch.setattr(delta_table, "newest", asked.append)
    monkeypatch.setattr(places, "is_folder", lambda _: True)
    hive.put("sales", "orders", at)

    assert problem(project).slug == "no-delta-table"

    assert asked == [place]
    places.forget_ways()


@pytest.mark.parametrize(
    ("at", "why"),
    [
        ("gs://own/lake/orders", "target dev does not say how gs://own is reached"),
        (
            "abfss://a@other.dfs.core.windows.net/orders",
            "target dev does not say how abfss://a@other.dfs.core.windows.net is reached",
        ),
        ("dbfs:/orders", "infold does not read dbfs:"),
        ("orders", "it is no absolute path, nor a URL"),
    ],
)
def test_another_place(project: Project, hive: MadeUpHive, at: str, why: str) -> None:
    """One for which nothing says how it is reached, or that nothing here reads."""
    hive.put("sales", "orders", at)

    error = problem(project)

    assert error.slug == "delta-source-elsewhere"
    assert dict(error.facts)["at"] == at
    assert dict(error.facts)["why"].startswith(why)


def test_in_hdfs(project: Project, hive: MadeUpHive) -> None:
    """Files are read there, and no table of Delta Lake: by a path neither."""
    at = "hdfs://name:8020/orders"
    hive.put("sales", "orders", at)
    source = replace(SOURCE, path=at, table=None, catalog=None)

    with pytest.raises(InfoldError) as by_path:
        table_files(project, source)

    for error in (problem(project), by_path.value):
        assert error.slug == "delta-source-elsewhere"
        assert dict(error.facts) == {"at": at}


@pytest.mark.parametrize(
    ("at", "parameters", "kind"),
    [
        ("file:/srv/orders", {"spark.sql.sources.provider": "parquet"}, "a table of parquet"),
        ("file:/srv/orders", {"spark.sql.sources.provider": ""}, "a table of Hive"),
        (
            "file:/srv/orders",
            {"spark.sql.sources.provider": "", "table_type": "ICEBERG"},
            "a table of iceberg",
        ),
        ("", {}, "a view"),
    ],
)
def test_another_table(
    project: Project, hive: MadeUpHive, at: str, parameters: dict[str, str], kind: str
) -> None:
    """It is said what it is."""
    hive.put("sales", "orders", at, **parameters)
    entry = hive.tables["sales", "orders"]
    entry.parameters = {name: text for name, text in entry.parameters.items() if text}

    error = problem(project)

    assert (error.slug, dict(error.facts)["it is"]) == ("delta-other-entry", kind)


def test_nothing_of_that_name(project: Project, hive: MadeUpHive) -> None:
    """Whether or not there is the namespace; one that does not answer is named as the source's."""
    for _ in range(2):
        error = problem(project)
        assert error.slug == "no-such-table"
        assert dict(error.facts)["catalog"] == "thrift://hms:9083"
        hive.databases.clear()
    hive.down = True

    error = problem(project)

    assert error.slug == "catalog-unreachable"
    assert dict(error.facts)["key"] == "catalog of source raw.orders"


def test_a_folder_that_is_not_here(project: Project, hive: MadeUpHive, tmp_path: Path) -> None:
    """
    As on another machine, or without a table in it; the error says what led there. A table that is
    made anew elsewhere has other files, though name and version are those of the one before.
    """
    (project.root / ".infold").mkdir(parents=True)
    hive.put("sales", "orders", f"file:{tmp_path}/none")
    assert dict(problem(project).facts)["why"] == "it does not exist"
    (tmp_path / "none").mkdir()
    error = problem(project)
    assert error.slug == "no-delta-table"
    facts = {"folder": f"{tmp_path}/none", "why": "it has no _delta_log"}
    assert dict(error.facts) == {"table": "Sales.Orders", **facts}

    found = []
    for name in ("first", "second"):
        hive.put("sales", "orders", f"file:{made(tmp_path / name, 1)}")
        found.append({file.path for file in files(project)})

    assert all(found)
    assert found[0].isdisjoint(found[1])
