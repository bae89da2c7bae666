"""Models built by cells, with Spark: each cell has the rows that its definition gives."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.time_range.daily_project import (
    DAILY,
    HOURLY,
    ROLLING,
    DailyProject,
    cells,
    commits,
    days,
    model,
    window,
)

from infold import api
from infold.core.interval import DAY, Interval, Ranges, parse_instant_text
from infold.core.plan import PlanOptions
from infold.core.project import Node
from infold.core.report import RunFailed
from infold.messages.errors import InfoldError
from infold.spark.time_range import cell_states, recompute
from infold.spark.time_range.cell_states import CellStates, compute_once, states_of_cells

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def shop(tmp_path: Path) -> DailyProject:
    """An empty shop."""
    return DailyProject(tmp_path / "shop")


def test_new_cells_are_counted_and_hashed_once(shop: DailyProject) -> None:
    """
    New cells are computed and written in one pass, and those without rows are no version. Cells
    written again are compared. After a death the rows of a commit are counted at once; the content
    is unknown, so readers see a change.
    """
    never = f"SELECT * FROM ({DAILY}) WHERE 1 = 0"  # Spark knows that it is empty
    zoes = DAILY.replace("GROUP BY", "WHERE who = 'zoe' GROUP BY")
    shop.models(daily=model(DAILY), rolling=model(ROLLING), never=model(never), zoes=model(zoes))
    shop.land(*days("2024-03-01", 3))
    shop.go()
    name = shop.land(*days("2024-03-04", 2))
    new = shop.go()
    assert (cells(new, "daily"), new.receipt.cells_cut_off) == (2, 0)
    assert (new.receipt.written, new.receipt.clamped, new.receipt.removed) == (6, 3, 0)
    heads = api.ledger_of(shop.project()).newest_versions()

    shop.land(*days("2024-03-04", 1), who="bob")
    shop.drop(name)
    shop.land(*days("2024-03-05", 1))
    again = shop.go()
    assert again.receipt.cells_cut_off == 2  # the same sums of other rows
    assert (commits(again, "daily"), commits(again, "rolling")) == (0, 0)
    assert api.ledger_of(shop.project()).newest_versions()["daily"] == heads["daily"]

    shop.land(*days("2024-03-06", 2), who="zoe")
    shop.die_at("daily", "table daily: after commit")
    others = PlanOptions(selected=frozenset({"raw.clicks"}))
    book = api.ledger_of(shop.project())
    [note] = shop.go(asked=others).notes
    assert note == "daily: a step that a dead run had committed was finished"
    assert [state.rows for state in book.cells("daily")] == [1] * 7
    pending = Ranges((window("2024-03-06", "2024-03-08"),))
    assert book.traces()["daily"].pending_ranges == pending
    last = shop.go()
    assert (cells(last, "daily"), cells(last, "rolling")) == (2, 2)
    assert [row[2] for row in shop.rows("rolling")] == [1, 2, 3, 4, 5, 6, 7]
    assert shop.rows("never") == []
    assert [row[:2] for row in shop.rows("zoes")] == [(dt.date(2024, 3, n), 1) for n in (6, 7)]


def test_steps_that_are_refused(shop: DailyProject) -> None:
    """
    A row with a NULL partition value is in no cell and refused, unless analysis proves that there
    is none; the append strategy refuses a cell that has rows, because they would be duplicated. A
    first load that died after its commit never happened: none of its rows stays.
    """
    picked = "SELECT CASE WHEN who = 'ann' THEN cast(ts AS date) END AS day, id FROM raw.clicks"
    bounds = "{bounds: {raw.clicks: {}}}"
    shop.models(picked=model(picked, bounds), daily=model(DAILY, "{strategy: append}"))
    shop.land(*days("2024-03-01", 2))
    second = PlanOptions(window=window("2024-03-02", "2024-03-03"))
    shop.die_at("daily", "table daily: after commit", second)
    shop.go(window=window("2024-03-01", "2024-03-02"))
    assert [(row[0].day, row[1]) for row in shop.rows("daily")] == [(1, 1)]
    shop.go()
    shop.land("2024-03-03T10:00:00Z")
    shop.go()
    assert [(row[0].day, row[1]) for row in shop.rows("daily")] == [(1, 1), (2, 1), (3, 1)]

    shop.land("2024-03-01T11:00:00Z", "2024-03-01T12:00:00Z", who="bob")
    with pytest.raises(RunFailed) as caught:
        shop.go()
    found = {one.model: one.error for one in caught.value.result.failures}
    assert found["picked"].slug == "null-cell"
    assert "day IS NOT NULL" in str(found["picked"])
    assert "append" in str(found["daily"])
    assert (len(shop.rows("picked")), len(shop.rows("daily"))) == (3, 3)

    proven = f"SELECT * FROM ({picked}) WHERE day IS NOT NULL"
    shop.models(picked=model(proven, bounds), daily=model(DAILY))
    shop.go()
    assert [row[1] for row in shop.rows("picked")] == [1, 2, 3]
    assert [row[1] for row in shop.rows("daily")] == [3, 1, 1]


def test_a_refused_model_can_be_rebuilt_completely_once(shop: DailyProject) -> None:
    """A refused model is rebuilt completely with the flag, and refused again without it."""
    numbered = "SELECT cast(ts AS date) AS day, row_number() OVER (ORDER BY ts, id) AS n FROM {}"
    shop.models(numbered=model(numbered.format("raw.clicks")))
    shop.land(*days("2024-03-01", 3))
    result = shop.go(downgrade=True)
    assert "built whole" in " ".join(result.plans[0].notes)
    shop.land("2024-02-01T00:00:00Z")
    with pytest.raises(InfoldError, match="window-over-cells"):
        shop.go()
    shop.go(downgrade=True)

    assert [row[1] for row in shop.rows("numbered")] == [1, 2, 3, 4]


def test_declared_bounds_hold_in_every_build(shop: DailyProject) -> None:
    """A cell reads its declared bounds in a first build and after a late row of another cell.

    What it would not say if it saw more is a difference, and verify names the cell and a bound that
    is enough, or that there is none: seven rows are seven days only where each day has one. Another
    bound is another definition.
    """
    last = """SELECT cast(ts AS date) AS day, id,
      lag(id) OVER (PARTITION BY who ORDER BY ts, id) AS before FROM raw.clicks"""
    seven = """SELECT day, sum(n) OVER (
      ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS n FROM daily"""
    of_week = "{bounds: {daily: {before: 6 days}}}"
    shop.models(
        last=model(last, "{bounds: {RAW.clicks: {before: 1 day}}}"),
        daily=model(DAILY),
        seven=model(seven, of_week),
        next=model("SELECT day, lead(n) OVER (ORDER BY day) AS n FROM daily", of_week),
    )
    shop.land(*(f"2024-03-0{day}T12:00:00Z" for day in (1, 2, 5, 8)))
    result = shop.go()
    assert "declared" in " ".join(result.plans[0].notes)
    first = shop.rows("last")
    assert [row[2] for row in first] == [None, 1, None, None]

    shop.land("2024-03-05T01:00:00Z", who="bob")
    result = shop.go()
    assert [row for row in shop.rows("last") if row[1] != 5] == first
    assert cells(result, "last") == 1, "the day after it has no rows"
    found = {verdict.model: verdict for verdict in api.verify(shop.project()).models}
    wrong = {name: one.equal for name, one in found.items() if one.beyond_bounds}
    assert wrong == dict.fromkeys(("last", "next", "seven"), False)
    differs, enough = "beyond its declared bounds it differs in ", "is enough for its present rows"
    assert found["last"].note == (
        f"{differs}2024-03-05 and 1 more: raw.clicks: {{before: 3 days}} {enough}"
    )
    assert [tuple(row["before"] for _, row in found["last"].sample)[:2]] == [(None, 2)]
    assert found["next"].note == (
        f"{differs}2024-03-01 and 2 more: daily: {{before: 6 days, after: 3 days}} {enough}"
    )
    assert found["seven"].note == (
        f"{differs}2024-03-08: daily: {{before: 1 week}} reaches all of its present rows, and "
        "nothing shorter is enough: build it whole (remove `incremental`)"
    )

    shop.models(last=model(last, "{bounds: {raw.clicks: {before: 30 days}}}"))
    shop.go()
    assert [row[2] for row in shop.rows("last") if row[1] != 5] == [None, 1, 2, 3]
    assert api.verify(shop.project(), select=["last"]).equal


WHERE_OTHERS_GO_WRONG = {
    # A filter pasted behind an OR, or into the last branch of a UNION alone, reads all days.
    "either": "SELECT cast(ts AS date) AS day, count(*) AS n FROM raw.clicks "
    "WHERE who = 'ann' OR who = 'bob' GROUP BY 1",
    "both": "SELECT cast(ts AS date) AS day, id FROM raw.clicks WHERE who = 'ann' UNION ALL "
    "SELECT cast(ts AS date) AS day, id FROM raw.clicks WHERE who <> 'ann'",
    # The clamp in one SELECT with a window would cut off what the window looks at.
    "hours": "SELECT cast(ts AS date) AS day, id, count(*) OVER (ORDER BY ts "
    "RANGE BETWEEN INTERVAL 36 HOURS PRECEDING AND CURRENT ROW) AS n FROM raw.clicks",
    # A filter below the wrong scope: the CTE is read for two different stretches.
    "twice": "WITH d AS (SELECT cast(ts AS date) AS day, count(*) AS n FROM raw.clicks GROUP BY 1) "
    "SELECT a.day, sum(b.n) AS n FROM d AS a JOIN d AS b "
    "ON b.day BETWEEN date_sub(a.day, 2) AND a.day GROUP BY a.day",
    # Rows of a day that has no other row must not keep a row of the day before.
    "quiet": "SELECT d.day FROM daily AS d LEFT ANTI JOIN daily AS e "
    "ON e.day = d.day + INTERVAL 1 DAY",
    # The interval of a run covers all time, so a filter by another column loses no late row.
    "asked": "SELECT cast(ts AS date) AS day, count(*) AS n FROM raw.clicks "
    "WHERE day BETWEEN @start_ds AND @end_ds AND ts >= @start_ts AND ts < @end_ts GROUP BY 1",
}
SEEN = """SELECT cast(ts AS date) AS day, id, ts,
  lag(ts) OVER (PARTITION BY who ORDER BY ts, id) AS before FROM raw.clicks"""
REVENUE = """SELECT
  CAST(transaction_timestamp AS DATE) as revenue_date,
  user_id,
  COUNT(*) as transaction_count,
  SUM(amount) as total_revenue,
  AVG(amount) as avg_transaction_amount,
  MIN(transaction_timestamp) as first_transaction,
  MAX(transaction_timestamp) as last_transaction
FROM raw.transactions
WHERE transaction_timestamp IS NOT NULL
GROUP BY 1, 2
ORDER BY 1, 2
"""
SMELT = """  raw.transactions:
    path: sales/*.csv
    event_time_column: transaction_timestamp
    columns: {transaction_timestamp: timestamp, user_id: int, amount: "decimal(18,2)"}
models:
  daily_revenue:
    materialization: table
    timeseries:
      event_time_column: transaction_timestamp
      partition_column: revenue_date
      granularity: day
    incremental:
      enabled: true
"""
"""The example of smelt, with its source declared and its FROM renamed."""


def test_cases_that_other_tools_get_wrong(
    shop: DailyProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    After late rows, removed rows and batches every table equals a rebuild: hours in monthly
    partitions, cells that a start cuts, or keeps whole, a table that reads the days before its
    start, and cells built singly, of which a few are combined at a time; an example of another
    tool, too.
    """
    monkeypatch.setattr(recompute, "_ROWS_FOR_PARTITIONS", 1)
    monkeypatch.setattr("infold.spark.time_range.recompute.CELLS_TOGETHER", 3)
    numbered = """SELECT cast(ts AS date) AS day,
      count(*) OVER (PARTITION BY who ORDER BY ts, id) AS n FROM raw.clicks"""
    monthly = "SELECT date_trunc('month', hour) AS month, sum(n) AS n FROM hourly GROUP BY 1"
    cut = "SELECT cast(ts AS date) AS day, id FROM raw.clicks"
    shop.models(
        daily=model(DAILY, "{unique_key: day}"),
        started=model(ROLLING, "{start: 2024-03-05}"),
        hourly=model(HOURLY, column="hour", granularity="hour"),
        monthly=model(monthly, column="month", granularity="month"),
        weekly=model(
            cut, "{start: 2024-03-02, exact_start: true, batch_size: 1}", granularity="week"
        ),
        since=model(monthly, "{start: 2024-03-05}", column="month", granularity="month"),
        numbered=model(numbered, "{safety_overrides: {allow_window_functions: true}}"),
        **{name: model(sql) for name, sql in WHERE_OTHERS_GO_WRONG.items()},
        # Parts of cells are each a query, the last of them of one cell alone.
        seen=model(SEEN, "{bounds: {raw.clicks: {before: 30 days}}}"),
        daily_revenue=REVENUE,
    )
    shop.configure("", SMELT)
    sell(shop, "2025-01-15T10:00:00Z,1,2.00", "2025-01-16T10:00:00Z,1,3.00")
    shop.land("2024-03-01T23:50:00Z", "2024-03-02T00:10:00Z", "2024-03-05T12:00:00Z")
    shop.land("2024-03-02T00:05:00Z", "2024-03-09T00:00:00Z", who="bob")
    gone = shop.land("2024-03-04T23:59:59.999999Z", "2024-03-10T00:00:00Z")
    shop.go()

    shop.drop(gone)
    # As of many rows and cells.
    monkeypatch.setattr(recompute, "FEW_ROWS", -1)
    monkeypatch.setattr(cell_states, "_FEW_CELLS", 0)
    shop.land("2024-02-28T12:00:00Z", "2024-03-01T11:00:00Z", who="bob", day="2024-06-01")
    sell(shop, "2025-01-15T09:00:00Z,1,4.00")
    result = shop.go(batch_size=5)

    assert cells(result, "daily_revenue") == 1
    assert [str(row[4]) for row in shop.rows("daily_revenue")] == ["3.000000", "3.000000"]
    assert cells(result, "either") < 12
    assert [(row[0].day, *row[1:]) for row in shop.rows("started")] == [(5, 1, 6), (9, 1, 2)]
    assert [row[1] for row in shop.rows("weekly")] == [2, 4, 3, 5]
    assert [(row[0].month, row[1]) for row in shop.rows("since")] == [(3, 6)]
    assert [row[1] for row in shop.rows("numbered")] == [1] * 7
    assert sum(row[1] for row in shop.rows("asked")) == 7
    layout = api.lake_of(shop.project()).layout("hourly")
    assert layout is not None
    assert str(layout.partition) == "month"
    shop.verify(differing=["numbered"])  # evaluated as a whole it has other numbers


def sell(shop: DailyProject, *rows: str) -> None:
    """A file of the transactions of smelt's example."""
    number = len([*(shop.root / "sales").glob("*")])
    text = "\n".join(["transaction_timestamp,user_id,amount", *rows])
    shop.write(f"sales/{number}.csv", f"{text}\n")


ROWS = """VALUES ('2024-03-01', 1), ('2024-03-01', 1), ('2024-03-01', NULL), ('2024-03-02', 2),
  ('2024-03-04', 3), ('2024-03-05', 4), ('2024-03-09', -5), ('2024-03-10', 6) AS t (day, n)"""
"""Copies, a day without rows, and days beyond those asked for."""

FIRST = parse_instant_text("2024-03-01")
ASKED = Ranges((Interval(FIRST, FIRST + 3 * DAY), Interval(FIRST + 4 * DAY, FIRST + 6 * DAY)))


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """A model with a cell for each day."""
    shop = DailyProject(tmp_path / "shop")
    shop.models(daily=model(DAILY))
    return shop.project()["daily"]


def both(
    rows: DataFrame, node: Node, type_: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[CellStates, CellStates]:
    """The states of the cells observed, and grouped; the rows themselves stay the same."""
    observed_rows, observed = compute_once(rows, node, ASKED, type_)
    monkeypatch.setattr(cell_states, "_FEW_CELLS", 1)
    grouped_rows, found = compute_once(rows, node, ASKED, type_)
    assert observed_rows.columns == grouped_rows.columns == rows.columns
    assert sorted(map(str, observed_rows.collect())) == sorted(map(str, rows.collect()))
    return observed, found


@pytest.mark.parametrize("type_", ["date", "timestamp"])
def test_observed_is_what_grouping_finds(
    spark: SparkSession, node: Node, type_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows, content and last time of each cell, and rows in
    other cells, equal those found by grouping.
    """
    rows = spark.sql(f"SELECT cast(day AS {type_}) AS day, n, 'x' AS _hash FROM {ROWS}")
    observed, found = both(rows, node, type_, monkeypatch)
    assert observed == found
    assert [(cell.start - FIRST) // DAY for cell in sorted(observed.cells)] == [0, 1, 4]
    assert observed.beyond == 2 + 1
    whole = states_of_cells(rows, node).cells
    assert observed.cells == {cell: whole[cell] for cell in observed.cells}


def test_no_rows_at_all(spark: SparkSession, node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query without rows has no cells, even if its plan is empty from the start."""
    for condition in ("false", "n > 100"):
        rows = spark.sql(f"SELECT cast(day AS date) AS day, n FROM {ROWS} WHERE {condition}")
        observed, found = both(rows, node, "date", monkeypatch)
        assert observed == found == CellStates({})
        monkeypatch.undo()
