"""The project that is measured: clicks → events → sessions → daily, over generated files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from bench.generate import Deliveries, Shape, history

DATA = Path(os.environ.get("BENCH_DATA") or Path(__file__).parent / "data")

SOURCES = """\
sources:
  raw.clicks:
    path: landing/*.parquet
    format: parquet
    event_time_column: event_ts
    columns:
      event_id: string
      user_id: string
      event_ts: timestamp
      url: string
      amount: decimal(18,2)
"""

PROJECT = f"""\
name: bench
start: 2010-01-01
{SOURCES}"""

EVENTS = """\
---
materialization: events
unique_key: [event_id]
timeseries: {event_time_column: event_ts, granularity: day}
---
SELECT event_id, user_id, event_ts, url, amount FROM raw.clicks WHERE user_id IS NOT NULL
"""

SESSIONS = """\
---
materialization: sessions
sessions: {user: user_id, gap: 30 minutes}
---
SELECT count(*) AS events, sum(amount) AS revenue, first(url) AS entry_url, last(url) AS exit_url
FROM events
"""

DAILY = """\
---
materialization: table
timeseries: {event_time_column: session_start, partition_column: day, granularity: day}
incremental: {}
---
SELECT
  cast(session_start AS date) AS day, count(*) AS sessions, sum(events) AS events,
  sum(revenue) AS revenue
FROM sessions
GROUP BY 1
"""


def lay_out(root: Path, sessions: int = 1) -> Path:
    """Write the project's files; ``sessions`` adds equal models to build one after the other."""
    models = root / "models"
    models.mkdir(parents=True, exist_ok=True)
    (root / "landing").mkdir(exist_ok=True)
    (root / "infold.yml").write_text(PROJECT)
    (models / "events.sql").write_text(EVENTS)
    (models / "sessions.sql").write_text(SESSIONS)
    (models / "daily.sql").write_text(DAILY)
    for number in range(2, sessions + 1):
        (models / f"sessions_{number}.sql").write_text(SESSIONS)
    return root


def with_history(name: str, shape: Shape, sessions: int = 1) -> tuple[Path, Deliveries]:
    """A project and a history in its landing folder; both are used again if they are as asked."""
    made = DATA / name / "made.txt"
    if not made.exists() or made.read_text() != f"{shape}\n":
        shutil.rmtree(DATA / name, ignore_errors=True)
    root = lay_out(DATA / name, sessions)
    landing = root / "landing"
    if not made.exists():
        history(landing, shape)
        made.write_text(f"{shape}\n")
    days = [path for path in landing.iterdir() if path.name.startswith("received-")]
    return root, Deliveries(shape, landing, len(days))


def same_files(name: str, of: Path) -> Path:
    """A project that was never run, with the same files (linked, not copied)."""
    shutil.rmtree(DATA / name, ignore_errors=True)  # what an earlier measurement left
    root = lay_out(DATA / name)
    for path in (of / "landing").iterdir():
        (root / "landing" / path.name).hardlink_to(path)
    return root
