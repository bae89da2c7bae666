"""
From which times of its inputs a cell of a query's output is made.

The claim to be proven for a model built cell by cell: a cell of the output follows from a bounded
stretch of each input around that cell. It holds when the partition column has a shape
(:mod:`infold.analysis.times.shape`) against every input with a time column, and when whatever
brings rows together (joins, groups, windows, DISTINCT) brings together rows of which that can still
be said; the rules see to that. The same shapes say how long the stretch is.

Everything is in UTC, so a cast to a date is a floor to the day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from infold.analysis.bounds.known_columns import Bounded, Kept
from infold.analysis.bounds.laterals import far
from infold.analysis.bounds.scope import Atom, Scope, Tie, grain_of
from infold.analysis.bounds.subquery_joins import by_predicate, by_value, parts
from infold.analysis.bounds.transitive import Gaps, Key, Needs, Shapes, beyond, either
from infold.analysis.bounds.window_reach import Windows
from infold.analysis.names.relation import (
    Block,
    From,
    Origin,
    Other,
    Output,
    Relation,
    Renamed,
    SetOperation,
    Table,
    blocks,
)
from infold.analysis.names.select_parts import (
    alike_by,
    bucket_fields,
    group_items,
    has_aggregate,
    in_every_set,
    merges,
    named_windows,
    over_windows,
    several_sets,
    windows,
)
from infold.analysis.names.subject import Subject, time_column
from infold.analysis.sql.text import Text
from infold.analysis.times.call_shapes import change_of
from infold.analysis.times.shape import Shape
from infold.analysis.times.window_frames import rows_back
from infold.core.interval import Granularity
from infold.core.model import Kind, Override
from infold.core.project import Bound
from infold.messages.errors import InfoldError
from infold.messages.refusals import Cell

_ALONE: Needs = {(): frozenset()}
"""A table's row needs nothing else."""


_SAME: Key = ()
"""Not an input: the column that two values are both made of."""


