"""
The columns of stored tables and sources that each column of a query is made of.

Views, subqueries and CTEs are seen through. Columns that decide which rows there are (WHERE, joins,
GROUP BY) are about all columns, and are kept apart. It is for people who look at a picture: where a
name cannot be followed, something is left out, and nothing is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from sqlglot import exp

from infold.analysis.names.column_lineage import equal_by_using
from infold.analysis.names.relation import (
    Block,
    FromEntry,
    OtherRows,
    Relation,
    RenamedColumns,
    SetOperation,
    Table,
    blocks_of,
    once_per_block,
    own_nodes,
)
from infold.core.model import Source
from infold.core.project import Node, Project

Place = tuple[str, str]
"""A table or source, and a column of it."""


class How(IntEnum):
    """What is done with a column's value; of several the greatest counts."""

    IDENTITY = 0
    TRANSFORMATION = 1
    AGGREGATION = 2


class Use(StrEnum):
    """How a column decides about rows."""

    FILTER = "FILTER"
    JOIN = "JOIN"
    GROUP_BY = "GROUP_BY"
    SORT = "SORT"


CLAUSES: Mapping[str, Use] = {
    "where": Use.FILTER,
    "having": Use.FILTER,
    "qualify": Use.FILTER,
    "group": Use.GROUP_BY,
    "order": Use.SORT,
}
"""The clauses of a SELECT that are about its rows, by the parser's names."""


@dataclass(frozen=True, slots=True)
class ColumnSources:
    """Of each column its ``fields``, and the ``rows`` that all columns are of."""

    fields: Mapping[str, Mapping[Place, How]]
    rows: frozenset[tuple[Place, Use]]


def column_sources(relation: Relation) -> ColumnSources:
    """For each output and for the rows of a query, the stored columns that they come from."""
    sources = _Sources()
    names = relation.columns or ()
    fields = {
        name: sources.of_output(relation, at, frozenset()) for at, name in enumerate(names) if name
    }
    blocks = (part for part in blocks_of(relation, views=True) if isinstance(part, Block))
    rows = frozenset(use for block in blocks for use in sources.about_rows(block))
    return ColumnSources(fields, rows)


def column_sources_of(project: Project) -> Callable[[Node], ColumnSources | None]:
    """What finds what a model's columns are made of; None for a model that is no query."""
    from infold.analysis.definitions.meanings import Meanings

    meanings = Meanings.of(project, project.sources)

    def of(node: Node) -> ColumnSources | None:
        relation = meanings[node.name].relation
        return None if relation is None else column_sources(relation)

    return of


def columns_passed(project: Project, node: Node, source: Source) -> Mapping[str, str]:
    """
    What an events model calls the columns of its source that it stores as they are.

    By their names in the source, in lower case; none of a model in Python.
    """
    passed: dict[str, str] = {}
    for name, column in passed_columns(project, node, source).items():
        passed.setdefault(column.lower(), name)
    return passed


def passed_columns(project: Project, node: Node, source: Source) -> Mapping[str, str]:
    """The columns of its source that an events model stores as they are, by its names of them."""
    if node.landed:
        return {column.name: column.name for column in source.columns}
    found = column_sources_of(project)(node)
    passed = {}
    for name, places in found.fields.items() if found is not None else ():
        if [*places.values()] == [How.IDENTITY]:
            [(table, column)] = places
            if table.lower() == source.name.lower():
                passed[name] = column
    return passed


