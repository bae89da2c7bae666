"""
Which tables take the names of others: by a promote, a rollback, and once they were built apart.

An environment can be promoted if it is what production would be if it had the environment's
definitions: each of its own tables is up to date with what production's tables are now, and nothing
that it was based on has changed. Files that arrived since then are no reason against it: the next
run takes them into the new table, as it would into the old one.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import sha256

from infold.analysis.definitions.columns_read import ColumnsRead
from infold.analysis.names.subject import time_column
from infold.core.definition import Redefinition
from infold.core.environment import Environment
from infold.core.interval import Ranges
from infold.core.model import table_name
from infold.core.plan import Destroyed, Observations, PlanOptions
from infold.core.ports import Lake, Ledger
from infold.core.project import Project
from infold.core.record import FILES
from infold.core.report import SwapPreview, TablePreview
from infold.core.swap import DoneSwap, Swap, SwapKind, SwappedTable
from infold.core.target import Apply
from infold.core.trace import (
    CellChange,
    CellState,
    Trace,
    Unchanged,
    changes_of_columns,
    changes_of_rewrite,
    net_changes,
)
from infold.inspecting.audits import newest_audits
from infold.inspecting.changed_definitions import ChangedDefinitions
from infold.inspecting.environments import OwnModels, Production, Variant, changed_models, same_rows
from infold.inspecting.tables_apart import TablesApart, complete
from infold.messages import apply_errors, environment_errors, mismatches, run_errors
from infold.messages.errors import InfoldErrors
from infold.planning.destructive import policy, refuse_destructive
from infold.running.ledger_consistency import foreign_tables
from infold.running.read_columns import ReadColumns
from infold.running.table_names import free_key


def promotion(
    variant: Variant, name: str, ledger: Ledger, lake: Lake, allowed: frozenset[str] = frozenset()
) -> SwapPreview:
    """
    What promoting an environment would swap; ``variant`` is what it was run by.

    Raises ``environment_unfinished``, ``production_moved``, ``promote_incomplete``,
    ``table_name_taken``, ``not_forward_only`` where all changes of a model are to be that,
    ``run_errors.frozen_cells`` where cells of a table cannot be built again, or
    ``destructive_change`` where tables of production that are not ``allowed`` to would lose
    something.
    """
    environment = ledger.environments()[name]
    unfinished = [*_unfinished(variant, environment, ledger, lake), *_failing(variant, ledger)]
    if unfinished:
        raise environment_errors.environment_unfinished(name, unfinished)
    if moved := [*_moved(variant, environment, ledger)]:
        raise environment_errors.production_moved(name, moved)
    changes = changed_models(variant.declared, variant.production.project, variant.own)
    _refuse_forward_only(changes)
    _refuse_frozen(variant, ledger)
    refuse_destructive(variant.declared, _destroyed(variant, changes, allowed))
    unchanged = UnchangedColumns(variant, ledger)
    for model in variant.own:
        refuse_taken(ledger, lake, model)
    tables = tuple(
        _swapped(model, key, ledger, lake, unchanged) for model, key in variant.own.items()
    )
    before = {model: entry.digest for model, entry in ledger.applied().items()}
    after = {model: entry.digest for model, entry in ledger.applied(name).items()}
    applied = {model: digest for model, digest in after.items() if before.get(model) != digest}
    refuse_misfits(variant.declared, ledger, {**before, **after})
    swap = Swap(SwapKind.PROMOTE, name, tables, applied)
    return replace(
        _preview(swap, variant.declared, variant.production.project, ledger, unchanged.reads),
        removed=tuple(model for model in before if model not in after),
        rewritten=tuple(
            (model, trace.earlier_ranges.parts[-1].end)
            for model, trace in variant.production.stretched.items()
            if model in variant.own
        ),
    )


def _refuse_forward_only(changes: Iterable[Redefinition]) -> None:
    """An environment builds all of a table, which is no forward-only change."""
    for change in changes:
        after = change.after
        if after is not None and after.model.changes_forward_only and not same_rows(change):
            why = "an environment builds all of its table by the new definition"
            raise apply_errors.not_forward_only(model=change.model, why=why)


def _refuse_frozen(variant: Variant, ledger: Ledger) -> None:
    """An environment has no frozen cells of production, which nobody can build again."""
    traces = ledger.traces()
    for model in variant.own:
        trace = traces.get(model)
        if trace is not None and trace.frozen_ranges and ledger.cells(model, trace.frozen_ranges):
            what = "a promote would put another table in its place"
            raise run_errors.frozen_cells(model=model, what=what)


def _destroyed(
    variant: Variant, changes: Iterable[Redefinition], allowed: frozenset[str]
) -> list[Destroyed]:
    """What readers of production's tables would lose, and what is to happen then."""
    options = PlanOptions(allow_destructive=allowed)
    return [
        Destroyed(one.model, one.destroys, policy(variant.declared, one.model, options, one))
        for one in changes
        if one.destroys
    ]


