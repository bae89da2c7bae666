"""
Which columns of a query name the cell that a row belongs to.

The claim to be proven for a model built cell by cell: whatever is in a cell of the output follows
from the same cell of the inputs alone. It holds when every row of the output is made from input
rows of one cell (the rules see to that: grouping, windows, joins …) and the partition column is,
row by row, in that cell. A column *keeps the cell* when its value and the row's input time lie in
one cell: the input's time column itself; what a floor to a unit inside the granularity makes of
such a column; min and max of it within a group of one cell.

Everything is in UTC, so a cast to a date is a floor to the day.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from infold.analysis.aggregates import is_aggregate
from infold.analysis.calls import calls
from infold.analysis.relation import (
    Block,
    Columns,
    Origin,
    Other,
    Output,
    Relation,
    Renamed,
    SetOperation,
    Table,
    blocks,
    own,
)
from infold.analysis.subject import Subject, time_column
from infold.analysis.text import Text
from infold.interval import Granularity
from infold.model import Kind
from infold.refusals import Cell

Grain = Granularity | None
"""How coarse a column's values are known to be: all are starts of such cells; None for any."""

_FINE = frozenset({"MICROSECOND", "MILLISECOND", "SECOND", "MINUTE"})
_UNITS = {
    "HOUR": Granularity.HOUR,
    "DAY": Granularity.DAY,
    "DD": Granularity.DAY,
    "WEEK": Granularity.WEEK,
    "MONTH": Granularity.MONTH,
    "MON": Granularity.MONTH,
    "MM": Granularity.MONTH,
    "QUARTER": Granularity.QUARTER,
    "YEAR": Granularity.YEAR,
    "YYYY": Granularity.YEAR,
    "YY": Granularity.YEAR,
}
_TIMESTAMPS = frozenset(
    {
        exp.DType.TIMESTAMP,
        exp.DType.TIMESTAMPTZ,
        exp.DType.TIMESTAMPLTZ,
        exp.DType.TIMESTAMPNTZ,
        exp.DType.DATETIME,
    }
)
_DATES = frozenset({exp.DType.DATE, exp.DType.DATE32})


@dataclass(frozen=True, slots=True)
class Kept:
    """
    What is known of a relation: whether it reads an input with a time column, and which of its
    columns (lower case) keep the cell, each with its grain.
    """

    time: bool = False
    columns: Mapping[str, Grain] = field(default_factory=dict)
    items: tuple[tuple[bool, Grain], ...] | None = None
    """The same by position, where all columns are known."""

    @staticmethod
    def of(time: bool, names: Columns, items: tuple[tuple[bool, Grain], ...] | None) -> Kept:
        """From what is known of each column in order."""
        if names is None or items is None:
            return Kept(time)
        pairs = zip(names, items, strict=False)
        return Kept(time, {n.lower(): grain for n, (keeps, grain) in pairs if keeps and n}, items)


@dataclass(frozen=True, slots=True)
class Floor:
    """A node that floors ``inner`` to a unit; None is a unit finer than any cell."""

    inner: exp.Expr
    unit: Grain


