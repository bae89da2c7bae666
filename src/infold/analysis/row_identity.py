"""
What tells rows apart: whether an order leaves ties, and whether tied rows are alike.

An order decides something only where rows that tie in it differ. So the question is always the
same: of rows that agree in some expressions, what else is equal? The answer grows from keys: the
``unique_key`` of events with the event time, the keys of GROUP BY, ``session_id``, the columns of a
DISTINCT, the number of a row in its partition. A row of a join is known when each of its parts is;
``a.id = b.id`` tells one part by another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from infold.analysis.names.column_lineage import equal_by_using, equal_expressions
from infold.analysis.names.relation import (
    Block,
    FromEntry,
    Key,
    Origin,
    OtherRows,
    OutputColumn,
    Relation,
    RenamedColumns,
    Rows,
    SetOperation,
    Table,
    blocks_of,
    once_per_block,
    own_nodes,
)
from infold.analysis.names.select_parts import calls_over_rows, is_grouped, named_windows
from infold.analysis.sql.parse import normal_sql
from infold.analysis.times.distances import base_window
from infold.analysis.times.floors import makes_several_buckets

PICKS = (exp.AnyValue, exp.First, exp.FirstValue, exp.Last, exp.LastValue, exp.NthValue)
"""Functions that take a value from one of many rows."""

COLLECTS = (exp.ArrayAgg, exp.ArrayUniqueAgg, exp.GroupConcat)
"""Aggregates with a result that shows the order of rows."""

ColumnOfEntry = tuple[FromEntry, str, tuple[str, ...]]
"""A column of an entry of FROM, or a field in it."""


@dataclass(frozen=True, slots=True)
class RowIdentity:
    """What tells rows apart, by the stored tables that are read."""

    tables: Mapping[str, Rows]

    def is_unique(self, relation: Relation, names: Key) -> bool:
        """Whether no two rows of a relation agree in these columns."""
        if isinstance(relation, Table):
            if relation.view is not None:
                return self.is_unique(relation.view, names)
            rows = self.tables.get(relation.name, Rows())
            if any(key <= names for key in rows.keys):
                return True
            return rows.query is not None and self.is_unique(rows.query, names)
        if isinstance(relation, OtherRows):
            return False
        if isinstance(relation, RenamedColumns):
            pairs = zip(relation.columns or (), relation.inner.columns or (), strict=False)
            inner = frozenset(old.lower() for new, old in pairs if new.lower() in names)
            return self.is_unique(relation.inner, inner)
        if isinstance(relation, SetOperation):
            return self._unique_in_set(relation, names)
        return self._unique_in_block(relation, names)

    def _unique_in_set(self, relation: SetOperation, names: Key) -> bool:
        if not relation.node.args.get("distinct"):
            return False
        columns = relation.columns
        if columns is not None and {name.lower() for name in columns} <= names:
            return True
        return not isinstance(relation.node, exp.Union) and self.is_unique(relation.left, names)

    def _unique_in_block(self, block: Block, names: Key) -> bool:
        if block.outputs is None:
            return False
        alike = AgreeingRows(self, block)
        for out in block.outputs:
            if out.name.lower() in names:
                alike.add_output(out)
        alike.complete()
        if block.node.args.get("distinct") and all(map(alike.same_output, block.outputs)):
            return True
        for out in block.outputs:
            node = out.node.unalias()
            numbered = isinstance(node, exp.Window) and isinstance(node.this, exp.RowNumber)
            if numbered and out.origin is None and out.name.lower() in names:
                parts = window_clause_nodes(node, named_windows(block), "partition_by")
                if all(map(alike.same, parts)):
                    return True
        makes_rows = any("several rows" in construct for construct, _ in calls_over_rows(block))
        return not makes_rows and alike.one_row()

    def keys_of(self, relation: Relation) -> list[Key]:
        """Keys of a relation that are easily named, for messages."""
        if isinstance(relation, Table):
            if relation.view is not None:
                return self.keys_of(relation.view)
            rows = self.tables.get(relation.name, Rows())
            return [*rows.keys, *(self.keys_of(rows.query) if rows.query is not None else ())]
        if not isinstance(relation, Block) or relation.outputs is None:
            return []
        names = {name: out for out in relation.outputs if (name := out.name.lower())}
        grouped = group_keys(relation)
        if grouped:
            alike = [
                next((n for n, out in names.items() if _same_column(relation, out, key)), None)
                for key in grouped
            ]
            return [frozenset(n for n in alike if n)] if all(alike) else []
        if len(relation.entries) != 1:
            return []
        passed = {
            origin.column: name
            for name, out in names.items()
            if (origin := _origin_of(relation, out)) is not None and not origin.fields
        }
        return [
            frozenset(passed[column] for column in key)
            for key in self.keys_of(relation.entries[0].relation)
            if key <= passed.keys()
        ]


@dataclass(slots=True)
class AgreeingRows:
    """
    What is the same in all rows of a block that agree in what was given.

    Rows are those before GROUP BY; given its keys, a group is one row.
    """

    identity: RowIdentity
    block: Block
    columns: set[ColumnOfEntry] = field(default_factory=set)
    expressions: set[str] = field(default_factory=set)
    same_rows: set[FromEntry] = field(default_factory=set)
    """The entries of FROM that have the same row in all of them."""

    @staticmethod
    def agreeing_in(identity: RowIdentity, block: Block, nodes: Iterable[exp.Expr]) -> AgreeingRows:
        """All that follows from these expressions being equal."""
        rows = AgreeingRows(identity, block)
        for node in nodes:
            rows.add(node)
        rows.complete()
        return rows

    def add(self, node: exp.Expr) -> None:
        """Rows agree in this expression."""
        if isinstance(node, (exp.Paren, exp.Alias, exp.Ordered, exp.PropertyEQ)):
            inner = node.expression if isinstance(node, exp.PropertyEQ) else node.this
            self.add(inner)
        elif isinstance(node, (exp.Struct, exp.Tuple)):
            for part in node.expressions:
                self.add(part)
        elif isinstance(node, exp.Column) and node in self.block.aliases:
            self.add(self.block.aliases[node])
        elif isinstance(node, exp.Column):
            atom = self._column(node)
            if atom is not None:
                self.columns.add(atom)
        elif (text := self._normal_sql(node)) is not None:
            self.expressions.add(text)

    def add_output(self, out: OutputColumn) -> None:
        """Rows agree in this output."""
        if out.origin is not None:
            self.columns.add((out.origin.entry, out.origin.column, out.origin.fields))
        else:
            self.add(out.node)

    def same(self, node: exp.Expr) -> bool:
        """Whether an expression has one value in all these rows."""
        if isinstance(node, exp.Column):
            if node in self.block.aliases:
                return self.same(self.block.aliases[node])
            origin = self.block.origins.get(node)
            return origin is not None and self._has_origin(origin)
        if (text := self._normal_sql(node)) is not None and text in self.expressions:
            return True
        parts = [*own_nodes(node)]
        if any(map(makes_several_buckets, parts)):
            return False  # one of several buckets
        if any(isinstance(part, (exp.Query, exp.Window, exp.AggFunc)) for part in parts):
            return is_grouped(self.block) and self._one_group() and not node.find(exp.Window)
        return all(self.same(part) for part in parts if isinstance(part, exp.Column))

    def same_output(self, out: OutputColumn) -> bool:
        """Whether an output has one value in all these rows."""
        return self._has_origin(out.origin) if out.origin is not None else self.same(out.node)

    def one_row(self) -> bool:
        """Whether all these are one row (of those that GROUP BY makes, if there is one)."""
        if is_grouped(self.block):
            return self._one_group()
        return self.one_source_row()

    def one_source_row(self) -> bool:
        """Whether all these are one row before GROUP BY."""
        return (
            self._plain_joins()
            and self._one_bucket()
            and all(entry in self.same_rows for entry in self.block.entries if not entry.hidden)
        )

    def as_one_row(self) -> bool:
        """Whether they are alike in all that the block makes use of."""
        used = None if is_grouped(self.block) else _columns_used(self.block)
        return used is not None and self._one_bucket() and all(map(self._has_origin, used))

    def _one_bucket(self) -> bool:
        """Whether they are in one bucket, where ``window`` puts a row into several."""
        return all(map(self.same, _buckets(self.block)))

    def columns_missing(self) -> list[str]:
        """Columns that would tell the rows apart, where a key of one entry would do."""
        if group := group_keys(self.block):
            return [key.sql("spark") for key in group if not self.same(key)]
        for entry in self.block.entries:
            if entry not in self.same_rows and not entry.hidden:
                known = {name for at, name, fields in self.columns if at is entry and not fields}
                missing = [sorted(key - known) for key in self.identity.keys_of(entry.relation)]
                if missing:
                    return min(missing, key=len)
        used = _columns_used(self.block) or []
        return sorted({one.column for one in used if not self._has_origin(one)})

    def complete(self) -> None:
        """Carry on until nothing new follows."""
        pairs = [*equal_expressions(self.block)]
        before = -1
        while before != (before := len(self.columns) + len(self.same_rows)):
            for entry in self.block.entries:
                if entry not in self.same_rows and not entry.lateral:
                    names = {name for at, name, path in self.columns if at is entry and not path}
                    if self.identity.is_unique(entry.relation, frozenset(names)):
                        self.same_rows.add(entry)
            for known, new in pairs:
                if self.same(known):
                    self.add(new)
            for left, right in equal_by_using(self.block):
                if self._has_origin(left):
                    self.columns.add((right.entry, right.column, ()))

    def _one_group(self) -> bool:
        if not self.block.node.args.get("group"):
            return True  # one row for all
        keys = group_keys(self.block)
        return bool(keys) and all(map(self.same, keys))

    def _has_origin(self, origin: Origin) -> bool:
        if not any(one is origin.entry for one in self.block.entries):
            return True  # of a row around it
        if origin.entry in self.same_rows:
            return True
        paths = (origin.fields[:i] for i in range(len(origin.fields) + 1))
        return any((origin.entry, origin.column, path) in self.columns for path in paths)

    def _plain_joins(self) -> bool:
        """Whether a row is known by those that it is joined of."""
        joins = [entry.join for entry in self.block.entries if entry.join is not None]
        views = any(entry.lateral for entry in self.block.entries)
        several = any(
            join.side.upper() == "FULL" or (join.side.upper() == "RIGHT" and join.args.get("using"))
            for join in joins
        )
        return not several and not views and not self.block.node.args.get("laterals")

    def _column(self, node: exp.Column) -> ColumnOfEntry | None:
        origin = self.block.origins.get(node)
        return None if origin is None else (origin.entry, origin.column, origin.fields)

    def _normal_sql(self, node: exp.Expr) -> str | None:
        """An expression's SQL, alike however its columns are written."""
        if node.find(exp.Query) or any(map(self._unknown, node.find_all(exp.Column))):
            return None
        return normal_sql(node, self._name)

    def _unknown(self, node: exp.Column) -> bool:
        return self.block.origins.get(node) is None

    def _name(self, node: exp.Column) -> str:
        """A column's name that no column of another entry has."""
        origin = self.block.origins[node]
        assert origin is not None, "looked up before"
        return "\0".join((self.block.place_of(origin.entry), origin.column, *origin.fields))


