"""
From which times of its inputs a cell of a query's output is made.

The claim to be proven for a model built cell by cell: a cell of the output follows from a bounded
stretch of each input around that cell. It holds when the partition column has a shape
(:mod:`infold.analysis.shape`) against every input with a time column, and when whatever brings
rows together (joins, groups, windows, DISTINCT) brings together rows of which that can still be
said; the rules see to that. The same shapes say how long the stretch is.

Everything is in UTC, so a cast to a date is a floor to the day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from infold.analysis.aggregates import is_aggregate
from infold.analysis.floors import floor_of
from infold.analysis.frames import (
    Reach,
    base_of,
    called,
    guarded,
    near_outside,
    ordering,
    reach,
)
from infold.analysis.links import FAR, links
from infold.analysis.nested import by_predicate, by_value, parts
from infold.analysis.relation import (
    Block,
    Columns,
    From,
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
from infold.analysis.scope import Atom, Gaps, Key, Scope, Shapes, Tie
from infold.analysis.shape import Grain, Shape, Span
from infold.analysis.subject import Subject, time_column
from infold.analysis.text import Text
from infold.interval import Granularity
from infold.model import Kind, Override
from infold.project import Bound
from infold.refusals import Cell


@dataclass(frozen=True, slots=True)
class Kept:
    """
    What is known of a relation: the inputs with a time column that it reads, and the columns
    (lower case) with a shape against every one of them.
    """

    inputs: frozenset[Key] = frozenset()
    columns: Mapping[str, Shapes] = field(default_factory=dict)
    items: tuple[Shapes, ...] | None = None
    """The same by position, where all columns are known; empty where nothing is known."""
    gaps: Mapping[str, Gaps] = field(default_factory=dict)
    """Where the NULLs of these columns come from."""
    gaps_of: tuple[Gaps, ...] = ()
    """The same by position, beside ``items``."""

    @property
    def time(self) -> bool:
        """Whether it reads an input with a time column."""
        return bool(self.inputs)

    @staticmethod
    def of(
        inputs: frozenset[Key],
        names: Columns,
        items: tuple[Shapes, ...] | None,
        gaps: tuple[Gaps, ...],
    ) -> Kept:
        """From what is known of each column in order."""
        if names is None or items is None:
            return Kept(inputs)
        known = [
            (name.lower(), shapes, missing)
            for name, shapes, missing in zip(names, items, gaps, strict=False)
            if shapes and name
        ]
        columns = {name: shapes for name, shapes, _ in known}
        return Kept(inputs, columns, items, {name: missing for name, _, missing in known}, gaps)


@dataclass(frozen=True, slots=True)
class Bounded:
    """How far one naming of an input is read; ``start``: where it stands in the model's own SQL."""

    name: str
    bound: Bound
    start: int | None


