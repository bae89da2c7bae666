"""Projects whose tables and sources are in stores besides S3: as there, by the same code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.arrivals.shapes import SHAPES
from tests.crash.scenario import SHAPE
from tests.lake.delta.orders import Orders, play, shop_over_delta
from tests.servers.azure_store import AzureStore
from tests.servers.google_store import GoogleStore
from tests.servers.hdfs import USER, Hdfs
from tests.servers.in_store import InStore, KilledInStore, shop_in
from tests.servers.mirror import Mirror
from tests.servers.moved import retarget

from infold import api
from infold.api.spark_sessions import session
from infold.lake.stores import places

pytestmark = [pytest.mark.servers, pytest.mark.spark]

Store = GoogleStore | AzureStore | Hdfs

USERS = 12


@pytest.fixture(scope="module", autouse=True)
def _jvm(
    google_store: GoogleStore,
    azure_store: AzureStore,
    hdfs: Hdfs,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[None]:
    """A JVM that has the connectors, and is the user of HDFS; that of other tests is neither."""
    api.close()
    shop = shop_in(google_store, tmp_path_factory.mktemp("first") / "shop")
    file = shop.root / "infold.yml"
    text = file.read_text(encoding="utf-8")
    azure = f"'{azure_store.new_bucket()}': {{account_key: '${{env:AZURE_KEY}}'}}"
    others = f"buckets: {{{azure}, '{hdfs.authority}': {json.dumps(hdfs.options)}}}"
    assert "storage_options:\n" in text
    file.write_text(
        text.replace("storage_options:\n", f"storage_options:\n      {others}\n"), encoding="utf-8"
    )
    session(api.open_project(shop.root))
    yield
    api.close()


@pytest.fixture(params=["google_store", "azure_store", "hdfs"])
def store(request: pytest.FixtureRequest) -> Store:
    """Each of the servers."""
    found: Store = request.getfixturevalue(request.param)
    return found


def test_a_day_of_the_starter(store: Store, tmp_path: Path) -> None:
    """
    It is looked at by doctor, run, shown, exported, verified, repaired, and taken down.

    A right that is missing below the warehouse has its name; with it, the next run does all.
    """
    shop = shop_in(store, tmp_path / "shop")
    assert "an object was written, listed, read and deleted" in shop("doctor")
    warehouse = store.url_of(shop.bucket, "warehouse")
    with store.refusing("write", warehouse):
        assert shop.run_fails().slug == "store-access-denied"
    shop("run")
    shop.put_bytes("late.json", (shop.root / "later" / "2024-03-10.json").read_bytes())
    assert "1 new file; 2 files as before" in shop("plan")
    shop.put("a b[1]{x},é+%20.json", "odd")
    with store.refusing("read", warehouse):
        assert shop.run_fails().slug == "store-access-denied"
    shop("run")
    assert "equal a full rebuild" in shop("verify")
    assert "Nothing to do" in shop("run")
    assert "odd" in shop("show", "clicks", "--where", "event_id = 'odd'")
    exported = store.url_of(shop.bucket, "exported.csv")
    shop("show", "daily", "--format", "csv", "--output", exported)
    assert store.read(exported).decode() == shop("show", "daily", "--format", "csv")
    (shop.root / ".infold" / "ledger.db").unlink()
    shop("repair", "--yes")
    shop("run")
    assert "equal a full rebuild" in shop("verify")
    assert api.lake(api.open_project(shop.root)).size("sessions") > 0
    store.put(other := f"{warehouse}/shop/clicks__1/x", b"another's")
    shop("teardown", "--yes")
    assert store.below(warehouse) == [other]


def test_tables_in_googles_store_equal_the_reference(
    google_store: GoogleStore, tmp_path: Path
) -> None:
    """Events, sessions, cells, rows by key: late, replaced, deleted; the store is busy."""
    play = InStore(
        SHAPES["fold"], tmp_path / "play", "play", Path("warehouse"), USERS, store=google_store
    )
    with google_store.rule(".*", "", status=503, code="backendError", every=97) as busy:
        play.play_all("burst", "replace", "delete")
    assert busy.met > 50


def test_a_run_in_hdfs_that_dies_at_a_write_point(hdfs: Hdfs, tmp_path: Path) -> None:
    """By exception, and by SIGKILL: files arrive late, are replaced and go, and all is right."""
    scenario = KilledInStore(SHAPE, tmp_path / "killed", "killed", Path("warehouse"), 8, store=hdfs)
    commits = scenario.first_commits()
    scenario.die_at((commits[1],))


def test_spark_is_one_user_of_hdfs(hdfs: Hdfs, tmp_path: Path) -> None:
    """A target of another one is refused, and nothing is written as the first."""
    shop = shop_in(hdfs, tmp_path / "shop")
    retarget(shop.root, {"storage_options": hdfs.options | {"user": "ann"}})
    places.forget_ways()
    error = shop.run_fails()
    places.forget_ways()
    assert error.slug == "store-two-ways"
    assert ("by", USER) in error.facts
    assert not hdfs.below(hdfs.url_of(shop.bucket, "warehouse"))


def test_a_run_that_dies_at_a_write_point(azure_store: AzureStore, tmp_path: Path) -> None:
    """By exception, and by SIGKILL, of a busy store: the next run makes all tables right."""
    scenario = KilledInStore(
        SHAPE, tmp_path / "killed", "killed", Path("warehouse"), 8, store=azure_store
    )
    with azure_store.rule(".*", "", status=503, code="ServerBusy", every=61):
        commits = scenario.first_commits()
    scenario.die_at((commits[1],))


@pytest.mark.parametrize("store", ["google_store", "azure_store"], indirect=True)
def test_a_delta_table_of_others(store: Store, tmp_path: Path) -> None:
    """After random changes of it the events are its rows."""
    url = store.url_of(store.new_bucket(), "lake", "orders")
    shop = shop_over_delta(tmp_path / "shop", tmp_path / "warehouse", f"path: '{url}'")
    retarget(shop.root, {"storage_options": store.options})
    orders = Orders(tmp_path / "written" / "orders", 2, marks_in_files=True)
    play(shop, orders, rounds=1, landed=Mirror(store, orders.folder, url))