def window_clause_nodes(
    window: exp.Expr, known: Mapping[str, exp.Expr], key: str
) -> list[exp.Expr]:
    """The nodes of ``partition_by`` or ``order`` of a window, or of the named one below it."""
    clause = window.args.get(key)
    if isinstance(clause, exp.Order):
        return list(clause.expressions)
    if isinstance(clause, list) and clause:
        return clause
    base = base_window(window, known)
    return window_clause_nodes(base, known, key) if base is not None else []


@once_per_block
def group_keys(block: Block) -> list[exp.Expr]:
    """What a block groups by, if in one way."""
    group = block.node.args.get("group")
    if group is None or any(group.args.get(k) for k in ("rollup", "cube", "grouping_sets")):
        return []
    items = block.node.expressions
    if group.args.get("all"):
        return [item for item in items if not item.find(exp.AggFunc)]
    keys = []
    for key in group.expressions:
        if isinstance(key, (exp.GroupingSets, exp.Rollup, exp.Cube)):
            return []
        at = int(key.name) - 1 if isinstance(key, exp.Literal) and key.name.isdigit() else None
        if at is None:
            keys.append(key)
        elif 0 <= at < len(items):
            keys.append(items[at].unalias())
    return keys


def _same_column(block: Block, out: OutputColumn, key: exp.Expr) -> bool:
    """Whether an output is a key of GROUP BY."""
    key = block.aliases.get(key, key)
    if out.node.unalias() is key or out.node.unalias() == key:
        return True
    first = _origin_of(block, out)
    second = block.origins.get(key)
    return first is not None and second is not None and first == second


def _origin_of(block: Block, out: OutputColumn) -> Origin | None:
    return out.origin or block.origins.get(out.node)


@once_per_block
def _buckets(block: Block) -> Sequence[exp.Expr]:
    """What puts a row into several buckets."""
    return [node for node in block.expressions() if makes_several_buckets(node)]


@once_per_block
def _columns_used(block: Block) -> list[Origin] | None:
    """The columns that a block makes use of after WHERE; None where they are not all known."""
    if block.outputs is None:
        return None
    origins: list[Origin | None] = [out.origin for out in block.outputs if out.origin is not None]
    for key, value in block.node.args.items():
        if key in ("from_", "with_", "where", "joins", "laterals", "hint"):
            continue
        for part in value if isinstance(value, list) else [value]:
            for node in own_nodes(part) if isinstance(part, exp.Expr) else ():
                known = isinstance(node, exp.Column) and not isinstance(node.this, exp.Star)
                if known and node not in block.aliases:
                    origins.append(block.origins.get(node))
    for _, relation in block.nested_queries:
        for inner in blocks_of(relation):
            origins.extend(inner.origins.values() if isinstance(inner, Block) else ())
    return None if None in origins else [origin for origin in origins if origin is not None]
