"""
Rows that are older than they are kept are as if they had never come, but in frozen cells.

What the tables should have is counted by DuckDB over the files, from the start of the events on,
and for frozen days as of the run before these were frozen.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.crash.scenario import living
from tests.spark.project import CUMULATIVE, SparkProject, events, new_name, sessions

from infold import api
from infold.core.model import SET_ASIDE
from infold.core.storages import Storage

pytestmark = pytest.mark.spark

HEADER = "id,who,at,v"
COLUMNS = "{id: string, who: string, at: timestamp, v: int}"
CLICKS = events("SELECT id, who, at, v FROM raw.clicks", "prefer: [v]")
EVERYWHERE = events(
    "SELECT id, who, at, v FROM raw.clicks", "prefer: [v]", "deduplicate: everywhere"
)
VISITS = sessions(
    "user: who, gap: 30 minutes",
    "SELECT count(*) AS n FROM clicks",
    "timeseries: {granularity: day}",
)
DAILY = """---
materialization: table
timeseries: {event_time_column: at, partition_column: day, granularity: day}
incremental: {forward_only: true}
retain: forever
---
SELECT cast(at AS date) AS day, count(*) AS n, sum(v) AS v FROM clicks GROUP BY 1
"""
USERS = f"{CUMULATIVE}SELECT who, count(*) AS n, sum(v) AS v FROM clicks GROUP BY who\n"


class Kept(SparkProject):
    """Clicks that are kept for ten days, and tables over them."""

    def __init__(self, root: Path, warehouse: Path, storage: Storage, **models: str) -> None:
        super().__init__(
            root,
            f"name: {new_name('kept')}\n"
            "sources:\n  raw.clicks:\n    path: landing/*.csv\n    retain: 10 days\n"
            f"    on_drift: set_aside\n    event_time_column: at\n    columns: {COLUMNS}\n"
            f"targets:\n  dev: {{storage: {storage}, warehouse: '{warehouse}'}}\n",
        )
        self.models(**models)

    def put(self, name: str, *rows: str) -> None:
        """A file of rows."""
        self.write(f"landing/{name}", "\n".join([HEADER, *rows]) + "\n")

    def expected(self, query: str, since: str) -> Sequence[tuple[Any, ...]]:
        """A query over the first copies of all events in the files since a day, by DuckDB."""
        files = f"read_csv('{self.root}/landing/*.csv', columns={{'id': 'VARCHAR',"
        files += " 'who': 'VARCHAR', 'at': 'TIMESTAMP', 'v': 'INT'}, ignore_errors=true)"
        first = f'SELECT DISTINCT ON (id, "at") * FROM {files} WHERE "at" >= \'{since}\' ORDER BY v'
        with duckdb.connect() as database:
            return sorted(database.execute(query.format(f"({first})")).fetchall(), key=repr)

    def found(self, table: str, *columns: str) -> Sequence[tuple[Any, ...]]:
        """The rows of a table."""
        rows = api.lake_of(self.project()).rows(table).to_pylist()
        picked = [tuple(_plain(row[name]) for name in columns or row) for row in rows]
        return sorted(picked, key=repr)

    def check(self, since: str, frozen: Sequence[tuple[Any, ...]] = ()) -> None:
        """Every table has what it should; the ledger counts it, and verify finds it."""
        events_of = self.expected('SELECT id, who, "at", v FROM {}', since)
        assert self.found("clicks", "id", "who", "at", "v") == events_of
        users = self.expected("SELECT who, count(*), sum(v) FROM {} GROUP BY 1", since)
        assert self.found("users", "who", "n", "v") == users
        daily = self.expected(
            'SELECT cast("at" AS date), count(*), sum(v) FROM {} GROUP BY 1', since
        )
        assert self.found("daily") == sorted((*frozen, *daily), key=repr)
        assert api.ledger_of(self.project()).contradictions() == {}
        report = api.verify(self.project())
        assert report.equal, report


def _plain(value: Any) -> Any:
    if hasattr(value, "tzinfo"):
        return value.replace(tzinfo=None)
    return value if isinstance(value, str | None) or hasattr(value, "year") else int(value)


@pytest.mark.parametrize("storage", Storage)
def test_rows_go_with_their_age(tmp_path: Path, warehouse: Path, storage: Storage) -> None:
    """
    From events and all that follows from them, and stay away when they are delivered again.

    Totals that are kept forever are frozen; a session over the start begins where events do.
    """
    shop = Kept(
        tmp_path, warehouse, storage, clicks=CLICKS, visits=VISITS, daily=DAILY, users=USERS
    )
    night = ["a1,ann,2024-03-01 23:50:00,1", "a2,ann,2024-03-02 00:10:00,2"]
    shop.put("1.csv", *night, "b1,bob,2024-03-02 08:00:00,4", "b1,bob,2024-03-02 08:00:00,9")
    shop.put("2.csv", "c1,cat,2024-02-20 10:00:00,8", "b2,bob,2024-03-09 10:00:00,16", "x,y,?,z")
    shop.put("3.csv", "a3,ann,2024-03-01 10:00:00,32")
    receipts = shop.receipts(now="2024-03-10")
    assert (receipts["clicks"].before_start, receipts["clicks"].set_aside) == (1, 1)
    shop.check("2024-02-29")
    assert shop.found("visits", "n") == [(1,), (1,), (1,), (2,)]

    first = shop.expected(
        'SELECT cast("at" AS date), count(*), sum(v) FROM {} GROUP BY 1', "2024-02-29"
    )
    shop.put("4.csv", "d1,dan,2024-03-01 12:00:00,64", "d2,dan,2024-03-05 12:00:00,128")
    actions = shop.actions(now="2024-03-12")
    assert actions["clicks"] == ["expire", "ingest"]
    frozen = [row for row in first if row[0].day == 1]
    shop.check("2024-03-02", frozen)
    assert shop.found("visits", "n") == [(1,)] * 4, "what is left of the night is a session"
    verdicts = {verdict.model: verdict for verdict in api.verify(shop.project()).models}
    assert verdicts["daily"].note == "1 frozen cell by the ledger alone"
    assert shop.actions(now="2024-03-12") == {}

    shop.drop("2.csv")
    shop.put("5.csv", *night)
    shop.model("daily", DAILY.replace("sum(v) AS v", "sum(v) + 0 AS v"))
    shop.go(now="2024-03-13")
    frozen = [row for row in first if row[0].day in (1, 2)]
    shop.check("2024-03-03", frozen)
    shop.go(now="2024-06-01")
    shop.check("2024-05-22", list(shop.found("daily")))
    assert len(shop.found("daily")) == 3


def test_events_that_begin_again_leave_frozen_days_alone(tmp_path: Path, warehouse: Path) -> None:
    """Though nothing is left of the table that these were made from; other days follow."""
    shop = Kept(tmp_path, warehouse, Storage.ICEBERG, clicks=CLICKS, daily=DAILY, users=USERS)
    shop.put("1.csv", "a,ann,2024-03-01 10:00:00,1", "b,bob,2024-03-09 11:00:00,2")
    shop.go(now="2024-03-10")
    frozen = [row for row in shop.found("daily") if row[0].day == 1]
    shop.go(now="2024-03-12")
    api.forget(shop.project(), ["clicks"])
    shop.put("2.csv", "c,cat,2024-03-08 10:00:00,4")
    shop.go(now="2024-03-12")
    shop.check("2024-03-02", frozen)
    assert len(shop.found("daily")) == 3


def test_a_copy_that_is_young_enough_comes_back(tmp_path: Path, warehouse: Path) -> None:
    """Of an event with copies at several times, where the one that was kept goes."""
    shop = Kept(tmp_path, warehouse, Storage.ICEBERG, clicks=EVERYWHERE, daily=DAILY, users=USERS)
    shop.put("1.csv", "a,ann,2024-03-01 10:00:00,1", "b,bob,2024-03-01 11:00:00,2")
    shop.put("2.csv", "a,ann,2024-03-09 10:00:00,1", "c,cat,2024-03-09 11:00:00,4")
    shop.go(now="2024-03-10")
    assert shop.found("clicks", "id", "v") == [("a", 1), ("b", 2), ("c", 4)]
    shop.go(now="2024-03-12")
    assert shop.found("daily", "n") == [(2,), (2,)], "a frozen day has what it had"
    shop.check("2024-03-02", [row for row in shop.found("daily") if row[0].day == 1])


@pytest.mark.parametrize("at", [3, 8, 14])
def test_a_run_that_dies_while_rows_go(tmp_path: Path, warehouse: Path, at: int) -> None:
    """The next one takes out what is left."""
    shop = Kept(tmp_path, warehouse, Storage.DELTA, clicks=CLICKS, daily=DAILY, users=USERS)
    shop.put("1.csv", "a,ann,2024-03-01 10:00:00,1", "b,bob,2024-03-09 11:00:00,2")
    shop.go(now="2024-03-10")
    before = shop.found("daily")
    with living(at):
        shop.go(now="2024-03-12")
    shop.go(now="2024-03-12")
    shop.check("2024-03-02", before[:1])


def test_older_rows_wait_for_who_keeps_something_of_them(tmp_path: Path, warehouse: Path) -> None:
    """A table that is to be kept reads what came, before it goes."""
    shop = Kept(tmp_path, warehouse, Storage.ICEBERG, clicks=CLICKS, daily=DAILY, users=USERS)
    shop.put("1.csv", "a,ann,2024-03-01 10:00:00,1")
    shop.go(now="2024-03-10", select=["clicks"])
    result = shop.go(now="2024-03-12", select=["clicks"])
    assert not result.steps
    assert result.plans[-1].notes == (
        "clicks: its rows before 2024-03-02 are kept until daily has read them",
    )
    assert shop.actions(now="2024-03-12")["clicks"] == ["expire"]
    shop.put("2.csv", "b,bob,2024-03-12 10:00:00,2")
    shop.go(now="2024-03-13")
    shop.check("2024-03-03", [row for row in shop.found("daily") if row[0].day == 1])
    assert len(shop.found("daily")) == 2


def test_rows_set_aside_go_with_theirs(tmp_path: Path, warehouse: Path) -> None:
    """Those whose time is known; others stay as long as their file."""
    clicks = CLICKS.replace("unique_key: [id]", "unique_key: [id, who]")
    shop = Kept(tmp_path, warehouse, Storage.ICEBERG, clicks=clicks)
    shop.put("1.csv", "a,,2024-03-01 10:00:00,1", "b,bob,2024-03-01 11:00:00,2", "c,cat,?,3")
    shop.put("2.csv", "d,,2024-03-09 10:00:00,1")
    shop.go(now="2024-03-10")
    assert len(shop.records(SET_ASIDE)) == 3
    shop.go(now="2024-03-12")
    assert sorted(row["raw"][:1] for row in shop.records(SET_ASIDE)) == ["c", "d"]
    assert sum(file.set_aside for file in api.ledger_of(shop.project()).files("clicks")) == 2
    assert api.ledger_of(shop.project()).contradictions() == {}
    assert shop.actions(now="2024-03-12") == {}
