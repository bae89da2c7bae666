"""
Verify: every stored table against a full rebuild, and declared bounds against what is beyond.

Tables are verified one after the other, inputs first. Each is rebuilt from the stored inputs, at
the versions that its trace names; these were compared with their rebuilds before, down to the
files, which are read again. So if all are equal, each equals a rebuild from the files. The cells
that the ledger has on record are compared as well. A table is rebuilt by the definition that built
it, also where the files have another one since.

Runs may go on beside it. What is compared is of the moment at which a table's turn comes, so that
it equals its rebuild whatever a run does meanwhile. If it does not, and a run did something, there
may be another reason: snapshots expire, files are replaced. Then the table is compared again.

Both frames that are compared have the model's columns, technical ones left out.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from infold.core.files import IngestedFile
from infold.core.interval import (
    DAY,
    EVER,
    HOUR,
    Granularity,
    Interval,
    Ranges,
    show_duration,
    show_instant,
)
from infold.core.model import Kind, Override, table_name
from infold.core.plan import Action, Step
from infold.core.ports import Lake, Ledger, Progress
from infold.core.project import ALL_COLUMNS, CELLS_TOGETHER, Bound, Node, Project, starting
from infold.core.queries import SessionsQuery
from infold.core.record import QuarantinedSession
from infold.core.report import Verdict
from infold.core.target import Publish
from infold.core.trace import Cause, CellState, Trace, Version, was_dropped
from infold.inspecting.as_built import Stretches, earlier_definition_note, project_as_built
from infold.inspecting.show import row_key
from infold.messages import command_errors
from infold.messages.errors import InfoldError
from infold.planning.buildable_cells import retained_range
from infold.render import formatting
from infold.running.ledger_consistency import late_step
from infold.running.read_columns import InputChanges
from infold.spark.content import column, time_predicate, user_columns
from infold.spark.damaged_tables import damaged_table
from infold.spark.events import build
from infold.spark.step_context import Work
from infold.spark.storages import storage_of
from infold.spark.time_range import recompute
from infold.spark.verify import sessions_from_scratch
from infold.spark.verify.compare import Comparison, compare
from infold.spark.versions import instants_without_rows
from infold.system import failures

if TYPE_CHECKING:
    import pyarrow as pa


CURE = "`infold forget {0}` and `infold run` (protected: `--allow-refresh`) rebuild it"
"""What to do about a table whose files are not what infold wrote."""

_KINDS_OF_FILES = (Kind.EVENTS, Kind.SCD_TYPE_2)
"""Kinds with tables that are made of files, or of the snapshots that some without rows are."""

_ERRORS_OF_EARLIER_CELLS = ("earlier-definition-unknown", "forward-only-types")
"""Errors that keep the cells of an earlier definition from being built."""


@dataclass(frozen=True)
class Verifier:
    """Compares the tables of one project with their rebuilds."""

    spark: SparkSession
    project: Project
    ledger: Ledger
    lake: Lake
    progress: Progress

    def verify(self, selected: frozenset[str] | None, sample: int | None) -> tuple[Verdict, ...]:
        """
        One verdict for each stored model of ``selected`` (None: all), in dependency order.

        ``sample`` limits the comparison to that many cells of each model, drawn at random.
        """
        nodes = [
            node
            for node in self.project
            if node.model.kind.is_stored and (selected is None or node.name in selected)
        ]
        verdicts = []
        for number, node in enumerate(nodes, 1):
            place = f" ({number} of {len(nodes)})" if len(nodes) > 1 else ""
            self.progress.note(f"comparing {node.name} with its rebuild{place}")
            verdicts.append(self._lasting_verdict(node, sample))
        return tuple(verdicts)

    def _lasting_verdict(self, node: Node, sample: int | None) -> Verdict:
        """The verdict on a model; what a run may be the reason of is none."""
        for _ in range(TRIES):
            moment = moment_of(self.project, self.ledger, self.lake, node)
            if moment is None:
                return _unbuilt_verdict(node)
            try:
                verdict = self._verdict_or_damage(node, moment, sample)
                if verdict.equal or not moment.is_past(self.ledger):
                    return verdict
            except (InfoldError, PySparkException, Py4JError) as error:
                of_machine = not isinstance(error, InfoldError) and failures.known_failure(error)
                if of_machine or not moment.is_past(self.ledger):
                    raise
            self.progress.note(f"a run changed {node.name} meanwhile")
        return _changed_meanwhile_verdict(node)

    def _verdict_or_damage(self, node: Node, moment: Moment, sample: int | None) -> Verdict:
        """The verdict on a model, or that a table which it reads is damaged."""
        trace = moment.trace
        project = project_as_built(self.project, self.ledger, trace)
        is_newest, start = project is self.project, trace.retention.start
        project = project.starting(node.name, start)
        node = project[node.name]
        work = self._work_of(project)
        try:
            earlier = Stretches(self.project, self.ledger, declared=False)(trace)
            earlier = starting(earlier, start)
            with replace(work, earlier=earlier) as work:
                verdict = self._verdict(work, node, moment, sample)
                if is_newest:
                    return verdict
                notes = (earlier_definition_note(self.ledger, trace), verdict.note)
                return replace(verdict, note="; ".join(filter(None, notes)))
        except InfoldError as error:
            if error.slug not in _ERRORS_OF_EARLIER_CELLS:
                raise
            return _unequal_verdict(node, f"{error.what}: {CURE.format(node.name)}")
        except (PySparkException, Py4JError) as error:
            inputs = list(trace.inputs)
            if failures.known_failure(error) is not None:
                raise
            damaged = damaged_table(self.lake, work.tables, [node.name, *inputs], error)
            if damaged is None:
                raise
            name, damage = damaged
            facts = "; ".join(f"{fact}: {text}" for fact, text in damage.facts)
            return _unequal_verdict(node, f"{damage.what} ({facts}): {CURE.format(name)}")

    def _work_of(self, project: Project) -> Work:
        tables = storage_of(project).tables(self.spark, project, self.lake)
        return Work(self.spark, tables, self.ledger, project, "verify", "verify")

    def _verdict(self, work: Work, node: Node, moment: Moment, sample: int | None) -> Verdict:
        notes = list(_left_to_chance(node))
        if why := _incomparable(node, moment):
            return _unequal_verdict(node, why)
        step, dropped = self._step_as_built(work.project, node, moment)
        if dropped:
            return _unequal_verdict(
                node,
                f"{dropped} was dropped since it was read: `infold run` brings both up to date",
            )
        stored = user_columns(work.tables.read(node.name, moment.snapshot))
        time = _time_column(node)
        cells = _cells_to_compare(node, moment, sample)
        sampled = cells if sample is not None and time is not None else None
        rebuilt = self._rebuilt(work, node, step, moment, sampled)
        if other_columns := _other_columns(node, stored, rebuilt):
            what = f"its table has other columns ({', '.join(other_columns)})"
            return _unequal_verdict(node, f"{what}: {CURE.format(node.name)}")
        if time is not None and (frozen := _frozen_cells(moment, cells)):
            rebuilt = _with_frozen_rows(stored, rebuilt, time, moment.trace.frozen_ranges)
            notes.append(f"{formatting.count(frozen, 'frozen cell')} by the ledger alone")
        if cells != Ranges.ever() and time is not None:
            test = time_predicate(stored, time, cells, exact=True)
            stored, rebuilt = stored.where(test), rebuilt.where(test)
            notes.append("a sample of its cells" if sample else _note_on_pending(node, moment))
        key = row_key(node)
        result = _comparison_of(work, node, moment, stored, rebuilt)
        unlike = _cells_unlike_ledger(moment, result, cells)
        misplaced = self._quarantine_differences(work, node, step, moment, sampled)
        if misplaced:
            notes.append(
                f"{misplaced} sessions are in quarantine wrongly, or should be and are not"
            )
        repeated = _repeated_keys(stored, node)
        if repeated:
            notes.append(
                f"{repeated:,} values of its unique_key ({', '.join(key)}) appear more than once"
            )
        beyond = differing_beyond_bounds(work, node, step, time, rebuilt, cells)
        if beyond is not None:
            notes.append(beyond.note)
        notes.extend(about_doubles(result))
        if unlike:
            notes.append(
                f"the ledger has {_cells_text(len(unlike))} otherwise, so its files changed: "
                f"{CURE.format(node.name)}"
            )
        return Verdict(
            model=node.name,
            kind=node.model.kind,
            rows=result.rows,
            cells=result.cells,
            content=result.content,
            equal=not (result.differing or unlike or misplaced or beyond),
            differing=result.differing
            or tuple((cell, 0, 0) for cell in unlike)
            or (beyond.comparison.differing if beyond is not None else ()),
            sample=result.sample or (beyond.comparison.sample if beyond is not None else ()),
            note="; ".join(filter(None, notes)),
            key=key,
            beyond_bounds=beyond is not None and not (result.differing or unlike),
            left_out=node.undetermined,
        )

    def _step_as_built(self, project: Project, node: Node, moment: Moment) -> tuple[Step, str]:
        """
        The step that builds the whole model from the versions of its inputs that its trace names.

        If an input was dropped since, or another table took its place, its newest version is read
        instead where that has the same rows in the columns that the model reads; if not, the second
        value names it.
        """
        changed = InputChanges(project, self.ledger)
        trace, inputs = moment.trace, {}
        for name, version in trace.inputs.items():
            current = version
            later = self.ledger.versions(name, version)
            if name in moment.dropped:
                return _built_from(node, trace, {}), name
            if was_dropped(later):
                current = later[-1].number
                _, differing = changed.since(node, name, version, current)
                if differing or later[-1].snapshot is None:
                    return _built_from(node, trace, {}), name
            inputs[name] = (current, current)
        return _built_from(node, trace, inputs), ""

    def _rebuilt(
        self, work: Work, node: Node, step: Step, moment: Moment, sampled: Ranges | None
    ) -> DataFrame:
        """The model's rows from scratch: at least those in ``sampled`` cells (None: all)."""
        if node.model.kind is Kind.EVENTS:
            return build.definition(work, node, step, moment.files, sampled)
        if node.model.kind is Kind.SESSIONS and node.query is not None:
            read = self._events_for(sampled)
            return sessions_from_scratch.sessions_of_stretches(work, step, read)
        if node.versions is not None:
            return sessions_from_scratch.versions_from_scratch(
                recompute.definition(work, node, step),
                node.versions,
                instants_without_rows(work.spark, node.versions, moment.files),
            )
        # Rows beyond declared bounds are no part of the definition.
        return recompute.definition(work, node, step, narrow=node.bounds_declared)

    def _quarantine_differences(
        self, work: Work, node: Node, step: Step, moment: Moment, sampled: Ranges | None
    ) -> int:
        """
        How many sessions only the rebuild or only the ledger has in quarantine.

        Of a sample, of those that begin in its cells.
        """
        if node.query is None:
            return 0
        read = self._events_for(sampled)
        expected = sessions_from_scratch.quarantined_in_stretches(work, step, read)
        known = {
            (entry.owner, entry.start, entry.end, entry.events) for entry in moment.quarantined
        }
        differing = expected ^ known
        return sum(1 for _, start, *_ in differing if sampled is None or start in sampled)

    def _events_for(self, sampled: Ranges | None) -> sessions_from_scratch.ReadEvents:
        """Reads the events that sessions in ``sampled`` cells (None: all) are made of."""

        def read(work: Work, query: SessionsQuery, step: Step) -> DataFrame:
            events = self._events(work, query, step)
            if sampled is None:
                return events
            return sessions_from_scratch.events_of_owners(events, query, sampled)

        return read

    def _events(self, work: Work, query: SessionsQuery, step: Step) -> DataFrame:
        """The events that a sessions query reads: a stored table, or a view over one."""
        if query.input in step.inputs:
            return user_columns(work.frame(query.input, step.inputs[query.input][1]))
        node = work.project[query.input]
        return work.sql(
            node,
            {
                entry.name: user_columns(work.frame(entry.name, step.inputs[entry.name][1]))
                for entry in node.inputs
            },
        )


