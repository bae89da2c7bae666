"""
A fold of sessions over events in memory, which records what the fold reads and writes.

:class:`FoldedSessions` plays the parts around the fold. It keeps the events as Python rows, gives
them to the fold as frames by version, keeps the ledger's account of cells, and checks every call
of the port.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType
from tests.reference import aggregates as agg
from tests.reference.compare import difference, stored
from tests.reference.tables import Ends, Entry, all_sessions, numbered, quarantined, sessions
from tests.reference.world import Row

from infold.core.definition import Derivation
from infold.core.interval import MIN, MINUTE, Granularity, Interval, Ranges, datetime_of
from infold.core.model import Materialization, Model, Timeseries
from infold.core.own_columns import STATE
from infold.core.plan import Action, Step
from infold.core.ports import Announce
from infold.core.project import Input, Node, Project
from infold.core.queries import Aggregate, Output, SessionsQuery
from infold.core.record import Outcome, QuarantinedSession, Receipt
from infold.core.sessions import ManualEntry, Sessions
from infold.core.target import Target
from infold.core.trace import CellChange, CellState, Trace, Version, signed
from infold.spark import derivations
from infold.spark.content import cell_of, cell_start, column, micros, row_hash, user_columns
from infold.spark.sessions import build as kind
from infold.spark.sessions.frames import SILENCE
from infold.spark.step_context import Work
from infold.spark.tables.port import Layout, Stamp

GAP = 30 * MINUTE

SCHEMA = {
    "event_id": "string",
    "user_id": "string",
    "event_ts": "timestamp",
    "url": "string",
    "n": "int",
    "big": "bigint",
    "amount": "decimal(18,2)",
    "x": "double",
    "ok": "boolean",
    "seen": "timestamp",
}
"""The events' columns; rows may leave out any but the first three."""


@dataclass(frozen=True)
class Call:
    """An aggregate as a test writes it: what analysis makes of the SQL, and the reference's."""

    sql: str
    reference: Any
    call: str = "other"
    argument: str | None = None
    filter: str | None = None
    ignore_nulls: bool = False
    distinct: bool = False


FIRST_USER = Aggregate("_user", "first", "user_id", None, True, "first(user_id, true)")
USER = Output("user_id", "_user")
"""The user of a session by identifier: the first that its events name."""


def query_of(
    calls: Mapping[str, Call],
    *,
    gap: int | None = GAP,
    where: str | None = None,
    key: tuple[str, ...] = ("event_id",),
    user: str = "user_id",
    **more: Any,
) -> SessionsQuery:
    """The compiled query of ``SELECT call AS name, … FROM clicks``, with a chosen user."""
    return SessionsQuery(
        input="clicks",
        time_column="event_ts",
        user=user,
        gap=gap,
        key=key,
        where=where,
        aggregates=(
            *(
                Aggregate(
                    f"_a{at}",
                    call.call,
                    call.argument,
                    call.filter,
                    call.ignore_nulls,
                    call.sql,
                    call.distinct,
                )
                for at, call in enumerate(calls.values())
            ),
            Aggregate("_events", "count", None, None, False, "count(*)"),
            *([FIRST_USER] if more.get("chosen_user") else []),
        ),
        outputs=tuple(Output(name, f"_a{at}") for at, name in enumerate(calls)),
        **more,
    )


