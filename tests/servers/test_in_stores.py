"""
Projects whose tables and sources are in a store, with Spark: connectors have what they need.

What else stores refuse, lose or cut is tried without Spark.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.crash.scenario import AllBut, living
from tests.lake.delta.orders import Orders, shop_over_delta
from tests.lake.iceberg.owner import Owner
from tests.servers.gate import Rule
from tests.servers.google_store import GoogleStore
from tests.servers.hdfs import USER, Hdfs, Pair, two_namenodes
from tests.servers.moved import Shop, retarget, run_fails, shop_in
from tests.servers.object_store import ObjectStore
from tests.servers.store_server import Mirror, StoreServer, move_to_store
from tests.spark.events.clicks_project import shop_with

from infold import api
from infold.api.spark_sessions import session
from infold.lake.delta.tables import DeltaLake
from infold.lake.stores import places
from infold.spark.storages import storage_of

pytestmark = [pytest.mark.servers, pytest.mark.spark]


@pytest.fixture(scope="module")
def pair(hdfs: Hdfs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two NameNodes. A JVM reads where they are as it starts, so one of other tests ends."""
    folder = tmp_path_factory.mktemp("pair")
    with pytest.MonkeyPatch.context() as patch, two_namenodes(hdfs, folder / "dfs") as found:
        found.write_site(folder)
        patch.setenv("HADOOP_CONF_DIR", str(folder))
        api.close()
        yield found


@pytest.mark.parametrize(
    "store", ["pair", "object_store", "google_store", "azure_store"], indirect=True
)
def test_a_day_of_the_starter(store: StoreServer, tmp_path: Path) -> None:
    """
    It is looked at by doctor, run, shown, exported, and taken down; the store is busy.

    A right that is missing below the warehouse has its name; with it, the next run does all. Where
    another NameNode becomes active, plans turn to it by the addresses they are given, Spark by
    Hadoop's own files. That tables are repaired as in a folder, and that an object is noticed which
    is missing for a moment, one store shows.
    """
    shop = shop_in(store, tmp_path / "shop")
    assert "an object was written, listed, read and deleted" in shop("doctor")
    warehouse = store.url_of(shop.bucket, "warehouse")
    with store.refusing("write", warehouse):
        assert shop.run_fails().slug == "store-access-denied"
    with store.rule(".*", "", status=503, code="SlowDown", every=29) as busy:
        shop("run")
    if isinstance(store, Pair):
        store.fail_over()
    else:
        assert busy.met > 29
    shop.put_bytes("late.json", (shop.root / "later" / "2024-03-10.json").read_bytes())
    assert "1 new file; 2 files as before" in shop("plan")
    shop.put("a b[1]{x},é+%20.json", "odd")
    shop.put("more.json", "c")
    if isinstance(store, Pair):
        while_nobody_may_read(shop, warehouse)
    else:
        while_it_is_read(shop)
    shop("run")
    rows = shop("show", "clicks", "--columns", "event_id", "--where", "url = '/'", "--json")
    new = {json.loads(line)["event_id"] for line in rows.splitlines()} & {"odd", "c", "d", "e"}
    assert new == ({"odd", "c"} if isinstance(store, Pair) else {"odd", "d", "e"})
    exported = store.url_of(shop.bucket, "exported.csv")
    shop("show", "sessions", "--format", "csv", "--output", exported)
    sessions = shop("show", "sessions", "--format", "csv")
    assert store.read(exported).decode() == sessions
    if isinstance(store, ObjectStore):
        (shop.root / ".infold" / "ledger.db").unlink()
        shop("repair", "--yes")
        shop("run")
        again = shop("show", "sessions", "--format", "csv")
        assert sorted(again.splitlines()) == sorted(sessions.splitlines())
        shop.put("gone.json", "g")
        with store.rule("HEAD", "gone.json", status=404, every=3) as gone:  # Spark leaves it out
            assert shop.run_fails().slug == "source-changed"
        assert gone.met == 3
    assert api.lake_of(api.open_project(shop.root)).size("sessions") > 0
    store.put(other := f"{warehouse}/shop/clicks__1/x", b"another's")
    shop("teardown", "--yes")
    assert store.below(warehouse) == [other]
    if isinstance(store, Pair):
        standby = store.url.split(",")[1 - store.active]
        retarget(shop.root, {"storage_options": store.options | {"endpoint": standby}})
        places.forget_ways()
        assert "store-standby" in shop("plan", code=1)


def while_nobody_may_read(shop: Shop, warehouse: str) -> None:
    """A table may not be read; a target of another user is refused, as Spark is one user's."""
    with shop.store.refusing("read", warehouse):
        assert shop.run_fails().slug == "store-access-denied"
    there = shop.store.below(warehouse)
    retarget(shop.root, {"storage_options": shop.store.options | {"user": "ann"}})
    places.forget_ways()
    error = shop.run_fails()
    places.forget_ways()
    assert error.slug == "store-two-ways"
    assert ("by", USER) in error.facts
    assert shop.store.below(warehouse) == there
    retarget(shop.root, {"storage_options": shop.store.options})


def while_it_is_read(shop: Shop) -> None:
    """
    An object may not be read, or is replaced: nothing is kept of it.

    Credentials that expire in the middle are named; what was committed before stays.
    """
    # Of Google and Azure by Spark: infold's own requests are of another protocol there.
    reads = r"alt=media|timeout=|more\.json"
    with shop.store.rule("GET", reads, status=403, code="forbidden"):
        assert shop.run_fails().slug == "store-access-denied"
    with shop.store.rule("GET", reads, first=lambda: shop.put("more.json", "d", "e")):
        assert shop.run_fails().slug == "source-changed"
    if isinstance(shop.store, ObjectStore):
        with shop.store.rule("PUT", "sessions", status=400, code="ExpiredToken"):
            assert shop.run_fails().slug == "store-credentials-refused"