def about_doubles(result: Comparison) -> Iterator[str]:
    """What is to be said of values that follow from the order in which doubles were added."""
    if result.rounded:
        yield f"{_cells_text(result.rounded)} equal but for the last digits of doubles"
    if result.by_doubles:
        yield (
            "only doubles differ: a sum of them depends on the order of rows, the more its terms "
            "cancel; sum(cast(x AS decimal(28, 6))) does not"
        )


def view_rows(work: Work, node: Node, limit: int | None = None) -> pa.Table:
    """
    The rows of a view, at most ``limit`` of them, over the newest versions of what it reads.

    Of tables that are published together, over what is published.
    """
    together = work.project.target.publish is Publish.TOGETHER
    heads, traces = work.ledger.newest_versions(), work.ledger.traces()
    frames = {}
    for entry in node.inputs:
        if entry.name not in work.project:
            raise command_errors.not_landed(view=node.name, source=entry.name)
        if entry.name not in traces or not work.tables.exists(entry.name):  # or dropped since
            raise command_errors.not_built(name=entry.name)
        stored = (
            work.tables.read(entry.name)
            if together
            else work.frame(entry.name, heads[entry.name].number)
        )
        frames[entry.name] = user_columns(stored)
    # At most the rows that somebody asks to see.
    rows = work.sql(node, frames)
    return (rows if limit is None else rows.limit(limit)).toArrow()


