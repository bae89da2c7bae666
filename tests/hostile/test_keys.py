"""Every key of infold.yml and of the front matter with unexpected values."""

from __future__ import annotations

import copy
import datetime as dt
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml
from tests.declare.shop import read
from tests.hostile.outcome import error_fault, judged

pytestmark = pytest.mark.deep

VALUES: list[Any] = [
    *(None, True, 0, -1, 10**30, 0.5, float("nan"), float("inf"), "", "  ", "a\x00b\x1b[31m"),
    *("a" * 20_000, "\U0001f600", "\u202eabc", "'; DROP TABLE clicks; --", "a`b\\`c", []),
    *([None], [[["a"]]], {}, {"": None}, {1: 2}, {"a": {"b": {"c": {"d": []}}}}),
    *(dt.date(2024, 3, 1), dt.datetime(2024, 3, 1, 12, tzinfo=dt.UTC), "2024-02-30"),
    *("0001-01-01", "9999-12-31T23:59:59.999999", "+12345-01-01", "${env:HOME}"),
    *("../../../etc/passwd", "/dev/zero", "**", "[", "1 day", "-1 day", "99999999999 days"),
    *("0 seconds", "Mars/Olympus", "* * * * * * *", "event_id", "(SELECT max(x) FROM clicks)"),
    "CASE WHEN (",
]

PROJECT: dict[str, Any] = yaml.safe_load("""
name: shop
start: "2024-01-01"
backfill_limit: 30 days
default_target: dev
dev_target: dev
defaults: {tags: [all]}
models: {daily: {description: by day}}
sources:
  raw.clicks:
    path: landing/dt={date}/*.json
    full_listing: daily
    format: json
    event_time_column: ts
    received_column: seen
    future_tolerance: 1 hour
    timestamp_format: iso
    settle: 30 seconds
    on_drift: error
    columns: {event_id: string, user_id: string, ts: timestamp, seen: timestamp,
              amount: "decimal(18,2)"}
  raw.rates: {path: rates.csv, delimiter: ";", columns: {code: string}}
  raw.lake: {table: other.t, catalog: c.db, event_time_column: ts}
seeds: {prices: {columns: {rate: int}}}
erasures: {person: {raw.clicks: user_id}}
erasure_requests: {person: {raw.rates: {key: code, id: code}}}
targets:
  dev:
    warehouse: warehouse
    ledger: sqlite:///.infold/ledger.db
    storage: iceberg
    protected: false
    apply: auto
    spark: {spark.sql.shuffle.partitions: "3"}
""")
FRONTS: dict[str, dict[str, Any]] = yaml.safe_load("""
clicks:
  materialization: events
  unique_key: [event_id]
  prefer: [amount desc]
  deduplicate: everywhere
  tags: [a]
  description: all
  timeseries: {event_time_column: ts, granularity: week, week_start: monday}
visits:
  materialization: sessions
  sessions:
    user: user_id
    gap: 30 minutes
    identifier: event_id
    cuts:
      midnight: Europe/Berlin
      campaign: {columns: [event_id], nulls: ignore, direct: [(none)]}
      start_events: amount > 5
    quarantine_after: 3 days
    keep: head
    session_number: true
named:
  materialization: sessions
  sessions: {user: user_id, identifier: [event_id, user_id], choose_user: last,
             max_length: 24 hours, without_identifier: {gap: 30 minutes}}
daily:
  materialization: table
  timeseries: {event_time_column: day, partition_column: day, granularity: day}
  incremental:
    enabled: true
    unique_key: [day]
    safety_overrides: {allow_limit: true}
    bounds: {clicks: {before: 1 day, after: 0 seconds}}
    batch_size: 7
    batch_concurrency: 2
    start: "2024-02-01"
    exact_start: true
    cron: "@daily"
    cron_tz: Europe/Berlin
    allow_partials: true
    strategy: delete_insert
    backfill_limit: 30 days
    on_definition_change: rebuilt_cells
totals: {materialization: cumulative_aggregate}
seen: {materialization: view}
plans: {materialization: scd_type_2, unique_key: [user_id], scd_type_2: {updated_at: ts}}
""")
QUERIES = {
    "clicks": "SELECT event_id, user_id, ts, amount FROM raw.clicks",
    "visits": "SELECT count(*) AS n FROM clicks",
    "named": "SELECT count(*) AS n FROM clicks",
    "daily": "SELECT cast(ts AS date) AS day, count(*) AS n FROM clicks GROUP BY 1",
    "totals": "SELECT user_id, count(*) AS n FROM clicks GROUP BY user_id",
    "seen": "SELECT event_id FROM clicks",
    "plans": "SELECT user_id, ts, amount FROM clicks",
}

