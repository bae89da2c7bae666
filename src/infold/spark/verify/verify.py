"""
Verify: every stored table against its definition evaluated from scratch.

Tables are proven one after the other, inputs first: each is rebuilt from the stored inputs, at the
versions that its trace names, which were themselves compared with their rebuilds before; down to
the files, which are read again. So all being equal means that each equals a rebuild from the
files. The ledger's own account of each cell is compared as well.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from infold.core.interval import EVER, Interval, Ranges
from infold.core.model import Deduplicate, Kind
from infold.core.plan import Action, Step
from infold.core.ports import Lake, Ledger
from infold.core.progress import Progress
from infold.core.project import Node, Project, SessionsQuery
from infold.core.report import Verdict
from infold.core.trace import Cause, Trace, dropped, net
from infold.messages import command_errors
from infold.planning.portions import retained_range
from infold.render import formatting
from infold.spark.content import column, in_time, plain
from infold.spark.damaged_tables import damaged_table
from infold.spark.events import build
from infold.spark.sessions.components import query_of
from infold.spark.step_context import Work
from infold.spark.storages import storage_of
from infold.spark.time_range import recompute
from infold.spark.verify import sessions_from_scratch
from infold.spark.verify.compare import Comparison, compare
from infold.system import failures

if TYPE_CHECKING:
    import pyarrow as pa

CURE = "`infold forget {0}` and `infold run` (protected: `--allow-refresh`) build it anew"
"""What helps a table whose files are not what infold wrote."""


@dataclass(frozen=True)
class Verifier:
    """Compares the tables of one project with their rebuilds."""

    spark: SparkSession
    project: Project
    ledger: Ledger
    lake: Lake
    vanished: Collection[str]
    """Models whose table somebody dropped: there is nothing to compare."""
    progress: Progress

    def verify(self, selected: frozenset[str] | None, sample: int | None) -> tuple[Verdict, ...]:
        """
        One verdict for each stored model of ``selected`` (None: all), in dependency order.

        ``sample`` limits the comparison to that many cells of each model, drawn at random.
        """
        traces = self.ledger.traces()
        verdicts = []
        for node in self.project:
            if node.model.kind is Kind.VIEW or (selected is not None and node.name not in selected):
                continue
            trace = traces.get(node.name)
            self.progress.note(f"comparing {node.name} with its rebuild")
            verdicts.append(self._told(node, trace, sample) if trace else _unbuilt_verdict(node))
        return tuple(verdicts)

    def _told(self, node: Node, trace: Trace, sample: int | None) -> Verdict:
        """The verdict on a model; where a table cannot be read, that it is damaged."""
        work = self._work()
        try:
            with work:
                return self._verdict(work, node, trace, sample)
        except (PySparkException, Py4JError) as error:
            inputs = list(trace.inputs)
            if failures.named(error) is not None:
                raise
            damaged = damaged_table(self.lake, work.tables, [node.name, *inputs], error)
            if damaged is None:
                raise
            name, found = damaged
            facts = "; ".join(f"{fact}: {text}" for fact, text in found.facts)
            return _unequal_verdict(node, f"{found.what} ({facts}): {CURE.format(name)}")

    def _work(self) -> Work:
        tables = storage_of(self.project).tables(self.spark, self.project, self.lake)
        return Work(self.spark, tables, self.ledger, self.project, "verify", "verify")

    def _verdict(self, work: Work, node: Node, trace: Trace, sample: int | None) -> Verdict:
        notes = []
        if why := self._incomparable(node, trace):
            return _unequal_verdict(node, why)
        step, gone = self._as_built(node, trace)
        if gone:
            return _unequal_verdict(
                node, f"{gone} was dropped since it was read: `infold run` brings both up to date"
            )
        stored = plain(work.tables.read(node.name))
        rebuilt = self._rebuilt(work, node, step)
        time = _time_column(node)
        cells = self._cells(node, trace, sample)
        if cells != Ranges.ever() and time is not None:
            test = in_time(stored, time, cells, exact=True)
            stored, rebuilt = stored.where(test), rebuilt.where(test)
            notes.append("a sample of its cells" if sample else self._left_out(node, trace))
        key = _row_key(node)
        result = compare(stored, rebuilt, time, node.model.granularity, key)
        wrong = self._against_ledger(node, result, cells)
        misheld = self._misheld(work, node, step)
        if misheld:
            notes.append(f"{misheld} sessions are in quarantine wrongly, or should be and are not")
        repeated = _repeated_keys(stored, node)
        if repeated:
            notes.append(
                f"{repeated:,} values of its unique_key ({', '.join(key)}) stand more than once"
            )
        cut_off = self._cut_off(work, node, step, rebuilt, cells)
        if cut_off:
            notes.append(f"{cut_off} cells would be others without its declared bounds")
        if result.rounded:
            notes.append(f"{result.rounded} cells equal but for the last digits of doubles")
        if wrong:
            notes.append(
                f"the ledger's account of {len(wrong)} cells is another, so its files changed: "
                f"{CURE.format(node.name)}"
            )
        return Verdict(
            model=node.name,
            kind=node.model.kind,
            rows=result.rows,
            cells=result.cells,
            content=result.content,
            equal=not result.differing and not wrong and not misheld,
            differing=result.differing or tuple((cell, 0, 0) for cell in wrong),
            sample=result.sample,
            note="; ".join(notes),
            key=key,
        )

    def _incomparable(self, node: Node, trace: Trace) -> str:
        """Why a table is no rebuild, whatever its rows are; empty where they have to be seen."""
        if trace.fingerprint != node.fingerprint:
            return "it holds the rows of an earlier definition: `infold run` rebuilds it"
        if any(entry.cause is Cause.DEFINITION for entry in trace.pending):
            return "it holds rows of two definitions: `infold run` rebuilds it"
        if node.name in self.vanished:
            return "its table was dropped: `infold run` builds it anew"
        return ""

    def _as_built(self, node: Node, trace: Trace) -> tuple[Step, str]:
        """
        The step that would build the whole model from what its trace says it was built from.

        Of an input that was dropped since, and built anew with the same rows, the newest version
        stands for the one that was read; where its rows differ, it is named.
        """
        inputs = {}
        for name, version in trace.inputs.items():
            stands = version
            later = self.ledger.versions(name, version)
            if name in self.vanished:
                return _built_from(node, trace, {}), name
            if dropped(later):
                if net(self.ledger.changes(name, version)) or later[-1].snapshot is None:
                    return _built_from(node, trace, {}), name
                stands = later[-1].number
            inputs[name] = (stands, stands)
        return _built_from(node, trace, inputs), ""

    def _rebuilt(self, work: Work, node: Node, step: Step) -> DataFrame:
        if node.model.kind is Kind.EVENTS:
            return build.definition(work, node, step)
        if node.model.kind is Kind.SESSIONS and node.query is not None:
            query = query_of(work, step)
            return sessions_from_scratch.sessions(self._input(work, query, step), query)
        # What lies beyond declared bounds is no part of what the model says.
        return recompute.definition(work, node, step, narrow=node.declared)

    def _cut_off(
        self, work: Work, node: Node, step: Step, rebuilt: DataFrame, cells: Ranges
    ) -> int:
        """How many cells would be others if they saw beyond their declared bounds."""
        time = _time_column(node)
        if not node.declared or time is None:
            return 0
        whole = recompute.definition(work, node, step, narrow=False)
        if cells != Ranges.ever():
            whole = whole.where(in_time(whole, time, cells, exact=True))
        return len(compare(rebuilt, whole, time, node.model.granularity).differing)

    def _misheld(self, work: Work, node: Node, step: Step) -> int:
        """How many sessions a rebuild holds in quarantine and the ledger does not, or otherwise."""
        if node.query is None:
            return 0
        query = query_of(work, step)
        if not query.may_quarantine:
            return 0
        rows = sessions_from_scratch.quarantined(self._input(work, query, step), query).collect()
        expected = {(row["of"], row["start"], row["end"], row["events"]) for row in rows}
        known = self.ledger.quarantined(node.name)
        return len(expected ^ {(one.of, one.start, one.end, one.events) for one in known})

    def _input(self, work: Work, query: SessionsQuery, step: Step) -> DataFrame:
        """What a sessions query ranges over: a stored table, or a view over one."""
        if query.input in step.inputs:
            return plain(work.frame(query.input, step.inputs[query.input][1]))
        node = work.project[query.input]
        return work.sql(
            node,
            {
                entry.name: plain(work.frame(entry.name, step.inputs[entry.name][1]))
                for entry in node.inputs
            },
        )

    def _cells(self, node: Node, trace: Trace, sample: int | None) -> Ranges:
        """What to compare: all that holds, or some cells of it."""
        if node.model.granularity is None:
            return Ranges.ever()
        if sample is not None:
            states = self.ledger.cells(node.name)
            drawn = random.sample(list(states), min(sample, len(states)))
            return Ranges.of(state.cell for state in drawn)
        return Ranges.ever() - trace.unbuilt

    def _left_out(self, node: Node, trace: Trace) -> str:
        """What is not compared, as it is not built: of a new definition, which part of it is."""
        gone = [part for e in trace.pending if e.cause is Cause.REDEFINED for part in e.ranges]
        if not gone:
            return "without the cells still pending"
        held = Ranges.of(state.cell for state in self.ledger.cells(node.name) if state.rows)
        return formatting.under_new(held, Ranges.of(gone), node.model.granularity)

    def _against_ledger(
        self, node: Node, result: Comparison, cells: Ranges
    ) -> tuple[Interval, ...]:
        known: Mapping[Interval, tuple[int, int]] = {
            state.cell: (state.rows, state.content)
            for state in self.ledger.cells(node.name)
            if state.rows and (state.cell == EVER or cells.overlaps(state.cell))
        }
        found = {cell: (state.rows, state.content) for cell, state in result.stored.items()}
        return tuple(
            cell for cell in sorted({*known, *found}) if known.get(cell) != found.get(cell)
        )


def view_rows(work: Work, node: Node) -> pa.Table:
    """The rows of a view over the newest versions of what it reads."""
    heads, traces = work.ledger.heads(), work.ledger.traces()
    frames = {}
    for entry in node.inputs:
        if entry.name not in work.project:
            raise command_errors.no_table(view=node.name, source=entry.name)
        if entry.name not in traces or not work.tables.exists(entry.name):  # or dropped since
            raise command_errors.not_built(name=entry.name)
        frames[entry.name] = plain(work.frame(entry.name, heads[entry.name].number))
    return work.sql(node, frames).toArrow()


def _repeated_keys(stored: DataFrame, node: Node) -> int:
    """How many keys, of a model that declares one, belong to several rows."""
    said = node.model.incremental
    if said is None or not said.unique_key:
        return 0
    keys = stored.groupBy(*map(column, said.unique_key)).count()
    return keys.where("count > 1").count()


def _built_from(node: Node, trace: Trace, inputs: Mapping[str, tuple[int, int]]) -> Step:
    return Step(node.name, Action.BUILD, retained_range(node), (), inputs, trace=trace)


def _unequal_verdict(node: Node, why: str) -> Verdict:
    """A table that is known to be no rebuild, without looking at its rows."""
    return Verdict(node.name, node.model.kind, 0, 0, 0, equal=False, note=why)


def _unbuilt_verdict(node: Node) -> Verdict:
    return Verdict(node.name, node.model.kind, 0, 0, 0, equal=True, built=False)


def _row_key(node: Node) -> tuple[str, ...]:
    """The columns by which rows of a table are known, if it is known which."""
    if node.model.kind is Kind.SESSIONS:
        return ("session_id",)
    if node.grouped is not None:
        return tuple(key.name for key in node.grouped.keys)
    if node.model.kind is Kind.EVENTS and node.model.unique_key:
        time = node.model.timeseries.event_time_column if node.model.timeseries else None
        everywhere = node.model.deduplicate is Deduplicate.EVERYWHERE
        return (*node.model.unique_key, *(() if everywhere or time is None else (time,)))
    return node.model.incremental.unique_key if node.model.incremental else ()


def _time_column(node: Node) -> str | None:
    if node.model.granularity is None:
        return None
    if node.model.kind is Kind.SESSIONS:
        return "session_start"
    return node.model.timeseries.partition_column if node.model.timeseries else None