def _comparison_of(
    work: Work, node: Node, moment: Moment, stored: DataFrame, rebuilt: DataFrame
) -> Comparison:
    """
    How a table compares with its rebuild.

    Raises ``errors.source_changed`` where they differ, and a file was replaced while it was read.
    """
    time, key = _time_column(node), row_key(node)
    result = compare(stored, rebuilt, time, node.model.granularity, key, left_out=node.undetermined)
    if result.differing and node.model.kind is Kind.EVENTS:
        build.refuse_changed(work, node, moment.files)
    return result


def _incomparable(node: Node, moment: Moment) -> str:
    """Why a table cannot equal its rebuild, without reading it; empty if it has to be read."""
    if moment.trace.fingerprint != node.fingerprint:
        return "its rows are of an earlier definition: `infold run` rebuilds it"
    if moment.trace.mixed:
        return "its rows are of two definitions: `infold run` rebuilds it"
    if node.name in moment.dropped:
        return "its table was dropped: `infold run` rebuilds it"
    return ""


def _left_to_chance(node: Node) -> Iterator[str]:
    """A note on columns that are not compared because any result will do."""
    if node.undetermined == ALL_COLUMNS:
        yield f"{Override.NONDETERMINISTIC}: its rows are not compared"
    elif node.undetermined:
        yield f"{Override.NONDETERMINISTIC}: without {', '.join(node.undetermined)}"