@dataclass
class MemoryTables:
    """What folds use of the port ``Tables``, over frames that are kept; it checks each call."""

    spark: SparkSession
    snapshots: list[DataFrame] = field(default_factory=list)
    commits: list[str] = field(default_factory=list)

    def exists(self, table: str) -> bool:
        """Whether anything was written."""
        return bool(self.snapshots)

    def read(self, table: str, snapshot: int | None = None, **_: Any) -> DataFrame:
        """The rows of a snapshot, the newest by default."""
        return self.snapshots[-1 if snapshot is None else snapshot]

    def values(self, table: str, column: str, snapshot: int, limit: int) -> pa.Array | None:
        """None: these tables do not read values."""
        return None

    def layout(self, table: str) -> Layout:
        """One partition."""
        return Layout()

    def create(self, table: str, rows: DataFrame, layout: Layout, stamp: Stamp) -> int:
        """Replace all content."""
        return self._commit("create", rows)

    def append(self, table: str, rows: DataFrame, stamp: Stamp) -> int:
        """Rows added by name."""
        return self._commit("append", self._fits(rows).unionByName(self.snapshots[-1]))

    def merge(
        self,
        table: str,
        *,
        insert: DataFrame,
        delete: DataFrame,
        on: Sequence[str],
        condition: str,
        stamp: Stamp,
        **_: Any,
    ) -> int:
        """Rows removed by key, each of them present where ``condition`` is true; rows added."""
        now, keys, names = self.snapshots[-1], delete.select(*on), list(on)
        there = now.where(condition).select(*names, F.lit(True).alias("there"))
        found = [row.asDict() for row in keys.join(there, names, "left").collect()]
        assert all(row["there"] for row in found), "each of them is present"
        assert len({tuple(row.values()) for row in found}) == len(found), "and given once"
        kept = now.join(keys, names, "left_anti")
        return self._commit("merge", self._fits(insert).unionByName(kept))

    def _fits(self, rows: DataFrame) -> DataFrame:
        now = self.snapshots[-1].schema
        assert sorted(rows.columns) == sorted(now.names)
        for entry in rows.schema:
            # As written: which fields can be NULL is left to the data.
            assert entry.dataType.simpleString() == now[entry.name].dataType.simpleString()
        return rows.select(*map(column, now.names))  # written by name: the table keeps its order

    def _commit(self, what: str, rows: DataFrame) -> int:
        self.snapshots.append(rows.localCheckpoint())
        self.commits.append(what)
        return len(self.snapshots) - 1


@dataclass
class FoldLedger:
    """The few answers of a ledger that sessions ask for."""

    input_changes: list[list[CellChange]] = field(default_factory=list)
    states: dict[str, dict[int, CellState]] = field(default_factory=lambda: defaultdict(dict))
    held: dict[tuple[str, int], QuarantinedSession] = field(default_factory=dict)
    manual_entries: list[ManualEntry] = field(default_factory=list)
    nobodys: int | None = None

    def entries(self, model: str) -> Sequence[ManualEntry]:
        """The manual entries for sessions."""
        return self.manual_entries

    def left_out(self) -> Mapping[str, int]:
        """How many events are in no session, if a step has counted them."""
        return {} if self.nobodys is None else {"sessions": self.nobodys}

    def newest_versions(self) -> Mapping[str, Version]:
        """None, as nobody compares the sessions of a rebuilt table here."""
        return {}

    def quarantined(self, model: str) -> Sequence[QuarantinedSession]:
        """The sessions in quarantine."""
        return list(self.held.values())

    def changes(self, table: str, since: int) -> Sequence[CellChange]:
        """The input's changes by versions newer than ``since``."""
        return [change for version in self.input_changes[since:] for change in version]

    def versions(self, table: str, since: int = 0) -> Sequence[Version]:
        """The input's versions; a version's snapshot is its number."""
        return [
            Version(table, number, number, "s", "r", 0, 0)
            for number in range(since + 1, len(self.input_changes) + 1)
        ]

    def cells(self, table: str, within: Ranges | None = None) -> Sequence[CellState]:
        """The non-empty cells of the input or of the sessions."""
        states = sorted(self.states[table].values(), key=lambda state: state.cell)
        return [state for state in states if within is None or within.overlaps(state.cell)]


@dataclass(frozen=True)
class ShopWork(Work):
    """A step's surroundings whose input is the shop's events."""

    shop: Any = None

    def frame(self, name: str, version: int, **_: Any) -> DataFrame:
        """The events as they were at a version."""
        return cast("DataFrame", self.shop.frame(version))


@dataclass(frozen=True)
class Held:
    """A definition as it is compiled and as the reference has it, in force from an instant on."""

    since: int
    query: SessionsQuery
    calls: Mapping[str, Call]
    ends: Ends
    test: Any

    @property
    def all(self) -> Mapping[str, Any]:
        """What the reference has to know of it, whatever it is asked."""
        return {
            "time": "event_ts",
            "key": self.query.key,
            "gap": self.query.gap,
            "where": self.test,
            "ends": self.ends,
        }


class Account(NamedTuple):
    """What counts of a stored session: its cell, its hash, its last instant, and its silence."""

    cell: int
    hash: int
    last: int
    silence: int | None


