"""
Three projects that between them use every materialization, format and kind of aggregate.

``fold`` keeps sessions by mergeable aggregates, and in some versions makes events and rows by key
with functions in Python; ``reread`` has aggregates that have to be evaluated over a session's
events again; ``landed`` reads its source directly and lets row hashes choose among copies. In each
of these, one version of the events looks for copies at their own time, another one everywhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from tests.arrivals.ends import SESSIONS_CASES, SessionsCase
from tests.arrivals.shape import (
    Rows,
    Shape,
    SourceSpec,
    TableSpec,
    by_cells,
    calls,
    date_of_cell,
    day_of,
    model_file,
    only,
    sessions_table,
    truncated,
)
from tests.reference import aggregates as agg
from tests.reference.aggregates import Aggregate
from tests.reference.tables import Deduplicated, events, grouped, left_joined, versions
from tests.reference.world import Row, Rules

from infold.core.interval import HOUR, MINUTE, Granularity, parse_instant_text

GAP = 30 * MINUTE
_BY_GAP = "user: user_id, gap: 30 minutes"

CLICK: Mapping[str, str] = {
    "event_id": "string",
    "user_id": "string",
    "event_ts": "timestamp",
    "received_ts": "timestamp",
    "url": "string",
    "amount": "decimal(18,2)",
    "weight": "double",
    "n": "bigint",
    "ok": "boolean",
    "revision": "int",
}
PAGE: Mapping[str, str] = {"url": "string", "section": "string"}


def _paid(row: Row) -> bool | None:
    return None if row["amount"] is None else row["amount"] > 0


def _pay(row: Row) -> bool | None:
    return None if row["url"] is None else row["url"].startswith("/pay")


# -- fold ------------------------------------------------------------------------------------------

_FOLDED: Mapping[str, Aggregate] = {
    "events": agg.count(),
    "known_urls": agg.count_of("url"),
    "payments": agg.count_if("url LIKE '/pay%'", _pay),
    "revenue": agg.total("amount"),
    "paid": agg.total("amount").where("amount > 0", _paid),
    "mean_amount": agg.mean("amount", scale=2),
    "weight": agg.total("weight"),
    "mean_weight": agg.mean("weight"),
    "least_n": agg.least("n"),
    "total_n": agg.total("n"),
    "greatest_url": agg.greatest("url"),
    "latest_revision": agg.greatest("revision"),
    "entry_url": agg.first("url"),
    "exit_url": agg.last("url"),
    "first_known_url": agg.first_known("url"),
    "last_known_amount": agg.last_known("amount"),
    "first_paid": agg.first("event_id").where("amount > 0", _paid),
    "all_ok": agg.every("ok", lambda row: row["ok"]),
    "any_ok": agg.some("ok", lambda row: row["ok"]),
    "received": agg.greatest("received_ts"),
}


BEGIN = parse_instant_text("2024-03-01T12:30")
"""The ``start`` of models that have one: in the midst of the first events."""
STARTS = "start: 2024-03-01T12:30:00Z\n"


def _begun(row: Row) -> bool:
    """Whether a row is not before the start; one without a time is set aside all the same."""
    at = row["event_ts"]
    return at is None or bool(at >= BEGIN)


def _clicks(*, keep_health: bool, everywhere: bool = False, begun: bool = False) -> TableSpec:
    where = "" if keep_health else "\nWHERE url IS NULL OR url <> '/health'"
    return TableSpec(
        "clicks",
        model_file(
            "materialization: events\n"
            "unique_key: [event_id]\n"
            "prefer: [revision desc]\n"
            f"{'deduplicate: everywhere' if everywhere else ''}\n"
            f"{STARTS if begun else ''}"
            "timeseries: {event_time_column: event_ts, granularity: day}",
            f"SELECT {', '.join(CLICK)}\nFROM raw.clicks{where}",
        ),
        reads=(),
        source="raw.clicks",
        best=lambda rows: events(
            rows,
            key=["event_id"],
            time="event_ts",
            prefer=["revision desc"],
            everywhere=everywhere,
        ),
        key=("event_id",),
        keeps=lambda row: (
            (keep_health or row["url"] is None or row["url"] != "/health")
            and (not begun or _begun(row))
        ),
        granularity=Granularity.DAY,
    )


def _twice(row: Row) -> Rows:
    """Some rows are a second event, an hour later."""
    if row["n"] is None or row["n"] % 3:
        return [row]
    name, at = row["event_id"], row["event_ts"]
    named = None if name is None else name + "+"
    later = None if at is None else at + HOUR
    return [row, row | {"event_id": named, "event_ts": later, "url": "/again"}]


_CLICKS_IN_PYTHON = replace(
    _clicks(keep_health=False),
    text=f"""from datetime import timedelta