def _cells_text(number: int) -> str:
    return formatting.count(number, "cell")


def _frozen_cells(moment: Moment, cells: Ranges) -> int:
    """How many of some cells have rows that nobody can build again."""
    frozen = moment.trace.frozen_ranges & cells
    return sum(bool(state.rows) and frozen.overlaps(state.cell) for state in moment.cells)


def _with_frozen_rows(
    stored: DataFrame, rebuilt: DataFrame, time: str, frozen: Ranges
) -> DataFrame:
    """A rebuild with the stored rows of frozen cells, which the ledger judges."""
    inside = time_predicate(stored, time, frozen, exact=True)
    names = [column(name) for name in stored.columns]
    others = rebuilt.select(*names).where(f"NOT coalesce({inside}, false)")
    return others.unionByName(stored.where(inside))


def _cells_to_compare(node: Node, moment: Moment, sample: int | None) -> Ranges:
    """The cells to compare: all that are built, or a sample of them."""
    if node.model.granularity is None:
        return Ranges.ever()
    if sample is not None:
        drawn = random.sample(list(moment.cells), min(sample, len(moment.cells)))
        return Ranges.of(state.cell for state in drawn)
    return Ranges.ever() - moment.trace.pending_ranges


def _note_on_pending(node: Node, moment: Moment) -> str:
    """A note on cells that are not compared because they are not built."""
    pending = moment.trace.pending
    redefined = [
        part for entry in pending if entry.cause is Cause.REDEFINED for part in entry.ranges
    ]
    if not redefined:
        return "without the cells still pending"
    filled = Ranges.of(state.cell for state in moment.cells if state.rows)
    return formatting.rebuilt_part_text(filled, Ranges.of(redefined), node.model.granularity)


