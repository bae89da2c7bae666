"""Tables of Delta Lake in stores besides S3, with Spark: the same oracles; who guards a commit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.arrivals.shapes import SHAPES
from tests.crash.scenario import SHAPE
from tests.servers.azure_store import AzureStore
from tests.servers.google_store import GoogleStore
from tests.servers.in_store import InStore, KilledInStore, Shop, shop_in
from tests.servers.moved import retarget
from tests.servers.store_gate import Rule

from infold import api
from infold.api.spark_sessions import session
from infold.core.storages import Storage
from infold.lake.delta.tables import DeltaLake
from infold.lake.stores import places
from infold.spark.storages import storage_of

pytestmark = [pytest.mark.servers, pytest.mark.spark]

USERS = 12


@pytest.fixture(scope="module", autouse=True)
def _jvm(
    google_store: GoogleStore, azure_store: AzureStore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """A JVM that has both connectors and Delta Lake; that of other tests lacks them."""
    api.close()
    buckets = {azure_store.new_bucket(): {"account_key": "${env:AZURE_KEY}"}}
    shop = shop_in(google_store, tmp_path_factory.mktemp("first") / "shop", storage="delta")
    retarget(shop.root, {"storage_options": google_store.options | {"buckets": buckets}})
    session(api.open_project(shop.root))
    yield
    api.close()


@pytest.fixture(params=["google_store", "azure_store"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Shop:
    """The starter's project in a bucket of its own, of each of the servers."""
    return shop_in(request.getfixturevalue(request.param), tmp_path / "shop", storage="delta")


@contextmanager
def at_commit(shop: Shop, table: str, **how: Any) -> Iterator[Rule]:
    """A rule for the request by which Spark makes a version of a table."""
    if isinstance(shop.store, AzureStore):
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


def test_a_day_of_the_starter(shop: Shop) -> None:
    """It is run, shown, verified, repaired, dropped and built again, and looked at by doctor."""
    assert "an object was written, listed, read and deleted" in shop("doctor")
    shop("run")
    shop.put("late.json", "late")
    shop("run")
    assert "Nothing to do" in shop("run")
    rows = shop("show", "clicks", "--where", "event_id = 'late'", "--json")
    assert json.loads(rows)["event_id"] == "late"
    lake = api.lake(api.open_project(shop.root))
    assert isinstance(lake, DeltaLake)
    log = lake.log("clicks")
    assert log is not None
    # What a plan reads of a version, in place of all of them.
    assert f"{log.newest:020}.crc" in log.marks
    lake.drop("daily")
    assert lake.is_free("daily")
    shop("run")
    (shop.root / ".infold" / "ledger.db").unlink()
    shop("repair", "--yes")
    shop("run")
    assert "equal a full rebuild" in shop("verify")
    shop("teardown", "--yes")
    assert all(lake.is_free(table) for table in ("clicks", "sessions", "daily"))


def test_who_guards_a_commit(shop: Shop) -> None:
    """
    An answer is lost: the version that is in the way is one's own, and no row is there twice.

    It is another's: the store has one of the two win; the other is told, and writes nothing over.
    """
    shop("run")
    shop.put("more.json", "a", "b")
    with at_commit(shop, "clicks", lost=True) as lost:
        shop("run")
    assert lost.met >= 1
    rows = shop("show", "clicks", "--where", "event_id IN ('a', 'b')", "--json")
    assert sorted(json.loads(row)["event_id"] for row in rows.splitlines()) == ["a", "b"]
    project = api.open_project(shop.root)
    lake = api.lake(project)
    assert isinstance(lake, DeltaLake)
    tables = storage_of(project).tables(session(project), project, lake)
    before = lake.history("clicks").snapshots
    with at_commit(shop, "clicks", lost=True) as lost:
        tables.rewrite("clicks", tables.partition_files("clicks")[0].partition)
    assert lost.met >= 1
    assert lake.history("clicks").snapshots == before + 1
    assert "equal a full rebuild" in shop("verify")

    shop.put("again.json", "c")
    log = lake.log("clicks")
    assert log is not None
    there = log.file(log.newest + 1)
    other = b'{"commitInfo": {}}\n{"remove": {"path": "none", "dataChange": true}}'
    with at_commit(shop, "clicks", first=lambda: places.write(there, other)) as met:
        assert shop.run_fails().slug == "foreign-write"
    assert met.met >= 1
    assert places.read(there) == other
    now = lake.log("clicks")
    assert now is not None
    assert now.newest == log.newest + 1
    assert shop.run_fails().slug == "foreign-write"


def test_tables_in_googles_store_equal_the_reference(
    google_store: GoogleStore, tmp_path: Path
) -> None:
    """Events, sessions, cells, rows by key: late, replaced, deleted; the store is busy."""
    shape = replace(SHAPES["fold"], storage=Storage.DELTA)
    play = InStore(shape, tmp_path / "play", "play", Path("warehouse"), USERS, store=google_store)
    with google_store.rule(".*", "", status=503, code="backendError", every=97) as busy:
        play.play_all("burst", "replace", "delete")
    assert busy.met > 50


def test_a_run_that_dies_at_a_write_point(azure_store: AzureStore, tmp_path: Path) -> None:
    """By exception, and by SIGKILL, of a busy store: the next run makes all tables right."""
    shape = replace(SHAPE, storage=Storage.DELTA)
    scenario = KilledInStore(
        shape, tmp_path / "killed", "killed", Path("warehouse"), 8, store=azure_store
    )
    with azure_store.rule(".*", "", status=503, code="ServerBusy", every=61):
        commits = scenario.first_commits()
    scenario.die_at((commits[1],))