from infold import model

@model(
    materialization="events",
    unique_key=["event_id"],
    prefer=["revision desc"],
    timeseries={{"event_time_column": "event_ts"}},
    inputs={{"raw.clicks": {{}}}},
    columns={dict(CLICK)},
)
def clicks(row):
    if row["url"] == "/health":
        return
    yield row
    if row["n"] is not None and row["n"] % 3 == 0:
        again = dict(row, url="/again", event_ts=row["event_ts"])
        if row["event_id"] is not None:
            again["event_id"] += "+"
        if row["event_ts"] is not None:
            again["event_ts"] += timedelta(hours=1)
        yield again
""",
    makes=_twice,
)


_KEEPING_HEALTH = replace(
    _CLICKS_IN_PYTHON,
    text=_CLICKS_IN_PYTHON.text.replace('"/health"', '"/none"'),
    keeps=lambda row: True,
)


def _folded_sessions(gap: int, *, begun: bool = False) -> TableSpec:
    return sessions_table(
        "sessions",
        "clicks",
        f"user: user_id, gap: {gap // MINUTE} minutes",
        _FOLDED,
        gap,
        keys=STARTS if begun else "",
        where=("", _begun if begun else lambda row: True),
    )


FEW_SESSIONS = sessions_table(
    "sessions",
    "clicks",
    _BY_GAP,
    {name: _FOLDED[name] for name in ("events", "payments", "revenue", "entry_url", "exit_url")},
    GAP,
)
"""Those with the columns alone that other tables read: each costs Spark time."""


def _user(row: Row) -> str | None:
    user: str | None = row["user_id"]
    return user


def _sessions(
    name: str, read: str, way: SessionsCase, aggregates: Mapping[str, Aggregate]
) -> TableSpec:
    """Sessions that are made and end in some other way than by user and gap alone."""
    found = sessions_table(
        name,
        read,
        way.front,
        aggregates,
        way.gap,
        user=way.column,
        more=way.more,
        ends=way.ends,
        whose=way.ends.whose or _user,
        said_as=way.ends.text,
    )
    plain = found.rows
    assert plain is not None
    return replace(found, rows=lambda given: way.with_numbers(plain(given)))


_DAILY: Mapping[str, Aggregate] = {
    "sessions": agg.count(),
    "revenue": agg.total("revenue"),
    "longest": agg.greatest("events"),
}
_DAILY_OTHER: Mapping[str, Aggregate] = dict(_DAILY) | {"longest": agg.least("events")}


def _daily(aggregates: Mapping[str, Aggregate]) -> TableSpec:
    return by_cells(
        "daily",
        f"SELECT cast(session_start AS date) AS day, {calls(aggregates)}\nFROM sessions GROUP BY 1",
        ("sessions",),
        lambda given: grouped(
            given["sessions"],
            {"day": lambda row: day_of(row["session_start"])},
            aggregates,
            cell="day",
        ),
        time="session_start",
    )


_HOURLY: Mapping[str, Aggregate] = {"clicks": agg.count(), "weight": agg.total("weight")}

_HOURLY_TABLE = by_cells(
    "hourly",
    f"SELECT date_trunc('HOUR', event_ts) AS hour, ok, {calls(_HOURLY)}\nFROM clicks GROUP BY 1, 2",
    ("clicks",),
    lambda given: grouped(
        given["clicks"],
        {
            "hour": lambda row: truncated(Granularity.HOUR, row["event_ts"]),
            "ok": lambda row: row["ok"],
        },
        _HOURLY,
        cell="hour",
    ),
    cell="hour",
    granularity=Granularity.HOUR,
)


def paying(least: int, *columns: str) -> TableSpec:
    """A view of the clicks that pay more than that."""
    return TableSpec(
        "paying",
        model_file(
            "materialization: view",
            f"SELECT {', '.join(columns)} FROM clicks WHERE amount > {least}",
        ),
        reads=("clicks",),
        rows=lambda given: [
            only(row, *columns)
            for row in given["clicks"]
            if row["amount"] is not None and row["amount"] > least
        ],
        view=True,
    )


_PAYING = ("user_id", "event_ts", "url", "amount")

_TOTALS: Mapping[str, Aggregate] = {
    "payments": agg.count(),
    "paid": agg.total("amount"),
    "latest": agg.greatest("event_ts"),
}

_SECTIONS: Mapping[str, Aggregate] = {"payments": agg.count(), "paid": agg.total("amount")}


def _sections(given: Mapping[str, Rows]) -> Rows:
    joined = left_joined(given["paying"], given["raw.pages"], "url", ["section"])
    return grouped(
        joined,
        {"day": lambda row: day_of(row["event_ts"]), "section": lambda row: row["section"]},
        _SECTIONS,
        cell="day",
    )


_SECTIONS_TABLE = by_cells(
    "sections",
    "SELECT cast(p.event_ts AS date) AS day, s.section,\n"
    "  count(*) AS payments, sum(p.amount) AS paid\n"
    "FROM paying p LEFT JOIN raw.pages s ON p.url = s.url\n"
    "GROUP BY 1, 2",
    ("paying", "raw.pages"),
    _sections,
)

_PAGES_LANDED = TableSpec(
    "raw.pages", "", reads=(), source="raw.pages", rows=lambda given: given["raw.pages"]
)

# -- a lookup, and several tables, before sessions


def _placed(row: Row) -> Row:
    columns = ("event_id", "user_id", "event_ts", "amount")
    return only(row, *columns) | {"section": row["section"] or "-"}


_PLACED = TableSpec(
    "placed",
    model_file(
        "materialization: view",
        "SELECT c.event_id, user_id, event_ts, amount, coalesce(p.section, '-') AS section\n"
        "FROM clicks c LEFT JOIN raw.pages p ON p.url = c.url",
    ),
    reads=("clicks", "raw.pages"),
    rows=lambda given: [
        _placed(row) for row in left_joined(given["clicks"], given["raw.pages"], "url", ["section"])
    ],
    view=True,
)


def _over_view(
    name: str, read: str, key: tuple[str, ...], aggregates: Mapping[str, Aggregate]
) -> TableSpec:
    """Sessions over a view with a key that does not tell all rows of one instant apart."""
    return sessions_table(name, read, _BY_GAP, aggregates, GAP, key=key)


_TOURS = _over_view(
    "tours",
    "placed",
    ("event_id", "section"),
    {
        "events": agg.count(),
        "first_section": agg.first("section"),
        "last_section": agg.last("section"),
        "on_top": agg.count_if("section = 'top'", lambda row: row["section"] == "top"),
        "revenue": agg.total("amount"),
    },
)


def _both(given: Mapping[str, Rows]) -> Rows:
    """Payments as they came, and orders."""
    columns = ("event_id", "revision", "user_id", "amount")
    paid = [row for row in given["raw.clicks"] if row["event_id"] is not None and _pay(row)]
    return [
        *(only(row, *columns, "event_ts", "url") for row in paid),
        *(only(row, *columns) | {"event_ts": row["at"], "url": "order"} for row in given["orders"]),
    ]


_BOTH = TableSpec(
    "both",
    model_file(
        "materialization: view",
        "SELECT event_id, revision, user_id, event_ts, url, amount FROM raw.clicks\n"
        "WHERE event_id IS NOT NULL AND url LIKE '/pay%'\nUNION ALL\n"
        "SELECT event_id, revision, user_id, at, 'order', amount FROM orders",
    ),
    reads=("raw.clicks", "orders"),
    rows=_both,
    view=True,
)
_RIDES = _over_view(
    "rides",
    "both",
    ("event_id", "revision", "url"),
    {
        "events": agg.count(),
        "entry_url": agg.first("url"),
        "exit_url": agg.last("url"),
        "revenue": agg.total("amount"),
    },
)

# -- by key


def by_key(
    name: str,
    read: str,
    keys: Mapping[str, str],
    aggregates: Mapping[str, Aggregate],
    *,
    where: tuple[str, Callable[[Row], bool | None]] | None = None,
    having: tuple[str, Callable[[Row], bool]] | None = None,
    front: str = "materialization: cumulative_aggregate",
) -> TableSpec:
    """An aggregate by columns or days (``day`` -> the column it is the day of)."""
    items = [
        f"cast({column} AS date) AS {key}" if key == "day" else column
        for key, column in keys.items()
    ]
    sql = f"SELECT {', '.join(items)},\n  {calls(aggregates)}\nFROM {read}"
    sql += f"\nWHERE {where[0]}" if where else ""
    sql += f"\nGROUP BY {', '.join(keys)}"
    sql += f"\nHAVING {having[0]}" if having else ""
    return TableSpec(
        name,
        model_file(front, sql),
        reads=(read,),
        rows=lambda given: [
            row
            for row in grouped(
                [row for row in given[read] if where is None or where[1](row)],
                {key: _value(key, column) for key, column in keys.items()},
                aggregates,
            )
            if having is None or having[1](row)
        ],
    )


def _value(key: str, column: str) -> Callable[[Row], Any]:
    return lambda row: day_of(row[column]) if key == "day" else row[column]


_USERS: Mapping[str, Aggregate] = {
    "sessions": agg.count(),
    "events": agg.total("events"),
    "revenue": agg.total("revenue"),
    "mean_events": agg.mean("events"),
    "first_seen": agg.least("session_start"),
    "last_seen": agg.greatest("session_end"),
    "first_page": agg.least_by("entry_url", "session_start"),
    "last_page": agg.greatest_by("exit_url", "session_start", "session_end"),
}
"""Each has a state, so rows follow from the rows that come and go."""
_READ_AGAIN: Mapping[str, Aggregate] = {
    **_USERS,
    "weight": agg.total("weight"),
    "pages": agg.count_distinct("entry_url"),
}
"""The rows of a key are read again."""
_USER = {"user_id": "user_id"}

_USERS_TABLES = (
    by_key("users", "sessions", _USER, _USERS),
    by_key(
        "users",
        "sessions",
        {"day": "session_start", "user_id": "user_id"},
        _READ_AGAIN,
        where=("events > 1", lambda row: row["events"] > 1),
    ),
    by_key(
        "users",
        "sessions",
        _USER,
        _USERS,
        having=("count(*) > 1", lambda row: row["sessions"] > 1),
    ),
)


_IN_ORDER = ("session_start", "session_end", "events", "payments", "revenue", "exit_url")


def _streaks(given: Mapping[str, Rows]) -> Rows:
    """The most sessions of a user in a row without a payment; users without a revenue are out."""
    by_user = defaultdict(list)
    for row in given["sessions"]:
        by_user[row["user_id"]].append(row)
    found = []
    for user, rows in by_user.items():
        rows.sort(key=lambda row: [(row[name] is not None, row[name]) for name in _IN_ORDER])
        paid = "".join("-" if not row["payments"] else "p" for row in rows)
        if all(row["revenue"] is None for row in rows):
            continue
        found.append(
            {
                "user_id": user,
                "sessions": len(rows),
                "events": sum(row["events"] for row in rows),
                "longest": max(map(len, paid.split("p"))),
                "last_pages": [row["exit_url"] for row in rows[-2:]],
            }
        )
    return found


_USERS_IN_PYTHON = TableSpec(
    "users",
    """from infold import model


