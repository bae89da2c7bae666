"""
Tables whose definitions change forward-only: a shape, and plays that know which cell is of which.

The reference keeps its own record of borders: a changed definition holds from the cell after the
last one that had rows when the change was carried out. It evaluates each version of a query over
all rows, and takes of each the cells that it holds for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Any

from tests.arrivals.dry import DryPlay
from tests.arrivals.play import Play
from tests.arrivals.programs import START, Round
from tests.arrivals.shape import Rows, Shape, TableSpec, cell_start, day_of, model_file
from tests.arrivals.shapes import FOLD

from infold import api
from infold.core.definition_text import digest_of
from infold.core.interval import DAY, MAX, MIN, Granularity, Interval, Ranges
from infold.core.plan import PlanOptions
from infold.core.trace import Trace
from infold.declare.definitions import definitions_of
from infold.ledger.store import SqlLedger


def _table(name: str, keys: str, sql: str, reads: tuple[str, ...], rows: Any) -> TableSpec:
    time = "event_ts" if reads[0] == "clicks" else "day"
    return TableSpec(
        name,
        model_file(
            "materialization: table\n"
            f"timeseries: {{event_time_column: {time}, partition_column: day, granularity: day}}\n"
            f"incremental: {{{keys}}}",
            sql,
        ),
        reads=reads,
        rows=rows,
        cell="day",
        granularity=Granularity.DAY,
    )


def _by_day(rows: Rows) -> dict[Any, Rows]:
    found: dict[Any, Rows] = {}
    for row in rows:
        found.setdefault(day_of(row["event_ts"]), []).append(row)
    return found


def _amount(rows: Rows) -> Any:
    known = [row["amount"] for row in rows if row["amount"] is not None]
    return sum(known[1:], known[0]) if known else None


_COUNTED: Mapping[str, tuple[str, Callable[[Rows], Any]]] = {
    "n": ("count(*)", len),
    "double": ("count(*) * 2", lambda rows: len(rows) * 2),
    "less": ("count(*) - 100", lambda rows: len(rows) - 100),
    "amount": ("sum(amount)", _amount),
    "paid": ("count(amount)", lambda rows: sum(row["amount"] is not None for row in rows)),
}


def _daily(columns: Mapping[str, str], where: str = "") -> TableSpec:
    """Days of clicks: the columns are named, and each is one of ``_COUNTED``."""
    listed = ", ".join(f"{_COUNTED[what][0]} AS {name}" for name, what in columns.items())

    def rows(given: Mapping[str, Rows]) -> Rows:
        kept = [row for row in given["clicks"] if not where or row["url"] not in (None, "/")]
        return [
            {"day": day} | {name: _COUNTED[what][1](some) for name, what in columns.items()}
            for day, some in _by_day(kept).items()
        ]

    sql = f"SELECT cast(event_ts AS date) AS day, {listed} FROM clicks{where} GROUP BY 1"
    return _table("daily", "", sql, ("clicks",), rows)


def _with_pages(columns: Mapping[str, str]) -> TableSpec:
    """The same of clicks on pages of the lookup, which other versions do not read."""
    plain = _daily(columns)
    listed = ", ".join(f"{_COUNTED[what][0]} AS {name}" for name, what in columns.items())

    def rows(given: Mapping[str, Rows]) -> Rows:
        urls = [page["url"] for page in given["raw.pages"] if page["section"] is not None]
        clicks = [row for row in given["clicks"] for url in urls if row["url"] == url]
        assert plain.rows is not None
        return plain.rows({"clicks": clicks})

    sql = (
        f"SELECT cast(event_ts AS date) AS day, {listed} FROM clicks c JOIN raw.pages p\n"
        "ON c.url = p.url WHERE p.section IS NOT NULL GROUP BY 1"
    )
    return _table("daily", "", sql, ("clicks", "raw.pages"), rows)


_DAILY = (
    _daily({"n": "n"}),
    _daily({"n": "double"}),
    _daily({"amount": "amount", "n": "n"}, where=" WHERE url <> '/'"),
    _with_pages({"amount": "amount", "n": "n"}),
    _daily({"n": "less", "amount": "amount", "paid": "paid"}),
    _daily({"n": "n", "amount": "amount", "paid": "n"}),
)


def _recent(before: int, after: int, late: str, more: str = "") -> TableSpec:
    """Each day with what is around it; versions reach further or less far."""

    def rows(given: Mapping[str, Rows]) -> Rows:
        by_day = {row["day"]: row["n"] for row in given["daily"]}
        return [
            {"day": day, "n": n}
            | ({"more": f"{more}"} if more else {})
            | {
                "around": sum(
                    by_day.get(day + timedelta(days=at), 0) for at in range(-before, after + 1)
                )
            }
            for day, n in by_day.items()
        ]

    said = f", '{more}' AS more" if more else ""
    sql = (
        f"SELECT day, n{said}, sum(n) OVER (ORDER BY day RANGE BETWEEN\n"
        f"INTERVAL {before} DAYS PRECEDING AND INTERVAL {after} DAYS FOLLOWING) AS around\n"
        "FROM daily"
    )
    name = f"recent_{late}"
    return _table(name, f"forward_only: true, late: {late}, batch_size: 2", sql, ("daily",), rows)


def _recents(late: str) -> tuple[TableSpec, ...]:
    return (
        _recent(2, 0, late),
        _recent(0, 0, late),
        _recent(1, 1, late, "x"),
        _recent(4, 0, late, "y"),
        _recent(0, 3, late, "y"),
    )


FORWARD = Shape(
    "forward",
    sources=FOLD.sources,
    tables={
        "clicks": FOLD.tables["clicks"][:1],
        "raw.pages": FOLD.tables["raw.pages"],
        "pages": (
            TableSpec(
                "pages",
                model_file("materialization: table", "SELECT url, section FROM raw.pages"),
                reads=("raw.pages",),
                rows=lambda given: list(given["raw.pages"]),
            ),
        ),
        "daily": _DAILY,
        "recent_earlier": _recents("earlier"),
        "recent_new": _recents("new"),
        "reader": (
            _table(
                "reader",
                "",
                "SELECT day, n, around FROM recent_earlier",
                ("recent_earlier",),
                lambda given: [
                    {name: row[name] for name in ("day", "n", "around")}
                    for row in given["recent_earlier"]
                ],
            ),
        ),
    },
    lookup=FOLD.lookup,
    windows=True,
)


@dataclass
class ForwardPlay(Play):
    """A play in which changed queries hold from some cell on."""

    held: dict[str, list[tuple[int, TableSpec]]] = field(default_factory=dict)
    """Of each table the instants from which a version of its query holds."""

    def round(self, each: Round) -> None:
        """A round in which more queries change than in others."""
        for at in range(each.run.seed % 3):
            self.query(Random(each.run.seed + at))
            self.changed()
        super().round(each)

    def query(self, random: Random) -> None:
        """A model's query becomes its next version, as long as there is one."""
        left = [
            name
            for name in self.shape.changeable()
            if self.versions[name] + 1 < len(self.shape.tables[name])
        ]
        if left:
            name = random.choice(left)
            self._declare(name, self.versions[name] + 1)
        self.tally.steps += 1

    def _select(self, random: Random) -> tuple[tuple[str, ...], set[str]]:
        """Some models; the lookup goes with them as far as present queries read it."""
        terms, names = super()._select(random)
        while terms[0].endswith("raw.pages+"):
            terms, names = super()._select(random)
        reads = "daily" in names and "raw.pages" in self.spec("daily").reads
        return terms, names | ({"raw.pages"} if reads else set())

    def options(self) -> PlanOptions:
        """The daily table is changed by an option, until a run has recorded it."""
        applied = self._book().applied().get("daily")
        if applied is None or applied.digest == digest_of(definitions_of(self.project)["daily"]):
            return PlanOptions()
        return PlanOptions(forward_only={"daily": self._asked_from()})

    def _asked_from(self) -> int | None:
        """From when the present version of the daily table is in force; None: not said."""
        version = self.versions["daily"]
        return Granularity.DAY.floor(START) + version * 2 * DAY if version % 2 else None

    def _book(self) -> SqlLedger:
        return api.ledger(self.project)

    def _evaluate(self, spec: TableSpec) -> Rows:
        if spec.name not in self.shape.changeable():
            return super()._evaluate(spec)
        trace = self._book().traces()[spec.name]
        if trace.fingerprint == self.project[spec.name].fingerprint:
            self._carry_out(spec)
        parts = self._by_trace(trace, spec) if "new" in spec.name else self._parts(spec.name)
        columns = self.project[spec.name].columns
        return [
            {column: row.get(column) for column in columns}
            for by, part in parts
            if by.rows is not None
            for row in by.rows(self.state)
            if cell_start(row["day"]) in part
        ]

    def _carry_out(self, spec: TableSpec) -> None:
        """The present version holds: everywhere, or after the last cell with rows."""
        held = self.held.setdefault(spec.name, [(MIN, spec)])
        if held[-1][1] == spec:
            return
        asked = self._asked_from() if spec.name == "daily" else None
        rows = self.state.get(spec.name, [])
        for row in rows:
            row |= {name: row.get(name) for name in self.project[spec.name].columns}
        cell = spec.cell or "session_start"
        starts = [Granularity.DAY.floor(cell_start(row[cell])) for row in rows]
        at = Granularity.DAY.next(max(starts)) if rows else MIN
        at = asked if rows and asked is not None else at
        held[:] = [*(one for one in held if one[0] < at), (at, spec)]

    def _parts(self, name: str) -> list[tuple[TableSpec, Ranges]]:
        """The versions of a query that hold now, each with its cells."""
        held = self.held[name]
        ends = [*(at for at, _ in held[1:]), MAX]
        return [
            (spec, Ranges((Interval(at, end),))) for (at, spec), end in zip(held, ends, strict=True)
        ]

    def _by_trace(self, trace: Trace, spec: TableSpec) -> list[tuple[TableSpec, Ranges]]:
        """As the ledger says: it says of late cells that the newest version holds there."""
        found = [(spec, Ranges.ever() - trace.earlier_ranges)]
        for one in trace.earlier:
            [kept] = self._book().definitions([one.definition]).values()
            found.append((self.shape.by_query(spec.name, kept.sql), one.cells))
        return found


@dataclass
class DryForward(ForwardPlay, DryPlay):
    """The same without Spark."""

    def _book(self) -> SqlLedger:
        return self.ledger