@dataclass(slots=True, eq=False)
class Cells:
    """The analysis of one model; ``granularity`` is the length of its cells."""

    subject: Subject
    granularity: Granularity
    tables: dict[int, tuple[From, Text]] = field(default_factory=dict)
    """The entries of FROM that are inputs with a time column, by id, and the text they stand in."""
    seen: dict[int, Kept] = field(default_factory=dict)
    scopes: dict[int, Scope] = field(default_factory=dict)
    near: set[int] = field(default_factory=set)
    """The subqueries in expressions whose rows are near to the row around them, by id."""
    chosen: set[int] = field(default_factory=set)
    """Of these the SELECTs and set operations whose own WHERE says so, by id: they may bring
    together all of the rows that it chooses."""

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
            inner = self.of(relation.inner)
            return Kept.of(inner.inputs, relation.columns, inner.items, inner.gaps_of)
        if isinstance(relation, SetOperation):
            return self._union(relation)
        return self._block(relation)

    def _table(self, table: Table) -> Kept:
        """A stored input; the empty key stands for itself."""
        node = self.subject.nodes.get(table.name)
        column = time_column(node) if node is not None else None
        if node is None or column is None:
            return Kept()
        known = self.subject.kept.get(node.name, {})
        finer = node.model.granularity
        found: dict[str, Shapes] = {}
        if finer is not None:
            found = {name: {(): Shape(finer, grain=grain)} for name, grain in known.items()}
        found[column.lower()] = {(): Shape(grain=known.get(column.lower()))}
        key: frozenset[Key] = frozenset({()})
        if table.columns is None:
            return Kept(key, found)
        items = tuple(found.get(name.lower(), {}) for name in table.columns)
        return Kept(key, found, items, gaps_of=tuple(frozenset() for _ in items))

    def _union(self, relation: SetOperation) -> Kept:
        """A column is known when it is on both sides; each side's rows are of its own inputs."""
        left, right = self.of(relation.left), self.of(relation.right)
        inputs = left.inputs | right.inputs
        if not (left.time and right.time) or left.items is None or right.items is None:
            return Kept(inputs)
        others, missing = right.items, right.gaps_of
        if relation.node.args.get("by_name"):
            names = [name.lower() for name in relation.left.columns or ()]
            others = tuple(right.columns.get(name, {}) for name in names)
            missing = tuple(right.gaps.get(name, frozenset()) for name in names)
        items = tuple(
            _either(a, b) if a and b else {} for a, b in zip(left.items, others, strict=False)
        )
        gaps = tuple(a | b for a, b in zip(left.gaps_of, missing, strict=False))
        return Kept.of(inputs, relation.columns, items, gaps)

    def _block(self, block: Block) -> Kept:
        scope = self.scope(block)
        if block.outputs is None:
            known = {out.name.lower(): out for out in self._open(block)}
            found = {name: self.output(block, out) for name, out in known.items()}
            gaps = {name: self.gaps(block, out) for name, out in known.items()}
            return Kept(
                scope.every, {n: shapes for n, shapes in found.items() if shapes}, gaps=gaps
            )
        items = tuple(self.output(block, out) for out in block.outputs)
        missing = tuple(self.gaps(block, out) for out in block.outputs)
        return Kept.of(scope.every, block.columns, items, missing)

    def _open(self, block: Block) -> Iterator[Output]:
        """
        The outputs with a name of a SELECT with a star over columns that are not known.

        A star over a table passes on whatever there is, one over a struct nothing that is known;
        what the SELECT itself gives a name comes last, and is what the name means.
        """
        for item in block.node.expressions:
            star = item if isinstance(item, exp.Star) else item.this
            if not isinstance(item, (exp.Star, exp.Column)) or not isinstance(star, exp.Star):
                continue
            skip = {name.name.lower() for name in star.args.get("except_") or ()}
            for entry in block.entries:
                if isinstance(item, exp.Star) or entry.alias == item.table.lower():
                    for name in self.of(entry.relation).columns.keys() - skip:
                        yield Output(name, item, Origin(entry, name))
        for item in block.node.expressions:
            if isinstance(item, (exp.Alias, exp.Column)) and not isinstance(item.this, exp.Star):
                yield Output(item.alias_or_name, item.unalias())

    def scope(self, block: Block) -> Scope:
        """A block's FROM and WHERE."""
        if id(block) not in self.scopes:
            given: dict[tuple[int, str], Shapes] = {}
            inputs: dict[int, frozenset[Key]] = {}
            absent: dict[Atom, Gaps] = {}
            for entry in block.entries:
                kept, at = self.of(entry.relation), id(entry)
                if isinstance(entry.relation, Table) and entry.relation.view is None and kept.time:
                    self.tables[at] = (entry, block.text)
                inputs[at] = frozenset((at, *key) for key in kept.inputs)
                for name, shapes in kept.columns.items():
                    given[at, name] = {(at, *key): shape for key, shape in shapes.items()}
                    missing = kept.gaps.get(name, frozenset())
                    absent[at, name] = frozenset((at, *key) for key in missing)
            self.scopes[id(block)] = self._tied(
                block, lambda ties: Scope(block, given, inputs, ties, absent)
            )
        return self.scopes[id(block)]

    def _tied(self, block: Block, scope: Callable[[tuple[Tie, ...]], Scope]) -> Scope:
        """The scope with those subqueries that are near, by predicates or else by their values."""
        todo = [(holder, inner) for holder, inner in block.nested if self.of(inner).time]
        found: list[Tie] = []
        for by_their_where in (True, False):
            tried = {
                id(inner): ties
                for holder, inner in todo
                if (ties := self._ties(holder, inner, by_their_where)) is not None
            }
            made = scope((*found, *(tie for ties in tried.values() for tie in ties)))
            for at, ties in tried.items():
                if all(made.tied(tie.inputs) for tie in ties):
                    found.extend(ties)
                    self.near.add(at)
            if by_their_where:
                near = [inner for _, inner in todo if id(inner) in self.near]
                self.chosen.update(id(part) for inner in near for part in parts(inner))
            todo = [(holder, inner) for holder, inner in todo if id(inner) not in self.near]
        return scope(tuple(found))

    def _ties(self, holder: exp.Expr, inner: Relation, by_their_where: bool) -> list[Tie] | None:
        if by_their_where:
            return by_predicate(inner, self.scope)
        kept = self.of(inner)
        tie = by_value(holder, inner, kept.inputs, kept.items or ())
        return None if tie is None else [tie]

    def blocks(self) -> Iterator[Block | SetOperation]:
        """
        What the rules look at: every SELECT and set operation.

        Those of views are among them, and of subqueries in expressions those that are near; the
        others have one finding for all.
        """
        return blocks(self.subject.relation, views=True, nested=self._looked_into)

    def _looked_into(self, block: Block) -> list[Relation]:
        self.scope(block)
        return [inner for _, inner in block.nested if id(inner) in self.near]

    def bounds(self) -> list[Bounded]:
        """How far each naming of an input is read for one cell, as the partition column says."""
        found = []
        shapes = self.of(self.subject.relation).columns.get(self.column.lower(), {})
        for key, shape in shapes.items():
            entry, text = self.tables[key[-1]]
            span = shape.bound(self.granularity)
            if span is None or not isinstance(entry.relation, Table):
                continue
            start = None
            if text is self.subject.text and isinstance(entry.node, exp.Table):
                start = min(part.meta["start"] for part in entry.node.parts)
            found.append(Bounded(entry.relation.name, Bound(*span), start))
        return found

    # -- expressions -------------------------------------------------------------------------

    def output(self, block: Block, out: Output) -> Shapes:
        """What is known of an output column, against every input; else nothing."""
        shapes = self.row_shapes(block, out)
        if not self.scope(block).full(shapes):
            return {}
        return self._widened(block, shapes, self.gaps(block, out))

    def gaps(self, block: Block, out: Output) -> Gaps:
        """Where the NULLs of an output column come from that follows the time."""
        scope, node = self.scope(block), out.node
        if out.origin is not None:
            star = isinstance(node, exp.Star)
            return scope.column_gaps(out.origin.entry, out.origin.column, merged=star)
        while True:
            if isinstance(node, exp.Column) and id(node) in block.aliases:
                node = block.aliases[id(node)]
            elif isinstance(node, (exp.Paren, exp.Alias, exp.Min, exp.Max)):
                node = node.this  # a group's least is NULL when all of its values are
            else:
                return scope.gaps(node)

    def row_shapes(self, block: Block, out: Output) -> Shapes:
        """What is known of an output column by itself, against some inputs or all."""
        if out.origin is not None:
            return self.scope(block).column(out.origin.entry, out.origin.column)
        return self.shapes(block, out.node)

    def shapes(self, block: Block, node: exp.Expr) -> Shapes:
        """What is known of an expression where the block's rows are, grouped if it groups."""
        if isinstance(node, (exp.Paren, exp.Alias)):
            return self.shapes(block, node.this)
        scope = self.scope(block)
        if isinstance(node, exp.Column) and id(node) in block.aliases:
            return self.shapes(block, block.aliases[id(node)])
        if isinstance(node, (exp.Min, exp.Max)) and not node.expressions:
            keys = self.group_keys(block, scope.gaps(node.this))
            inner = scope.shapes(node.this)
            if not keys or not scope.full(inner):
                return {}
            return {at: shape.across(keys[0][at]) for at, shape in inner.items()}
        return scope.shapes(node)

    def _widened(self, block: Block, shapes: Shapes, gaps: Gaps) -> Shapes:
        """The same, where windows bring in what other rows are made from."""
        for window in windows(block):
            key = self.window_key(block, window, gaps)
            if key is not None:
                wider = {at: shape.across(key[at]) for at, shape in shapes.items()}
            else:
                found = self.window_reach(block, window, gaps)
                if found is None and self._vouched:
                    continue
                if found is None:
                    return {}  # the rule on windows says so
                wider = {at: shape.reaching(*found[at]) for at, shape in shapes.items()}
            shapes = _either(shapes, wider)
        return shapes

    @property
    def _vouched(self) -> bool:
        """Whether windows that are not aligned are meant to see their own cell alone."""
        said = self.subject.model.incremental
        return said is not None and Override.WINDOW_FUNCTIONS in said.overrides

    def keeps(self, block: Block, node: exp.Expr) -> bool:
        """Whether rows with one value of an expression are of one stretch around one cell."""
        return self._good(self.scope(block), self.shapes(block, node))

    def _good(self, scope: Scope, shapes: Shapes) -> bool:
        return scope.full(shapes) and self.bounded(shapes)

    def bounded(self, shapes: Shapes) -> bool:
        """Whether a column with these shapes can say in which cell a row belongs."""
        return all(shape.bound(self.granularity) is not None for shape in shapes.values())

    def keeping(self, block: Block) -> list[str]:
        """The columns in a block's FROM that follow the time, for messages."""
        return [
            column
            for entry in block.entries
            for column, shapes in self.of(entry.relation).columns.items()
            if self.bounded(shapes)
            and not self.scope(block).column_gaps(entry, column, merged=False)
        ]

    # -- groups and windows

    def groups_by_cell(self, block: Block) -> bool:
        """Whether GROUP BY has an expression that follows the time."""
        return any(self.group_keys(block, gaps) for gaps in self._gaps_in(block))

    def _gaps_in(self, block: Block) -> list[Gaps]:
        """
        Where the NULLs come from of the columns that a block has to offer as a partition column.

        Rows without any such value are in no cell, whatever is brought together in them; so a key
        that is NULL in no others will do.
        """
        scope = self.scope(block)
        outputs = block.outputs or ()
        known = [out for out in outputs if scope.full(self.row_shapes(block, out))]
        return [frozenset(), *(self.gaps(block, out) for out in known)]

    def group_keys(self, block: Block, gaps: Gaps) -> list[Shapes]:
        """
        What is known of the expressions of GROUP BY that follow the time.

        They are NULL only where what is missing in ``gaps`` is: the group of all these NULLs is
        one, of rows of any time.
        """
        group, scope = block.node.args.get("group"), self.scope(block)
        if group is None:
            return []
        items = (
            [item for item in block.node.expressions if not has_aggregate(item)]
            if group.args.get("all")
            else list(_group_items(block, group))
        )
        found = [scope.shapes(node) for node in items if scope.gaps(node) <= gaps]
        return [shapes for shapes in found if self._good(scope, shapes)]

    def near_windows(self, block: Block) -> Iterator[tuple[exp.Window, bool]]:
        """The windows of a block, and whether one looks at rows near in time alone."""
        offered = self._gaps_in(block)
        for window in windows(block):
            yield (
                window,
                any(
                    self.window_key(block, window, gaps) is not None
                    or self.window_reach(block, window, gaps) is not None
                    for gaps in offered
                ),
            )

    def window_key(self, block: Block, window: exp.Window, gaps: Gaps) -> Shapes | None:
        """
        What is known of an expression of PARTITION BY that follows the time.

        It is NULL only where what is missing in ``gaps`` is.
        """
        scope = self.scope(block)
        for item in _partitioned_by(window, _named(block)):
            shapes = self.shapes(block, item)
            if self._good(scope, shapes) and self._row_gaps(block, item) <= gaps:
                return shapes
        return None

    def _row_gaps(self, block: Block, node: exp.Expr) -> Gaps:
        return self.gaps(block, Output("", node))

    def window_reach(
        self, block: Block, window: exp.Window, gaps: Gaps
    ) -> Mapping[Key, tuple[Shape, int, int]] | None:
        """
        How far from its own row a RANGE frame looks, by the column it is ordered by.

        Against each input: that column's shape, and how far the rows of the frame lie before and
        after; None when there is no bound. The rows without a value to be ordered by are in
        one frame, so there may be none but where what is missing in ``gaps`` is.
        """
        named = _named(block)
        found = reach(window, named)
        if found is not None and not self._row_gaps(block, found.order) <= gaps:
            return None
        found = found or guarded(window, named) or self._kept_near(block, window)
        if found is None:
            return None
        scope, shapes = self.scope(block), self.shapes(block, found.order)
        if not scope.full(shapes):
            return None
        return {at: (shape, found.before, found.after) for at, shape in shapes.items()}

    def _kept_near(self, block: Block, window: exp.Window) -> Reach | None:
        """The reach of LAG or LEAD as a column, where every query around it keeps near rows."""
        named = _named(block)
        names = {id(out.node.unalias()): out.name.lower() for out in block.outputs or ()}
        column, order = names.get(id(window)), ordering(window, named)
        if column is None or order is None:
            return None
        by = {out.name.lower() for out in block.outputs or () if out.node.unalias() == order}
        spans = [
            _distance(around, entry, column, by)
            for around in blocks(self.subject.relation, views=True)
            if isinstance(around, Block)
            for entry in around.entries
            if _is(entry.relation, block)
        ]
        known = [span for span in spans if span is not None]
        if not known or len(known) < len(spans):
            return None
        widest = min(low for low, _ in known), max(high for _, high in known)
        return near_outside(window, named, widest)