@model(
    materialization="cumulative_aggregate",
    group_by=["user_id"],
    inputs={"sessions": {
        "columns": ["session_start", "session_end", "events", "payments", "revenue", "exit_url"]
    }},
    columns={"user_id": "string", "sessions": "bigint", "events": "bigint", "longest": "int",
             "last_pages": "array<string>"},
)
def users(rows):
    longest = streak = 0
    for row in rows:
        streak = 0 if row["payments"] else streak + 1
        longest = max(longest, streak)
    if {row["revenue"] for row in rows} == {None}:
        return None
    return {
        "sessions": len(rows),
        "events": sum(row["events"] for row in rows),
        "longest": longest,
        "last_pages": [row["exit_url"] for row in rows][-2:],
    }
""",
    reads=("sessions",),
    rows=_streaks,
)
_TIERS = by_key(
    "tiers",
    "users",
    {"sessions": "sessions"},
    {"users": agg.count(), "events": agg.total("events")},
)
_PAYERS = by_key(
    "payers",
    "paying",
    {"url": "url"},
    {"payments": agg.count(), "least": agg.least("amount"), "latest": agg.greatest("event_ts")},
)

_PLACES = by_key(
    "places",
    "placed",
    {"section": "section"},
    {"events": agg.count(), "paid": agg.total("amount"), "people": agg.count_distinct("user_id")},
)

FOLD = Shape(
    "fold",
    sources=(
        SourceSpec(
            "raw.clicks",
            "clicks",
            "json",
            Rules("event_ts"),
            CLICK,
            "path: landing/clicks/*.json\nformat: json\nevent_time_column: event_ts",
        ),
        SourceSpec(
            "raw.pages", "pages", "csv", Rules(), PAGE, "path: landing/pages/*.csv.gz\nformat: csv"
        ),
    ),
    tables={
        "raw.pages": (_PAGES_LANDED,),
        "clicks": (
            _clicks(keep_health=False),
            _clicks(keep_health=True, everywhere=True),
            _CLICKS_IN_PYTHON,
            _KEEPING_HEALTH,
        ),
        "sessions": (
            _folded_sessions(GAP),
            *(_sessions("sessions", "clicks", way, _FOLDED) for way in SESSIONS_CASES),
            _folded_sessions(2 * GAP),
            _folded_sessions(GAP, begun=True),
        ),
        "daily": (_daily(_DAILY), _daily(_DAILY_OTHER)),
        "hourly": (_HOURLY_TABLE,),
        "paying": (paying(0, *_PAYING), paying(20, *_PAYING)),
        "totals": (by_key("totals", "paying", _USER, _TOTALS, front="materialization: table"),),
        "sections": (_SECTIONS_TABLE,),
        "users": (*_USERS_TABLES, _USERS_IN_PYTHON),
        "tiers": (_TIERS,),
        "payers": (_PAYERS,),
        "placed": (_PLACED,),
        "tours": (_TOURS,),
        "places": (_PLACES,),
    },
    lookup="raw.pages",
    windows=True,
)


# -- reread ----------------------------------------------------------------------------------------

_REREAD: Mapping[str, Aggregate] = {
    "events": agg.count(),
    "urls": agg.count_distinct("url"),
    "path": agg.listed("url"),
    "ids": agg.listed("event_id").where("amount > 0", _paid),
    "median_n": agg.percentile("n", 0.5),
    "high_weight": agg.percentile("weight", 0.9),
    "revenue": agg.total("amount"),
    "exit_url": agg.last("url"),
}


def _web(row: Row) -> bool | None:
    """``url IS NOT NULL AND url <> '/health'``."""
    return row["url"] is not None and row["url"] != "/health"


def _reread_sessions(extra: Mapping[str, Aggregate], *, begun: bool = False) -> TableSpec:
    return sessions_table(
        "visits",
        "clicks",
        _BY_GAP,
        {**_REREAD, **extra},
        GAP,
        keys=STARTS if begun else "",
        where=(
            "\nWHERE url IS NOT NULL AND url <> '/health'",
            (lambda row: _web(row) and _begun(row)) if begun else _web,
        ),
        keeps=lambda row: bool(_web(row)),
    )


def _over(
    name: str, read: str, time: str, granularity: Granularity, aggregates: Mapping[str, Aggregate]
) -> TableSpec:
    """A table of sums over one input, by cells of a granularity."""
    word = granularity.value
    return by_cells(
        name,
        f"SELECT cast(date_trunc('{word.upper()}', {time}) AS date) AS {word}, "
        f"{calls(aggregates)}\nFROM {read} GROUP BY 1",
        (read,),
        lambda given: grouped(
            given[read],
            {word: lambda row: date_of_cell(granularity, row[time])},
            aggregates,
            cell=word,
        ),
        time=time,
        cell=word,
        granularity=granularity,
    )


REREAD = Shape(
    "reread",
    sources=(
        SourceSpec(
            "raw.clicks",
            "clicks",
            "csv",
            Rules("event_ts", received="received_ts", tolerance=2 * HOUR),
            CLICK,
            "path: landing/clicks/*.csv.gz\nformat: csv\ntimestamp_format: epoch_millis\n"
            "event_time_column: event_ts\nreceived_column: received_ts\n"
            "future_tolerance: 2 hours",
            times="epoch_millis",
        ),
    ),
    tables={
        "clicks": (
            _clicks(keep_health=True, everywhere=True),
            _clicks(keep_health=False),
            _clicks(keep_health=False, everywhere=True, begun=True),
        ),
        "visits": (
            _reread_sessions({}),
            *(_sessions("visits", "clicks", way, _REREAD) for way in SESSIONS_CASES),
            _reread_sessions({"first_n": agg.first("n")}),
            _reread_sessions({}, begun=True),
        ),
        "weekly": (
            _over(
                "weekly",
                "visits",
                "session_start",
                Granularity.WEEK,
                {"visits": agg.count(), "events": agg.total("events")},
            ),
        ),
        "monthly": (
            _over(
                "monthly",
                "clicks",
                "event_ts",
                Granularity.MONTH,
                {"clicks": agg.count(), "people": agg.count_distinct("user_id")},
            ),
        ),
        "pages": (
            by_key(
                "pages",
                "clicks",
                {"url": "url", "ok": "ok"},
                {
                    "clicks": agg.count(),
                    "paid": agg.total("amount").where("amount > 0", _paid),
                    "mean": agg.mean("amount", scale=2),
                    "people": agg.count_distinct("user_id"),
                    "latest": agg.greatest("event_ts"),
                },
            ),
        ),
        "weeks": (
            by_key(
                "weeks",
                "weekly",
                {"visits": "visits"},
                {"n": agg.count(), "e": agg.total("events")},
            ),
        ),
    },
    tick=1_000,
)


# -- landed ----------------------------------------------------------------------------------------

_SHORT: Mapping[str, Aggregate] = {
    "events": agg.count(),
    "entry_url": agg.first("url"),
    "exit_url": agg.last("url"),
    "last_weight": agg.last("weight"),
    "first_received": agg.first("received_ts"),
    "revenue": agg.total("amount"),
}


def _orders_of(rows: Rows, *, everywhere: bool) -> Deduplicated:
    columns = ("event_id", "revision", "user_id", "at", "url", "amount", "weight", "received_ts")
    return events(
        rows,
        key=["event_id", "revision"],
        time="at",
        everywhere=everywhere,
        query=lambda row: only(row | {"at": row["event_ts"]}, *columns),
    )


def _orders(*, everywhere: bool) -> TableSpec:
    return TableSpec(
        "orders",
        model_file(
            "materialization: events\n"
            "unique_key: [event_id, revision]\n"
            f"deduplicate: {'everywhere' if everywhere else 'same_time'}\n"
            "timeseries: {event_time_column: at, granularity: week}",
            "SELECT event_id, revision, user_id, event_ts AS at, url, amount, weight, received_ts\n"
            "FROM raw.clicks",
        ),
        reads=(),
        source="raw.clicks",
        best=lambda rows: _orders_of(rows, everywhere=everywhere),
        key=("event_id", "revision"),
        granularity=Granularity.WEEK,
    )


def _stays(aggregates: Mapping[str, Aggregate]) -> TableSpec:
    return sessions_table(
        "stays",
        "orders",
        _BY_GAP,
        aggregates,
        GAP,
        keys="timeseries: {event_time_column: session_start, granularity: month}\n",
        time="at",
        key=("event_id", "revision"),
        granularity=Granularity.MONTH,
    )


_PEOPLE: Mapping[str, Aggregate] = {"stays": agg.count(), "events": agg.total("events")}

_RAW: Mapping[str, Aggregate] = {"records": agg.count(), "amount": agg.total("amount")}

_RECORDS = by_cells(
    "records",
    f"SELECT cast(event_ts AS date) AS day, {calls(_RAW)}\nFROM raw.clicks GROUP BY 1",
    ("raw.clicks",),
    lambda given: grouped(
        given["raw.clicks"], {"day": lambda row: day_of(row["event_ts"])}, _RAW, cell="day"
    ),
)


def _recent(given: Mapping[str, Rows]) -> Rows:
    """Each day with the rows of it and of the two days before."""
    by_day = {row["day"]: row["records"] for row in given["records"]}
    return [
        {
            "day": day,
            "records": records,
            "recent": sum(by_day.get(day - timedelta(days=n), 0) for n in range(3)),
        }
        for day, records in by_day.items()
    ]


_RECENT = by_cells(
    "recent",
    "SELECT day, records, sum(records) OVER (\n"
    "  ORDER BY day RANGE BETWEEN INTERVAL 2 DAYS PRECEDING AND CURRENT ROW) AS recent\n"
    "FROM records",
    ("records",),
    _recent,
    time="day",
    keys="batch_size: 2",
)

_RECENT_IN_PYTHON = replace(
    _RECENT,
    text="""from infold import model
