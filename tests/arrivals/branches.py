"""
A project with models in many versions, for environments: which versions there are is a *branch*.

The versions differ in all that a definition may differ in: columns, conditions, gaps, granularity,
names of columns, inputs, words only, and whether there is such a model at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from tests.arrivals.forward import LISTED, PAGE, STARRED, forward_clicks, page_of
from tests.arrivals.shape import (
    Rows,
    Shape,
    TableSpec,
    by_cells,
    day_of,
    model_file,
    only,
    with_entries,
)
from tests.arrivals.shapes import FOLD
from tests.reference import aggregates as agg
from tests.reference.aggregates import Aggregate
from tests.reference.tables import grouped, sessions
from tests.reference.world import Row

from infold.core.interval import MINUTE, Granularity

ABSENT = -1
"""The version of a model that is not there."""


def _calls(aggregates: Mapping[str, Aggregate]) -> str:
    return ", ".join(f"{each.sql} AS {name}" for name, each in aggregates.items())


# -- sessions ----------------------------------------------------------------------------------

_STAY: Mapping[str, Aggregate] = {"events": agg.count(), "amount": agg.total("amount")}
_MORE = {**_STAY, "urls": agg.count_of("url")}


def _stays(
    gap: int, aggregates: Mapping[str, Aggregate], where: str = "", keys: str = ""
) -> TableSpec:
    return TableSpec(
        "stays",
        model_file(
            f"materialization: sessions\n{keys}sessions: {{user: user_id, gap: {gap} minutes}}",
            f"SELECT {_calls(aggregates)}\nFROM clicks{where}",
        ),
        reads=("clicks",),
        rows=lambda given: sessions(
            given["clicks"],
            user="user_id",
            time="event_ts",
            key=["event_id"],
            gap=gap * MINUTE,
            where=(lambda row: row["ok"]) if where else (lambda row: True),
            aggregates=aggregates,
            ends=with_entries("stays", given),
        ),
        granularity=Granularity.DAY,
        sessions=True,
    )


_STAYS = (
    _stays(30, _STAY),
    _stays(60, _STAY),
    _stays(10, _STAY),
    _stays(30, _MORE),
    _stays(60, _STAY, " WHERE ok"),
    _stays(45, _MORE, keys="forward_only: true\n"),
)

# -- days --------------------------------------------------------------------------------------


def _amount(rows: Rows) -> Any:
    known = [row["amount"] for row in rows if row["amount"] is not None]
    return sum(known[1:], known[0]) if known else None


_COUNTED: Mapping[str, tuple[str, Callable[[Rows], Any]]] = {
    "n": ("count(*)", len),
    "double": ("count(*) * 2", lambda rows: len(rows) * 2),
    "amount": ("sum(amount)", _amount),
}


def _daily(
    columns: Mapping[str, str],
    *,
    where: str = "",
    joined: bool = False,
    granularity: Granularity = Granularity.DAY,
    keys: str = "",
    comment: str = "",
    renamed: str = "",
) -> TableSpec:
    """Days of clicks: the columns are named, and each is one of ``_COUNTED``."""
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
        ]

    source = "clicks c JOIN raw.pages p ON c.url = p.url" if joined else "clicks c"
    conditions = [*([where] if where else []), *(["p.section IS NOT NULL"] if joined else [])]
    tail = f"\nWHERE {' AND '.join(conditions)}" if conditions else ""
    sql = (
        f"SELECT {comment}cast(event_ts AS date) AS day, {listed}\nFROM {source}{tail}\nGROUP BY 1"
    )
    reads = ("clicks", "raw.pages") if joined else ("clicks",)
    more = f"\nrenamed_from: {{{renamed}}}" if renamed else ""
    return by_cells("daily", sql, reads, rows, granularity=granularity, keys=keys, more=more)


_DAILY = (
    _daily({"n": "n"}),
    _daily({"n": "n", "amount": "amount"}),
    _daily({"n": "n", "paid": "amount", "amount": "amount"}),
    _daily({"n": "double", "amount": "amount"}),
    _daily({"amount": "amount", "n": "n"}, where="c.url <> '/'"),
    _daily({"n": "n", "amount": "amount"}, joined=True),
    _daily({"n": "n"}, granularity=Granularity.MONTH),
    _daily({"n": "n"}, comment="/* by day */ "),
    _daily({"n": "n", "amount": "amount"}, keys="batch_size: 3"),
    _daily({"n": "n", "income": "amount"}, renamed="income: amount"),
    _daily({"n": "n", "revenue": "amount"}, renamed="revenue: income"),
    _daily({"n": "double"}, where="c.url <> '/'", keys="forward_only: true"),
    _daily({"n": "double", "amount": "amount"}, where="c.url <> '/'", keys="forward_only: true"),
)


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

_CLICKS = (
    *FOLD.tables["clicks"][:2],
    forward_clicks({"page": page_of}, f"{PAGE}, {STARRED}", health=True, keys=""),
    forward_clicks(
        {"page": lambda row: "one", "url": lambda row: row["url"] or "?"},
        f"{LISTED}, coalesce(url, '?') AS url, 'one' AS page",
        health=False,
        keys="",
    ),
    forward_clicks({"page": lambda row: "two"}, f"{STARRED}, 'two' AS page", health=False),
)

# -- by key, over a view -----------------------------------------------------------------------


def _paying(least: int) -> TableSpec:
    columns = ("user_id", "event_ts", "amount")
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


def _user(row: Row) -> Any:
    return row["user_id"]


def _by_user(
    name: str, kind: str, read: str, aggregates: Mapping[str, Aggregate], renamed: str = ""
) -> TableSpec:
    return TableSpec(
        name,
        model_file(
            f"materialization: {kind}" + (f"\nrenamed_from: {{{renamed}}}" if renamed else ""),
            f"SELECT user_id, {_calls(aggregates)}\nFROM {read} GROUP BY user_id",
        ),
        reads=(read,),
        rows=lambda given: grouped(given[read], {"user_id": _user}, aggregates),
    )


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
        ),
        "later": (_LATER,),
        "paying": (_paying(0), _paying(20)),
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
