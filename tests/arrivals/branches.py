"""
A project with models in many versions, for environments: which versions there are is a *branch*.

The versions differ in all that a definition may differ in: columns, conditions, gaps, granularity,
names of columns, inputs, words only, and whether there is such a model at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from tests.arrivals.ends import campaign
from tests.arrivals.shape import (
    Rows,
    Shape,
    TableSpec,
    by_cells,
    day_of,
    model_file,
    sessions_table,
)
from tests.arrivals.shapes import CLICK, FOLD, by_key, paying
from tests.reference import aggregates as agg
from tests.reference.aggregates import Aggregate
from tests.reference.tables import Ends, events
from tests.reference.world import Row

from infold.core.interval import HOUR, MINUTE, Granularity

ABSENT = -1
"""The version of a model that is not there."""


# -- sessions ----------------------------------------------------------------------------------

_STAY: Mapping[str, Aggregate] = {"events": agg.count(), "amount": agg.total("amount")}
_MORE = {**_STAY, "urls": agg.count_of("url")}


def _stays(
    gap: int,
    aggregates: Mapping[str, Aggregate],
    where: str = "",
    keys: str = "",
    more: str = "",
    ends: Ends | None = None,
) -> TableSpec:
    kept = (lambda row: row["ok"]) if where else (lambda row: True)
    own = f"user: user_id, gap: {gap} minutes{more}"
    return sessions_table(
        "stays", "clicks", own, aggregates, gap * MINUTE, keys=keys, where=(where, kept), ends=ends
    )


_CAMPAIGN = ", cuts: {campaign: {columns: url, direct: [/]}}, max_length: 5 hours"
_HEAD = ", quarantine_after: 3 hours, keep: head"
_STEADY = "forward_only: true\n"

_STAYS = (
    _stays(30, _STAY),
    _stays(60, _STAY),
    _stays(10, _STAY, more=", cuts: {midnight: Asia/Kolkata}", ends=Ends(zone="Asia/Kolkata")),
    _stays(30, _MORE),
    _stays(60, _STAY, " WHERE ok"),
    _stays(45, _MORE, keys=_STEADY),
    _stays(120, _MORE, "", _STEADY, _CAMPAIGN, Ends(campaign=campaign, most=5 * HOUR)),
    _stays(1440, _STAY, more=_HEAD, ends=Ends(limit=3 * HOUR, head=True)),
)

# -- days --------------------------------------------------------------------------------------


def _amount(rows: Rows) -> Any:
    known = [row["amount"] for row in rows if row["amount"] is not None]
    return sum(known[1:], known[0]) if known else None


_COUNTED: Mapping[str, tuple[str, Callable[[Rows], Any]]] = {
    "n": ("count(*)", len),
    "once": ("count(*) * 1", len),  # unlike the one before, nothing is derived from it
    "double": ("count(*) * 2", lambda rows: len(rows) * 2),
    "triple": ("count(*) * 3", lambda rows: len(rows) * 3),
    "amount": ("sum(amount)", _amount),
}


def counted_days(
    columns: Mapping[str, str],
    *,
    where: str = "",
    joined: bool = False,
    granularity: Granularity = Granularity.DAY,
    keys: str = "",
    comment: str = "",
    renamed: str = "",
    start: date = date.min,
) -> TableSpec:
    """
    Days of clicks, all or those that are not on the first page: each column is one of ``_COUNTED``.

    They may be joined with the lookup, and begin inside a cell.
    """
    listed = ", ".join(f"{_COUNTED[what][0]} AS {name}" for name, what in columns.items())

    def rows(given: Mapping[str, Rows]) -> Rows:
        kept = [row for row in given["clicks"] if not where or row["url"] not in (None, "/")]
        if joined:
            urls = [page["url"] for page in given["raw.pages"] if page["section"] is not None]
            kept = [row for row in kept for url in urls if row["url"] == url]
        by_day: dict[Any, Rows] = {}
        for row in kept:
            by_day.setdefault(day_of(row["event_ts"]), []).append(row)
        return [
            {"day": day} | {name: _COUNTED[what][1](some) for name, what in columns.items()}
            for day, some in by_day.items()
            if day is None or day >= start
        ]

    source = "clicks c JOIN raw.pages p ON c.url = p.url" if joined else "clicks c"
    conditions = [*([where] if where else []), *(["p.section IS NOT NULL"] if joined else [])]
    tail = f"\nWHERE {' AND '.join(conditions)}" if conditions else ""
    sql = (
        f"SELECT {comment}cast(event_ts AS date) AS day, {listed}\nFROM {source}{tail}\nGROUP BY 1"
    )
    reads = ("clicks", "raw.pages") if joined else ("clicks",)
    more = f"\nrenamed_from: {{{renamed}}}" if renamed else ""
    keys += f"start: {start}" if start != date.min else ""
    return by_cells("daily", sql, reads, rows, granularity=granularity, keys=keys, more=more)


_INSIDE = date(2024, 3, 7)  # a Thursday
_IN_PARTS = "backfill_limit: 2 days, batch_size: 1"
_DAILY = (
    counted_days({"n": "n"}),
    counted_days({"n": "n", "amount": "amount"}),
    counted_days({"n": "n", "paid": "amount", "amount": "amount"}),
    counted_days({"n": "double", "amount": "amount"}),
    counted_days({"amount": "amount", "n": "n"}, where="c.url <> '/'"),
    counted_days({"n": "n", "amount": "amount"}, joined=True),
    counted_days({"n": "n"}, granularity=Granularity.MONTH),
    counted_days({"n": "n"}, comment="/* by day */ "),
    counted_days({"n": "n", "amount": "amount"}, keys="batch_size: 3"),
    counted_days({"n": "n", "income": "amount"}, renamed="income: amount"),
    counted_days({"n": "n", "revenue": "amount"}, renamed="revenue: income"),
    counted_days({"n": "double"}, where="c.url <> '/'", keys="forward_only: true"),
    counted_days(
        {"n": "double", "amount": "amount"}, where="c.url <> '/'", keys="forward_only: true"
    ),
    counted_days({"n": "n"}, granularity=Granularity.WEEK, keys="batch_size: 1, ", start=_INSIDE),
    counted_days({"n": "n"}, granularity=Granularity.MONTH, start=_INSIDE + timedelta(days=7)),
    counted_days({"n": "once"}, keys=_IN_PARTS),
    counted_days({"n": "double", "amount": "amount"}, keys=_IN_PARTS),
    counted_days({"n": "triple"}, where="c.url <> '/'", keys=_IN_PARTS),
)
IN_PARTS = range(len(_DAILY) - 3, len(_DAILY))
"""The versions that are built over several runs."""


def _rolling(before: int, after: int, keys: str = "") -> TableSpec:
    """Each day with the days around it; it reads one column of the days."""

    def rows(given: Mapping[str, Rows]) -> Rows:
        by_day = {row["day"]: row["n"] for row in given["daily"]}
        around = range(-before, after + 1)
        return [
            {"day": day, "around": sum(by_day.get(day + timedelta(days=at), 0) for at in around)}
            for day in by_day
        ]

    sql = (
        f"SELECT day, sum(n) OVER (ORDER BY day RANGE BETWEEN\n"
        f"INTERVAL {before} DAYS PRECEDING AND INTERVAL {after} DAYS FOLLOWING) AS around\n"
        "FROM daily"
    )
    return by_cells("rolling", sql, ("daily",), rows, time="day", keys=keys)


def _tops(column: str) -> TableSpec:
    """A model that is not in every branch."""
    return by_cells(
        "tops",
        f"SELECT day, {column} AS top FROM daily",
        ("daily",),
        lambda given: [{"day": row["day"], "top": row[column]} for row in given["daily"]],
        time="day",
    )


_LATER = by_cells(
    "later",
    "SELECT day, around FROM rolling WHERE around > 1",
    ("rolling",),
    lambda given: [row for row in given["rolling"] if row["around"] > 1],
    time="day",
)

# -- events ------------------------------------------------------------------------------------

STARRED = ", ".join(CLICK)


def forward_clicks(
    columns: Mapping[str, Callable[[Row], Any]],
    sql: str,
    *,
    health: bool,
    keys: str = "",
) -> TableSpec:
    """Events with further columns, with those that look after the health or without."""
    where = "" if health else "\nWHERE url IS NULL OR url <> '/health'"

    def output(row: Row) -> Row:
        return dict(row) | {name: of(row) for name, of in columns.items()}

    return TableSpec(
        "clicks",
        model_file(
            "materialization: events\nunique_key: [event_id]\nprefer: [revision desc]\n"
            f"{keys}"
            "timeseries: {event_time_column: event_ts, granularity: day}",
            f"SELECT {sql}\nFROM raw.clicks{where}",
        ),
        reads=(),
        source="raw.clicks",
        best=lambda rows: events(
            rows, key=["event_id"], time="event_ts", prefer=["revision desc"], query=output
        ),
        key=("event_id",),
        keeps=lambda row: health or row["url"] is None or row["url"] != "/health",
        granularity=Granularity.DAY,
    )


def page_of(row: Row) -> Any:
    """``concat(url, '!')``."""
    return None if row["url"] is None else row["url"] + "!"


PAGE = "concat(url, '!') AS page"
LISTED = ", ".join(name for name in CLICK if name != "url")

_CLICKS = (
    *FOLD.tables["clicks"][:2],
    forward_clicks({"page": page_of}, f"{PAGE}, {STARRED}", health=True),
    forward_clicks(
        {"page": lambda row: "one", "url": lambda row: row["url"] or "?"},
        f"{LISTED}, coalesce(url, '?') AS url, 'one' AS page",
        health=False,
    ),
    forward_clicks(
        {"page": lambda row: "two"}, f"{STARRED}, 'two' AS page", health=False, keys=_STEADY
    ),
    forward_clicks(
        {"page": page_of, "more": lambda row: row["n"]},
        f"{STARRED}, n AS more, {PAGE}",
        health=True,
        keys=_STEADY,
    ),
)

# -- by key, over a view -----------------------------------------------------------------------


def _by_user(
    name: str, kind: str, read: str, aggregates: Mapping[str, Aggregate], renamed: str = ""
) -> TableSpec:
    front = f"materialization: {kind}" + (f"\nrenamed_from: {{{renamed}}}" if renamed else "")
    return by_key(name, read, {"user_id": "user_id"}, aggregates, front=front)


_PAYING = ("user_id", "event_ts", "amount")
_PAID: Mapping[str, Aggregate] = {"payments": agg.count(), "paid": agg.total("amount")}
_INCOME: Mapping[str, Aggregate] = {"payments": agg.count(), "income": agg.total("amount")}
_SEEN: Mapping[str, Aggregate] = {"stays": agg.count(), "events": agg.total("events")}
_FOLDED = "cumulative_aggregate"

BRANCHES = Shape(
    "branches",
    sources=FOLD.sources,
    tables={
        "raw.pages": FOLD.tables["raw.pages"],
        "clicks": _CLICKS,
        "stays": _STAYS,
        "daily": _DAILY,
        "rolling": (
            _rolling(2, 0),
            _rolling(0, 0),
            _rolling(0, 1),
            _rolling(2, 0, "batch_size: 2"),
            _rolling(1, 1, "forward_only: true"),
            _rolling(4, 0, "forward_only: true, late: new, batch_size: 2"),
        ),
        "later": (_LATER,),
        "paying": (paying(0, *_PAYING), paying(20, *_PAYING)),
        "totals": (
            _by_user("totals", _FOLDED, "paying", _PAID),
            _by_user("totals", _FOLDED, "paying", {"payments": agg.count()}),
            _by_user("totals", _FOLDED, "paying", _INCOME, "income: paid"),
        ),
        "people": (
            _by_user("people", "table", "stays", _SEEN),
            _by_user("people", _FOLDED, "stays", _SEEN),
        ),
        "tops": (_tops("n"), _tops("amount")),
    },
    lookup=FOLD.lookup,
)

RENAMED: Mapping[str, Mapping[int, int]] = {
    "daily": {0: 1, 1: 9, 9: 10, 10: 1},
    "totals": {0: 2, 2: 0},
}
"""Versions, and the next ones that give columns other names or lead to such versions."""

STEADY: Mapping[str, Sequence[int]] = {
    name: [at for at, spec in enumerate(versions) if "forward_only: true" in spec.text]
    for name, versions in BRANCHES.tables.items()
    if any("forward_only: true" in spec.text for spec in versions)
}
"""The versions of models that all changes to are forward-only, as their files say."""

OPTIONAL = frozenset({"tops"})
"""Models that a branch need not have."""

FIRST: Mapping[str, int] = dict.fromkeys(BRANCHES.tables, 0) | {"tops": ABSENT}