def _cells_unlike_ledger(moment: Moment, result: Comparison, cells: Ranges) -> tuple[Interval, ...]:
    recorded: Mapping[Interval, tuple[int, int]] = {
        state.cell: (state.rows, state.content)
        for state in moment.cells
        if state.rows and (state.cell == EVER or cells.overlaps(state.cell))
    }
    stored = {cell: (state.rows, state.content) for cell, state in result.stored.items()}
    return tuple(
        cell for cell in sorted({*recorded, *stored}) if recorded.get(cell) != stored.get(cell)
    )


def _repeated_keys(stored: DataFrame, node: Node) -> int:
    """How many values of a declared unique_key have several rows."""
    incremental = node.model.incremental
    if incremental is None or not incremental.unique_key:
        return 0
    keys = stored.groupBy(*map(column, incremental.unique_key)).count()
    return keys.where("count > 1").count()


def _built_from(node: Node, trace: Trace, inputs: Mapping[str, tuple[int, int]]) -> Step:
    return Step(node.name, Action.BUILD, retained_range(node), (), inputs, trace=trace)


def _unequal_verdict(node: Node, why: str) -> Verdict:
    """The verdict on a table that cannot equal its rebuild."""
    return Verdict(node.name, node.model.kind, 0, 0, 0, equal=False, note=why)


def _changed_meanwhile_verdict(node: Node) -> Verdict:
    """The verdict on a table that runs changed whenever it was compared."""
    why = f"a run changed it meanwhile, {TRIES} times: verify it between two runs"
    return replace(_unequal_verdict(node, why), moved=True)


def _unbuilt_verdict(node: Node) -> Verdict:
    return Verdict(node.name, node.model.kind, 0, 0, 0, equal=True, built=False)


def _other_columns(node: Node, stored: DataFrame, rebuilt: DataFrame) -> list[str]:
    """The columns of a query that its table lacks, and those that only the table has."""
    if node.model.kind not in (Kind.TABLE, Kind.INCREMENTAL_TABLE):
        return []
    old, new = ({name.lower() for name in rows.columns} for rows in (stored, rebuilt))
    return sorted(old ^ new)


def _time_column(node: Node) -> str | None:
    if node.model.granularity is None:
        return None
    if node.model.kind is Kind.SESSIONS:
        return "session_start"
    return node.model.timeseries.partition_column if node.model.timeseries else None


# A comparison takes minutes, and runs go on beside it. So all that is known of a table is read
# together when its turn comes, and its rows are those of one snapshot, whatever a run does
# meanwhile. Nothing here needs Spark, and no lease is taken: runs are not to wait for who only
# looks.

TRIES = 3
"""How often something is looked at that runs change meanwhile."""

Marks = Mapping[str, tuple[Trace | None, Version | None]]
"""The trace and the newest version of a model, and of its inputs: each step changes one of them."""


@dataclass(frozen=True, slots=True)
class Moment:
    """
    What the ledger knew of a built model, all of it at once.

    ``snapshot`` has the rows of that (None: of a table that has none). ``dropped`` are those of the
    model and its inputs with a table that was dropped outside infold.
    """

    trace: Trace
    snapshot: int | None
    cells: Sequence[CellState]
    files: Sequence[IngestedFile]
    quarantined: Sequence[QuarantinedSession]
    dropped: frozenset[str]
    marks: Marks

    def is_past(self, ledger: Ledger) -> bool:
        """Whether a run has changed the model or one of its inputs since."""
        return _marks(self.trace, ledger.traces(), ledger.newest_versions()) != self.marks


def moment_of(project: Project, ledger: Ledger, lake: Lake, node: Node) -> Moment | None:
    """The present moment of a model; None if it was never built."""
    moment = None
    for _ in range(TRIES):  # a step may end between two of the questions
        traces, heads = ledger.traces(), ledger.newest_versions()
        trace = traces.get(node.name)
        if trace is None:
            return None
        marks = _marks(trace, traces, heads)
        moment = Moment(
            trace,
            _snapshot(ledger, lake, heads.get(node.name)),
            ledger.cells(node.name),
            ledger.files(node.name) if node.model.kind in _KINDS_OF_FILES else (),
            ledger.quarantined(node.name) if node.model.kind is Kind.SESSIONS else (),
            _dropped_tables(project, lake, marks),
            marks,
        )
        if not moment.is_past(ledger):
            break
    return moment


def _marks(trace: Trace, traces: Mapping[str, Trace], heads: Mapping[str, Version]) -> Marks:
    return {name: (traces.get(name), heads.get(name)) for name in (trace.model, *trace.inputs)}