class FoldedSessions:
    """Events that come and go, and the sessions made from them."""

    def __init__(
        self,
        spark: SparkSession,
        calls: Mapping[str, Call],
        *,
        test: Any = lambda row: True,
        ends: Ends | None = None,
        granularity: Granularity = Granularity.DAY,
        **options: Any,
    ) -> None:
        self.spark, self.granularity = spark, granularity
        self.define(calls, ends or Ends(), test, **options)
        self.versions: list[dict[tuple[Any, ...], Row]] = [{}]
        self.frames: dict[int, DataFrame] = {}
        self.tables = MemoryTables(spark)
        self.ledger = FoldLedger()
        self.built, self.applied = 0, 0
        self.receipt = Receipt()
        self.reading: tuple[int, list[tuple[Row, Account]]] = (-1, [])

    def define(self, calls: Mapping[str, Call], ends: Ends, test: Any, **options: Any) -> None:
        """The definition of the sessions, as a query and as the reference has it."""
        self.query, self.ends, self.test = query_of(calls, **options), ends, test
        user = {"user_id": Call("", agg.first_known("user_id"))} if self.query.chosen_user else {}
        self.calls = {**user, **calls}

    # -- events

    @property
    def events(self) -> list[Row]:
        """The events there are now, without technical columns."""
        return [
            {name: value for name, value in row.items() if name != "_version"}
            for row in self.versions[-1].values()
        ]

    def arrive(self, added: Iterable[Row] = (), gone: Iterable[Row] = ()) -> FoldedSessions:
        """One new version of the events: rows added, rows that are gone (by key and time)."""
        number = len(self.versions)
        old, new = self.versions[-1], dict(self.versions[-1])
        for row in gone:
            del new[_identity(row)]
        for row in added:
            assert _identity(row) not in new, "the events table holds an event once"
            new[_identity(row)] = {**dict.fromkeys(SCHEMA), **row, "_version": number}
        self.versions.append(new)
        self.ledger.input_changes.append(_changes(old, new))
        self.ledger.states["clicks"] = _states(new)
        return self

    def say(self, *words: Entry) -> FoldedSessions:
        """Put sessions into quarantine by hand, or release them."""
        for one in words:
            number = len(self.ledger.manual_entries) + 1
            self.ledger.manual_entries.append(
                ManualEntry(number, one.of, one.held, one.start, one.end)
            )
        self.ends = replace(self.ends, entries=(*self.ends.entries, *words))
        return self

    @property
    def stretches(self) -> list[tuple[list[Row], Held]]:
        """The definitions in force, each with its events: here there is one."""
        return [(self.events, Held(MIN, self.query, self.calls, self.ends, self.test))]

    def spans(self) -> list[tuple[str, int, int]]:
        """What all sessions are of, their first and last instants; in order."""
        return sorted(
            (one.ends.text(of), part[0]["event_ts"], part[-1]["event_ts"])
            for events, one in self.stretches
            for of, part in all_sessions(events, **one.all)
        )

    def frame(self, version: int) -> DataFrame:
        """The events of a version, as stored."""
        if version not in self.frames:
            types = ", ".join(f"{name} {type_}" for name, type_ in SCHEMA.items())
            rows = [
                tuple(_spark(name, row[name]) for name in (*SCHEMA, "_version"))
                for row in self.versions[version].values()
            ]
            self.frames[version] = self.spark.createDataFrame(
                rows, f"{types}, _version bigint"
            ).localCheckpoint()
        return self.frames[version]

    # -- sessions

    def redefine(self, ends: Ends | None = None, **options: Any) -> FoldedSessions:
        """Change where sessions end, of the events that the table has, and compare."""
        before, self.query = self.query, replace(self.query, **options)
        if ends is not None:
            self.ends = replace(ends, entries=self.ends.entries)
        versions, self.versions = self.versions, self.versions[: self.built + 1]
        self._carry_out(Action.REFOLD, self.built, before)
        self.versions = versions
        return self

    def run(self) -> FoldedSessions:
        """Bring the sessions up to date, and compare table and ledger with the reference."""
        action = Action.FOLD if self.tables.snapshots else Action.BUILD
        return self._carry_out(action, len(self.versions) - 1)

    def _carry_out(
        self, action: Action, upto: int, stored_by: SessionsQuery | None = None
    ) -> FoldedSessions:
        trace, previous = self._traces(upto)
        step = Step(
            model="sessions",
            action=action,
            cells=Ranges.ever(),
            reasons=(),
            inputs={"clicks": (self.built, upto)},
            version=len(self.tables.snapshots) + 1,
            trace=trace,
            previous_trace=previous,
            derivation=Derivation((), sessions=stored_by) if stored_by is not None else None,
        )
        announced: list[Outcome] = []
        before = dict(self.ledger.states["sessions"])

        def announce(early: Outcome) -> Outcome:
            announced.append(early)
            return early

        outcome = self._outcome(step, announce)
        assert outcome.left_out == self.nobody()
        self.ledger.nobodys = outcome.left_out
        self._compare(step, outcome, announced)
        self._record(outcome, before)
        self.built, self.receipt = upto, outcome.receipt
        self.applied = len(self.ledger.manual_entries)
        self.check()
        return self

    def _traces(self, upto: int) -> tuple[Trace, Trace]:
        """What the table is made from after a step, and before it."""
        entries = len(self.ledger.manual_entries)
        return (
            Trace("sessions", "f", {"clicks": upto}, applied_entry=entries),
            Trace("sessions", "f", {"clicks": self.built}, applied_entry=self.applied),
        )

    def _outcome(self, step: Step, announce: Announce) -> Outcome:
        work = replace(self._work(), announce=announce)
        if step.derivation is None:
            return kind.carry_out(work, step)
        assert derivations.derives_exactly(self._work(), step)
        return derivations.carry_out(work, step)

    def _compare(self, step: Step, outcome: Outcome, announced: Sequence[Outcome]) -> None:
        """A build counts the events of nobody; a fold announces what it does, and does no more."""
        if step.action is Action.BUILD:
            assert outcome.receipt.set_aside == self.nobody()
        else:
            assert [replace(outcome, snapshot=None)] == announced
            assert outcome.committed == (outcome.snapshot is not None) == bool(outcome.changes)

    def rows(self) -> list[Row]:
        """The stored sessions, without technical columns."""
        return [dict(row) for row, _ in self._read()]

    def _read(self) -> list[tuple[Row, Account]]:
        """The stored sessions, each with what counts of it; a commit is read once."""
        number = len(self.tables.snapshots)
        if self.reading[0] != number:
            table = self.tables.read("sessions")
            state = table.schema[STATE].dataType if STATE in table.columns else None
            kept = isinstance(state, StructType) and SILENCE in state.names
            account = (
                cell_start(F.col("session_start"), self.granularity).alias("__cell"),
                row_hash(table.schema).alias("__hash"),
                micros(F.col("session_end")).alias("__last"),
                (F.col(f"{STATE}.{SILENCE}") if kept else F.lit(None)).alias("__silence"),
            )
            read = table.select(*user_columns(table).columns, *account).toArrow().to_pylist()
            names = [f"__{name}" for name in Account._fields]
            found = [(row, Account(*map(row.pop, names))) for row in stored(read)]
            self.reading = number, found
        return self.reading[1]

    def expected(self) -> list[Row]:
        """The sessions of all events, by brute force."""
        found = [
            dict.fromkeys(self.calls) | row
            for events, one in self.stretches
            for row in sessions(
                events,
                user=one.query.user,
                aggregates={name: call.reference for name, call in one.calls.items()},
                **one.all,
            )
        ]
        if not self.query.numbered:
            return found
        return numbered(found, self.query.owner_column, lambda row: self._id(self.whose(row), row))

    def nobody(self) -> int:
        """How many events are in no session, in quarantine or not."""
        return sum(
            (one.ends.whose or (lambda row: row["user_id"]))(row) is None
            for events, one in self.stretches
            for row in events
            if one.test(row)
        )

    def expected_held(self) -> set[tuple[Any, ...]]:
        """The sessions in quarantine, by brute force."""
        return {
            row
            for events, one in self.stretches
            for row in quarantined(
                events, user="user_id" if one.query.chosen_user else None, **one.all
            )
        }

    def check(self) -> None:
        """Table equals reference, ids are what they say, and the ledger's cells are the table's."""
        self.check_silences()
        found = self.rows()
        for row in found:
            assert row.pop("session_id") == self._id(self.whose(row), row)
        assert difference(self.expected(), found) == ""
        by_cell: dict[int, list[Account]] = defaultdict(list)
        for _, account in self._read():
            by_cell[account.cell].append(account)
        actual = {
            cell: (len(own), signed(sum(one.hash for one in own)), max(one.last for one in own))
            for cell, own in by_cell.items()
        }
        assert {
            (one.owner, one.start, one.end, one.events, one.user)
            for one in self.ledger.held.values()
        } == self.expected_held()
        known = self.ledger.states["sessions"]
        assert known.keys() == actual.keys()
        for start, state in known.items():
            assert (state.rows, state.content) == actual[start][:2]
            assert state.last is not None
            assert state.last >= actual[start][2]

    def check_silences(self, most: int | None = None) -> None:
        """A stored session keeps a silence that is as long as any between its events, at most so
        long.
        """
        times: dict[str, set[int]] = defaultdict(set)
        for events, one in self.stretches:
            whose = one.ends.whose or (lambda row: row["user_id"])
            for row in filter(one.test, events):
                if whose(row) is not None:
                    times[one.ends.text(whose(row))].add(row["event_ts"])
        for row, account in self._read():
            if account.silence is not None:
                own = self.whose(row)
                here = sorted(
                    at for at in times[own] if row["session_start"] <= at <= row["session_end"]
                )
                longest = max((after - before for before, after in pairwise(here)), default=0)
                assert longest <= account.silence, (own, here, account.silence)
                assert most is None or account.silence <= most, (own, account.silence)

    @staticmethod
    def _id(whose: str, row: Row) -> str:
        text = f"{whose}|{row['session_start']}"
        return hashlib.md5(text.encode()).hexdigest()

    def whose(self, row: Row) -> str:
        """What a session is of, as its id says it."""
        own = row[self.query.user]
        if self.query.fallback is None:
            return str(own)
        return f"i{own}" if own is not None else f"u{row['user_id']}"

    def _record(self, outcome: Outcome, before: Mapping[int, CellState]) -> None:
        states = {} if outcome.whole else dict(before)
        for change in outcome.changes:
            old = before.get(change.cell.start)
            assert (change.rows_before, change.content_before) == (
                (old.rows, old.content) if old else (0, 0)
            )
            assert change.rows_after == change.rows_before + change.added - change.removed
            states.pop(change.cell.start, None)
            if change.rows_after:
                states[change.cell.start] = CellState(
                    change.cell, change.rows_after, change.content_after, change.last
                )
        self.ledger.states["sessions"] = states
        for key in outcome.released:
            del self.ledger.held[key]
        self.ledger.held.update((one.key, one) for one in outcome.quarantined)

    def _work(self) -> Work:
        model = Model(
            "sessions",
            Materialization.SESSIONS,
            "",
            Timeseries("session_start", "session_start", self.granularity),
            sessions=Sessions(self.query.user, self.query.gap),
        )
        node = Node(model, (Input("clicks", "event_ts"),), (), "f", (), query=self.query)
        by_day = Timeseries("event_ts", "event_ts", Granularity.DAY)
        clicks = Model("clicks", Materialization.EVENTS, "", by_day, unique_key=self.query.key)
        events = Node(clicks, (), (), "f", (), source="raw.clicks")
        project = Project("shop", Path(), None, {}, (events, node), Target("dev"))
        return ShopWork(
            self.spark,
            cast("Any", self.tables),
            cast("Any", self.ledger),
            project,
            "r",
            "r-1",
            shop=self,
        )


