"""
Projects whose tables and sources are in a store, with Spark: connectors have what they need.

What else stores refuse, lose or cut is tried without Spark.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.crash.scenario import SHAPE, kill
from tests.lake.delta import orders as delta_orders
from tests.lake.delta.orders import Orders, shop_over_delta
from tests.lake.iceberg.owner import Owner, play
from tests.servers.gate import Rule
from tests.servers.google_store import GoogleStore
from tests.servers.hdfs import USER, Hdfs, Pair, two_namenodes
from tests.servers.moved import InStore, Shop, retarget, run_fails, shop_in
from tests.servers.object_store import ObjectStore
from tests.servers.store_server import Mirror, StoreServer, move_to_store
from tests.spark.events.clicks_project import shop_with

from infold import api
from infold.api.spark_sessions import session
from infold.core.storages import Storage
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
    It is looked at by doctor, run, shown, exported, repaired, and taken down; the store is busy.

    A right that is missing below the warehouse has its name; with it, the next run does all. Where
    another NameNode becomes active, plans turn to it by the addresses they are given, Spark by
    Hadoop's own files.
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
    with store.refusing("read", warehouse):
        assert shop.run_fails().slug == "store-access-denied"
    if not isinstance(store, Hdfs):
        while_it_is_read(shop)
    shop("run")
    rows = shop("show", "clicks", "--columns", "event_id", "--where", "url = '/'", "--json")
    new = {json.loads(line)["event_id"] for line in rows.splitlines()} & {"odd", "c", "d", "e"}
    assert new == ({"odd", "c"} if isinstance(store, Hdfs) else {"odd", "d", "e"})
    exported = store.url_of(shop.bucket, "exported.csv")
    shop("show", "daily", "--format", "csv", "--output", exported)
    daily = shop("show", "daily", "--format", "csv")
    assert store.read(exported).decode() == daily
    (shop.root / ".infold" / "ledger.db").unlink()
    shop("repair", "--yes")
    shop("run")
    again = shop("show", "daily", "--format", "csv")
    assert sorted(again.splitlines()) == sorted(daily.splitlines())
    assert api.lake_of(api.open_project(shop.root)).size("sessions") > 0
    store.put(other := f"{warehouse}/shop/clicks__1/x", b"another's")
    shop("teardown", "--yes")
    assert store.below(warehouse) == [other]
    if isinstance(store, Pair):
        standby = store.url.split(",")[1 - store.active]
        retarget(shop.root, {"storage_options": store.options | {"endpoint": standby}})
        places.forget_ways()
        assert "store-standby" in shop("plan", code=1)


def while_it_is_read(shop: Shop) -> None:
    """An object may not be read, or is replaced: nothing is kept of it."""
    # Of Google and Azure by Spark: infold's own requests are of another protocol there.
    reads = r"alt=media|timeout=|more\.json"
    with shop.store.rule("GET", reads, status=403, code="forbidden"):
        assert shop.run_fails().slug == "store-access-denied"
    with shop.store.rule("GET", reads, first=lambda: shop.put("more.json", "d", "e")):
        assert shop.run_fails().slug == "source-changed"


def test_what_amazons_store_says_in_the_middle_of_a_run(
    object_store: ObjectStore, tmp_path: Path
) -> None:
    """
    Credentials expire: what was committed stays, and the error says what to renew.

    An object is missing for a moment: Spark leaves it out, and the step is refused.
    """
    shop = shop_in(object_store, tmp_path / "shop")
    with object_store.rule("PUT", "sessions", status=400, code="ExpiredToken"):
        assert shop.run_fails().slug == "store-credentials-refused"
    shop("run")
    shop.put("more.json", "c")
    with object_store.rule("HEAD", "more.json", status=404, every=3) as gone:
        assert shop.run_fails().slug == "source-changed"
    assert gone.met == 3
    shop("run")
    assert "c " in shop("show", "clicks", "--where", "event_id = 'c'")


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
    An answer is lost: the version that is in the way is one's own, and no row is there twice.

    It is another's: Google's and Azure's store have one of the two win, and nothing is written
    over. Amazon's has the later one: the run finds it, and nothing is built on it.
    """
    shop = shop_in(store, tmp_path / "shop", storage="delta")
    (shop.root / "models" / "daily.sql").unlink()
    shop("run")
    project = api.open_project(shop.root)
    lake = api.lake_of(project)
    assert isinstance(lake, DeltaLake)
    first = lake.log("clicks")
    assert first is not None
    # What a plan reads of a version, in place of all of them.
    assert f"{first.newest:020}.crc" in first.marks
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
    lake.drop("sessions")
    assert lake.is_free("sessions")


