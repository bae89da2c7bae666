"""
What a table that takes the place of another leaves unchanged for readers of some columns.

Both tables are right for the same versions of the same inputs. So the columns that the changed
definition is proven to keep have the same values in the same rows, as far as the inputs do. (Where
a table is replaced in place its rows are compared instead; here that would take Spark.)
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from infold.analysis.definitions.columns_read import ColumnsRead
from infold.analysis.names.subject import time_column
from infold.core.definition import Redefinition
from infold.core.interval import Ranges
from infold.core.model import Kind
from infold.core.ports import Ledger
from infold.core.trace import Trace
from infold.core.unchanged import Unchanged
from infold.inspecting.changed_definitions import ChangedDefinitions
from infold.inspecting.environments import Variant


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
