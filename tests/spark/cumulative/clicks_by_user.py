"""Models of clicks, their sessions and users, with a crowd that does not change."""

from __future__ import annotations

from tests.spark.events.clicks_project import ClicksProject

SOURCE = """    event_time_column: at
    columns: {id: string, user_id: string, at: timestamp, url: string, amount: "decimal(9,2)"}
"""
WITH_RATES = f"""{SOURCE}  raw.rates:
    path: rates/*.csv
    columns: {{url: string, rate: int}}
"""
"""The same, and a lookup of rates by url."""


CLICKS = """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: at}
---
SELECT * FROM raw.clicks"""


SESSIONS = """---
materialization: sessions
sessions: {user: user_id, gap: 30 minutes}
---
SELECT count(*) AS events, sum(amount) AS revenue, first(url) AS entry_url, last(url) AS exit_url
FROM clicks"""


USERS = """---
materialization: cumulative_aggregate
---
SELECT user_id, count(*) AS sessions, sum(events) AS events, sum(revenue) AS revenue,
  min(session_start) AS first_seen, max(session_end) AS last_seen,
  min_by(entry_url, session_start) AS first_page, max_by(exit_url, session_start) AS last_page
FROM sessions s GROUP BY s.user_id"""


CROWD = 20


def put(shop: ClicksProject, name: str, *rows: str) -> None:
    """A file of clicks."""
    shop.put(name, *rows, header="id,user_id,at,url,amount")
