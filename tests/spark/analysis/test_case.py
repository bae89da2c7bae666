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


def test_names_are_found_however_they_are_written(tmp_path: Path) -> None:
    """A first run works with names in any case, and one with a late row, a removed row and a
    changed definition.
    """
    for folder in ("models", "landing"):
        (tmp_path / folder).mkdir()
    (tmp_path / "infold.yml").write_text(PROJECT)
    for name, text in MODELS.items():
        (tmp_path / "models" / f"{name}.sql").write_text(text)
    landing, head = tmp_path / "landing", "Id,Who,Ts,Url\n"
    (landing / "1.csv").write_text(f"{head}1,ann,2024-03-01T10:00:00Z,/a\n")
    (landing / "2.csv").write_text(f"{head}2,bob,2024-03-09T10:00:00Z,/b\n")
    api.run(api.open_project(tmp_path))

    (landing / "3.csv").write_text(f"{head}3,ann,2024-03-01T10:10:00Z,/a\n")
    (landing / "2.csv").unlink()
    daily = MODELS["daily"].replace("sum(n) AS Total", "sum(N) + 0 AS Total")
    (tmp_path / "models" / "daily.sql").write_text(daily)
    project = api.open_project(tmp_path)
    api.run(project)

    found = api.verify(project)
    assert [v.model for v in found.models if not v.equal] == []
    assert api.lake(project).rows("daily").column_names == ["D", "Total"]
    assert api.lake(project).rows("daily")["Total"].to_pylist() == [2]
