"""Names of columns are found whatever their case, wherever a project names one."""

from __future__ import annotations

from pathlib import Path

import pytest

from infold import api

pytestmark = pytest.mark.spark

PROJECT = """
name: cased
sources:
  raw.Clicks:
    path: landing/*.csv
    event_time_column: TS
    columns: {Id: string, Who: string, Ts: timestamp, Url: string}
"""

MODELS = {
    "events": """---
materialization: events
unique_key: [ID]
prefer: [url DESC]
timeseries: {event_time_column: at}
---
SELECT id, WHO, ts AS At, url AS URL FROM RAW.clicks""",
    "visits": """---
materialization: sessions
sessions: {user: who, gap: 30 minutes, cuts: {campaign: uRl}}
---
SELECT count(*) AS N, first(Url) AS Entry FROM Events""",
    "named": """---
materialization: sessions
sessions: {identifier: ID, user: wHo}
---
SELECT count(*) AS n FROM events""",
    "daily": """---
materialization: table
timeseries: {event_time_column: SESSION_START, partition_column: d}
incremental: {unique_key: [D]}
---
SELECT cast(Session_Start AS date) AS D, sum(n) AS Total FROM VISITS GROUP BY d""",
    "weekly": """---
materialization: table
timeseries: {event_time_column: d, partition_column: D, granularity: month}
incremental: {bounds: {DAILY: {before: 40 days}}}
---
SELECT d, total, lag(ToTal) OVER (ORDER BY D) AS Before FROM Daily""",
    "users": """---
materialization: cumulative_aggregate
---
SELECT WHO AS Who, count(*) AS N FROM events GROUP BY who""",
    "seen": """---
materialization: view
---
SELECT * FROM Events WHERE wHO IS NOT NULL""",
    "by_view": """---
materialization: table
timeseries: {event_time_column: aT, partition_column: AT, granularity: hour}
incremental: {}
---
SELECT AT, struct(who AS userId) AS Person FROM Seen""",
}


def _run(root: Path) -> None:
    project = api.open_project(root)
    api.run(project)
    found = api.verify(project)

    assert [v.model for v in found.models if not v.equal] == []


def test_names_are_found_however_they_are_written(tmp_path: Path) -> None:
    """A first run, a late row, a removed row and a changed definition work with names in any
    case.
    """
    for folder in ("models", "landing"):
        (tmp_path / folder).mkdir()
    (tmp_path / "infold.yml").write_text(PROJECT)
    for name, text in MODELS.items():
        (tmp_path / "models" / f"{name}.sql").write_text(text)
    first = tmp_path / "landing" / "1.csv"
    first.write_text(
        "Id,Who,Ts,Url\n1,ann,2024-03-01T10:00:00Z,/a\n2,bob,2024-03-09T10:00:00Z,/b\n"
    )
    _run(tmp_path)

    (tmp_path / "landing" / "2.csv").write_text("Id,Who,Ts,Url\n3,ann,2024-03-01T10:10:00Z,/a\n")
    _run(tmp_path)

    first.unlink()
    daily = MODELS["daily"].replace("sum(n) AS Total", "sum(N) + 0 AS Total")
    (tmp_path / "models" / "daily.sql").write_text(daily)
    _run(tmp_path)
    assert api.lake(api.open_project(tmp_path)).rows("daily").column_names == ["D", "Total"]
