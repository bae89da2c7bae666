"""What an exchange of tables means: which cells differ, who reads them, what names are free."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256

from infold.analysis.definitions.columns_read import ColumnsRead
from infold.analysis.names.subject import time_column
from infold.core.definition import Redefinition
from infold.core.interval import Ranges
from infold.core.model import Kind, table_name
from infold.core.ports import Lake, Ledger
from infold.core.project import Project
from infold.core.record import FILES
from infold.core.report import ExchangedTable
from infold.core.swap import SwappedTable
from infold.core.trace import CellChange, CellState, Trace, changes_of_rewrite
from infold.core.unchanged import Unchanged, changes_of_columns
from infold.inspecting.changed_definitions import ChangedDefinitions
from infold.inspecting.environments import Variant
from infold.messages import environment_errors, mismatches
from infold.messages.errors import InfoldErrors
from infold.running.read_columns import ReadColumns
from infold.running.table_locations import table_keys

_SHORTEST, _LONGEST = 8, 64
"""Hex digits in the key of a table that is kept: more where a shorter one is taken."""


def exchanged_table(ledger: Ledger, one: SwappedTable) -> ExchangedTable:
    """How a model's table differs from the one that takes its place."""
    before, after = _cells(ledger, one.model), _cells(ledger, one.own)
    return ExchangedTable(
        one.model,
        None if one.kept is None else sum(cell.rows for cell in before),
        None if one.own is None else sum(cell.rows for cell in after),
        len({cell.cell for cell in (*before, *after)}),
        len(_differences(ledger, one)),
    )


def readers_that_follow(
    project: Project, ledger: Ledger, tables: Sequence[SwappedTable], reads: ReadColumns
) -> Iterator[str]:
    """The models that read something that differs, and are not exchanged themselves."""
    exchanged = {one.model: one for one in tables}
    differing = {name: _differences(ledger, one) for name, one in exchanged.items()}
    for node in project:
        if node.name in exchanged or node.model.kind is Kind.VIEW:
            continue
        for name in {entry.name for entry in node.stored_inputs} & exchanged.keys():
            columns = reads(node.name, name) if exchanged[name].unchanged else None
            unchanged = {0: exchanged[name].unchanged}
            if columns is None:
                seen = bool(differing[name])
            else:
                seen = bool(changes_of_columns(columns, {0: differing[name]}, unchanged))
            if seen:
                yield node.name
                break


def free_key(ledger: Ledger, lake: Lake, model: str, location: str | None) -> str:
    """A key for the table of a model that is kept; the same one for the same state of it."""
    taken = {*ledger.newest_versions(), *ledger.traces(), *table_keys(ledger)}
    digits = sha256(f"{model} {location}".encode()).hexdigest()
    keys = (f"{model}__{digits[:n]}" for n in range(_SHORTEST, _LONGEST + 1, 8))
    return next(k for k in keys if k not in taken and lake.location(table_name(k)) is None)


def lost_file(ledger: Ledger, lake: Lake, table: str) -> str:
    """A file that a table has lost; empty if it has all, as far as nothing changed since a run."""
    if lake.file_list_id(table) == ledger.locations().get(FILES.format(table)):
        return ""
    return next(iter(lake.lost_files(table)), "")


def refuse_taken(ledger: Ledger, lake: Lake, model: str) -> None:
    """Raise ``table_name_taken`` where a new model's name is that of somebody else's table."""
    found = lake.metadata(table_name(model))
    if found is not None and not found.steps and model not in ledger.newest_versions():
        raise mismatches.table_name_taken(model=model, table=found.table, location=found.location)


def _differences(ledger: Ledger, one: SwappedTable) -> Sequence[CellChange]:
    changes = changes_of_rewrite(_cells(ledger, one.model), _cells(ledger, one.own))
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

    def __init__(self, found: Variant, ledger: Ledger) -> None:
        self._found, self._ledger = found, ledger
        self._traces, self._heads = ledger.traces(), ledger.newest_versions()
        self._kept: dict[str, frozenset[str]] = {}

    @cached_property
    def reads(self) -> ColumnsRead:
        """The columns that production's models read of their inputs."""
        return ColumnsRead(self._found.production.project)

    def of(self, model: str) -> tuple[Unchanged, ...]:
        """What readers of some columns of a model will not notice."""
        kept = self._columns_kept(model)
        if not kept:
            return ()
        key = self._found.own[model]
        before, after = ({c.cell: c.rows for c in self._ledger.cells(t)} for t in (model, key))
        cells = Ranges.of(cell for cell in before if before[cell] == after.get(cell))
        sets = {
            self.reads(node.name, model)
            for node in self._found.production.project
            if node.model.kind is not Kind.VIEW
            and node.name not in self._found.own
            and any(entry.name == model for entry in node.stored_inputs)
        }
        known = [columns for columns in sets if columns is not None and columns <= kept]
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
        traces = {name: self._traces[name] for name in self._found.own if name in self._traces}
        return ChangedDefinitions(self._found.declared, self._ledger)(traces)

    def _is_same_built(self, model: str) -> bool:
        """Whether both tables are right for the same inputs, as far as they read them."""
        key = self._found.own[model]
        old, new = self._traces.get(model), self._traces.get(key)
        if old is None or new is None or old.pending or new.pending:
            return False
        there, here = self._found.production.project, self._found.declared
        if model not in there or time_column(there[model]) != time_column(here[model]):
            return False
        names = {self._found.own.get(name, name): name for name in old.inputs}
        same_inputs = {names.get(name, name) for name in new.inputs} == old.inputs.keys()
        return (
            same_inputs
            and self._files(model) == self._files(key)
            and all(self._is_same_input(model, old, new, name) for name in old.inputs)
        )

    def _is_same_input(self, model: str, old: Trace, new: Trace, name: str) -> bool:
        if new.inputs.get(name) == old.inputs[name]:
            return True
        key = self._found.own.get(name)
        if key is None or key not in new.inputs:
            return False
        newest = (self._heads[name].number, self._heads[key].number)
        if (old.inputs[name], new.inputs[key]) != newest:
            return False
        both = (self.reads, ColumnsRead(self._found.declared))
        kept = self._columns_kept(name)
        read = [columns(model, name) for columns in both]
        return all(columns is not None and columns <= kept for columns in read)

    def _files(self, key: str) -> set[tuple[object, ...]]:
        """The files that a table took in; rows that wait for their time are only its own."""
        files = self._ledger.files(key)
        return {(file.id, file.rows, file.waiting and key, file.set_aside) for file in files}