Keys = tuple[str, ...]


def paths(value: Any, at: Keys = ()) -> Iterator[Keys]:
    """The path of each value in a mapping, however deep."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*at, key)
            yield from paths(inner, (*at, key))


def spoilt(whole: dict[str, Any], at: Keys, change: Callable[[dict[str, Any], str], None]) -> Any:
    """A copy with one place changed."""
    made = copy.deepcopy(whole)
    inner = made
    for key in at[:-1]:
        inner = inner[key]
    change(inner, at[-1])
    return made


def files(project: Any, fronts: dict[str, Any]) -> dict[str, str | bytes]:
    """The folder that says so."""
    found: dict[str, str | bytes] = {"infold.yml": _dumped(project)}
    for name, front in fronts.items():
        text = _dumped(front)
        text += b"#\n" * (50 - text.count(b"\n"))  # a model knows the line of its query
        found[f"models/{name}.sql"] = b"---\n" + text + f"---\n{QUERIES[name]}\n".encode()
    return {**found, "seeds/prices.csv": "url,rate\n/a,1\n"}


def _dumped(value: Any) -> bytes:
    """As YAML; of what a test has not changed once."""
    return next((text for one, text in _USUAL if one is value), None) or _yaml(value)


def _yaml(value: Any) -> bytes:
    found = yaml.safe_dump(value, allow_unicode=True, encoding="utf-8")
    assert isinstance(found, bytes)
    return found


_USUAL = [(one, _yaml(one)) for one in (PROJECT, *FRONTS.values())]


def wrong(project: Any, fronts: dict[str, Any]) -> str:
    """What is wrong with how the folder is read."""
    try:
        _, errors = read(files(project, fronts))
        return "; ".join(filter(None, map(error_fault, errors)))
    except Exception as error:  # noqa: BLE001 - whatever it is, it should not be
        return f"{type(error).__name__}: {error}"[:300]


CASES = [("infold.yml", at) for at in paths(PROJECT)]
CASES += [(name, at) for name, front in FRONTS.items() for at in paths(front)]


@pytest.mark.parametrize(("file", "at"), CASES, ids=[f"{f}:{'.'.join(a)}" for f, a in CASES])
def test_unexpected_values(file: str, at: Keys) -> None:
    """Each unexpected value of a key, and each misspelled key, is accepted or a named error."""

    def given(change: Callable[[dict[str, Any], str], None]) -> str:
        if file == "infold.yml":
            return wrong(spoilt(PROJECT, at, change), FRONTS)
        return wrong(PROJECT, FRONTS | {file: spoilt(FRONTS[file], at, change)})

    changes: dict[str, Callable[[dict[str, Any], str], None]] = {
        f"{value!a}"[:40]: lambda inner, key, value=value: inner.update({key: value})  # type: ignore[misc]
        for value in VALUES
    }
    changes |= {
        f"key {name!r}": lambda inner, key, name=name: inner.update({name: inner.pop(key)})  # type: ignore[misc]
        for name in ("", "\U0001f600", "a.b", "__class__", at[-1].upper(), f"{at[-1]} ")
    }
    # A tenth of them for each key, and another tenth for the next one: each is at many keys.
    part = list(changes)[CASES.index((file, at)) % 10 :: 10]
    found = {name: given(changes[name]) for name in part}

    judged(f"{file}:{'.'.join(at)}", found)


def test_the_unchanged_project_is_valid() -> None:
    """Without a change there are no errors; else the other tests would prove little."""
    _, errors = read(files(PROJECT, FRONTS))

    assert [error.slug for error in errors] == []