def _unfinished(
    variant: Variant, environment: Environment, ledger: Ledger, lake: Lake
) -> Iterator[tuple[str, str]]:
    """Own tables that are not as their definitions and inputs are now, each with the reason."""
    traces, heads = ledger.traces(), ledger.newest_versions()
    moved = {table_name(key): lake.location(table_name(key)) for key in variant.own.values()}
    foreign = foreign_tables(variant.project, ledger, lake, heads, moved)
    models = {key: model for model, key in variant.own.items()}
    wrong = False
    for key, model in models.items():
        trace = traces.get(key)
        if key in foreign:
            why = foreign[key].what
        elif trace is None or key not in variant.project:
            why = "it is not built"
        elif trace.fingerprint != variant.project[key].fingerprint:
            why = "it was built by another definition"
        elif trace.pending:
            why = "cells of it are still to be built"
        elif behind := [*_behind(trace, ledger, models)]:
            why = f"it is behind {', '.join(models[name] for name in behind)}"
        elif key in heads and heads[key].snapshot is not None and not moved[table_name(key)]:
            why = "its table is not there"
        elif missing := lost_file(ledger, lake, table_name(key)):
            why = f"it has lost the file {missing}"
        else:
            continue
        wrong = True
        yield model, why
    if environment.built_at is None and not wrong:
        yield "last run", "it did not build all of it"


def _failing(variant: Variant, ledger: Ledger) -> Iterator[tuple[str, str]]:
    """Own tables with rows that failed an audit of severity error when they were judged last."""
    for judged in newest_audits(variant.project, ledger):
        if judged.result.fails and judged.result.model in variant.models:
            model = variant.models[judged.result.model]
            yield model, f"its rows fail the audit {judged.result.audit}"


def _moved(variant: Variant, environment: Environment, ledger: Ledger) -> Iterator[tuple[str, str]]:
    """What production has changed since the environment was run."""
    traces, own = ledger.traces(), variant.own
    names = {key: name for name, key in own.items()}
    for table in environment.tables:
        if table.current and variant.production.digests.get(table.model, "") != table.base:
            yield table.model, "its table was built by another definition since"
        elif table.current and table.key in traces:
            shared = [name for name in traces[table.key].inputs if name not in names]
            for name in _behind(traces[table.key], ledger, shared):
                yield table.model, f"{name} has other rows since"
    applied = ledger.applied(environment.name)
    for name, entry in ledger.applied().items():
        is_other = name in applied and applied[name].digest != entry.digest
        if is_other and entry.at > (environment.last_run_at or 0):
            yield name, "another definition was applied since"


def _behind(trace: Trace, ledger: Ledger, among: Container[str]) -> Iterator[str]:
    """The inputs of a table that have other rows than it has read."""
    for name, version in trace.inputs.items():
        if name in among and net_changes(ledger.changes(name, version)):
            yield name


# The tables that the promote replaced get their names back, and the definitions of then are
# applied. What runs did since then went into the new tables; the old ones are behind, and the next
# run brings them up to date.


def rollback(project: Project, ledger: Ledger, lake: Lake) -> SwapPreview:
    """
    What going back would swap, in a ``project`` as it is applied.

    Raises ``nothing_to_roll_back``, ``rollback_outdated`` or ``promote_incomplete``.
    """
    last = next((one for one in ledger.swaps() if one.kind is SwapKind.PROMOTE), None)
    if last is None:
        raise environment_errors.nothing_to_roll_back(target=project.target.name)
    current = {name: entry.digest for name, entry in ledger.applied().items()}
    if outdated := [*_outdated(last, current, ledger, lake)]:
        raise environment_errors.rollback_outdated(outdated)
    applied = {name: old for name, (old, new) in last.definitions.items() if old != new}
    after = {name: digest for name, digest in {**current, **applied}.items() if digest}
    refuse_misfits(project, ledger, after)
    tables = tuple(_swapped(model, key, ledger, lake) for model, key in last.kept.items())
    swap = Swap(SwapKind.ROLLBACK, last.environment, tables, applied, undoes=last.id)
    return _preview(swap, project, project, ledger, ColumnsRead(project))