from pyspark.sql import Window
from pyspark.sql import functions as F


@model(
    materialization="table",
    timeseries={"event_time_column": "day", "partition_column": "day"},
    incremental={"batch_size": 3},
    inputs={"records": {"before": "2 days", "columns": ["day", "records"]}},
    columns={"day": "date", "records": "bigint", "recent": "bigint"},
)
def recent(records):
    days = F.datediff("day", F.lit("1970-01-01"))
    near = Window.orderBy(days).rangeBetween(-2, Window.currentRow)
    return records.withColumn("recent", F.sum("records").over(near))
""",
)


def _stages(compared: tuple[str, ...] | None) -> TableSpec:
    """The versions of what users last looked at."""
    columns = f", columns: [{', '.join(compared)}]" if compared else ""
    return TableSpec(
        "stages",
        model_file(
            "materialization: scd_type_2\n"
            "unique_key: [user_id]\n"
            f"scd_type_2: {{updated_at: at{columns}}}",
            "SELECT user_id, at, url, revision FROM orders WHERE url IS NOT NULL",
        ),
        reads=("orders",),
        rows=lambda given: versions(
            [
                only(row, "user_id", "at", "url", "revision")
                for row in given["orders"]
                if row["url"] is not None
            ],
            key=["user_id"],
            time="at",
            compared=compared,
        ),
    )


def _then(given: Mapping[str, Rows]) -> Rows:
    """Each order with what its user looked at then."""
    held = defaultdict(list)
    for row in given["stages"]:
        held[row["user_id"]].append(row)
    found = []
    for row in given["orders"]:
        day, at = day_of(row["at"]), row["at"]
        stages = [
            one
            for one in (held[row["user_id"]] if row["user_id"] is not None else ())
            if one["valid_from"] <= at and (one["valid_to"] is None or at < one["valid_to"])
        ]
        shown = {"day": day, "event_id": row["event_id"]}
        found += [shown | {"url": one["url"]} for one in stages or ({"url": None},)]
    return found


_THEN = by_cells(
    "then",
    "SELECT cast(o.at AS date) AS day, o.event_id, s.url\n"
    "FROM orders o LEFT JOIN stages s ON s.user_id = o.user_id\n"
    "  AND o.at >= s.valid_from AND (o.at < s.valid_to OR s.valid_to IS NULL)",
    ("orders", "stages"),
    _then,
    time="at",
)

LANDED = Shape(
    "landed",
    sources=(
        SourceSpec(
            "raw.clicks",
            "clicks",
            "parquet",
            Rules("event_ts"),
            CLICK,
            "path: landing/clicks/*.parquet\nformat: parquet\nevent_time_column: event_ts",
            times="native",
        ),
    ),
    tables={
        "raw.clicks": (
            TableSpec(
                "raw.clicks",
                "",
                reads=(),
                source="raw.clicks",
                rows=lambda given: given["raw.clicks"],
                granularity=Granularity.DAY,
            ),
        ),
        "orders": (_orders(everywhere=False), _orders(everywhere=True)),
        "stays": (_stays(_SHORT), _stays({**_SHORT, "urls": agg.count_distinct("url")})),
        "people": (by_key("people", "stays", _USER, _PEOPLE, front="materialization: table"),),
        "stages": (_stages(None), _stages(("url",))),
        "then": (_THEN,),
        "records": (_RECORDS,),
        "recent": (_RECENT, _RECENT_IN_PYTHON),
        "both": (_BOTH,),
        "rides": (_RIDES,),
    },
)


SHAPES: Mapping[str, Shape] = {shape.name: shape for shape in (FOLD, REREAD, LANDED)}