def _is(relation: Relation, block: Block) -> bool:
    while isinstance(relation, Renamed):
        relation = relation.inner
    return relation is block


def _distance(block: Block, entry: From, column: str, by: set[str]) -> Span | None:
    """How far WHERE lets a column of an entry be from one of the columns ``by`` of it."""
    low, high = -FAR, FAR
    for link in links(block.node.args.get("where")):
        for one in (link, link.turned):
            sides = [
                block.origins.get(id(side)) if isinstance(side, exp.Column) else None
                for side in (one.left, one.right)
            ]
            if any(side is None or side.entry is not entry for side in sides):
                continue
            left, right = (side.column for side in sides if side is not None)
            if left == column and right in by:
                low, high = max(low, one.low), min(high, one.high)
    return (low, high) if (low, high) != (-FAR, FAR) else None


def windows(block: Block) -> Iterator[exp.Window]:
    """The window functions of a block."""
    for node in block.expressions():
        if isinstance(node, exp.Window) and node.arg_key != "windows":
            yield node


def _named(block: Block) -> dict[str, exp.Expr]:
    """The windows of the WINDOW clause, by lower-case name."""
    return {window.this.name.lower(): window for window in block.node.args.get("windows") or ()}


def _partitioned_by(window: exp.Expr, named: Mapping[str, exp.Expr]) -> Iterator[exp.Expr]:
    """What a window, or the named one that it builds on, is partitioned by."""
    yield from window.args.get("partition_by") or []
    base = base_of(window, named)
    if base is not None:
        yield from _partitioned_by(base, named)


def _either(a: Shapes, b: Shapes) -> Shapes:
    """What holds of a value that has the shapes of one or of the other."""
    found = dict(a)
    for key, shape in b.items():
        found[key] = found[key].hull(shape) if key in found else shape
    return found


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


def has_aggregate(tree: exp.Expr) -> bool:
    """Whether a tree has an aggregate call that is not a window function."""
    over: set[int] = set()
    for node in own(tree):
        if isinstance(node, exp.Window):
            over.add(id(called(node)))
        elif is_aggregate(node) and id(node) not in over:
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
    while node is not None:
        floor = floor_of(node)
        if floor is None:
            break
        if floor.unit is not None and not floor.inside:
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
        found.of(subject.relation)  # so that the rules find all that is known of subqueries
    return found
