"""
What new versions of an input mean to a model that does not read all of its columns.

A model that computes cells again does so only for those with other rows in the columns that it
reads. A model that folds compares rows of two versions, so for it a version counts as a whole; but
it may begin with the last version before the first one that matters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from infold.core.definition import Redefinition
from infold.core.project import Node, Project, Stretch
from infold.core.trace import CellChange, changes_of_columns, net_changes
from infold.planning.forward_only import input_of

if TYPE_CHECKING:
    from infold.core.ports import Ledger

ReadColumns = Callable[[str, str], frozenset[str] | None]
"""The columns that a model reads of an input, in lower case; None for all."""


class InputChanges:
    """Finds the changes of inputs that matter to their readers."""

    def __init__(self, project: Project, ledger: Ledger) -> None:
        self._project, self.ledger = project, ledger

    @cached_property
    def columns(self) -> ReadColumns:
        """The columns that a model reads; made when a table was replaced, as most never are."""
        return self._columns_read(self._project)

    def _columns_read(self, project: Project) -> ReadColumns:
        from infold.analysis.definitions.columns_read import ColumnsRead

        return ColumnsRead(project)

    def keeps(self, node: Node, name: str, change: Redefinition) -> bool:
        """
        Whether a changed definition is proven to keep all that a model reads of an input.

        Of events some columns are kept only by a step of their own rows.
        """
        kept_columns = change.columns_kept or change.kept_if_followed
        columns = self.columns(node.name, name) if kept_columns else None
        return columns is not None and columns <= kept_columns

    def since(
        self,
        node: Node,
        name: str,
        read: int,
        newest: int,
        earlier: Sequence[Stretch] = (),
    ) -> tuple[int, tuple[CellChange, ...]]:
        """
        The net changes of an input since the version that a model has read.

        With the newest version up to which nothing changed that the model reads, by its definition
        or by one that is in force in ``earlier`` cells.
        """
        if newest <= read:
            return read, ()
        changes = self.ledger.changes_by_version(name, read)
        # Versions without a change may have the same rows under other names.
        read = min((number for number in changes if changes[number]), default=newest + 1) - 1
        unchanged = self.ledger.unchanged(name, read)
        columns = self._columns_in_force(node, name, earlier) if unchanged else None
        if columns is None:
            return read, _net_changes(changes)
        newer: Mapping[int, Sequence[CellChange]] = changes_of_columns(columns, changes, unchanged)
        if not newer:
            return newest, ()
        read = min(newer) - 1
        if node.model.kind.is_folded:
            newer = {number: some for number, some in changes.items() if number > read}
        return read, _net_changes(newer)

    def _columns_in_force(
        self, node: Node, name: str, earlier: Sequence[Stretch]
    ) -> frozenset[str] | None:
        """The columns of an input that some definition of a table reads; None for all."""
        read = [(self.columns, node)]
        read += [(self._columns_read(one.project), one.node) for one in earlier]
        columns_read = [columns(by.name, name) for columns, by in read if input_of(by, name)]
        known = [columns for columns in columns_read if columns is not None]
        return frozenset().union(*known) if len(known) == len(columns_read) else None


def _net_changes(changes: Mapping[int, Sequence[CellChange]]) -> tuple[CellChange, ...]:
    return net_changes(change for number in sorted(changes) for change in changes[number])
