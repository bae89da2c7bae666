"""Tables of Delta Lake in an object store, with Spark: the same oracles; who guards a commit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.arrivals.shapes import SHAPES
from tests.crash.scenario import SHAPE
from tests.servers.in_store import InStore, KilledInStore, Shop, shop_in
from tests.servers.object_store import ObjectStore
from tests.servers.test_in_object_store import USERS

from infold import api
from infold.api.spark_sessions import session
from infold.core.storages import Storage
from infold.lake.delta.tables import DeltaLake
from infold.lake.stores import places

pytestmark = [pytest.mark.servers, pytest.mark.spark]


@pytest.fixture(scope="module")
def store(
    object_store: ObjectStore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ObjectStore]:
    """The server, and a JVM that has what Delta Lake and a store need."""
    api.close()
    first = shop_in(object_store, tmp_path_factory.mktemp("first") / "shop", storage="delta")
    session(api.open_project(first.root))
    yield object_store
    api.close()


@pytest.fixture
def shop(store: ObjectStore, tmp_path: Path) -> Shop:
    """The starter's project in a bucket of its own."""
    return shop_in(store, tmp_path / "shop", storage="delta")


def test_tables_equal_the_reference(store: ObjectStore, tmp_path: Path) -> None:
    """Events, sessions, cells, rows by key: late, replaced, deleted; the store is busy."""
    shape = replace(SHAPES["fold"], storage=Storage.DELTA)
    play = InStore(shape, tmp_path / "play", "play", Path("warehouse"), USERS, store=store)
    with store.rule(".*", "", status=503, code="SlowDown", every=29) as busy:
        play.play_all("arrive", "burst", "again", "replace", "delete")
    assert busy.met > 100
    with store.rule("GET", "", cut=True, every=13) as cut:
        assert api.verify(play.project).equal
    assert cut.met > 30


def test_a_run_that_dies_at_a_write_point(store: ObjectStore, tmp_path: Path) -> None:
    """By exception at two points, and once by SIGKILL: the next run makes all tables right."""
    shape = replace(SHAPE, storage=Storage.DELTA)
    scenario = KilledInStore(
        shape, tmp_path / "killed", "killed", Path("warehouse"), 8, store=store
    )
    commits = scenario.first_commits()
    scenario.die_at((commits[1], commits[4]))


def test_a_day_of_the_starter(shop: Shop) -> None:
    """It is run, shown, verified, repaired, dropped and built again, and looked at by doctor."""
    assert "warehouse" in shop("doctor")
    shop("run")
    shop.put("late.json", "late")
    shop("run")
    assert "Nothing to do" in shop("run")
    rows = shop("show", "clicks", "--where", "event_id = 'late'", "--json")
    assert json.loads(rows)["event_id"] == "late"
    lake = api.lake(api.open_project(shop.root))
    lake.drop("daily")
    shop("run")
    (shop.root / ".infold" / "ledger.db").unlink()
    shop("repair", "--yes")
    shop("run")
    assert "equal a full rebuild" in shop("verify")


def test_an_answer_that_is_lost_after_a_commit(shop: Shop) -> None:
    """The request is repeated, and makes the same version once more: no row is there twice."""
    shop("run")
    shop.put("more.json", "a", "b")
    with shop.store.rule("PUT", r"clicks/_delta_log/\d+\.json", lost=True, times=1) as lost:
        shop("run")
    assert lost.met == 1
    rows = shop("show", "clicks", "--where", "event_id IN ('a', 'b')", "--json")
    assert sorted(json.loads(row)["event_id"] for row in rows.splitlines()) == ["a", "b"]
    assert "equal a full rebuild" in shop("verify")


def test_a_version_that_somebody_else_writes_over(shop: Shop) -> None:
    """It is noticed by the run, and by the next one: nothing is built on it."""
    shop("run")
    shop.put("more.json", "a")
    lake = api.lake(api.open_project(shop.root))
    assert isinstance(lake, DeltaLake)
    log = lake.log("clicks")
    assert log is not None
    there = log.file(log.newest + 1)
    other = '{"commitInfo": {}}\n{"remove": {"path": "none", "dataChange": true}}'

    def written_over() -> None:
        places.write(there, other.encode())

    with shop.store.rule("PUT", r"clicks/_delta_log/\d+\.crc", first=written_over):
        assert shop.run_fails().slug == "foreign-write"
    assert shop.run_fails().slug == "foreign-write"