@dataclass(slots=True, eq=False)
class Cells:
    """The analysis of one model; ``granularity`` is the length of its cells."""

    subject: Subject
    granularity: Granularity
    seen: dict[int, Kept] = field(default_factory=dict)
    units: dict[int, bool] = field(default_factory=dict)

    @property
    def called(self) -> Cell:
        """One of the model's cells, for messages."""
        return Cell(self.granularity.removesuffix(" (sunday)"), self.subject.model.name)

    @property
    def column(self) -> str:
        """The partition column."""
        series = self.subject.model.timeseries
        return series.partition_column if series is not None else ""

    def of(self, relation: Relation) -> Kept:
        """What is known of a relation."""
        if id(relation) not in self.seen:
            self.seen[id(relation)] = self._of(relation)
        return self.seen[id(relation)]

    def _of(self, relation: Relation) -> Kept:
        if isinstance(relation, Table):
            return self.of(relation.view) if relation.view is not None else self._table(relation)
        if isinstance(relation, Other):
            return Kept()
        if isinstance(relation, Renamed):
            return self._renamed(relation)
        if isinstance(relation, SetOperation):
            return self._union(relation)
        return self._block(relation)

    def _table(self, table: Table) -> Kept:
        node = self.subject.nodes.get(table.name)
        column = time_column(node) if node is not None else None
        if node is None or column is None:
            return Kept()
        known = self.subject.kept.get(node.name, {})
        finer = node.model.granularity
        found = {column.lower(): known.get(column.lower())}
        if finer is not None and self.granularity.holds(finer):
            found |= known
        if table.columns is None:
            return Kept(True, found)
        names = [name.lower() for name in table.columns]
        items = tuple((name in found, found.get(name)) for name in names)
        return Kept(True, found, items)

    def _renamed(self, relation: Renamed) -> Kept:
        inner = self.of(relation.inner)
        return Kept.of(inner.time, relation.columns, inner.items)

    def _union(self, relation: SetOperation) -> Kept:
        """A column keeps the cell when it does so on both sides."""
        left, right = self.of(relation.left), self.of(relation.right)
        time = left.time or right.time
        if not (left.time and right.time) or left.items is None or right.items is None:
            return Kept(time)
        others = right.items
        if relation.node.args.get("by_name"):
            names = [name.lower() for name in relation.left.columns or ()]
            others = tuple((name in right.columns, right.columns.get(name)) for name in names)
        items = tuple(
            (a and b, grain if grain is other else None)
            for (a, grain), (b, other) in zip(left.items, others, strict=False)
        )
        return Kept.of(time, relation.columns, items)

    def _block(self, block: Block) -> Kept:
        time = any(self.of(entry.relation).time for entry in block.entries)
        if block.outputs is None:  # a star over unknown columns passes on whatever there is
            found: dict[str, Grain] = {}
            for entry in block.entries:
                found |= self.of(entry.relation).columns
            return Kept(time, found)
        items = tuple(self.output(block, out) for out in block.outputs)
        return Kept.of(time, block.columns, items)

    def blocks(self) -> Iterator[Block | SetOperation]:
        """What the rules look at: every SELECT and set operation, those of views among them."""
        return blocks(self.subject.relation, views=True, nested=False)

    # -- expressions -------------------------------------------------------------------------

    def output(self, block: Block, out: Output) -> tuple[bool, Grain]:
        """Whether an output column keeps the cell, and its grain."""
        if out.origin is not None:
            return self._origin(block, out.origin)
        return self.keeps(block, out.node)

    def keeps(self, block: Block, node: exp.Expr) -> tuple[bool, Grain]:
        """Whether an expression keeps the cell of the row it is evaluated on, and its grain."""
        if isinstance(node, (exp.Paren, exp.Alias)):
            return self.keeps(block, node.this)
        if isinstance(node, exp.Column):
            if id(node) in block.aliases:
                return self.keeps(block, block.aliases[id(node)])
            origin = block.origins.get(id(node))
            return self._origin(block, origin) if origin is not None else (False, None)
        if isinstance(node, (exp.Min, exp.Max)) and not node.expressions:
            return self.keeps(block, node.this)
        floor = floor_of(node, literal_units=self._units(block.text))
        if floor is None:
            return False, None
        keeps, grain = self.keeps(block, floor.inner)
        if not keeps or floor.unit is None:
            return keeps, grain
        if grain is not None and grain.holds(floor.unit):
            return True, grain
        return self.granularity.holds(floor.unit), floor.unit

    def _units(self, text: Text) -> bool:
        if id(text) not in self.units:
            self.units[id(text)] = literal_units(text)
        return self.units[id(text)]

    def _origin(self, block: Block, origin: Origin) -> tuple[bool, Grain]:
        kept = self.of(origin.entry.relation)
        here = any(entry is origin.entry for entry in block.entries)
        keeps = here and not origin.entry.hidden and origin.column in kept.columns
        return keeps, kept.columns.get(origin.column) if keeps else None

    def keeping(self, block: Block) -> list[str]:
        """The columns in a block's FROM that keep the cell, for messages."""
        return [column for entry in block.entries for column in self.of(entry.relation).columns]

    def groups_by_cell(self, block: Block) -> bool:
        """Whether GROUP BY has an expression that keeps the cell."""
        group = block.node.args.get("group")
        if group is None:
            return False
        if group.args.get("all"):
            return any(
                self.keeps(block, item)[0]
                for item in block.node.expressions
                if not has_aggregate(item)
            )
        return any(self.keeps(block, node)[0] for node in _group_items(block, group))


