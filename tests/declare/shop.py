"""A small valid project in memory, to be changed in one place at a time."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path

from infold.analysis.sql.parse import parse
from infold.core.project import Project
from infold.declare import functions as reading
from infold.declare.folder import Folder
from infold.declare.project import read_project
from infold.messages.errors import InfoldError

# Hundreds of tests read the same models around the one that they spoil; trees are not changed.
vars(reading)["parse"] = cache(parse)

INFOLD = """\
name: shop
start: 2024-01-01
sources:
  raw.clicks:
    path: landing/clicks/*.json
    format: json
    event_time_column: event_ts
    received_column: seen_at
    columns:
      event_id: string
      user_id: string
      event_ts: timestamp
      seen_at: timestamp
      url: string
      amount: decimal(18,2)
  raw.countries:
    path: countries.csv
    columns: {code: string, country: string}
targets:
  dev: {warehouse: warehouse}
"""

CLICKS = """\
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
-- one row per session
SELECT count(*) AS events, sum(amount) AS revenue, first(url) AS entry_url
FROM clicks
"""

DAILY = """\
---
materialization: table
timeseries: {event_time_column: session_start, partition_column: day, granularity: day}
incremental: {}
---
SELECT cast(session_start AS date) AS day, count(*) AS sessions, sum(revenue) AS revenue
FROM sessions GROUP BY 1
"""

SHOP = {
    "infold.yml": INFOLD,
    "models/clicks.sql": CLICKS,
    "models/daily.sql": DAILY,
    "models/sessions.sql": SESSIONS,
}


def read(files: Mapping[str, str | bytes]) -> tuple[Project | None, list[InfoldError]]:
    """What the files of a folder say, and what is wrong with them."""
    project, found = _read(tuple(files.items()))
    return project, [*found]


@lru_cache(maxsize=64)
def _read(files: tuple[tuple[str, str | bytes], ...]) -> tuple[Project | None, list[InfoldError]]:
    """The same, once for all that change one thing of a project and compare."""
    contents = tuple(
        (name, text if isinstance(text, bytes) else text.encode()) for name, text in files
    )
    project, _, found = read_project(Folder(Path("shop"), contents))
    return project, found


def project(files: Mapping[str, str | bytes] = SHOP) -> Project:
    """The project of the files, which have to be right."""
    found, errors = read(files)
    assert not errors, "\n\n".join(map(str, errors))
    assert found is not None
    return found


def model(kind: str, sql: str) -> str:
    """The file of a model that says its kind alone."""
    return f"---\nmaterialization: {kind}\n---\n{sql}\n"


def spoilt(file: str, old: str, new: str) -> dict[str, str]:
    """The right project with one text of one file replaced."""
    text = SHOP.get(file, "")
    assert old in text
    return {**SHOP, file: text.replace(old, new, 1)}


def write(folder: Path, files: Mapping[str, str] = SHOP) -> Path:
    """The files in a folder on the disk."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder
