"""
Values of stored rows behind the columns of a query: passed on by views, subqueries and CTEs.

A column is traced to the tables that it is of: one, or one for each side of a UNION ALL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from sqlglot import exp

from infold.analysis.names.relation import (
    Block,
    FromEntry,
    Origin,
    OutputColumn,
    Relation,
    RenamedColumns,
    SetOperation,
    Table,
)
from infold.analysis.names.select_parts import calls_over_rows, clauses_beyond_row_wise
from infold.analysis.names.subject import time_column
from infold.analysis.times.distances import conjuncts
from infold.core.project import Node

_STRICT = (
    exp.Cast,
    exp.Column,
    exp.DataType,
    exp.DateTrunc,
    exp.Identifier,
    exp.Literal,
    exp.Lower,
    exp.Paren,
    exp.TimestampTrunc,
    exp.Trim,
    exp.TryCast,
    exp.TsOrDsToDate,
    exp.Upper,
    exp.Var,
)
"""What a compared value may be made of: functions that are NULL where their column is."""


_OF_ONE_ROW = (exp.Coalesce, exp.Null)
"""What else a value may be made of that a subquery or view makes of one row by itself."""


TracePath: TypeAlias = tuple[FromEntry | int, ...]
"""The entries of FROM on the way to a stored table, and which side of each UNION ALL."""


@dataclass(frozen=True, slots=True)
class TracedValue:
    """A value of a stored table's row: an expression over it, and through which entries it came."""

    table: str
    value: exp.Expr
    path: TracePath

    @property
    def sql(self) -> str:
        """The expression, as Spark takes it."""
        return self.value.sql(dialect="spark")


def lookups_in(
    relation: Relation, nodes: Mapping[str, Node], *, only: bool = False
) -> frozenset[str]:
    """The lookups that a relation reads; with ``only``, none if it reads anything else."""
    lookups: set[str] = set()
    todo: list[Relation] = [relation]
    while todo:
        item = todo.pop()
        if isinstance(item, Table) and item.view is None:
            node = nodes.get(item.name)
            if node is not None and time_column(node) is None:
                lookups.add(item.name)
            elif only:
                return frozenset()
        elif isinstance(item, Table) and item.view is not None:
            todo.append(item.view)
        elif isinstance(item, RenamedColumns):
            todo.append(item.inner)
        elif isinstance(item, SetOperation):
            todo += [item.left, item.right]
        elif isinstance(item, Block):
            todo += [entry.relation for entry in item.entries]
            todo += [inner for _, inner in item.nested_queries]
        elif only:
            return frozenset()
    return frozenset(lookups)


