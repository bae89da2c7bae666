"""Words of other tools, and what infold has in their place."""

from __future__ import annotations

import re
from collections.abc import Iterator

_DERIVED = "no key: how far a cell reads follows from the query (incremental.bounds, if it cannot)"
_NO_LOOKBACK = "no key: late rows are found however late they are"
_ZONE = "cuts.midnight, of sessions; cron_tz, of a cron; cells are UTC"
_SELF = "no key: each run works out what is stale, and the query stays one SELECT of everything"

_KEYS = {
    "sqlmesh": {
        "kind": "materialization (and incremental, for a table built cell by cell)",
        "interval_unit": "timeseries.granularity",
        "time_column": "timeseries.event_time_column and timeseries.partition_column",
        "grain": "unique_key, of events and of incremental",
        "grains": "unique_key, of events and of incremental",
        "lookback": _DERIVED,
        "dialect": "no key: SQL is Spark's",
        "cron": "incremental.cron",
        "batch_concurrency": "incremental.batch_concurrency",
        "partitioned_by": "timeseries.partition_column",
        "depends_on": "no key: what a model reads follows from its query",
        "forward_only": "incremental.forward_only",
        "auto_restatement_cron": "`infold restate`, by hand",
        "on_additive_change": "no key: a table gets each column that its query gains",
    },
    "dbt": {
        "materialized": "materialization",
        "incremental_strategy": "incremental.strategy",
        "event_time": "timeseries.event_time_column",
        "begin": "start",
        "partition_by": "timeseries.partition_column",
        "is_incremental": _SELF,
        "on_schema_change": "no key: a table has the columns of its query; on_destructive_change "
        "says what becomes of columns that go",
        "full_refresh": "`infold restate`, by hand",
        "unique_key": "unique_key, of events; tables are replaced cell by cell and need none",
        "config": "front matter between two lines of ---",
    },
    "snowplow": {
        "max_session_days": "sessions.quarantine_after",
        "session_lookback_days": _NO_LOOKBACK,
        "upsert_lookback_days": _NO_LOOKBACK,
        "lookback_window_hours": _NO_LOOKBACK,
        "days_late_allowed": _NO_LOOKBACK,
        "start_date": "start",
        "backfill_limit_days": "backfill_limit",
        "session_timestamp": "timeseries.event_time_column of the events",
        "session_identifiers": "sessions.identifier",
        "user_identifiers": "sessions.user",
        "session_timeout": "sessions.gap",
        "inactivity": "sessions.gap",
        "timeout": "sessions.gap",
    },
    "": {
        "min_file_age": "settle, of a source",
        "on_schema_mismatch": "on_drift (and on_new_columns, for columns that are not declared)",
        "dedup_order_by": "prefer, of events: [column, column desc]",
        "audits": "audits, of a model, and files in audits/",
        "tests": "audits, of a model; unit tests are files in tests/",
        "environments": "no key: `infold run --env NAME` makes one",
        "connection": "url, of a source",
        "query": "table, of a source, which may be a view in its database",
        "time_zone": _ZONE,
        "timezone": _ZONE,
    },
}
"""By tool: its key -> what it is called here. Words that no one tool has are under no tool."""

_BY_WORD = {word: (tool, here) for tool, words in _KEYS.items() for word, here in words.items()}


def infold_key(word: str) -> str | None:
    """What a key of another tool is called here, with the tool if it is one; else None."""
    bare = word.lower().removeprefix("snowplow__")
    found = _BY_WORD.get(bare)
    if found is None:
        return None
    tool, here = found
    return f"{here} (as {_NAMES[tool]} has it)" if tool else here


_NAMES = {"sqlmesh": "SQLMesh", "dbt": "dbt", "snowplow": "Snowplow"}

_BLOCKS = {"{{": "}}", "{%": "%}"}
_OPENS = re.compile(r"\{[{%]")
_HEADER = re.compile(r"\s*MODEL\s*\(", re.IGNORECASE)
_NAMED = (
    ("is_incremental", f"leave it out: {_SELF.removeprefix('no key: ')}"),
    ("ref", "name the model itself in FROM"),
    ("source", "name the source itself in FROM: group.name"),
    ("config", "write front matter between two lines of ---"),
)


def find_template(sql: str) -> tuple[int, int, str] | None:
    """The first of dbt's template blocks in a text: its place, and what to do instead."""
    found = next(_templates(sql), None)
    if found is None:
        return None
    start, end = found
    for name, instead in _NAMED:
        if re.search(rf"\b{name}\b", sql[start:end]):
            return start, end, instead
    return start, end, "write the SQL itself"


def _templates(sql: str) -> Iterator[tuple[int, int]]:
    """The places of template blocks; each letter is looked at twice at most, however many open."""
    at, never_closed = 0, set()
    while match := _OPENS.search(sql, at):
        closes = _BLOCKS[match[0]]
        end = -1 if closes in never_closed else sql.find(closes, match.end())
        if end < 0:
            never_closed.add(closes)
            at = match.start() + 1
        else:
            yield match.start(), end + len(closes)
            at = end + len(closes)


def has_dbt_config(sql: str) -> bool:
    """Whether a text has what dbt has in place of front matter: ``{{ config(…) }}``."""
    return any(re.search(r"\bconfig\b", sql[start:end]) for start, end in _templates(sql))


def find_sqlmesh_header(sql: str) -> tuple[int, int] | None:
    """SQLMesh's ``MODEL (`` at the beginning of a file: its place."""
    found = _HEADER.match(sql)
    return None if found is None else (found.end() - len(found[0].lstrip()), found.end() - 1)