def test_a_run_that_is_killed(object_store: ObjectStore, tmp_path: Path) -> None:
    """Files arrive late, are replaced and go, a run ends by SIGKILL: the next makes all right."""
    tables = {name: SHAPE.tables[name] for name in ("clicks", "sessions")}
    shape = replace(SHAPE, storage=Storage.DELTA, tables=tables)
    where = tmp_path / "killed", "killed", Path("warehouse"), 8
    scenario = InStore(shape, *where, store=object_store)
    scenario.deliver(1)
    scenario.deliver(2)
    ended = kill(scenario, "table sessions: after commit")
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    scenario.deliver(3)
    scenario.take_in()


@pytest.mark.parametrize("store", ["object_store", "google_store", "azure_store"], indirect=True)
def test_a_delta_table_of_others(store: StoreServer, tmp_path: Path) -> None:
    """
    After random changes of it the events are its rows; a table that a run may not read is told.

    So is one that is vacuumed between listing and reading: the next run reads what is there.
    """
    url = store.url_of(store.new_bucket(), "lake", "a b#é%", "orders")
    shop = shop_over_delta(tmp_path / "shop", tmp_path / "warehouse", f"path: '{url}'")
    retarget(shop.root, {"storage_options": store.options})
    orders = Orders(tmp_path / "written" / "orders", 2)
    mirror = Mirror(store, orders.folder, url)
    delta_orders.play(
        shop, orders, rounds=2 if isinstance(store, ObjectStore) else 1, landed=mirror
    )

    orders.append()
    mirror()
    with store.rule("GET", r"part-.*\.parquet", status=403, code="forbidden"):
        assert run_fails(shop.root).slug == "store-access-denied"
    if not isinstance(store, ObjectStore):
        return
    orders.compact()
    mirror()

    def vacuumed() -> None:
        orders.update()
        orders.compact()
        orders.vacuum()
        mirror()

    with store.rule("GET|HEAD", r"part-.*\.parquet", first=vacuumed):
        assert run_fails(shop.root).slug == "source-changed"
    shop.run()
    assert shop.rows() == orders.expected()


def test_an_iceberg_table_of_others(store: StoreServer, tmp_path: Path) -> None:
    """Each change of a table that pyiceberg writes in the store arrives."""
    shop, bucket = shop_with(tmp_path / "shop", tmp_path / "warehouse"), store.new_bucket()
    move_to_store(shop.root, store, bucket)
    places.use(api.open_project(shop.root))
    lake = store.url_of(bucket, "lake", "a b", "é%41")
    owner = Owner(tmp_path, lake, **{"py-io-impl": "tests.servers.store_io.StoreWriter"})
    owner.is_read_by(shop)
    play(shop, owner)


def test_spark_is_one_user_of_hdfs(hdfs: Hdfs, tmp_path: Path) -> None:
    """A target of another one is refused, and nothing is written as the first."""
    shop = shop_in(hdfs, tmp_path / "shop")
    shop("run")
    warehouse = hdfs.url_of(shop.bucket, "warehouse")
    there = hdfs.below(warehouse)
    shop.put("late.json", "late")
    retarget(shop.root, {"storage_options": hdfs.options | {"user": "ann"}})
    places.forget_ways()
    error = shop.run_fails()
    places.forget_ways()
    assert error.slug == "store-two-ways"
    assert ("by", USER) in error.facts
    assert hdfs.below(warehouse) == there