def _outdated(
    last: DoneSwap, current: Mapping[str, str], ledger: Ledger, lake: Lake
) -> Iterator[tuple[str, str]]:
    """What was changed since a promote, so that it cannot be taken back."""
    for name, (old, new) in last.definitions.items():
        if (old != new or name in last.kept) and current.get(name, "") != new:
            yield name, "another definition was applied since"
    for model, key in last.kept.items():
        if key is None or model not in last.stored:
            continue
        if lake.location(table_name(key)) is None:
            yield model, f"its table, kept as {key}, is not there any more"
        elif missing := lost_file(ledger, lake, table_name(key)):
            yield model, f"its table, kept as {key}, has lost the file {missing}"


def swap_of_complete(
    apart: TablesApart,
    observed: Observations,
    ledger: Ledger,
    lake: Lake,
    selected: frozenset[str] | None = None,
) -> Swap:
    """The swap of all tables that are complete, of ``selected`` models; of none, perhaps."""
    project = apart.project
    cells = {model: ledger.cells(model) for model in project.apart.values()}
    keys = complete(project, observed, cells)
    # Readers have the tables of this project, and by its definitions.
    stretched = {name: trace for name, trace in ledger.traces().items() if trace.earlier}
    readable = Production(project, {}, stretched)
    as_variant = Variant(project, apart.once_complete, {}, readable, OwnModels({}), apart.tables)
    unchanged = UnchangedColumns(as_variant, ledger)
    tables = tuple(
        _swapped(project.apart[key], key, ledger, lake, unchanged)
        for key in keys
        if selected is None or project.apart[key] in selected
    )
    return Swap(SwapKind.BUILT_APART, ", ".join(sorted(table.model for table in tables)), tables)


def _swapped(
    model: str,
    own: str | None,
    ledger: Ledger,
    lake: Lake,
    unchanged: UnchangedColumns | None = None,
) -> SwappedTable:
    """A model's name goes to the table with the key ``own``; the table that has it is kept."""
    location = lake.location(table_name(model))
    known = location is not None or model in ledger.traces()
    digits = sha256(f"{model} {location}".encode()).hexdigest()  # the same for the same state of it
    return SwappedTable(
        model,
        own,
        free_key(model, digits, ledger, lake) if known else None,
        None if own is None else lake.location(table_name(own)),
        location,
        unchanged.of(model) if known and unchanged is not None else (),
    )


def _preview(
    swap: Swap, declared: Project, production: Project, ledger: Ledger, reads: ReadColumns
) -> SwapPreview:
    """What a swap means for the readers of ``production``."""
    models = {table.model for table in swap.tables}
    return SwapPreview(
        swap,
        tuple(table_preview(ledger, table) for table in swap.tables),
        definitions=tuple(model for model in swap.applied if model not in models),
        readers=tuple(readers_that_follow(production, ledger, swap.tables, reads)),
        takes_files=declared.target.apply is Apply.AUTO,
        at_once=declared.target.at_once,
    )


def table_preview(ledger: Ledger, table: SwappedTable) -> TablePreview:
    """How a model's table differs from the one that takes its place."""
    before, after = _cells(ledger, table.model), _cells(ledger, table.own)
    return TablePreview(
        table.model,
        None if table.kept is None else sum(cell.rows for cell in before),
        None if table.own is None else sum(cell.rows for cell in after),
        len({cell.cell for cell in (*before, *after)}),
        len(_differences(ledger, table)),
    )


def readers_that_follow(
    project: Project, ledger: Ledger, tables: Sequence[SwappedTable], reads: ReadColumns
) -> Iterator[str]:
    """The models that read something that differs, and are not swapped themselves."""
    swapped = {table.model: table for table in tables}
    differing = {name: _differences(ledger, one) for name, one in swapped.items()}
    for node in project:
        if node.name in swapped or node.model.kind.is_view:
            continue
        for name in {entry.name for entry in node.stored_inputs} & swapped.keys():
            columns = reads(node.name, name) if swapped[name].unchanged else None
            unchanged = {0: swapped[name].unchanged}
            if columns is None:
                notices = bool(differing[name])
            else:
                notices = bool(changes_of_columns(columns, {0: differing[name]}, unchanged))
            if notices:
                yield node.name
                break


def lost_file(ledger: Ledger, lake: Lake, table: str) -> str:
    """A file that a table has lost; empty if it has all, as far as nothing changed since a run."""
    if lake.file_list_id(table) == ledger.locations().get(FILES.format(table)):
        return ""
    return next(iter(lake.lost_files(table)), "")


def refuse_taken(ledger: Ledger, lake: Lake, model: str) -> None:
    """Raise ``table_name_taken`` where a new model's name is that of somebody else's table."""
    head = lake.metadata(table_name(model))
    if head is not None and not head.steps and model not in ledger.newest_versions():
        raise mismatches.table_name_taken(model=model, table=head.table, location=head.location)


