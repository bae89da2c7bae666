"""Commits of others to tables of infold's, and damage to their files, as Spark meets them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.running.standing_tables import drop
from tests.spark.events.clicks_project import MODEL, SOURCE, ClicksProject
from tests.spark.time_range.daily_project import DAILY, DailyProject, model

from infold import api
from infold.core import write_points
from infold.core.report import RunFailed
from infold.core.storages import Storage
from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


BY_DAY = """---
materialization: table
timeseries: {event_time_column: at, partition_column: day}
incremental: {}
---
SELECT CAST(at AS DATE) AS day, sum(v) AS v FROM clicks GROUP BY 1"""


class Shop(ClicksProject):
    """Clicks by day, in tables of a storage."""

    def others_delete(self, spark: SparkSession) -> None:
        """Somebody deletes a click, by Spark and without infold."""
        project = api.open_project(self.root)
        if project.target.by_folders:
            folder = api.lake_of(project).folder("clicks")  # type: ignore[attr-defined]
            jvm: Any = spark._jvm
            session = spark._jsparkSession
            jvm.io.delta.tables.DeltaTable.forPath(session, folder).delete("id = 'a'")
        else:
            spark.sql(f"DELETE FROM infold.{self.table()} WHERE id = 'a'")

    def others_roll_back(self, spark: SparkSession, snapshot: int) -> None:
        """Somebody rolls the table back to a snapshot, as the error says."""
        lake = api.lake_of(api.open_project(self.root))
        if not api.open_project(self.root).target.by_folders:
            procedure = "infold.system.rollback_to_snapshot"
            spark.sql(f"CALL {procedure}('{self.table()}', {snapshot})").collect()
            return
        log = lake.log("clicks")  # type: ignore[attr-defined]
        jvm: Any = spark._jvm
        table = jvm.io.delta.tables.DeltaTable.forPath(spark._jsparkSession, log.folder)
        table.restoreToVersion(log.version(snapshot))

    def call(self, spark: SparkSession, procedure: str, more: str = "") -> None:
        """Somebody calls one of Iceberg's procedures."""
        spark.sql(f"CALL infold.system.{procedure}(table => '{self.table()}'{more})").collect()

    def expire(self, spark: SparkSession) -> None:
        """Somebody has all snapshots expire but for the newest."""
        self.call(
            spark,
            "expire_snapshots",
            ", older_than => TIMESTAMP '2100-01-01', retain_last => 1",
        )

    def rewrite(self, spark: SparkSession) -> None:
        """Somebody puts the rows into other files."""
        self.call(spark, "rewrite_data_files", ", options => map('rewrite-all', 'true')")

    def table(self) -> str:
        """The events' table as Iceberg's procedures take it."""
        return f"{api.open_project(self.root).name}.clicks"

    def refused(self) -> InfoldError:
        """The error of a run."""
        with pytest.raises(InfoldError) as raised:
            self.run()
        return raised.value


@pytest.fixture
def make(tmp_path: Path, warehouse: Path) -> Callable[[Storage], Shop]:
    """A project that was built once."""

    def make(storage: Storage) -> Shop:
        shop = Shop(tmp_path / "shop", warehouse, MODEL, SOURCE)
        config = shop.root / "infold.yml"
        config.write_text(config.read_text().replace("storage: iceberg", f"storage: {storage}"))
        shop.model("daily", BY_DAY)
        shop.put("first.csv", "a,2024-03-01 10:00:00,1", "b,2024-03-02 10:00:00,2")
        shop.run()
        return shop

    return make