@contextmanager
def at_commit(shop: Shop, table: str, **how: Any) -> Iterator[Rule]:
    """A rule for the request by which Spark makes a version of a table."""
    if not isinstance(shop.store, GoogleStore):
        with shop.store.rule("PUT", rf"{table}/_delta_log/\d+\.json", times=1, **how) as rule:
            yield rule
        return
    rule = Rule("PUT", "upload_id", times=1, **how)

    def begun() -> None:
        shop.store.rules.append(rule)

    # An upload has a request that names the object, and others with what is in it.
    begins = rf"name=[^&]*{table}(/|%2F)_delta_log(/|%2F)\d+\.json"
    with shop.store.rule("POST", begins, times=1, first=begun):
        yield rule
    shop.store.rules.remove(rule)


@pytest.mark.parametrize("store", ["object_store", "google_store", "azure_store"], indirect=True)
def test_commits_of_delta(store: StoreServer, tmp_path: Path) -> None:
    """
    The process dies after a commit: no row is there twice after the next run.

    An answer is lost: the version that is in the way is one's own, and no row is there twice.

    It is another's: Google's and Azure's store have one of the two win, and nothing is written
    over. Amazon's has the later one: the run finds it, and nothing is built on it.
    """
    shop = shop_in(store, tmp_path / "shop", storage="delta")
    (shop.root / "models" / "sessions.sql").unlink()
    project = api.open_project(shop.root)
    lake = api.lake_of(project)
    assert isinstance(lake, DeltaLake)
    with living(met=AllBut("table clicks: after commit")) as life:
        api.run(project)
    assert life.dead
    first = lake.log("clicks")
    assert first is not None
    # What a plan reads of a version, in place of all of them.
    assert f"{first.newest:020}.crc" in first.marks
    shop("run")
    assert len(shop("show", "clicks", "--json").splitlines()) == 9

    shop.put("more.json", "a", "b")
    with at_commit(shop, "clicks", lost=True) as lost:
        shop("run")
    assert lost.met >= 1
    rows = shop("show", "clicks", "--where", "event_id IN ('a', 'b')", "--json")
    assert sorted(json.loads(row)["event_id"] for row in rows.splitlines()) == ["a", "b"]
    tables = storage_of(project).tables(session(project), project, lake)
    before = lake.history("clicks").snapshots
    with at_commit(shop, "clicks", lost=True) as lost:
        tables.rewrite("clicks", tables.partition_files("clicks")[0].partition)
    assert lost.met >= 1
    assert lake.history("clicks").snapshots == before + 1

    shop.put("again.json", "c")
    log = lake.log("clicks")
    assert log is not None
    there = log.file(log.newest + 1)
    other = b'{"commitInfo": {}}\n{"remove": {"path": "none", "dataChange": true}}'

    def meddle() -> None:
        places.write(there, other)

    meddling = at_commit(shop, "clicks", first=meddle)
    if isinstance(store, ObjectStore):
        meddling = store.rule("PUT", r"clicks/_delta_log/\d+\.crc", first=meddle)
    with meddling as met:
        assert shop.run_fails().slug == "foreign-write"
    assert met.met >= 1
    assert places.read(there) == other
    now = lake.log("clicks")
    assert now is not None
    assert now.newest == log.newest + 1
    lake.drop("clicks")
    assert lake.is_free("clicks")


@pytest.mark.parametrize("store", ["object_store", "google_store", "azure_store"], indirect=True)
def test_a_delta_table_of_others(store: StoreServer, tmp_path: Path) -> None:
    """
    After changes of it the events are its rows; a table that a run may not read is told.

    So is one that is vacuumed between listing and reading: the next run reads what is there.
    """
    url = store.url_of(store.new_bucket(), "lake", "a b#é%", "orders")
    shop = shop_over_delta(tmp_path / "shop", tmp_path / "warehouse", f"path: '{url}'")
    retarget(shop.root, {"storage_options": store.options})
    orders = Orders(tmp_path / "written" / "orders", 2)
    mirror = Mirror(store, orders.folder, url)
    orders.append()
    mirror()
    with store.rule("GET", r"part-.*\.parquet", status=403, code="forbidden"):
        assert run_fails(shop.root).slug == "store-access-denied"
    shop.run()
    for change in (orders.append, orders.update, orders.delete, orders.mark):
        change()
    mirror()

    def vacuumed() -> None:
        orders.compact()
        orders.vacuum()
        mirror()

    if isinstance(store, ObjectStore):
        with store.rule("GET|HEAD", r"part-.*\.parquet", first=vacuumed):
            assert run_fails(shop.root).slug == "source-changed"
    shop.run()
    assert shop.rows() == orders.expected()


def test_an_iceberg_table_of_others(store: StoreServer, tmp_path: Path) -> None:
    """What pyiceberg adds to a table in the store, takes from it and renames arrives."""
    shop, bucket = shop_with(tmp_path / "shop", tmp_path / "warehouse"), store.new_bucket()
    move_to_store(shop.root, store, bucket)
    places.use(api.open_project(shop.root))
    lake = store.url_of(bucket, "lake", "a b", "é%41")
    owner = Owner(tmp_path, lake, **{"py-io-impl": "tests.servers.store_io.StoreWriter"})
    owner.is_read_by(shop)
    owner.append(a=1, b=2)
    shop.run()
    owner.delete("a")
    owner.rename()
    owner.append(c=3)
    shop.run()
    assert shop.rows() == owner.expected()
