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
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType
from tests.reference.compare import difference, stored
from tests.reference.tables import Ends, Entry, all_sessions, numbered, quarantined, sessions
from tests.reference.world import Row

from infold.core.interval import MINUTE, Granularity, Interval, Ranges, datetime_of
from infold.core.manual_entry import ManualEntry
from infold.core.model import Materialization, Model, Timeseries
from infold.core.plan import Action, Step
from infold.core.project import Input, Node, Project
from infold.core.queries import Aggregate, Output, SessionsQuery
from infold.core.record import Outcome, QuarantinedSession, Receipt
from infold.core.session_rules import Sessions
from infold.core.target import Target
from infold.core.trace import CellChange, CellState, Trace, Version, signed
from infold.spark.content import cell_of, cell_stats, column, content, micros, user_columns
from infold.spark.sessions import build as kind
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


def query_of(
    calls: Mapping[str, Call],
    *,
    gap: int | None = GAP,
    where: str | None = None,
    key: tuple[str, ...] = ("event_id",),
    user: str = "user_id",
    **more: Any,
) -> SessionsQuery:
    """The compiled query of ``SELECT call AS name, … FROM clicks``."""
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
        ),
        outputs=tuple(Output(name, f"_a{at}") for at, name in enumerate(calls)),
        **more,
    )


@dataclass
class MemoryTables:
    """The port ``Tables`` over frames that are kept; it holds callers to the contract."""

    spark: SparkSession
    snapshots: list[DataFrame] = field(default_factory=list)
    commits: list[str] = field(default_factory=list)

    def exists(self, table: str) -> bool:
        """Whether anything was written."""
        return bool(self.snapshots)

    def read(self, table: str, snapshot: int | None = None) -> DataFrame:
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

    def evolve(
        self,
        table: str,
        names: Sequence[tuple[str, str]],
        types: Sequence[tuple[Sequence[str], DataType]],
        stamp: Stamp,
    ) -> int:
        """Never asked for."""
        raise NotImplementedError

    def merge(
        self,
        table: str,
        *,
        insert: DataFrame,
        delete: DataFrame,
        on: Sequence[str],
        condition: str,
        stamp: Stamp,
    ) -> int:
        """Rows removed by key, each of them present where ``condition`` is true; rows added."""
        now, keys, names = self.snapshots[-1], delete.select(*on), list(on)
        assert (
            keys.distinct().count()
            == keys.count()
            == keys.join(now.where(condition), names).count()
        )
        kept = now.join(keys, names, "left_anti")
        return self._commit("merge", self._fits(insert).unionByName(kept))

    def replace(
        self,
        table: str,
        *,
        column: str,
        ranges: Ranges,
        rows: DataFrame,
        stamp: Stamp,
        about: int = 0,
    ) -> int:
        """Not what a fold does."""
        raise NotImplementedError

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

    def frame(self, name: str, version: int) -> DataFrame:
        """The events as they were at a version."""
        return cast("DataFrame", self.shop.frame(version))


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
        self.calls, self.test, self.granularity = calls, test, granularity
        self.ends = ends
        self.query = query_of(calls, **options)
        self.spark = spark
        self.versions: list[dict[tuple[Any, ...], Row]] = [{}]
        self.frames: dict[int, DataFrame] = {}
        self.tables = MemoryTables(spark)
        self.ledger = FoldLedger()
        self.built, self.applied = 0, 0
        self.receipt = Receipt()
        self.changes: tuple[CellChange, ...] = ()

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
        ends = self.ends or Ends()
        self.ends = replace(ends, entries=(*ends.entries, *words))
        return self

    def spans(self) -> list[tuple[str, int, int]]:
        """What all sessions are of, their first and last instants; in order."""
        ends = self.ends or Ends()
        found = all_sessions(
            self.events,
            time="event_ts",
            key=self.query.key,
            gap=self.query.gap,
            where=self.test,
            ends=ends,
        )
        return sorted(
            (ends.text(of), part[0]["event_ts"], part[-1]["event_ts"]) for of, part in found
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
            self.ends = replace(ends, entries=self.ends.entries if self.ends else ())
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
        step = Step(
            model="sessions",
            action=action,
            cells=Ranges.ever(),
            reasons=(),
            inputs={"clicks": (self.built, upto)},
            version=len(self.tables.snapshots) + 1,
            trace=Trace(
                "sessions", "f", {"clicks": upto}, applied_entry=len(self.ledger.manual_entries)
            ),
            previous_trace=Trace(
                "sessions", "f", {"clicks": self.built}, applied_entry=self.applied
            ),
            stored_by=stored_by,
        )
        if stored_by is not None:
            assert kind.refolds_exactly(self._work(), step)
        announced: list[Outcome] = []
        before = dict(self.ledger.states["sessions"])

        def announce(early: Outcome) -> Outcome:
            announced.append(early)
            return early

        outcome = kind.carry_out(self._work(), step, announce)
        assert outcome.left_out == self.nobody()
        self.ledger.nobodys = outcome.left_out
        if action is Action.BUILD:
            assert outcome.receipt.set_aside == self.nobody()
        else:
            assert [replace(outcome, snapshot=None)] == announced
            assert outcome.committed == (outcome.snapshot is not None) == bool(outcome.changes)
        self._record(outcome, before)
        self.built, self.receipt, self.changes = upto, outcome.receipt, outcome.changes
        self.applied = len(self.ledger.manual_entries)
        self.check()
        return self

    def rows(self) -> list[Row]:
        """The stored sessions, without technical columns."""
        table = user_columns(self.tables.read("sessions")).toArrow()
        return stored(table.to_pylist())

    def expected(self) -> list[Row]:
        """The sessions of all events, by brute force."""
        found = sessions(
            self.events,
            user=self.query.user,
            time="event_ts",
            key=self.query.key,
            gap=self.query.gap,
            aggregates={name: call.reference for name, call in self.calls.items()},
            where=self.test,
            ends=self.ends,
        )
        if not self.query.numbered:
            return found
        return numbered(found, self.query.owner_column, lambda row: self._id(self.whose(row), row))

    def nobody(self) -> int:
        """How many events are in no session, in quarantine or not."""
        ends = self.ends or Ends()
        whose = ends.whose or (lambda row: row[self.query.user])
        return sum(whose(row) is None for row in self.events if self.test(row))

    def expected_held(self) -> set[tuple[Any, ...]]:
        """The sessions in quarantine, by brute force."""
        return quarantined(
            self.events,
            time="event_ts",
            key=self.query.key,
            gap=self.query.gap,
            where=self.test,
            ends=self.ends or Ends(),
            user="user_id" if self.query.chosen_user else None,
        )

    def check(self) -> None:
        """Table equals reference, ids are what they say, and the ledger's cells are the table's."""
        found = self.rows()
        for row in found:
            assert row.pop("session_id") == self._id(self.whose(row), row)
        assert difference(self.expected(), found) == ""
        table = self.tables.read("sessions")
        counted = cell_stats(
            table, F.col("session_start"), self.granularity, last=micros(F.col("session_end"))
        )
        actual = {
            row["cell"]: (row["rows"], content(row["hi"], row["lo"]), row["last"])
            for row in counted.collect()
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
            self.spark, self.tables, cast("Any", self.ledger), project, "r", "r-1", shop=self
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
