"""
Sessions by several definitions, after forward-only changes: each folded or built in its stretch.

The table is the union of its parts (see ``part``). One part never needs anything of another, but
for the numbers of sessions, which count all of a user. A part with the sessions of its definition
is folded; where a change has just cut it, what reaches over the new border is read again. Any other
part is built from its events. One commit changes the rows that differ. If the table gets columns,
or all parts are built, it replaces the table: by the rows that stay, what was folded, and what was
built. Either is announced before, so a run that dies over it is finished by the next one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.interval import Interval, Ranges
from infold.core.own_columns import FIRST, ID, VERSION
from infold.core.plan import Action, Step
from infold.core.record import Outcome, QuarantinedSession
from infold.core.trace import changes_of_rewrite
from infold.spark.content import column
from infold.spark.inputs.feed import foldable
from infold.spark.sessions import build, quarantine, unassigned
from infold.spark.sessions.build import with_session_counts
from infold.spark.sessions.components import query_of
from infold.spark.sessions.fold import SessionsFold, commit_changes, fold_receipt
from infold.spark.sessions.fold_changes import (
    NEW,
    OLD,
    Totals,
    collect_totals,
    keys_to_delete,
    rows_to_insert,
)
from infold.spark.sessions.frames import EVENTS
from infold.spark.sessions.islands import compiled_aggregates
from infold.spark.sessions.part import Part, same_columns, table_schema
from infold.spark.sessions.stored import (
    sessions_that_differ,
    states_of_sessions,
    with_session_numbers,
)
from infold.spark.step_commit import Computed, WholeTable, commit_step
from infold.spark.step_context import DefinitionInForce, Work


def carry_out(work: Work, step: Step) -> Outcome:
    """Build the table or fold into it, by the definitions in force."""
    if step.trace is None or not step.trace.earlier:
        return build.carry_out(work, step)
    parts = parts_in_force(work, step)
    results = [_part_result(part) for part in parts]
    any_kept = any(part.keeps_sessions for part in parts)
    if any_kept and same_columns(work.tables.read(step.model).schema, parts[-1].schema):
        return _merge_changes(work, step, [_as_changes(work, result) for result in results])
    return _replace_table(work, step, results)


def parts_in_force(work: Work, step: Step) -> list[Part]:
    """The parts of a table after a step, in order."""
    stretches = _kept_stretches(step) if work.tables.exists(step.model) else {}
    parts = []
    for times, digest, in_force in _stretches(work, step):
        part_work = replace(in_force.work, earlier=())
        node, newest = in_force.node, in_force.is_newest
        part_step = replace(
            step,
            inputs={entry.name: step.inputs[entry.name] for entry in node.stored_inputs},
            changed_key_rows=step.changed_key_rows if newest else (),
        )
        # Which rows of an earlier definition have a changed key is not known.
        same = newest or all(
            since == upto
            for name, (since, upto) in part_step.inputs.items()
            if node.is_lookup(name)
        )
        stretch = next((s for s in stretches.get(digest, ()) if _begins_with(s, times)), None)
        keeps = stretch is not None and same and foldable(part_work, node, part_step)
        has_new_end = stretch is not None and stretch.end > times.end
        query = query_of(part_work, part_step).during(times)
        parts.append(Part(times, part_work, part_step, query, keeps, has_new_end))
    parts.sort(key=lambda part: part.times)
    return _with_schema(work, step, parts)


def _stretches(work: Work, step: Step) -> Iterator[tuple[Interval, str, DefinitionInForce]]:
    """Stretches of time, with the definition in force in each, and its digest."""
    assert step.trace is not None, "a planned step has its trace"
    digests = (step.trace.definition, *(definition.definition for definition in step.trace.earlier))
    for definition, digest in zip(work.definitions_of(step.model), digests, strict=True):
        for times in definition.cells:
            yield times, digest, definition


def _kept_stretches(step: Step) -> Mapping[str, Sequence[Interval]]:
    """The stretches that the stored sessions were made over, by the digest of their definition."""
    before, after = step.previous_trace, step.trace
    if before is None or after is None or step.action is Action.BUILD:
        return {}
    same = before.fingerprint == after.fingerprint
    newest = after.definition if same else before.definition
    stretches_by_definition: dict[str, list[Interval]] = {}
    for definition in before.earlier:
        stretches_by_definition.setdefault(definition.definition, []).extend(definition.cells)
    stretches_by_definition.setdefault(newest, []).extend(Ranges.ever() - before.earlier_ranges)
    return stretches_by_definition


def _begins_with(stretch: Interval, times: Interval) -> bool:
    """Whether a stretch has these times, and begins with them."""
    return stretch.start == times.start and times.end <= stretch.end


def _with_schema(work: Work, step: Step, parts: Sequence[Part]) -> list[Part]:
    """The parts, with the columns of their definitions and those that the table is to have."""
    any_kept = any(part.keeps_sessions for part in parts)
    stored = work.tables.read(step.model).schema if any_kept else None
    before, after = step.previous_trace, step.trace
    same = before is not None and after is not None and before.fingerprint == after.fingerprint
    if stored is not None and same and all(part.keeps_sessions for part in parts):
        parts = [replace(part, schema=stored) for part in parts]
        return [replace(part, rows=_own_rows(part)) if part.changes else part for part in parts]
    known = [replace(part, rows=_own_rows(part)) for part in parts]
    schema = table_schema(step.model, known[-1].rows, [part.rows for part in known], stored)
    return [replace(part, schema=schema) for part in known]


def _own_rows(part: Part) -> T.StructType:
    """The columns that the definition of a part gives its sessions; no row is read."""
    return build.build(part.feed.current, part.query).schema


@dataclass(frozen=True)
class _PartResult:
    """What became of a part: what a fold changes in its stored rows, or all rows as they are."""

    part: Part
    totals: Totals
    changed: DataFrame | None = None
    rows: DataFrame | None = None
    entered: tuple[QuarantinedSession, ...] = ()
    released: tuple[tuple[str, int], ...] = ()
    scanned: int = 0


def _part_result(part: Part) -> _PartResult:
    """What becomes of a part: nothing where nothing of it has changed."""
    if not part.keeps_sessions:
        return _build_part(part)
    return _fold_part(part) if part.changes else _PartResult(part, Totals())


def _fold_part(part: Part) -> _PartResult:
    fold = SessionsFold(part.work, part.node, part.step, part)
    changed, totals, (entered, released) = fold.changes()
    changed = None if changed is None else changed.select(OLD, NEW, EVENTS)
    return _PartResult(part, totals, changed, None, entered, released, fold.scanned)


def _build_part(part: Part) -> _PartResult:
    """A part that is built from its events, which are looked at as in any first build."""
    feed, query = part.feed, part.query
    events = feed.current
    read = sum(state.rows for state in feed.cells if part.ranges.overlaps(state.cell))
    compiled = compiled_aggregates(events, query)
    sessions = build.all_sessions(events, query, compiled, read)
    entered: tuple[QuarantinedSession, ...] = ()
    if query.may_quarantine:  # looked at twice: for the ledger, for the table
        sessions = sessions.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)
        entered = quarantine.all_entries(sessions)
    rows = build.rows_of_table(sessions, events, query, compiled, part.step.version)
    names = unassigned.names_of_others(part.work, part.step)
    counts = Counter({"read": read})
    for others, number in unassigned.count_by_others(events, query, names).items():
        counts[unassigned.ARRIVED + others] = number
    counts[unassigned.BEFORE_START] = unassigned.count_before_start(events, query)
    return _PartResult(part, Totals({}, counts), None, part.as_stored(rows), entered, (), read)


def _as_changes(work: Work, result: _PartResult) -> _PartResult:
    """What became of a part, as changes of its stored rows, also where it was built."""
    if result.rows is None:
        return result
    part = result.part
    rows = result.rows.select(*map(column, part.stored().columns))
    changed = sessions_that_differ(part.stored(), rows, part.node.model.granularity)
    changed = changed.localCheckpoint()
    totals = collect_totals(changed, ids=True)
    entries = [entry.key for entry in _known_entries(work, part)]
    return replace(
        result,
        totals=replace(totals, counts=totals.counts + result.totals.counts),
        changed=changed,
        rows=None,
        released=tuple(entries),
    )


def _merge_changes(work: Work, step: Step, results: Sequence[_PartResult]) -> Outcome:
    """Change rows of the table, which keeps its columns."""
    newest = results[-1].part
    totals, scanned = _totals(results), sum(result.scanned for result in results)
    part_changes = [result.changed for result in results if result.changed is not None]
    changed = reduce(DataFrame.unionAll, part_changes) if part_changes else None
    left_out = work.ledger.left_out().get(step.model)
    if any(not result.part.keeps_sessions for result in results):
        left_out = None
    computed = Computed(
        receipt=fold_receipt(newest.query, totals, _newly_entered(work, step, results), scanned),
        left_out=_left_out(results) if left_out is None else left_out + _left_out_increase(results),
        quarantined=tuple(entry for result in results for entry in result.entered),
        released=tuple(key for result in results for key in result.released),
    )
    granularity = newest.node.model.granularity
    return commit_changes(work, step, newest.query, granularity, changed, totals, computed)


def _replace_table(work: Work, step: Step, results: Sequence[_PartResult]) -> Outcome:
    """Put the rows of all parts in the place of the table, in one commit."""
    newest = results[-1].part
    query, granularity = newest.query, newest.node.model.granularity
    rows = reduce(DataFrame.unionByName, map(_rows_after, results))
    rows = rows.withColumn(VERSION, F.lit(step.version).cast("bigint"))
    if query.numbered:
        rows = with_session_numbers(rows, query)
    rows = rows.select(*map(column, newest.schema.names))
    rows = rows.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)  # looked at twice
    changes = changes_of_rewrite(work.cells(step.model), states_of_sessions(rows, granularity))
    totals, scanned = _totals(results), sum(result.scanned for result in results)
    receipt = fold_receipt(query, totals, _newly_entered(work, step, results), scanned)
    computed = Computed(
        changes,
        receipt,
        left_out=_left_out(results),
        quarantined=tuple(entry for result in results for entry in _entries_after(work, result)),
    )

    def count(snapshot: int) -> Computed:
        table = work.tables.read(step.model, snapshot)
        counted = with_session_counts(work, step, table, changes, receipt)
        return replace(computed, receipt=counted)

    return commit_step(work, step, WholeTable(rows, build.BY_MONTH), computed, count)


def _rows_after(result: _PartResult) -> DataFrame:
    """All rows of a part after the step."""
    if result.rows is not None:
        return result.rows
    stored = result.part.as_stored(result.part.restored(result.part.stored()))
    if result.changed is None:
        return stored
    unchanged = stored.join(keys_to_delete(result.changed), [ID, FIRST], "left_anti")
    return unchanged.unionByName(rows_to_insert(result.changed))


def _entries_after(work: Work, result: _PartResult) -> Iterator[QuarantinedSession]:
    """The sessions of a part that are in quarantine after the step."""
    yield from result.entered
    if result.part.keeps_sessions:
        removed_keys = {*result.released, *(entry.key for entry in result.entered)}
        yield from (
            entry for entry in _known_entries(work, result.part) if entry.key not in removed_keys
        )


def _known_entries(work: Work, part: Part) -> Iterator[QuarantinedSession]:
    """The sessions in quarantine that start in a part, before the step."""
    for entry in work.ledger.quarantined(part.step.model):
        if entry.start in part.ranges:
            yield entry


def _totals(results: Sequence[_PartResult]) -> Totals:
    return reduce(Totals.__add__, (result.totals for result in results), Totals())


def _newly_entered(work: Work, step: Step, results: Sequence[_PartResult]) -> int:
    """How many sessions entered the quarantine."""
    known = {entry.key for entry in work.ledger.quarantined(step.model)}
    return len({entry.key for result in results for entry in result.entered} - known)


def _left_out(results: Sequence[_PartResult]) -> int:
    """How many events are in no session."""
    return sum(
        unassigned.unassigned_events(result.part.feed.current, result.part.query).count()
        for result in results
    )


def _left_out_increase(results: Sequence[_PartResult]) -> int:
    """By how many these have grown with the folds."""
    return sum(
        unassigned.more_after_fold(result.part.feed, result.totals.counts) for result in results
    )
