"""
The inputs of a model that folds: stored tables row by row, maybe behind views.

A view may be columns and WHERE over a table, UNION ALL of such, and joins of one of them with
lookups by equality. Each row of it follows from one row of one of the tables, and from lookups. So
the changes of the view are the view over the tables' changed rows, and over the rows with changed
keys of a lookup.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from infold.analysis.inputs.lookup_keys import lookup_matches_of
from infold.analysis.names.column_lineage import lookups_in
from infold.analysis.names.relation import (
    Block,
    FromEntry,
    Origin,
    Relation,
    RenamedColumns,
    SetOperation,
    Table,
)
from infold.analysis.names.select_parts import calls_over_rows, clauses_beyond_row_wise
from infold.analysis.names.subject import Subject
from infold.core.project import Node

JOINS = "a join"
"""What ``clauses`` calls a join, which may be one with a lookup here."""


@dataclass(frozen=True, slots=True)
class FoldInput:
    """A stored table, and which of its columns a row of the view passes on, by lower-case name."""

    node: Node
    passed_columns: Mapping[str, str]
    """Column of the view -> column of the table."""

    def names_of(self, column: str) -> tuple[str, ...]:
        """The names under which a column of the table is passed on, its own first."""
        names = [name for name, own in self.passed_columns.items() if own == column.lower()]
        return tuple(sorted(names, key=lambda name: name != column.lower()))


@dataclass(frozen=True, slots=True)
class FoldInputs:
    """The stored tables that feed a model, the lookups beside them, or why they are not known."""

    inputs: tuple[FoldInput, ...] = ()
    lookups: tuple[str, ...] = ()
    unique: bool = False
    """Whether each row of a table makes at most one row, so that its key is still one."""
    why_not: str = ""


def fold_inputs_of(subject: Subject, table: Table) -> FoldInputs:
    """What feeds a model that folds and has a table in its FROM."""
    finder = _FoldInputFinder(subject)
    try:
        feeds = tuple(finder.inputs_of(table))
    except _NotRowWiseError as error:
        return FoldInputs(why_not=str(error))
    lookups = tuple(sorted(set(lookups_in(table, subject.nodes)) - {f.node.name for f in feeds}))
    matched = {match.lookup for match in lookup_matches_of(table, subject.nodes)}
    for name in lookups:
        if name not in matched:
            return FoldInputs(
                why_not=f"{name} is not joined by equality with columns of the other rows"
            )
    return FoldInputs(
        feeds, lookups, unique=len(feeds) == 1 and _many_to_one(subject, table, lookups)
    )


def _many_to_one(subject: Subject, table: Table, lookups: Iterable[str]) -> bool:
    """Whether each lookup has at most one row for each row that it is joined to."""
    matches = lookup_matches_of(table, subject.nodes)
    for name in lookups:
        grouped = subject.nodes[name].grouped
        keys = {key.name.lower() for key in grouped.keys} if grouped else set()
        key_columns = [
            {own.strip("`").lower() for _, own in m.pairs} for m in matches if m.lookup == name
        ]
        if not keys or not all(keys <= columns for columns in key_columns):
            return False
    return True


class _NotRowWiseError(Exception):
    """Something in a view that makes a row depend on several rows of a table."""


class _FoldInputFinder:
    """Follows relations down to the stored tables."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject

    def inputs_of(self, relation: Relation) -> Iterator[FoldInput]:
        """The tables that a relation is fed by, with what it passes on of them."""
        if isinstance(relation, Table) and relation.view is not None:
            yield from self.inputs_of(relation.view)
        elif isinstance(relation, Table):
            node = self.subject.nodes.get(relation.name)
            if node is None:
                raise _NotRowWiseError("what it reads is not there")
            names = [name.lower() for name in relation.columns or ()]
            yield FoldInput(node, dict(zip(names, names, strict=True)))
        elif isinstance(relation, RenamedColumns):
            yield from (
                self._renamed(feed, relation.inner, relation)
                for feed in self.inputs_of(relation.inner)
            )
        elif isinstance(relation, SetOperation):
            yield from self._inputs_of_union(relation)
        elif isinstance(relation, Block):
            yield from self._inputs_of_block(relation)
        else:
            raise _NotRowWiseError("it reads rows that are in no table")

    def _inputs_of_union(self, relation: SetOperation) -> Iterator[FoldInput]:
        node = relation.node
        if not isinstance(node, exp.Union) or node.args.get("distinct"):
            raise _NotRowWiseError("it compares rows with others; UNION ALL does not")
        if node.args.get("by_name") or any(node.args.get(key) for key in _CLAUSES_AROUND_A_UNION):
            raise _NotRowWiseError("its UNION ALL has more around it than its sides")
        for side in (relation.left, relation.right):
            yield from (self._renamed(feed, side, relation) for feed in self.inputs_of(side))

    def _renamed(self, feed: FoldInput, inner: Relation, outer: Relation) -> FoldInput:
        """What is passed on, under the names that columns have in the same places."""
        inner_names = [name.lower() for name in inner.columns or ()]
        passed = {
            name: feed.passed_columns[inner_names[at]]
            for name, (at, *more) in outer.places.items()
            if not more and at < len(inner_names) and inner_names[at] in feed.passed_columns
        }
        return FoldInput(feed.node, passed)

    def _inputs_of_block(self, block: Block) -> Iterator[FoldInput]:
        for construct, _ in clauses_beyond_row_wise(block.text, block):
            if construct != JOINS:
                raise _NotRowWiseError(f"it has {construct}")
        called = next(calls_over_rows(block), None)
        if called is not None:
            raise _NotRowWiseError(f"it has {called[0]}")
        entry = self._main_entry(block)
        for feed in self.inputs_of(entry.relation):
            passed = {}
            for out in block.outputs or ():
                origin = out.origin or block.origins.get(out.node)
                if not isinstance(origin, Origin) or origin.fields or origin.entry is not entry:
                    continue
                if origin.column in feed.passed_columns:
                    passed[out.name.lower()] = feed.passed_columns[origin.column]
            yield FoldInput(feed.node, passed)

    def _main_entry(self, block: Block) -> FromEntry:
        """The entry of FROM that passes on its rows; the others are lookups."""
        main_entries = [
            entry
            for entry in block.entries
            if entry.lateral or not lookups_in(entry.relation, self.subject.nodes, only=True)
        ]
        if len(block.entries) == 1:
            return block.entries[0]
        if len(main_entries) != 1:
            raise _NotRowWiseError("it joins tables that are no lookups")
        return main_entries[0]


_CLAUSES_AROUND_A_UNION = ("order", "limit", "offset", "with_", "sort", "cluster", "distribute")