def _identity(row: Row) -> tuple[Any, ...]:
    return row["event_id"], row["event_ts"]


def _spark(name: str, value: Any) -> Any:
    if value is not None and SCHEMA.get(name) == "timestamp":
        return datetime_of(value)
    return value


def _content(rows: Iterable[Row]) -> int:
    # The input's own account of itself: any additive hash of content will do.
    return signed(sum(hash(tuple(row[name] for name in SCHEMA)) for row in rows))


def _by_cell(rows: Mapping[tuple[Any, ...], Row]) -> dict[int, dict[tuple[Any, ...], Row]]:
    cells: dict[int, dict[tuple[Any, ...], Row]] = defaultdict(dict)
    for key, row in rows.items():
        cells[Granularity.DAY.floor(row["event_ts"])][key] = row
    return cells


def _states(rows: Mapping[tuple[Any, ...], Row]) -> dict[int, CellState]:
    return {
        start: CellState(
            cell_of(start, Granularity.DAY),
            len(own),
            _content(own.values()),
            max(row["event_ts"] for row in own.values()),
        )
        for start, own in _by_cell(rows).items()
    }


def _changes(
    old: Mapping[tuple[Any, ...], Row], new: Mapping[tuple[Any, ...], Row]
) -> list[CellChange]:
    found = []
    before, after = _by_cell(old), _by_cell(new)
    for start in sorted(before.keys() | after.keys()):
        was, now = before.get(start, {}), after.get(start, {})
        added = sum(1 for key, row in now.items() if was.get(key) != row)
        removed = sum(1 for key, row in was.items() if now.get(key) != row)
        if added or removed:
            cell: Interval = cell_of(start, Granularity.DAY)
            found.append(
                CellChange(
                    cell,
                    added,
                    removed,
                    len(was),
                    len(now),
                    _content(was.values()),
                    _content(now.values()),
                )
            )
    return found