@dataclass(frozen=True, slots=True)
class Tracer:
    """Follows columns down to stored tables."""

    nodes: Mapping[str, Node]

    def is_lookup(self, table: Table) -> bool:
        """Whether a table is stored and has no times."""
        node = self.nodes.get(table.name)
        return node is not None and node.model.kind.is_stored and time_column(node) is None

    def lookup_of(self, relation: Relation) -> str | None:
        """The lookup that a relation is, maybe through projections and WHERE."""
        if isinstance(relation, RenamedColumns):
            return self.lookup_of(relation.inner)
        if isinstance(relation, Table):
            if relation.view is not None:
                return self.lookup_of(relation.view)
            return relation.name if self.is_lookup(relation) else None
        if isinstance(relation, Block) and _is_row_wise(relation):
            return self.lookup_of(relation.entries[0].relation)
        return None

    def traced_value(
        self, block: Block, node: exp.Expr, entries: Sequence[FromEntry]
    ) -> tuple[FromEntry, tuple[TracedValue, ...]] | None:
        """A value of one row of one of some entries, as expressions over stored rows."""
        if any(not isinstance(part, _STRICT) for part in node.walk()):
            return None
        entry = self._entry_of(block, node)
        if entry is None or not any(entry is one for one in entries):
            return None
        values = self._traced_expression(block, node, entry, (entry,))
        return (entry, values) if values else None

    def _entry_of(self, block: Block, node: exp.Expr) -> FromEntry | None:
        """The one entry with all columns of an expression."""
        origins = [block.origins.get(column) for column in node.find_all(exp.Column)]
        known = [one for one in origins if isinstance(one, Origin) and not one.fields]
        if not known or len(known) < len(origins):
            return None
        entry = known[0].entry
        return entry if all(one.entry is entry for one in known) else None

    def _traced_expression(
        self, block: Block, node: exp.Expr, entry: FromEntry, path: TracePath
    ) -> tuple[TracedValue, ...]:
        """An expression over an entry's columns, as expressions over the stored rows behind it."""
        columns = list(node.find_all(exp.Column))
        traced = []
        for column in columns:
            origin = block.origins.get(column)
            assert isinstance(origin, Origin), "looked up before"
            traced.append(self.traced_column(entry.relation, origin.column, path))
        if not traced or any(
            [o.path for o in one] != [o.path for o in traced[0]] for one in traced
        ):
            return ()
        return tuple(
            replace(values[0], value=_with_values(node, [value.value for value in values]))
            for values in zip(*traced, strict=True)
        )

    def traced_column(
        self, relation: Relation, column: str, path: TracePath
    ) -> tuple[TracedValue, ...]:
        """What a column is of stored rows: a column of theirs, or made of some row by row."""
        if isinstance(relation, RenamedColumns):
            return self._column_by_position(relation.inner, relation, column, path)
        if isinstance(relation, SetOperation):
            if not isinstance(relation.node, exp.Union) or relation.node.args.get("by_name"):
                return ()
            left, right = (
                self._column_by_position(side, relation, column, (*path, at))
                for at, side in enumerate((relation.left, relation.right))
            )
            return (*left, *right) if left and right else ()
        if isinstance(relation, Table):
            if relation.view is not None:
                return self.traced_column(relation.view, column, path)
            places = relation.places.get(column, ())
            if relation.columns is None or len(places) != 1:
                return ()
            node = exp.column(relation.columns[places[0]], quoted=True)
            return (TracedValue(relation.name, node, path),)
        return self._output_by_name(relation, column, path) if isinstance(relation, Block) else ()

    def _column_by_position(
        self, relation: Relation, outer: Relation, column: str, path: TracePath
    ) -> tuple[TracedValue, ...]:
        """The column of a relation at the place that a name has in the one around it."""
        inner, places = relation.columns, outer.places.get(column, ())
        if len(places) != 1 or inner is None or len(inner) != len(outer.columns or ()):
            return ()
        at = places[0]
        if isinstance(relation, Block) and relation.outputs is not None:
            return self._traced_output(relation, relation.outputs[at], path)
        return self.traced_column(relation, inner[at].lower(), path)

    def _output_by_name(
        self, block: Block, column: str, path: TracePath
    ) -> tuple[TracedValue, ...]:
        """A column of a SELECT."""
        outputs = block.named(column)
        return self._traced_output(block, outputs[0], path) if len(outputs) == 1 else ()

    def _traced_output(
        self, block: Block, out: OutputColumn, path: TracePath
    ) -> tuple[TracedValue, ...]:
        """An output of a SELECT: passed on, or made of one row where each row is of one."""
        if _merges_columns_of_join(block):
            return ()
        origin = out.origin
        if origin is None and out.node not in block.aliases:
            origin = block.origins.get(out.node)
        if isinstance(origin, Origin):
            if origin.fields or not any(origin.entry is one for one in block.entries):
                return ()
            return self.traced_column(origin.entry.relation, origin.column, (*path, origin.entry))
        if any(not isinstance(part, (*_STRICT, *_OF_ONE_ROW)) for part in out.node.walk()):
            return ()
        if not _is_row_wise(block) or any(part in block.aliases for part in out.node.walk()):
            return ()
        [entry] = block.entries
        if not any(out.node.find_all(exp.Column)):
            rows = self._stored_rows(entry.relation, (*path, entry))
            return tuple(TracedValue(table, out.node, through) for table, through in rows)
        if self._entry_of(block, out.node) is not entry:
            return ()
        return self._traced_expression(block, out.node, entry, (*path, entry))

    def _stored_rows(self, relation: Relation, path: TracePath) -> list[tuple[str, TracePath]]:
        """The stored tables with a row for each row of a relation, at most."""
        if isinstance(relation, RenamedColumns):
            return self._stored_rows(relation.inner, path)
        if isinstance(relation, Table):
            if relation.view is not None:
                return self._stored_rows(relation.view, path)
            return [(relation.name, path)]
        if isinstance(relation, SetOperation):
            sides = (relation.left, relation.right)
            of_sides = [self._stored_rows(side, (*path, at)) for at, side in enumerate(sides)]
            return [*of_sides[0], *of_sides[1]] if all(of_sides) else []
        if isinstance(relation, Block) and _is_row_wise(relation):
            [entry] = relation.entries
            return self._stored_rows(entry.relation, (*path, entry))
        return []


def _with_values(node: exp.Expr, values: Sequence[exp.Expr]) -> exp.Expr:
    """An expression with other expressions in place of its columns."""
    copy = node.copy()
    for twin, value in zip(list(copy.find_all(exp.Column)), values, strict=True):
        if twin is copy:
            return value
        twin.replace(value.copy() if isinstance(value, exp.Column) else exp.paren(value.copy()))
    return copy


def _merges_columns_of_join(block: Block) -> bool:
    """Whether a column of USING may be that of another entry than the first which has it."""
    joins: Sequence[exp.Join] = block.node.args.get("joins") or ()
    return any(
        (join.args.get("using") or join.args.get("method"))
        and join.side.upper() not in ("", "LEFT")
        for join in joins
    )


def _is_row_wise(block: Block) -> bool:
    if next(clauses_beyond_row_wise(block.text, block), None) or next(calls_over_rows(block), None):
        return False
    return len(block.entries) == 1


def equal_expressions(block: Block) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """``(known, new)``: where the first is the same in some rows, so is the second."""
    for node in conjuncts(block.node.args.get("where")):
        if isinstance(node, exp.EQ):
            yield from ((node.this, node.expression), (node.expression, node.this))
    for entry in block.entries:
        join = entry.join
        side = join.side.upper() if join is not None else ""
        if join is None or entry.hidden or side == "FULL":
            continue
        for node in conjuncts(join.args.get("on")):
            if not isinstance(node, exp.EQ):
                continue
            for known, new in ((node.this, node.expression), (node.expression, node.this)):
                # The side that may lack a row determines nothing on the other.
                mine = _is_of_entry(block, new, entry)
                if not side or (mine if side == "LEFT" else not mine):
                    yield known, new


def _is_of_entry(block: Block, node: exp.Expr, entry: FromEntry) -> bool:
    origins = [block.origins.get(column) for column in node.find_all(exp.Column)]
    return bool(origins) and all(one is not None and one.entry is entry for one in origins)


def equal_by_using(block: Block) -> Iterator[tuple[Origin, Origin]]:
    """Pairs of columns that USING makes equal, the known one first."""
    for at, entry in enumerate(block.entries):
        join = entry.join
        if join is None or join.side.upper() in ("RIGHT", "FULL"):
            continue
        for name in join.args.get("using") or ():
            right = Origin(entry, name.name.lower())
            for other in block.entries[:at]:
                if right.column in (other.names or ()):
                    left = Origin(other, right.column)
                    yield left, right
                    if not join.side:
                        yield right, left