def _snapshot(ledger: Ledger, lake: Lake, head: Version | None) -> int | None:
    """
    The snapshot with the rows of the newest version.

    That is the table's own newest, which may have them in fewer files, or what somebody else wrote.
    Where a step has committed already that the ledger does not count yet, it is the version's.
    """
    metadata = None if head is None else lake.metadata(table_name(head.table))
    if head is None or metadata is None:
        return None
    has_later_step = head.step in metadata.steps and [*metadata.steps][-1] != head.step
    by_others = metadata.foreign is not None or late_step(ledger, head, metadata) is not None
    return head.snapshot if has_later_step and not by_others else metadata.snapshot


def _dropped_tables(project: Project, lake: Lake, marks: Marks) -> frozenset[str]:
    built = [
        name
        for name, (trace, head) in marks.items()
        if name in project and name not in project.shared
        if trace is not None and head is not None and head.snapshot is not None
    ]
    present = lake.moved_tables({table_name(name): "" for name in built})
    return frozenset(name for name in built if present.get(table_name(name), "") is None)


# What is enough is found by trying: one side alone, then lengths that double, then the middle
# between the last that was too short and the first that was not.

_MOST_ROUNDS = 3
"""How often what is enough for some cells is tried on all of them, before nothing is proposed."""


@dataclass(frozen=True, slots=True)
class BeyondBounds:
    """Cells that differ beyond declared bounds, and what to do about them."""

    comparison: Comparison
    advice: str

    @property
    def note(self) -> str:
        """The first cell that differs, how many more do, and the advice, in one line."""
        first, *more = (cell for cell, _, _ in self.comparison.differing)
        cells = f"{show_instant(first.start)}{f' and {len(more)} more' if more else ''}"
        return f"beyond its declared bounds it differs in {cells}: {self.advice}"


def differing_beyond_bounds(
    work: Work, node: Node, step: Step, time: str | None, bounded: DataFrame, cells: Ranges
) -> BeyondBounds | None:
    """
    How a model's ``cells`` differ if they are computed from rows beyond their declared bounds.

    ``bounded`` are its rows as computed within them, ``time`` its partition column; ``step`` builds
    the whole model.
    """
    if not node.bounds_declared or time is None:
        return None
    judge = _BoundsJudge(work, node, step, time)
    comparison = compare(
        bounded,
        judge.whole(cells),
        time,
        node.model.granularity,
        row_key(node),
        left_out=node.undetermined,
    )
    if not comparison.differing:
        return None
    return BeyondBounds(comparison, judge.advice([cell for cell, _, _ in comparison.differing]))