@pytest.mark.parametrize("storage", list(Storage), ids=str)
def test_a_commit_while_a_step_is_at_work(
    make: Callable[[Storage], Shop],
    storage: Storage,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    The step's own commit does not hide it: nothing is built from the table, in this run and the
    next, until it is rolled back. Then the step is done again.
    """
    shop = make(storage)
    project = api.open_project(shop.root)
    before = api.ledger_of(project).newest_versions()["clicks"].snapshot
    assert before is not None
    shop.put("second.csv", "c,2024-03-01 11:00:00,4")
    passed = write_points.point

    def point(name: str) -> None:
        if name == "table clicks: before commit":
            shop.others_delete(spark)
        passed(name)

    with monkeypatch.context() as patch:
        patch.setattr(write_points, "point", point)
        during = shop.refused()
    after = shop.refused()

    assert (during.slug, after.slug) == ("foreign-write", "foreign-write")
    assert during.facts == after.facts
    assert [row[1] for row in shop.rows("daily")] == [1, 2]
    shop.others_roll_back(spark, before)
    assert shop.run().written == 1
    assert [row[1] for row in shop.rows("daily")] == [5, 2]


def test_maintenance_by_others_and_what_it_would_hide(
    make: Callable[[Storage], Shop], spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Maintenance by others changes no row, also where it leaves no snapshot of infold's.

    A commit that no run recorded is found where its snapshot has expired since. Who deletes rows
    for good has the snapshots expire that show it: it is seen all the same.
    """
    shop = make(Storage.ICEBERG)
    shop.rewrite(spark)
    shop.call(spark, "rewrite_manifests", ", use_caching => false")
    shop.expire(spark)
    shop.model("daily_too", BY_DAY)
    assert shop.run(model="daily_too").written == 2

    shop.put("second.csv", "c,2024-03-01 11:00:00,4")
    project = api.open_project(shop.root)

    def die(*_: object, **__: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(type(api.ledger_of(project)), "finish_step", die)
        with pytest.raises(SystemExit):
            shop.run()
    shop.rewrite(spark)
    shop.expire(spark)
    shop.run()
    assert [row[0] for row in shop.rows()] == ["a", "b", "c"]
    assert [row[1] for row in shop.rows("daily")] == [5, 2]

    shop.others_delete(spark)
    shop.rewrite(spark)
    shop.expire(spark)
    shop.put("third.csv", "d,2024-03-01 11:00:00,4")
    assert shop.refused().slug == "foreign-write"


SESSIONS = """---
materialization: sessions
sessions: {{user: who, gap: 30 minutes}}
---
SELECT {0} FROM raw.clicks"""


def data(shop: DailyProject, table: str) -> Path:
    """The largest data file of a table."""
    found = (shop.root / "warehouse" / "shop" / table / "data").rglob("*.parquet")
    return max(found, key=lambda path: path.stat().st_size)


def test_damage_is_named_and_repaired(tmp_path: Path) -> None:
    """
    Verify, a run that reads the damage and one with nothing to do name it; a rebuild repairs it.

    Sessions that would follow from stored ones are built where these cannot be read, as the run
    finds.
    """
    shop = DailyProject(tmp_path / "shop")
    columns = "count(*) AS clicks, sum(amount) AS amount, max(amount) AS m"
    shop.models(daily=model(DAILY), sessions=SESSIONS.format(columns))
    shop.land("2024-03-01T10:00:00Z", "2024-03-02T10:00:00Z")
    api.run(shop.project())
    data(shop, "sessions").write_bytes(b"PAR1" + b"x" * 999 + b"PAR1")
    shop.models(sessions=SESSIONS.format("count(*) AS clicks, max(amount) AS m"))
    done = api.run(shop.project())
    assert [str(step.action) for step, _ in done.steps] == ["build"]
    note = "sessions: its table is damaged; as its definition changed, all of it is rebuilt"
    assert note in done.notes
    drop(shop.project(), "sessions")
    [verdict] = api.verify(shop.project(), select=["sessions"]).models
    assert verdict.note == "its table was dropped: `infold run` rebuilds it"
    (shop.root / "models" / "sessions.sql").unlink()

    rows, whole = shop.rows("daily"), data(shop, "raw__clicks").read_bytes()
    cure = "`infold forget raw.clicks` and `infold run` (protected: `--allow-refresh`) rebuild it"
    middle = len(whole) // 3
    flipped = bytes([*whole[:middle], *(byte ^ 0xFF for byte in whole[middle : middle + 40])])
    data(shop, "raw__clicks").write_bytes(flipped + whole[middle + 40 :])
    found = api.verify(shop.project())
    assert not found.equal
    assert cure in next(one for one in found.models if one.model == "raw.clicks").note
    shop.land("2024-03-01T11:00:00Z")
    corrupt = data(shop, "raw__clicks")
    corrupt.write_bytes(b"PAR1" + b"x" * (len(whole) - 8) + b"PAR1")
    with pytest.raises(RunFailed) as failed:
        api.run(shop.project())
    assert {error.error.slug for error in failed.value.result.failures} == {"damaged-table"}

    api.forget(shop.project(), ["raw.clicks"])
    [verdict] = api.verify(shop.project(), select=["daily"]).models
    assert "raw.clicks was dropped since it was read" in verdict.note
    api.run(shop.project())
    assert [row[1] for row in shop.rows("daily")] == [2, 1]
    assert [row[:1] for row in shop.rows("daily")] == [row[:1] for row in rows]
