"""Projects whose tables and sources are in an object store: what is right in a folder is there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.arrivals.shapes import SHAPES
from tests.crash.scenario import SHAPE
from tests.lake.delta.orders import Orders, play, shop_over_delta
from tests.servers.in_store import InStore, KilledInStore, Shop, run_fails, shop_in
from tests.servers.mirror import Mirror
from tests.servers.moved import retarget
from tests.servers.object_store import ObjectStore
from tests.servers.store_server import move_to_store

from infold import api
from infold.api.spark_sessions import session
from infold.cli import cli

pytestmark = [pytest.mark.servers, pytest.mark.spark]

USERS = 30


@pytest.fixture(scope="module")
def store(
    object_store: ObjectStore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ObjectStore]:
    """The server, and a JVM that has what a store needs; that of other tests lacks it."""
    api.close()
    root = tmp_path_factory.mktemp("first") / "shop"
    assert CliRunner().invoke(cli, ["init", str(root)]).exit_code == 0
    move_to_store(root, object_store, object_store.new_bucket())
    session(api.open_project(root))
    yield object_store
    api.close()


def test_tables_equal_the_reference(store: ObjectStore, tmp_path: Path) -> None:
    """Events, sessions, cells, rows by key: late, replaced, deleted; the store is busy."""
    play = InStore(SHAPES["fold"], tmp_path / "play", "play", Path("warehouse"), USERS, store=store)
    with store.rule(".*", "", status=503, code="SlowDown", every=29) as busy:
        play.play_all("arrive", "burst", "again", "replace", "delete")
    assert busy.met > 100
    with store.rule("GET", "", cut=True, every=13) as cut:
        assert api.verify(play.project).equal
    assert cut.met > 30


def test_a_run_that_dies_at_a_write_point(store: ObjectStore, tmp_path: Path) -> None:
    """By exception at two points, and once by SIGKILL: the next run makes all tables right."""
    scenario = KilledInStore(
        SHAPE, tmp_path / "killed", "killed", Path("warehouse"), 8, store=store
    )
    commits = scenario.first_commits()
    scenario.die_at((commits[1], commits[4]))


@pytest.fixture
def shop(store: ObjectStore, tmp_path: Path) -> Shop:
    """Two files have arrived."""
    return shop_in(store, tmp_path / "shop")


def test_a_day_of_the_starter(shop: Shop) -> None:
    """It is run, shown, exported, verified, repaired, compacted, and looked at by doctor."""
    assert "source raw.clicks" in shop("doctor")
    shop("run")
    late = shop.root / "later" / "2024-03-10.json"
    shop.put_bytes("late.json", late.read_bytes())
    assert "1 new file; 2 files as before" in shop("plan")
    shop("run")
    assert "equal a full rebuild" in shop("verify")
    assert "Nothing to do" in shop("run")
    shop.put("a b[1]{x},é+%20.json", "odd")
    shop("run")
    assert "odd" in shop("show", "clicks", "--where", "event_id = 'odd'")
    place = f"s3://{shop.bucket}/exported.csv"
    shop("show", "daily", "--format", "csv", "--output", place)
    exported = shop.store.bucket(shop.bucket).read("exported.csv")
    assert exported.decode() == shop("show", "daily", "--format", "csv")
    (shop.root / ".infold" / "ledger.db").unlink()
    shop("repair", "--yes")
    shop("run")
    assert "equal a full rebuild" in shop("verify")
    before = api.lake(api.open_project(shop.root)).size("sessions")
    assert before > 0


def test_an_object_that_is_replaced_while_it_is_read(shop: Shop) -> None:
    """The step is refused, nothing of either version is kept, and the next run has the new one."""
    shop.put("new.json", "a", "b")
    shop("run")
    shop.put("more.json", "c")
    with shop.store.rule("GET", "more.json", first=lambda: shop.put("more.json", "d", "e")):
        assert shop.run_fails().slug == "source-changed"
    shop("run")
    rows = shop("show", "clicks", "--columns", "event_id", "--where", "url = '/'", "--json")
    assert {"d", "e"} <= {json.loads(line)["event_id"] for line in rows.splitlines()}
    assert '"c"' not in rows
    assert "equal a full rebuild" in shop("verify")


def test_an_object_that_spark_does_not_see_for_a_moment(shop: Shop) -> None:
    """Spark leaves out what a store calls missing while it lists: the step is refused."""
    shop.put("new.json", "a", "b")
    shop("run")
    shop.put("more.json", "c")
    with shop.store.rule("HEAD", "more.json", status=404, every=3) as gone:
        assert shop.run_fails().slug == "source-changed"
    assert gone.met == 3
    shop("run")
    assert "c " in shop("show", "clicks", "--where", "event_id = 'c'")


def test_credentials_that_expire_in_the_middle_of_a_run(shop: Shop) -> None:
    """What was committed stays, the error says what to renew, and the next run does the rest."""
    with shop.store.rule("PUT", "sessions", status=400, code="ExpiredToken"):
        error = shop.run_fails()
    assert error.slug == "store-credentials-refused"
    shop("run")
    assert "equal a full rebuild" in shop("verify")


@pytest.mark.parametrize("method", ["PUT", "GET"])
def test_a_right_that_is_missing(shop: Shop, method: str) -> None:
    """An error names the place; with the right, the next run does all."""
    with shop.store.rule(method, "warehouse/", status=403, code="AccessDenied"):
        if method == "GET":
            shop.put("z.json", "z")
        assert shop.run_fails().slug == "store-access-denied"
    shop("run")
    assert "equal a full rebuild" in shop("verify")


def test_a_delta_table_of_others(store: ObjectStore, tmp_path: Path) -> None:
    """
    After random changes of it the events are its rows; a table that a run may not read is told.

    So is one that is vacuumed between listing and reading: the next run reads what is there.
    """
    url = store.url_of(store.new_bucket(), "lake", "a b#é%", "orders")
    shop = shop_over_delta(tmp_path / "shop", tmp_path / "warehouse", f"path: '{url}'")
    retarget(shop.root, {"storage_options": store.options})
    orders = Orders(tmp_path / "written" / "orders", 2)
    mirror = Mirror(store, orders.folder, url)
    play(shop, orders, rounds=2, landed=mirror)

    orders.append()
    mirror()
    with store.rule("GET", r"part-.*\.parquet", status=403, code="AccessDenied"):
        assert run_fails(shop.root).slug == "store-access-denied"
    listed = next(one for one in mirror.there if one.endswith(".parquet"))
    orders.compact()
    mirror()

    def vacuumed() -> None:
        orders.update()
        orders.compact()
        orders.vacuum()
        mirror()

    assert listed
    with store.rule("GET|HEAD", r"part-.*\.parquet", first=vacuumed):
        assert run_fails(shop.root).slug == "source-changed"
    shop.run()
    assert shop.rows() == orders.expected()
    assert shop.proven()
