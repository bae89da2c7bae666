"""
Tables whose definitions change forward-only: a shape, and plays that know which cell is of which.

The reference keeps its own record of borders: a changed definition holds from the cell after the
last one that had rows when the change was carried out. It evaluates each version of a query over
all rows, and takes of each the cells that it holds for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Any

from tests.arrivals.dry import DryEngine, DryPlay, chosen_rows, ingested_file
from tests.arrivals.play import usable_rows
from tests.arrivals.programs import START, Round
from tests.arrivals.shape import Rows, Shape, TableSpec, by_cells, cell_start, day_of, model_file
from tests.arrivals.shapes import CLICK, FOLD
from tests.reference.tables import Deduplicated, events
from tests.reference.world import Broken, Record, Row, Usable

from infold.core.definition import Definition
from infold.core.definition_text import digest_of
from infold.core.files import FileCell, FilesOutcome
from infold.core.interval import DAY, MAX, MIN, Granularity, Interval, Ranges
from infold.core.plan import Action, FileDiff, PlanOptions, Step
from infold.core.project import Node, Project
from infold.core.trace import Trace
from infold.declare.definitions import definitions_of
from infold.ledger.store import SqlLedger


def days_table(name: str, keys: str, sql: str, reads: tuple[str, ...], rows: Any) -> TableSpec:
    """A table of days, of the clicks or of a table that has days."""
    time = "event_ts" if reads[0] == "clicks" else "day"
    return by_cells(name, sql, reads, rows, time=time, keys=keys)


def _amount(rows: Rows) -> Any:
    known = [row["amount"] for row in rows if row["amount"] is not None]
    return sum(known[1:], known[0]) if known else None


_COUNTED: Mapping[str, tuple[str, Callable[[Rows], Any]]] = {
    "n": ("count(*)", len),
    "once": ("count(*) * 1", len),  # unlike the one before, nothing is derived from it
    "double": ("count(*) * 2", lambda rows: len(rows) * 2),
    "triple": ("count(*) * 3", lambda rows: len(rows) * 3),
    "fourfold": ("count(*) * 4", lambda rows: len(rows) * 4),
    "less": ("count(*) - 100", lambda rows: len(rows) - 100),
    "one_less": ("count(*) - 1", lambda rows: len(rows) - 1),
    "amount": ("sum(amount)", _amount),
    "paid": ("count(amount)", lambda rows: sum(row["amount"] is not None for row in rows)),
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
) -> TableSpec:
    """
    Days of clicks, all or those that are not on the first page: each column is one of ``_COUNTED``.

    They may be joined with the lookup.
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
    counted_days({"n": "n"}),
    counted_days({"n": "double"}),
    counted_days({"amount": "amount", "n": "n"}, where="c.url <> '/'"),
    counted_days({"amount": "amount", "n": "n"}, joined=True),
    counted_days({"n": "less", "amount": "amount", "paid": "paid"}),
    counted_days({"n": "n", "amount": "amount", "paid": "n"}),
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
    return days_table(
        name, f"forward_only: true, late: {late}, batch_size: 2", sql, ("daily",), rows
    )


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
            days_table(
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


STARRED = ", ".join(CLICK)


def forward_clicks(
    columns: Mapping[str, Callable[[Row], Any]],
    sql: str,
    *,
    health: bool,
    keys: str = "forward_only: true\n",
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

FORWARD_EVENTS = Shape(
    "forward_events",
    sources=FOLD.sources,
    tables={
        "clicks": (
            forward_clicks({}, STARRED, health=True),
            forward_clicks({"page": page_of}, f"{PAGE}, {STARRED}", health=False),
            forward_clicks(
                {"page": lambda row: "one", "url": lambda row: row["url"] or "?"},
                f"{LISTED}, coalesce(url, '?') AS url, 'one' AS page",
                health=False,
            ),
            forward_clicks(
                {"page": page_of, "more": lambda row: row["n"]},
                f"{STARRED}, n AS more, {PAGE}",
                health=True,
            ),
            forward_clicks(
                {"page": lambda row: "two", "more": lambda row: row["n"]},
                f"n AS more, {STARRED}, 'two' AS page",
                health=False,
            ),
            forward_clicks(
                {"page": page_of, "more": lambda row: row["revision"]},
                f"{PAGE}, cast(revision AS bigint) AS more, {STARRED}",
                health=False,
            ),
        ),
        "sessions": FOLD.tables["sessions"][:1],
        "daily": (counted_days({"n": "n", "amount": "amount"}, where="c.url <> '/'"),),
    },
    windows=True,
)


def instant_of(spec: TableSpec, row: Row) -> int:
    """The instant that decides about a row's cell."""
    return cell_start(row[spec.cell or ("session_start" if spec.sessions else spec.time)])


def own_records(records: Iterable[Record], part: Ranges) -> list[Record]:
    """The records at some times; those without a time are the newest definition's, at the end."""
    return [
        record
        for record in records
        if (MAX - 1 if (at := _time_of(record)) is None else at) in part
    ]


def _time_of(record: Record) -> int | None:
    return None if isinstance(record, Broken) else record["event_ts"]


def _first(best: Deduplicated) -> list[Row]:
    """A row of the definition, which has its columns."""
    return [copies[0] for copies in list(best.groups.values())[:1]]


@dataclass
class DryForward(DryPlay):
    """A play in which changed queries hold from some cell on."""

    held: dict[str, list[tuple[int, TableSpec]]] = field(default_factory=dict)
    """Of each table the instants from which a version of its query holds."""
    asked: str = "daily"
    """The table that is changed by an option."""

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
        reads = (
            "daily" in self.shape.changeable()
            and "daily" in names
            and "raw.pages" in self.spec("daily").reads
        )
        return terms, names | ({"raw.pages"} if reads else set())

    def options(self) -> PlanOptions:
        """One table is changed by an option, until a run has recorded it."""
        applied, name = self._book().applied().get(self.asked), self.asked
        if applied is None or applied.digest == digest_of(definitions_of(self.project)[name]):
            return PlanOptions()
        return PlanOptions(forward_only={name: self._asked_from()})

    def _asked_from(self) -> int | None:
        """From when the present version of that table is in force; None: not said."""
        version = self.versions[self.asked]
        return Granularity.DAY.floor(START) + version * 2 * DAY if version % 2 else None

    def _book(self) -> SqlLedger:
        return self.ledger

    def _ingested(self, spec: TableSpec, actual: Rows) -> Rows:
        if spec.name not in self.shape.changeable():
            return super()._ingested(spec, actual)
        if self._book().traces()[spec.name].fingerprint == self.project[spec.name].fingerprint:
            self._carry_out(spec)
        source = self.shape.source(spec.source or "")
        rows, aside, waiting = Rows(), 0, 0
        for by, part in self._parts(spec.name):
            records = own_records(self.world.under(source.folder), part)
            found = usable_rows(by, records, source.rules, self.world.as_of)
            assert by.best is not None
            best = by.best(found.rows)
            of = tuple(self.project[spec.name].columns)
            plain = [{name: row[name] for name in copy} for row in actual for copy in _first(best)]
            chosen = best.rows(plain)
            rows += [{name: row.get(name) for name in of} for row in chosen]
            aside, waiting = aside + found.aside.total(), waiting + len(found.waiting)
        self._check_counts(spec.name, aside, waiting)
        return rows

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
        asked = self._asked_from() if spec.name == self.asked else None
        rows = self.state.get(spec.name, [])
        for row in rows:
            row |= {name: row.get(name) for name in self.project[spec.name].columns}
        starts = [Granularity.DAY.floor(instant_of(spec, row)) for row in rows]
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


Parts = Sequence[tuple[TableSpec, Ranges]]
"""Versions of a query, each with the cells that it holds for."""

Given = dict[tuple[str, str], Rows]
"""The rows that each version of a file gave when it was read last, by path and fingerprint."""


class EventsEngine(DryEngine):
    """
    Ingests by the definitions in force, and remembers what each file gave when it was read.

    So a file that the planner forgets to read again keeps rows of another definition.
    """

    def given(self, table: str) -> Given | None:
        """What each file gave when a table read it; None for a table that has one definition."""
        play = self.play
        if not isinstance(play, DryEvents) or table not in play.shape.changeable():
            return None
        return play.given

    def rows_given(self, known: Given, path: str, parts: Parts, until: int) -> Rows:
        """The rows that a file gave when it was read."""
        del parts, until
        return known[path, self.play.prints[path]]

    def by(self, kept: Definition) -> TableSpec:
        """The version of a definition that the ledger kept."""
        return self.play.shape.by_query(kept.name, kept.sql)

    def _ingested(self, node: Node, step: Step) -> tuple[Rows, FilesOutcome]:
        play, known = self.play, self.given(step.model)
        if known is None:
            return super()._ingested(node, step)
        diff = step.files if step.files is not None else FileDiff("")
        ids = self.ledger.register_files(diff.source, diff.new)
        held = {file.path: file for file in self.ledger.files(step.model)}
        gone = {file.path for file in diff.removed}
        if step.action is Action.BUILD:
            gone |= set(held)
        taken = {**ids, **{file.path: file.id for file in (*diff.come_due, *diff.reingest)}}
        parts = self._parts_of(node, step)
        if step.action is Action.DERIVE:  # other rows follow from all that are stored
            known.clear()
            for path, file in held.items():
                records, until = play.world.files[path], file.horizon
                known[path, play.prints[path]] = in_force(play, parts, records, until).rows
        files, cells = [], []
        for path, id_ in taken.items():
            given = in_force(play, parts, play.world.files[path], diff.as_of)
            if path not in ids and path not in {file.path for file in diff.reingest}:
                late = [row for row in given.rows if row["event_ts"] > held[path].horizon]
                given.rows[:] = self.rows_given(known, path, parts, held[path].horizon) + late
            known[path, play.prints[path]] = given.rows
            count = Counter(Granularity.DAY.cell(row["event_ts"]) for row in given.rows)
            cells += [FileCell(id_, cell, rows) for cell, rows in count.items()]
            files.append(ingested_file(play, path, id_, diff.as_of, given))
        stay = [path for path in held if path not in gone]
        rows = [
            dict.fromkeys(node.columns) | row
            for path in dict.fromkeys((*stay, *ids))
            for row in self.rows_given(known, path, parts, diff.as_of)
        ]
        best = events(
            rows,
            key=["event_id"],
            time="event_ts",
            prefer=["revision desc"],
            everywhere="deduplicate: everywhere" in self.spec(node.name).text,
        )
        removed = tuple(held[path].id for path in gone if path in held)
        return chosen_rows(best), FilesOutcome(diff.source, tuple(files), removed, tuple(cells))

    def _parts_of(self, node: Node, step: Step) -> list[tuple[TableSpec, Ranges]]:
        """The definitions in force, as the step says."""
        trace = step.trace
        assert trace is not None
        found = [(self.spec(node.name), Ranges.ever() - trace.earlier_ranges)]
        for one in trace.earlier:
            [kept] = self.ledger.definitions([one.definition]).values()
            found.append((self.by(kept), one.cells))
        return found


def in_force(play: DryPlay, parts: Parts, records: Sequence[Record], as_of: int) -> Usable:
    """What the definitions in force make of some records."""
    every = Usable()
    for by, part in parts:
        rules = play.shape.source(by.source or "").rules
        found = usable_rows(by, own_records(records, part), rules, as_of)
        assert by.best is not None
        every.rows += [row for one in found.rows for row in by.best([one]).rows()]
        every.waiting += found.waiting
        every.aside += found.aside
    return every


@dataclass
class DryEvents(DryForward):
    """Events whose definitions change forward-only."""

    asked: str = "clicks"
    given: Given = field(default_factory=dict)

    def _check_aside(self, spec: TableSpec) -> None:
        """Each is listed by the definition in force when its file was read."""

    def _engine(self, project: Project, ledger: SqlLedger) -> DryEngine:
        return EventsEngine(self, project, ledger)
