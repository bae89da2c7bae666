"""Delta tables in a store as sources, without Spark: their files, and what the store refuses."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.lake.delta.orders import Orders
from tests.servers.mirror import Mirror
from tests.servers.object_store import ObjectStore
from tests.servers.store_server import StoreServer

from infold.core.formats import Format
from infold.core.model import Source
from infold.core.object_store import StorageOptions, Stores, split
from infold.core.project import Project
from infold.core.target import Target
from infold.lake.reading import delta_table
from infold.lake.stores import places
from infold.messages.errors import InfoldError

pytestmark = pytest.mark.servers

STORES = ["object_store", "google_store", "azure_store"]

of_each = pytest.mark.parametrize("store", STORES, indirect=True)
of_one = pytest.mark.parametrize("store", STORES[:1], indirect=True)
"""Of those whose code is the same for all of them."""


class Written:
    """A table as somebody else writes it into a bucket, and a project that reads it."""

    def __init__(
        self, store: StoreServer, root: Path, place: str, *, marks_in_files: bool = False
    ) -> None:
        self.store = store
        self.orders = Orders(root / "written" / "orders", 1, marks_in_files=marks_in_files)
        self.url = store.url_of(store.new_bucket(), place)
        self.mirror = Mirror(store, self.orders.folder, self.url)
        self.source = Source("raw.orders", Format.DELTA, (), path=f"{self.url}/")
        target = Target("dev", stores=Stores(StorageOptions(**store.options)))
        root = root / "project"
        (root / ".infold").mkdir(parents=True)
        sources = {"raw.orders": self.source}
        self.project = Project("shop", root, None, sources, (), target)

    def files(self) -> Mapping[str, str]:
        """The fingerprints of the source's files, by URL."""
        found = delta_table.table_files(self.project, self.source)
        return {file.path: file.fingerprint for file in found}

    def problem(self) -> InfoldError:
        """What listing raises."""
        with pytest.raises(InfoldError) as raised:
            self.files()
        return raised.value


@pytest.fixture
def written(store: StoreServer, tmp_path: Path) -> Iterator[Written]:
    """A table below a name that needs care in URLs."""
    yield Written(store, tmp_path, "lake/a b#é%/orders")
    places.forget_ways()


@of_each
@pytest.mark.parametrize(
    ("place", "marks_in_files"), [("lake/a b#é%/orders", False), ("lake/orders", True)]
)
def test_its_files_are_objects(
    store: StoreServer, tmp_path: Path, place: str, marks_in_files: bool
) -> None:
    """Each is there by its URL; they differ exactly where rows may; what is deleted is known."""
    written = Written(store, tmp_path, place, marks_in_files=marks_in_files)
    orders = written.orders
    for _ in range(3):
        orders.append()
    written.mirror()
    first = written.files()
    assert len(first) > 5
    bucket = written.store.bucket(split(written.url)[0])
    for url in first:
        assert bucket.head(split(url)[1]).size > 0

    for _ in range(4):
        orders.mark()
    written.mirror()
    marked = written.files()
    assert first.keys() == marked.keys()
    changed = {url for url in first if first[url] != marked[url]}
    table = delta_table.table_now(written.project, written.source)
    assert {*table.deleted} == changed != set()
    assert {*table.partitions["_path"].to_pylist()} == first.keys()
    assert {*table.partitions["kind"].to_pylist()} >= {row[3] for row in orders.rows.values()}
    places.forget_ways()


def test_files_of_deleted_rows_that_deltalake_does_not_find(
    object_store: ObjectStore, tmp_path: Path
) -> None:
    """It looks for them in a folder of another name where a URL escapes it: no row comes back."""
    written = Written(object_store, tmp_path, "lake/a b/orders", marks_in_files=True)
    written.orders.append()
    for _ in range(4):
        written.orders.mark()
    written.mirror()

    error = written.problem()

    assert error.slug == "delta-source-unreadable"
    assert "deletion_vector" in dict(error.facts)["why"]
    places.forget_ways()


@of_each
def test_an_unchanged_table_costs_two_requests(written: Written) -> None:
    """Its log's end is asked for, and no other file is read; a table made anew is another."""
    written.orders.append()
    written.mirror()
    before = written.files()
    written.store.seen.clear()

    assert written.files() == before
    assert written.store.seen.total() == 2

    shutil.rmtree(written.orders.folder)
    written.orders.append()
    written.mirror()
    assert not before.keys() & written.files().keys()


@of_one
def test_of_a_long_log_the_end_is_listed(written: Written) -> None:
    """What comes after the last checkpoint; all of it where that is said wrongly, or not at all."""
    orders = written.orders
    for _ in range(3):
        orders.append()
    orders.table.create_checkpoint()
    orders.append()
    written.mirror()
    seen = written.files()
    hint = f"{written.url}/_delta_log/_last_checkpoint"
    names = [places.marks(f"{written.url}/_delta_log", f"{2:020}")]
    assert min(names[0]) == f"{2:020}.checkpoint.parquet"
    orders.append()
    written.mirror()
    after = written.files()
    assert seen.items() < after.items()

    for content in (json.dumps({"version": 99}).encode(), b"{", b"[]", b'{"version": "x"}'):
        written.store.put(hint, content)
        orders.append()
        written.mirror()
        found = written.files()
        assert after.items() < found.items()
        after = found


@of_each
def test_there_is_no_table(written: Written) -> None:
    """Nothing below the place, files of nobody's, and no bucket: each is said."""
    assert dict(written.problem().facts)["why"] == "it does not exist"
    written.store.put(f"{written.url}/part-0.parquet", b"PAR1")
    error = written.problem()
    assert (error.slug, dict(error.facts)["why"]) == ("no-delta-table", "it has no _delta_log")
    assert dict(error.facts)["folder"] == written.url


_LIST, _COMMIT = "prefix=|comp=list", r"0(\.|%2E)json"


@of_each
def test_what_the_store_refuses(written: Written) -> None:
    """It is named, whichever library asked; the kept listing is as it was."""
    written.orders.append()
    written.mirror()
    for path, status, code, slug in (
        (_LIST, 403, "AccessDenied", "store-access-denied"),
        (_LIST, 404, "NoSuchBucket", "store-bucket-missing"),
        (_COMMIT, 403, "AccessDenied", "store-access-denied"),
        (_COMMIT, 503, "SlowDown", "store-failed"),
    ):
        with written.store.rule("GET", path, status=status, code=code) as rule:
            assert written.problem().slug == slug
        assert rule.met
    assert written.files()


@pytest.mark.parametrize(
    ("path", "slug"),
    [
        ("s3://elsewhere/orders/part-0.parquet", "delta-source-unreadable"),
        ("hdfs://name:8020/orders/part-0.parquet", "delta-source-unreadable"),
        ("at=2024-03-01%2010:00:00/part-0.parquet", "bad-file-name"),
    ],
)
def test_files_that_nobody_may_read(
    object_store: ObjectStore, tmp_path: Path, path: str, slug: str
) -> None:
    """Those of a shallow clone are elsewhere; one with a colon in its name is not Spark's."""
    written = Written(object_store, tmp_path, "orders")
    written.orders.append()
    log = written.orders.folder / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    added = next(one["add"] for one in lines if "add" in one)
    commit = json.dumps({"add": {**added, "path": path}})
    log.with_name(f"{1:020}.json").write_text(commit, encoding="utf-8")
    written.mirror()

    assert written.problem().slug == slug
    places.forget_ways()