@dataclass(slots=True, eq=False)
class Cells:
    """The analysis of one model; ``granularity`` is the length of its cells."""

    subject: Subject
    granularity: Granularity
    lenient: bool = False
    """Whether everything but what is asked about is taken for right: to tell causes apart."""
    tables: dict[int, tuple[From, Text]] = field(default_factory=dict)
    """The entries of FROM that are inputs with a time column, by id, and the text they stand in."""
    seen: dict[int, Kept] = field(default_factory=dict)
    scopes: dict[int, Scope] = field(default_factory=dict)
    near: set[int] = field(default_factory=set)
    """The subqueries in expressions whose rows are near to the row around them, by id."""
    chosen: set[int] = field(default_factory=set)
    """Of these the SELECTs and set operations whose own WHERE says so, by id: they may bring
    together all of the rows that it chooses."""
    apart: set[int] | None = None

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
            return Kept.of(inner.inputs, relation.columns, inner.items, inner.gaps_of, inner.needs)
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
            return Kept(key, found, needs=_ALONE)
        items = tuple(found.get(name.lower(), {}) for name in table.columns)
        return Kept(key, found, items, gaps_of=tuple(frozenset() for _ in items), needs=_ALONE)

    def _union(self, relation: SetOperation) -> Kept:
        """A column is known when it is on both sides; each side's rows are of its own inputs."""
        left, right = self.of(relation.left), self.of(relation.right)
        inputs = left.inputs | right.inputs
        needs: dict[Key, Gaps | None] = dict.fromkeys(inputs)
        if not isinstance(relation.node, exp.Union):
            needs |= left.needs  # its rows are rows of the left side
        if not (left.time and right.time) or left.items is None or right.items is None:
            return Kept(inputs, needs=needs)
        others, missing = right.items, right.gaps_of
        if relation.node.args.get("by_name"):
            names = [name.lower() for name in relation.left.columns or ()]
            others = tuple(right.columns.get(name, {}) for name in names)
            missing = tuple(right.gaps.get(name, frozenset()) for name in names)
        items = tuple(
            either(a, b) if a and b else {} for a, b in zip(left.items, others, strict=False)
        )
        gaps = tuple(a | b for a, b in zip(left.gaps_of, missing, strict=False))
        return Kept.of(inputs, relation.columns, items, gaps, needs)

    def _block(self, block: Block) -> Kept:
        scope = self.scope(block)
        if block.outputs is None:
            known = {out.name.lower(): out for out in self._open(block)}
            found = {name: self.output(block, out) for name, out in known.items()}
            gaps = {name: self.gaps(block, out) for name, out in known.items()}
            columns = {name: shapes for name, shapes in found.items() if shapes}
            return Kept(scope.every, columns, gaps=gaps, needs=scope.needs)
        items = tuple(self.output(block, out) for out in block.outputs)
        missing = tuple(self.gaps(block, out) for out in block.outputs)
        kept = Kept.of(scope.every, block.columns, items, missing, scope.needs)
        fields = [one for out in block.outputs for one in bucket_fields(out)]
        return kept.also((n, self.output(block, out), self.gaps(block, out)) for n, out in fields)

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
            needs: dict[int, Needs] = {}
            lateral = [entry for entry in block.entries if self._lateral(entry)]
            for entry in block.entries:
                kept, at = self.of(entry.relation), id(entry)
                if entry in lateral:
                    inputs[at] = frozenset()
                    continue  # it is asked row by row, as a subquery in an expression is
                if isinstance(entry.relation, Table) and entry.relation.view is None and kept.time:
                    self.tables[at] = (entry, block.text)
                inputs[at] = frozenset((at, *key) for key in kept.inputs)
                needs[at] = kept.needs
                for name, shapes in kept.columns.items():
                    if "\0" in name and merges(block):
                        continue  # its field may be that of the other side
                    given[at, name] = {(at, *key): shape for key, shape in shapes.items()}
                    missing = kept.gaps.get(name, frozenset())
                    whole = name.partition("\0")[0]
                    absent[at, whole] = frozenset((at, *key) for key in missing)
            asked = [(entry.node, entry.relation) for entry in lateral]
            todo = [(at, inner) for at, inner in block.nested if self.of(inner).time]
            self.scopes[id(block)] = self._tied(
                [*todo, *asked],
                lambda ties: Scope(
                    block, given, inputs, ties, absent, needs, self.granularity, self.lenient
                ),
            )
            far = [entry for entry in lateral if id(entry.relation) not in self.near]
            for entry in far:
                keys = self.of(entry.relation).inputs
                inputs[id(entry)] = frozenset((id(entry), *key) for key in keys)
            if far:
                near = [(at, inner) for at, inner in [*todo, *asked] if id(inner) in self.near]
                self.scopes[id(block)] = self._tied(
                    near,
                    lambda ties: Scope(
                        block, given, inputs, ties, absent, needs, self.granularity, self.lenient
                    ),
                )
        return self.scopes[id(block)]

    def _lateral(self, entry: From) -> bool:
        """Whether an entry of FROM is a LATERAL subquery over an input with a time column."""
        inside = isinstance(entry.relation, (Block, SetOperation))
        return entry.lateral and inside and self.of(entry.relation).time

    def _tied(
        self,
        todo: list[tuple[exp.Expr, Relation]],
        scope: Callable[[tuple[Tie, ...]], Scope],
    ) -> Scope:
        """The scope with those subqueries that are near, by predicates or else by their values."""
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
        tie = by_value(holder, inner, kept.needs, kept.items or ())
        return None if tie is None else [tie]

    def blocks(self) -> Iterator[Block | SetOperation]:
        """
        What the rules look at: every SELECT and set operation.

        Those of views are among them, and of subqueries those that are near; the others have one
        finding for all.
        """
        every = blocks(self.subject.relation, views=True, nested=self._looked_into)
        return (block for block in every if id(block) not in self.beyond)

    @property
    def beyond(self) -> set[int]:
        """
        The SELECTs of LATERAL subqueries that do not say how far they look, by id.

        To say it is what mends them, whatever else they do. Where bounds are declared in its place,
        they are looked into as any.
        """
        said = self.subject.model.incremental
        if self.apart is None and said is not None and said.bounds:
            self.apart = set()
        elif self.apart is None:
            self.apart = far(
                self.subject.relation,
                lambda entry: self._lateral(entry) and id(entry.relation) not in self.near,
                lambda relation: self.of(relation).time,
                lambda block: None if id(block) in self.chosen else self.scope(block),
            )
        return self.apart

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
            if not isinstance(entry.relation, Table):
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
        return self._widened(block, out, shapes, self.gaps(block, out))

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
            elif (change := change_of(node)) is not None:
                node = change[0]
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
        if self._left_out(block, node):
            return {}
        if isinstance(node, (exp.Min, exp.Max)) and not node.expressions:
            keys = self.group_keys(block, scope.gaps(node.this))
            inner = scope.shapes(node.this)
            if self.lenient and not keys:
                return inner
            if not keys or not scope.full(inner):
                return {}
            known = scope.shapes(keys[0])
            return self._beyond(block, node.this, inner, scope.gaps(node.this), keys[0], known)
        change = change_of(node)
        group = block.node.args.get("group")
        sets = group if group is not None and several_sets(group) else None
        if sets is not None and node in in_every_set(block, sets):
            return scope.shapes(node)
        if change is not None and (sets is not None or has_aggregate(node)):
            return {at: change[1](shape) for at, shape in self.shapes(block, change[0]).items()}
        return scope.shapes(node)

    def fills(self, block: Block) -> bool:
        """
        Whether a lookup's rows that a block keeps without a match have a cell all the same.

        ``FROM days LEFT JOIN clicks ON …``: the partition column is the lookup's own, and the join
        says how far from it the rows are of which there is none.
        """
        said = self.subject.model.incremental
        if said is not None and (said.overrides or said.bounds):
            return False  # each cell would be computed by itself, and there are any number of them
        column, scope = self.column.lower(), self.scope(block)
        known = self.of(self.subject.relation)
        if known.gaps.get(column, frozenset({()})) or not known.columns.get(column):
            return False
        return any(
            at not in scope.nullable and scope.full(shapes)
            for (at, _), shapes in scope.known.items()
        )

    def filled(self) -> bool:
        """Whether cells may hold rows where no input has any: of lookups that are kept."""
        found = False
        for block in self.blocks():
            times = [self.of(entry.relation).time for entry in getattr(block, "entries", ())]
            for at, entry in enumerate(getattr(block, "entries", ())):
                side = entry.join.side.upper() if entry.join is not None else ""
                left = any(times[:at])
                found = found or (side == "LEFT" and not left and times[at])
                found = found or (side == "RIGHT" and left and not times[at])
        return found

    def days_back(self) -> int | None:
        """How many days windows look back that count rows, in an order of days; None for none."""
        counts = [
            rows
            for block in self.blocks()
            if isinstance(block, Block)
            for window in windows(block)
            if (found := rows_back(window, named_windows(block))) is not None
            for order, rows in [found]
            if grain_of(self.shapes(block, order)) is Granularity.DAY
        ]
        return max(counts, default=None)

    def _left_out(self, block: Block, node: exp.Expr) -> bool:
        """Whether a value is NULL in rows of a grouping set that has not all of it."""
        group = block.node.args.get("group")
        if group is None or self.lenient or not several_sets(group):
            return False
        if isinstance(node, (exp.Min, exp.Max)):
            return False
        return change_of(node) is None and node not in in_every_set(block, group)

    def _widened(self, block: Block, out: Output, shapes: Shapes, gaps: Gaps) -> Shapes:
        """
        The same, where windows bring in what other rows are made from.

        Windows stand side by side: each brings its rows to the same row. Only what a window finds
        by the value of another one lies beyond what that one has found.
        """
        alone = shapes
        value = out.origin if out.origin is not None else out.node
        for window in windows(block):
            found = self.windows(block).far(window, gaps)
            if found is None and (self._vouched or self.lenient):
                continue
            if found is None:
                return {}  # the rule on windows says so
            start = shapes if over_windows(block, window) else alone
            shapes = either(shapes, self._beyond(block, value, start, gaps, *found))
        return shapes

    def _beyond(
        self,
        block: Block,
        value: exp.Expr | Origin,
        shapes: Shapes,
        gaps: Gaps,
        bridge: exp.Expr,
        far: Shapes,
    ) -> Shapes:
        """A value of one row against the rows of which ``far`` says the bridge's distance."""
        scope, known = self.scope(block), dict(self.shapes(block, bridge))
        ways = scope.ways(shapes.keys() & known.keys(), gaps) or [tuple(shapes)]
        one, other = scope.made_of(value), scope.made_of(bridge)
        if one is not None and other is not None and one[0] == other[0]:
            ways = [*ways, (_SAME,)]
            shapes, known = {**shapes, _SAME: one[1]}, {**known, _SAME: other[1]}
        return {
            at: beyond(shapes, known, shape, ways, self.granularity) for at, shape in far.items()
        }

    def windows(self, block: Block) -> Windows:
        """The windows of a block, and what is known of its rows."""
        scope = self.scope(block)
        return Windows(
            block,
            self.subject.relation,
            lambda node: self.shapes(block, node),
            lambda node: self.gaps(block, Output("", node)),
            scope.full,
        )

    @property
    def _vouched(self) -> bool:
        """Whether windows that are not aligned are meant to see their own cell alone."""
        said = self.subject.model.incremental
        return said is not None and Override.WINDOW_FUNCTIONS in said.overrides

    def keeps(self, block: Block, node: exp.Expr) -> bool:
        """Whether rows with one value of an expression are of one stretch."""
        return self.scope(block).full(self.shapes(block, node))

    def tells(self, shapes: Shapes) -> bool:
        """Whether a column with these shapes can say in which cell a row belongs."""
        return all(shape.tells(self.granularity) for shape in shapes.values())

    def keeping(self, block: Block) -> list[str]:
        """The columns in a block's FROM that follow the time, for messages."""
        return [
            column
            for entry in block.entries
            for column, shapes in self.of(entry.relation).named.items()
            if self.tells(shapes) and not self.scope(block).column_gaps(entry, column, merged=False)
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

    def group_keys(self, block: Block, gaps: Gaps) -> list[exp.Expr]:
        """
        The expressions of GROUP BY that follow the time.

        They are NULL only where what is missing in ``gaps`` is: the group of all these NULLs is
        one, of rows of any time.
        """
        group, scope = block.node.args.get("group"), self.scope(block)
        if group is None:
            return []
        items = (
            [item for item in block.node.expressions if not has_aggregate(item)]
            if group.args.get("all")
            else list(alike_by(in_every_set(block, group)))
            if several_sets(group)
            else list(alike_by(group_items(block, group)))
        )
        found = [node for node in items if scope.gaps(node) <= gaps]
        return [node for node in found if scope.full(scope.shapes(node))]

    def near_windows(self, block: Block) -> Iterator[tuple[exp.Window, bool]]:
        """The windows of a block, and whether one looks at rows near in time alone."""
        offered = self._gaps_in(block)
        for window in windows(block):
            yield window, any(self.windows(block).far(window, gaps) for gaps in offered)


def causes_of(subject: Subject, check: Callable[[], list[InfoldError]]) -> list[InfoldError]:
    """What is found where all that hangs on another finding is taken for right."""
    strict = subject.memo.get("cells")
    if not isinstance(strict, Cells):
        return []
    found = subject.memo["cells"] = Cells(subject, strict.granularity, lenient=True)
    try:
        found.of(subject.relation)
        return check()
    finally:
        subject.memo["cells"] = strict


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