@dataclass(frozen=True)
class _BoundsJudge:
    work: Work
    node: Node
    step: Step
    time: str

    def advice(self, cells: Sequence[Interval]) -> str:
        """What bounds would do for these cells, which differ; else what to do without."""
        span = self._span_of_rows()
        bounds = None if self.work.earlier else self._enough(cells, span)
        if bounds is None:
            return "no bound was found that is enough: build it whole (remove `incremental`)"
        text = ", ".join(f"{name}: {{{_bound_text(bound)}}}" for name, bound in bounds.items())
        declared = self._declared_bounds()
        if all(
            _reaches_all(cell, declared[name], bound, span)
            for cell in cells
            for name, bound in bounds.items()
            if bound != declared[name]
        ):
            return (
                f"{text} reaches all of its present rows, and nothing shorter is enough: build it "
                "whole (remove `incremental`)"
            )
        return f"{text} is enough for its present rows"

    def _enough(self, cells: Sequence[Interval], span: Interval) -> Mapping[str, Bound] | None:
        """Bounds with which none of the cells differs, each input's as short as may be."""
        left = list(cells)
        for _ in range(_MOST_ROUNDS):
            sample = Ranges.of(left[:: -(-len(left) // CELLS_TOGETHER)])
            whole_rows = self.whole(sample).localCheckpoint()
            bounds = least_bounds(
                self._declared_bounds(),
                Bound(span.end - span.start, span.end - span.start),
                HOUR if self.node.model.granularity is Granularity.HOUR else DAY,
                partial(self._is_enough, whole_rows, sample),
            )
            if bounds is None or len(left) <= CELLS_TOGETHER:
                return bounds
            all_cells = Ranges.of(cells)
            left = self._differing_cells(self.whole(all_cells), bounds, all_cells)
            if not left:
                return bounds
        return None

    def _is_enough(self, whole: DataFrame, cells: Ranges, bounds: Mapping[str, Bound]) -> bool:
        return not self._differing_cells(whole, bounds, cells)

    def _differing_cells(
        self, whole: DataFrame, bounds: Mapping[str, Bound], cells: Ranges
    ) -> list[Interval]:
        """The cells that differ from the query over all rows even with other bounds."""
        node = replace(
            self.node,
            inputs=tuple(
                replace(entry, bounds=(bounds[entry.name],)) if entry.name in bounds else entry
                for entry in self.node.inputs
            ),
            references=tuple(replace(reference, bound=None) for reference in self.node.references),
        )
        bounded = recompute.definition(self.work, node, replace(self.step, cells=cells))
        granularity = self.node.model.granularity
        comparison = compare(
            bounded, whole, self.time, granularity, left_out=self.node.undetermined
        )
        return [cell for cell, _, _ in comparison.differing]

    def whole(self, cells: Ranges) -> DataFrame:
        """The rows of cells as the query gives them over all rows."""
        rows = recompute.definition(self.work, self.node, self.step, narrow=False)
        if cells == Ranges.ever():
            return rows
        return rows.where(time_predicate(rows, self.time, cells, exact=True))

    def _declared_bounds(self) -> Mapping[str, Bound]:
        return {entry.name: entry.bound for entry in self.node.inputs if entry.time_column}

    def _span_of_rows(self) -> Interval:
        """The times of all rows, the model's and those that it reads."""
        names = [self.node.name, *(entry.name for entry in self.node.inputs if entry.time_column)]
        filled = Ranges.of(s.cell for name in names for s in self.work.cells(name) if s.rows)
        return filled.span or Interval(0, 0)


def least_bounds(
    declared: Mapping[str, Bound],
    far: Bound,
    unit: int,
    is_enough: Callable[[Mapping[str, Bound]], bool],
) -> Mapping[str, Bound] | None:
    """
    Bounds of whole units that are enough, on no side longer than needed; None if even ``far`` is
    not.

    Those of several inputs grow together, and then each is left as it was where it can be.
    """

    def at_least(before: int, after: int) -> Mapping[str, Bound]:
        return {name: bound.widest(Bound(before, after)) for name, bound in declared.items()}

    if not is_enough(at_least(far.before, far.after)):
        return None
    if is_enough(at_least(far.before, 0)):
        bounds = at_least(
            _least(far.before, unit, lambda length: is_enough(at_least(length, 0))), 0
        )
    elif is_enough(at_least(0, far.after)):
        bounds = at_least(0, _least(far.after, unit, lambda length: is_enough(at_least(0, length))))
    else:
        before = _least(far.before, unit, lambda length: is_enough(at_least(length, far.after)))
        after = _least(far.after, unit, lambda length: is_enough(at_least(before, length)))
        bounds = at_least(before, after)
    for name, bound in declared.items() if len(declared) > 1 else ():
        if bounds[name] != bound and is_enough({**bounds, name: bound}):
            bounds = {**bounds, name: bound}
    return bounds


def _least(far: int, unit: int, is_enough: Callable[[int], bool]) -> int:
    """The least number of units that is enough, where ``far`` is and more is never less."""
    long = 1
    while long * unit < far and not is_enough(long * unit):
        long *= 2
    short = long // 2
    while long - short > 1:
        middle = (long + short) // 2
        if middle * unit >= far or is_enough(middle * unit):
            long = middle
        else:
            short = middle
    return min(long * unit, far)


def _reaches_all(cell: Interval, declared: Bound, bound: Bound, span: Interval) -> bool:
    """Whether a cell reads all rows there are on a side on which more is read than declared."""
    before = bound.before > declared.before and cell.start - bound.before <= span.start
    return before or (bound.after > declared.after and cell.end + bound.after >= span.end)


def _bound_text(bound: Bound) -> str:
    sides = {"before": bound.before, "after": bound.after}
    return ", ".join(f"{side}: {show_duration(length)}" for side, length in sides.items() if length)