def _differences(ledger: Ledger, table: SwappedTable) -> Sequence[CellChange]:
    changes = changes_of_rewrite(_cells(ledger, table.model), _cells(ledger, table.own))
    return [change for change in changes if change.changes_rows]


def _cells(ledger: Ledger, key: str | None) -> Sequence[CellState]:
    return () if key is None else ledger.cells(key)


def refuse_misfits(project: Project, ledger: Ledger, applied: Mapping[str, str]) -> None:
    """Raise ``promote_incomplete`` where these definitions cannot be applied all together."""
    from infold.declare.from_definitions import project_of_definitions

    kept = ledger.definitions(applied.values())
    definitions = {name: kept[digest] for name, digest in applied.items() if digest in kept}
    try:
        project_of_definitions(project, definitions, {})
    except InfoldErrors as error:
        facts = [("model", one.what) for one in error.errors]
        raise environment_errors.promote_incomplete(facts) from error


# Both tables are right for the same versions of the same inputs. So the columns that the changed
# definition is proven to keep have the same values in the same rows, as far as the inputs do.
# (Where a table is replaced in place its rows are compared instead; here that would take Spark.)


class UnchangedColumns:
    """Proofs about the tables of an environment that are production's next."""

    def __init__(self, variant: Variant, ledger: Ledger) -> None:
        self._variant, self._ledger = variant, ledger
        self._traces, self._heads = ledger.traces(), ledger.newest_versions()
        self._kept: dict[str, frozenset[str]] = {}

    @cached_property
    def reads(self) -> ColumnsRead:
        """The columns that production's models read of their inputs."""
        return ColumnsRead(self._variant.production.project)

    def of(self, model: str) -> tuple[Unchanged, ...]:
        """What readers of some columns of a model will not notice."""
        kept_columns = self._columns_kept(model)
        if not kept_columns:
            return ()
        key = self._variant.own[model]
        before, after = ({c.cell: c.rows for c in self._ledger.cells(t)} for t in (model, key))
        cells = Ranges.of(cell for cell in before if before[cell] == after.get(cell))
        sets = {
            self.reads(node.name, model)
            for node in self._variant.production.project
            if node.model.kind.is_stored
            and node.name not in self._variant.own
            and any(entry.name == model for entry in node.stored_inputs)
        }
        known = [columns for columns in sets if columns is not None and columns <= kept_columns]
        return tuple(Unchanged(columns, cells) for columns in sorted(known, key=sorted) if cells)

    def _columns_kept(self, model: str) -> frozenset[str]:
        """The columns of a model that are proven to have the same values in both tables."""
        if model not in self._kept:
            self._kept[model] = frozenset()  # nothing is proven by itself
            change = self._changes.get(model)
            if change is not None and change.columns_kept and self._is_same_built(model):
                self._kept[model] = change.columns_kept
        return self._kept[model]

    @cached_property
    def _changes(self) -> Mapping[str, Redefinition]:
        traces = {name: self._traces[name] for name in self._variant.own if name in self._traces}
        return ChangedDefinitions(self._variant.declared, self._ledger)(traces)

    def _is_same_built(self, model: str) -> bool:
        """Whether both tables are right for the same inputs, as far as they read them."""
        key = self._variant.own[model]
        old, new = self._traces.get(model), self._traces.get(key)
        if old is None or new is None or old.pending or new.pending:
            return False
        live, declared = self._variant.production.project, self._variant.declared
        if model not in live or time_column(live[model]) != time_column(declared[model]):
            return False
        names = {self._variant.own.get(name, name): name for name in old.inputs}
        same_inputs = {names.get(name, name) for name in new.inputs} == old.inputs.keys()
        return (
            same_inputs
            and self._files(model) == self._files(key)
            and all(self._is_same_input(model, old, new, name) for name in old.inputs)
        )

    def _is_same_input(self, model: str, old: Trace, new: Trace, name: str) -> bool:
        if new.inputs.get(name) == old.inputs[name]:
            return True
        key = self._variant.own.get(name)
        if key is None or key not in new.inputs:
            return False
        newest = (self._heads[name].number, self._heads[key].number)
        if (old.inputs[name], new.inputs[key]) != newest:
            return False
        readers = (self.reads, ColumnsRead(self._variant.declared))
        kept_columns = self._columns_kept(name)
        read = [columns(model, name) for columns in readers]
        return all(columns is not None and columns <= kept_columns for columns in read)

    def _files(self, key: str) -> set[tuple[object, ...]]:
        """The files that a table took in; rows that wait for their time are only its own."""
        files = self._ledger.files(key)
        return {(file.id, file.rows, file.waiting and key, file.set_aside) for file in files}