def _group_items(block: Block, group: exp.Group) -> Iterator[exp.Expr]:
    """What is grouped by, ordinals replaced by the items they stand for."""
    items = block.node.expressions
    for node in group.expressions:
        if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
            at = int(node.name) - 1
            if 0 <= at < len(items):
                yield items[at]
        else:
            yield node


def floor_of(node: exp.Expr, *, literal_units: bool = True) -> Floor | None:
    """The floor that a call is: a cast to a date or a timestamp, date_trunc, trunc, to_date."""
    if isinstance(node, exp.Cast):  # TRY_CAST too
        if node.to.this in _DATES:
            return Floor(node.this, Granularity.DAY)
        return Floor(node.this, None) if node.to.this in _TIMESTAMPS else None
    if isinstance(node, exp.TsOrDsToDate) and not node.args.get("format"):
        return Floor(node.this, Granularity.DAY)
    if isinstance(node, (exp.TimestampTrunc, exp.DateTrunc)):
        unit = node.args.get("unit")
        if not isinstance(unit, (exp.Literal, exp.Var)) or not literal_units:
            return None
        name = unit.name.upper()
        if isinstance(node, exp.TimestampTrunc) and name in _FINE:
            return Floor(node.this, None)
        return Floor(node.this, _UNITS[name]) if name in _UNITS else None
    return None


def literal_units(text: Text) -> bool:
    """
    Whether all units of date_trunc are literals.

    The tree shows ``date_trunc(unit, ts)`` with a column ``unit`` as if it were a literal.
    """
    return all(
        tokens[call.arguments[0][0]].token_type is TokenType.STRING
        for tokens in [text.tokens]
        for call in calls(tokens, 0, len(tokens))
        if call.name == "date_trunc" and call.arguments
    )


def has_aggregate(tree: exp.Expr) -> bool:
    """Whether a tree has an aggregate call that is not a window function."""
    windows: set[int] = set()
    for node in own(tree):
        if isinstance(node, exp.Window):
            inner = node.this
            while isinstance(inner, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
                inner = inner.this
            windows.add(id(inner))
        elif is_aggregate(node) and id(node) not in windows:
            return True
    return False


def aggregates(block: Block) -> bool:
    """Whether a block turns many rows into one: GROUP BY, or an aggregate without it."""
    args = block.node.args
    if args.get("group"):
        return True
    clauses = [*block.node.expressions, args.get("having"), args.get("order")]
    return any(has_aggregate(clause) for clause in clauses if clause is not None)


def event_grain(subject: Subject) -> Grain:
    """How coarse the event times of an ``events`` model are: by its type or by a floor."""
    series, block = subject.model.timeseries, subject.relation
    if series is None or not isinstance(block, Block):
        return None
    column = series.event_time_column.lower()
    out = next((out for out in block.outputs or () if out.name.lower() == column), None)
    node: exp.Expr | None = out.node if out is not None else None
    units = literal_units(block.text)
    while node is not None:
        floor = floor_of(node, literal_units=units)
        if floor is None:
            break
        if floor.unit is not None:
            return floor.unit
        node = floor.inner
    origin = block.origins.get(id(node))
    if origin is None or not isinstance(origin.entry.relation, Table):
        return None
    source = subject.sources.get(origin.entry.relation.name)
    types = {c.name.lower(): c.type.lower() for c in source.columns} if source else {}
    return Granularity.DAY if types.get(origin.column) == "date" else None


def cells_of(subject: Subject) -> Cells | None:
    """
    The analysis for a model that is built cell by cell; None for others.

    None too when something that it reads is wrong: findings would be about the wrong thing.
    """
    granularity = subject.model.granularity
    if subject.model.kind is not Kind.TIME_RANGE or granularity is None or not subject.sound:
        return None
    found = subject.memo.get("cells")
    if not isinstance(found, Cells):
        found = subject.memo["cells"] = Cells(subject, granularity)
    return found