class _Sources:
    """Follows columns down; ``seen`` are the SELECTs on the way, so that recursion ends."""

    def of_output(self, relation: Relation, at: int, seen: frozenset[int]) -> Mapping[Place, How]:
        """What the column at a position of a relation is made of."""
        if id(relation) in seen:
            return {}
        seen |= {id(relation)}
        if isinstance(relation, Table):
            if relation.view is not None:
                return self.of_output(relation.view, at, seen)
            columns = relation.columns or ()
            return {(relation.name, columns[at]): How.IDENTITY} if at < len(columns) else {}
        if isinstance(relation, RenamedColumns):
            return self.of_output(relation.inner, at, seen)
        if isinstance(relation, SetOperation):
            sides = (relation.left, relation.right)
            return _merged_sources(self.of_output(side, at, seen) for side in sides)
        if isinstance(relation, Block) and relation.outputs and at < len(relation.outputs):
            out = relation.outputs[at]
            if out.origin is not None:
                return self._of_entry(relation, out.origin.entry, out.origin.column, seen)
            return self._of_value(relation, out.node, seen)
        return {}

    def about_rows(self, block: Block) -> Iterator[tuple[Place, Use]]:
        """The columns that decide which rows a SELECT has."""
        clauses = [(block.node.args.get(name), use) for name, use in CLAUSES.items()]
        joins = block.node.args.get("joins") or ()
        clauses += [(join.args.get("on"), Use.JOIN) for join in joins]
        for clause, use in clauses:
            if clause is not None:
                for place in self._of_value(block, clause, frozenset()):
                    yield place, use
        for pair in equal_by_using(block):
            for origin in pair:
                places = self._of_entry(block, origin.entry, origin.column, frozenset())
                yield from ((place, Use.JOIN) for place in places)

    def _of_value(self, block: Block, node: exp.Expr, seen: frozenset[int]) -> Mapping[Place, How]:
        """What an expression of a SELECT is made of."""
        parts, plain = [], node.unalias()
        while isinstance(plain, exp.Paren):
            plain = plain.this
        nodes = list(own_nodes(node))
        grouped = any(isinstance(one, exp.AggFunc) for one in nodes)
        how = How.AGGREGATION if grouped else How.TRANSFORMATION
        for one in nodes:
            if isinstance(one, exp.Column):
                places = self._of_name(block, one, seen)
                parts.append(
                    places if one is plain else {at: max(how, old) for at, old in places.items()}
                )
        around = _queries_by_node(block)
        for relation in dict.fromkeys(query for one in nodes for query in around.get(id(one), ())):
            width = range(len(relation.columns or ()))
            every = _merged_sources(self.of_output(relation, at, seen) for at in width)
            parts.append({at: max(how, old) for at, old in every.items()})
        return _merged_sources(parts)

    def _of_name(
        self, block: Block, column: exp.Column, seen: frozenset[int]
    ) -> Mapping[Place, How]:
        alias = block.aliases.get(column)
        if alias is not None:
            return {} if id(alias) in seen else self._of_value(block, alias, seen | {id(alias)})
        origin = block.origins.get(column)
        return {} if origin is None else self._of_entry(block, origin.entry, origin.column, seen)

    def _of_entry(
        self, block: Block, entry: FromEntry, name: str, seen: frozenset[int]
    ) -> Mapping[Place, How]:
        """What a column of an entry of FROM is made of; of an exploded one, what is exploded."""
        relation = entry.relation
        if isinstance(relation, OtherRows):
            columns = [part for part in own_nodes(entry.node) if isinstance(part, exp.Column)]
            every = [self._of_name(block, part, seen) for part in columns]
            return {at: max(old, How.TRANSFORMATION) for at, old in _merged_sources(every).items()}
        places = relation.places.get(name.lower())
        return self.of_output(relation, places[0], seen) if places else {}


@once_per_block
def _queries_by_node(block: Block) -> Mapping[int, Sequence[Relation]]:
    """The subqueries in expressions, by the nodes around them and in them."""
    queries: dict[int, list[Relation]] = {}
    for around, relation in block.nested_queries:
        for inner in around.walk():
            queries.setdefault(id(inner), []).append(relation)
    return queries


def _merged_sources(parts: Iterable[Mapping[Place, How]]) -> Mapping[Place, How]:
    merged: dict[Place, How] = {}
    for part in parts:
        for place, how in part.items():
            merged[place] = max(how, merged.get(place, how))
    return merged
