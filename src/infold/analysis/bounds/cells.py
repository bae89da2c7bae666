"""
Which times of its inputs a cell of a query's output is made from.

The claim to be proven for a model built cell by cell: a cell of the output follows from a bounded
range of each input around that cell. This is so when the partition column has a shape
(:mod:`infold.analysis.times.shape`) against every input with a time column, and when whatever
brings rows together (joins, groups, windows, DISTINCT) brings together rows that still have one.
The rules check that. The same shapes say how long the range is.

Everything is in UTC, so a cast to a date is a floor to the day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from sqlglot import exp

from infold.analysis.bounds.known_columns import (
    Distance,
    Entries,
    EntryValue,
    InputBound,
    InputPath,
    KnownColumns,
    NullSources,
    Requirements,
    Shapes,
    Step,
    SubqueryEntry,
    columns_of_set_operation,
    seen_through,
)
from infold.analysis.bounds.scope import Scope
from infold.analysis.bounds.select_columns import SelectColumns
from infold.analysis.names.relation import (
    Block,
    FromEntry,
    OtherRows,
    Relation,
    RenamedColumns,
    SetOperation,
    Table,
    blocks_of,
)
from infold.analysis.names.select_parts import merges_columns, named_windows, window_calls
from infold.analysis.names.subject import Subject, time_column
from infold.analysis.sql.text import Text
from infold.analysis.times.distances import (
    Link,
    counts_rows,
    is_asked_for_truth,
    links_of,
    value_and_offset,
)
from infold.analysis.times.shape import Shape
from infold.core.interval import Granularity
from infold.core.model import Override
from infold.core.project import Bound
from infold.messages.errors import InfoldError, Spot
from infold.messages.refusals import Cell

_ALONE: Requirements = {(): frozenset()}
"""A table's row requires nothing else."""


@dataclass(slots=True, eq=False)
class Cells:
    """
    The analysis of one model; ``granularity`` is the length of its cells.

    Each relation and each SELECT is analysed once. What was found is kept by the relation itself,
    which is compared as an object, not by what it contains.
    """

    subject: Subject
    granularity: Granularity
    lenient: bool = False
    """Whether all but the present question counts as right: to tell causes from consequences."""
    tables: dict[FromEntry, Text] = field(default_factory=dict)
    """The entries of FROM that are inputs with a time column, and the text they are in."""
    bounded_subqueries: set[Relation] = field(default_factory=set)
    """The subqueries in expressions that read only rows near to the row around them."""
    bounded_by_where: set[Relation] = field(default_factory=set)
    """
    The SELECTs and set operations of these that are near by their own WHERE: they may bring
    together all of the rows that it chooses.
    """
    _known: dict[Relation, KnownColumns] = field(default_factory=dict)
    _scopes: dict[Block, Scope] = field(default_factory=dict)
    _unbounded_laterals: set[Relation] | None = None

    @property
    def cell_name(self) -> Cell:
        """One of the model's cells, for messages."""
        return Cell(self.granularity.removesuffix(" (sunday)"), self.subject.model.name)

    @property
    def partition_column(self) -> str:
        """As it is written in the model; empty for a model without ``timeseries``."""
        series = self.subject.model.timeseries
        return series.partition_column if series is not None else ""

    # -- relations

    def known(self, relation: Relation) -> KnownColumns:
        """What is known of a relation."""
        if relation not in self._known:
            self._known[relation] = self._analyse(relation)
        return self._known[relation]

    def reads_time(self, relation: Relation) -> bool:
        """Whether a relation reads an input with a time column."""
        return self.known(relation).reads_time

    def asks_time(self, relation: Relation) -> bool:
        """Whether a relation reads such an input, or a subquery in one of its expressions does."""
        return any(map(self.reads_time, relations_read(relation)))

    def _analyse(self, relation: Relation) -> KnownColumns:
        if isinstance(relation, Table):
            return self.known(relation.view) if relation.view else self._table(relation)
        if isinstance(relation, OtherRows):
            return KnownColumns()
        if isinstance(relation, RenamedColumns):
            inner = self.known(relation.inner)
            return KnownColumns.in_order(
                inner.inputs,
                relation.columns,
                inner.by_position,
                inner.nulls_by_position,
                inner.required,
            )
        if isinstance(relation, SetOperation):
            return columns_of_set_operation(
                relation, self.known(relation.left), self.known(relation.right)
            )
        return self.select(relation).known(lambda inner: self.known(inner).columns)

    def _table(self, table: Table) -> KnownColumns:
        """A stored input; the empty path leads to itself."""
        node = self.subject.nodes.get(table.name)
        column = time_column(node) if node is not None else None
        if node is None or column is None:
            return KnownColumns()
        grains = self.subject.kept_columns.get(node.name, {})
        cell = node.model.granularity
        shapes: dict[str, Shapes] = {}
        if cell is not None:
            shapes = {name: {(): Shape(cell, grain=grain)} for name, grain in grains.items()}
        shapes[column.lower()] = {(): Shape(grain=grains.get(column.lower()))}
        itself: frozenset[InputPath] = frozenset({()})
        if table.columns is None:
            return KnownColumns(itself, shapes, required=_ALONE)
        each = tuple(shapes.get(name.lower(), {}) for name in table.columns)
        nulls: tuple[NullSources, ...] = tuple(frozenset() for _ in each)
        return KnownColumns(itself, shapes, each, nulls_by_position=nulls, required=_ALONE)

    # -- SELECTs

    def select(self, block: Block) -> SelectColumns:
        """The output columns of a block."""
        incremental = self.subject.model.incremental
        vouched = incremental is not None and Override.WINDOW_FUNCTIONS in incremental.overrides
        return SelectColumns(block, self.scope(block), self.subject.relation, vouched)

    def scope(self, block: Block) -> Scope:
        """A block's FROM and WHERE."""
        if block not in self._scopes:
            self._scopes[block] = self._read_from(block)
        return self._scopes[block]

    def _read_from(self, block: Block) -> Scope:
        columns: dict[EntryValue, Shapes] = {}
        inputs: dict[Step, frozenset[InputPath]] = {}
        nulls: dict[EntryValue, NullSources] = {}
        required: dict[FromEntry, Requirements] = {}
        lateral = [entry for entry in block.entries if self._lateral(entry)]
        for entry in block.entries:
            known = self.known(entry.relation)
            if entry in lateral:
                inputs[entry] = frozenset()
                continue  # it is asked row by row, as a subquery in an expression is
            if isinstance(entry.relation, Table) and not entry.relation.view and known.reads_time:
                self.tables[entry] = block.text
            inputs[entry] = frozenset((entry, *path) for path in known.inputs)
            required[entry] = known.required
            for name, shapes in known.columns.items():
                if "\0" in name and merges_columns(block):
                    continue  # its field may be that of the other side
                columns[entry, name] = {(entry, *path): shape for path, shape in shapes.items()}
                struct = name.partition("\0")[0]
                null_paths = known.nulls.get(name, frozenset())
                nulls[entry, struct] = frozenset((entry, *path) for path in null_paths)
        queries = [(at, inner) for at, inner in block.nested_queries if self.asks_time(inner)]
        queries += [(entry.node, entry.relation) for entry in lateral]

        def scope(subqueries: tuple[SubqueryEntry, ...]) -> Scope:
            entries = Entries(columns, inputs, nulls, required)
            return Scope(block, entries, self.granularity, subqueries, self.lenient)

        scope_of_block = self._with_subqueries(queries, scope)
        far = [entry for entry in lateral if entry.relation not in self.bounded_subqueries]
        for entry in far:
            paths = self.known(entry.relation).inputs
            inputs[entry] = frozenset((entry, *path) for path in paths)
        if far:
            near = [(at, inner) for at, inner in queries if inner in self.bounded_subqueries]
            scope_of_block = self._with_subqueries(near, scope)
        return scope_of_block

    def _lateral(self, entry: FromEntry) -> bool:
        """Whether an entry of FROM is a LATERAL subquery over an input with a time column."""
        inside = isinstance(entry.relation, (Block, SetOperation))
        return entry.lateral and inside and self.asks_time(entry.relation)

    def _with_subqueries(
        self,
        todo: list[tuple[exp.Expr, Relation]],
        scope: Callable[[tuple[SubqueryEntry, ...]], Scope],
    ) -> Scope:
        """The scope with those subqueries that are near, by predicates or else by their values."""
        bounded: list[SubqueryEntry] = []
        for by_where in (True, False):
            tried = {
                inner: entries
                for holder, inner in todo
                if (entries := self._as_entries(holder, inner, by_where, scope)) is not None
            }
            widened = scope((*bounded, *(one for entries in tried.values() for one in entries)))
            for inner, entries in tried.items():
                if all(widened.reaches(entry.inputs) for entry in entries):
                    bounded.extend(entries)
                    self.bounded_subqueries.add(inner)
            if by_where:
                near = [inner for _, inner in todo if inner in self.bounded_subqueries]
                self.bounded_by_where.update(
                    part for inner in near for part in selects_and_unions(inner)
                )
            todo = [pair for pair in todo if pair[1] not in self.bounded_subqueries]
        return scope(tuple(bounded))

    def _as_entries(
        self,
        holder: exp.Expr,
        inner: Relation,
        by_where: bool,
        scope: Callable[[tuple[SubqueryEntry, ...]], Scope],
    ) -> list[SubqueryEntry] | None:
        if by_where:
            return entries_by_predicate(inner, self.scope)
        entry = entry_by_value(holder, inner, self.known(inner), scope(()))
        return None if entry is None else [entry]

    def blocks(self) -> Iterator[Block | SetOperation]:
        """
        Every SELECT and set operation that the rules check.

        Those of views are among them, and of subqueries those that are near; the others have one
        finding for all.
        """
        every = blocks_of(self.subject.relation, views=True, nested=self._looked_into)
        return (block for block in every if block not in self.unbounded_laterals)

    def select_blocks(self) -> Iterator[Block]:
        """Every SELECT that the rules check."""
        return (block for block in self.blocks() if isinstance(block, Block))

    @property
    def unbounded_laterals(self) -> set[Relation]:
        """
        The SELECTs of LATERAL subqueries without a bound in time.

        Such a subquery has one finding, and its SELECTs have none. Where bounds are declared
        instead, its SELECTs are checked like any others.
        """
        incremental = self.subject.model.incremental
        if self._unbounded_laterals is None and incremental is not None and incremental.bounds:
            self._unbounded_laterals = set()
        elif self._unbounded_laterals is None:
            self._unbounded_laterals = selects_without_bound(
                self.subject.relation,
                lambda entry: (
                    self._lateral(entry) and entry.relation not in self.bounded_subqueries
                ),
                self.reads_time,
                lambda block: None if block in self.bounded_by_where else self.scope(block),
            )
        return self._unbounded_laterals

    def _looked_into(self, block: Block) -> list[Relation]:
        self.scope(block)
        return [inner for _, inner in block.nested_queries if inner in self.bounded_subqueries]

    # -- the model

    def input_bounds(self) -> list[InputBound]:
        """How far each naming of an input is read for one cell, as the partition column says."""
        bounds = []
        known = self.known(self.subject.relation).columns
        for path, shape in known.get(self.partition_column.lower(), {}).items():
            entry = path[-1]
            if not isinstance(entry, FromEntry) or not isinstance(entry.relation, Table):
                continue
            start = None
            if self.tables[entry] is self.subject.text and isinstance(entry.node, exp.Table):
                start = min(part.meta["start"] for part in entry.node.parts)
            bound = Bound(*shape.bound(self.granularity))
            bounds.append(InputBound(entry.relation.name, bound, start))
        return bounds

    def gives_cells_to_kept_lookups(self, block: Block) -> bool:
        """
        Whether a lookup's rows that a block keeps without a match have a cell all the same.

        ``FROM days LEFT JOIN clicks ON …``: the partition column is the lookup's own, and the join
        says how far from it the rows are that are missing.
        """
        incremental = self.subject.model.incremental
        if incremental is not None and (incremental.overrides or incremental.bounds):
            return False  # each cell would be computed by itself, and there are any number of them
        column, scope = self.partition_column.lower(), self.scope(block)
        known = self.known(self.subject.relation)
        if known.nulls.get(column, frozenset({()})) or not known.columns.get(column):
            return False
        return any(
            entry not in scope.values.nullable and scope.against_all(shapes)
            for (entry, _), shapes in scope.values.known.items()
        )

    def has_filled_cells(self) -> bool:
        """
        Whether cells may have rows where no input has any: those of lookups that an outer join
        preserves.
        """
        has_filled = False
        for block in self.select_blocks():
            times = [self.reads_time(entry.relation) for entry in block.entries]
            for at, entry in enumerate(block.entries):
                side = entry.join.side.upper() if entry.join is not None else ""
                timed_before = any(times[:at])
                has_filled = has_filled or (side == "LEFT" and not timed_before and times[at])
                has_filled = has_filled or (side == "RIGHT" and timed_before and not times[at])
        return has_filled

    def windows_of_rows(self) -> frozenset[Spot]:
        """The places of the windows that count rows."""
        return frozenset(
            block.text.spot_of(window)
            for block in self.select_blocks()
            for window in window_calls(block)
            if counts_rows(window, named_windows(block))
        )

    def can_partition(self, shapes: Shapes) -> bool:
        """Whether a column with these shapes places rows, not only at starts of longer cells."""
        return any(shape.can_partition(self.granularity) for shape in shapes.values())

    def time_columns(self, block: Block) -> list[str]:
        """The columns in a block's FROM that follow the time, for messages."""
        return [
            column
            for entry in block.entries
            for column, shapes in self.known(entry.relation).without_fields.items()
            if self.can_partition(shapes)
            and not self.scope(block).column_nulls(entry, column, merged=False)
        ]


def causes_of(subject: Subject, check: Callable[[], list[InfoldError]]) -> list[InfoldError]:
    """The findings that remain when every consequence of another finding counts as right."""
    strict = subject.shared.get("cells")
    if not isinstance(strict, Cells):
        return []
    lenient_cells = subject.shared["cells"] = Cells(subject, strict.granularity, lenient=True)
    try:
        lenient_cells.known(subject.relation)
        return check()
    finally:
        subject.shared["cells"] = strict


def cells_of(subject: Subject) -> Cells | None:
    """
    The analysis for a model that is built cell by cell; None for others.

    None too when something that it reads is wrong: findings would be about the wrong thing.
    """
    granularity = subject.model.granularity
    if not subject.model.kind.is_by_cell or granularity is None or not subject.inputs_are_right:
        return None
    cells = subject.shared.get("cells")
    if not isinstance(cells, Cells):
        cells = subject.shared["cells"] = Cells(subject, granularity)
        cells.known(subject.relation)  # so that the rules find all that is known of subqueries
    return cells


# Such a subquery can read rows at any distance from the row at its left, so the rules refuse it in
# a model that is built cell by cell.


class JoinedEntries(Protocol):
    """What is known of the entries of one FROM."""

    def connected(self, at: int) -> bool:
        """Whether the distance in time of an entry from those before it is bounded."""


def selects_without_bound(
    relation: Relation,
    looks_far: Callable[[FromEntry], bool],
    reads_time: Callable[[Relation], bool],
    scope: Callable[[Block], JoinedEntries | None],
) -> set[Relation]:
    """
    The SELECTs in such subqueries.

    ``looks_far``: whether a subquery has no bound in its own text; ``reads_time``: whether it reads
    an input with a time column. ``scope`` gives None for a SELECT that need not be checked.
    """
    return {
        part
        for block in blocks_of(relation, views=True)
        if isinstance(block, Block) and any(entry.lateral for entry in block.entries)
        for entry in _without_bound(block, looks_far, reads_time, scope(block))
        for part in blocks_of(entry.relation)
    }


def _without_bound(
    block: Block,
    looks_far: Callable[[FromEntry], bool],
    reads_time: Callable[[Relation], bool],
    scope: JoinedEntries | None,
) -> Iterator[FromEntry]:
    """The subqueries of a FROM that are joined to rows of any time."""
    if scope is None:
        return
    times = False
    for at, entry in enumerate(block.entries):
        if times and looks_far(entry) and not scope.connected(at):
            yield entry
        times = times or reads_time(entry.relation)


# `EXISTS (SELECT … FROM b WHERE b.ts BETWEEN a.ts - INTERVAL 1 DAY AND a.ts)` asks each row of `a`
# for rows of `b` that are near: it is a SEMI join, NOT EXISTS an ANTI join, a scalar subquery a
# LEFT join to the one group of the near rows. The predicates between both sides in the subquery's
# own WHERE say how near they are. All of the rows that these choose are read. So what the subquery
# does with them afterwards (groups, DISTINCT, windows, LIMIT) is done with the same rows, and the
# subquery may be inside NOT or any expression.
#
# `a.day IN (SELECT day FROM b)` states the distance by its value. That is valid for a match only: a
# NULL among the other values makes the result unknown instead of false. So IN has to be where false
# and unknown mean the same, which is not inside NOT; or neither side is ever NULL, as the times of
# cells are not. `(a.user, a.day) NOT IN (SELECT user, day FROM b)` is one of those: whatever the
# users are, a row of another day is another one. The subquery itself is checked like any relation
# in FROM.


def selects_and_unions(relation: Relation) -> list[Block | SetOperation]:
    """A subquery and what it puts together."""
    if isinstance(relation, SetOperation):
        return [relation, *selects_and_unions(relation.left), *selects_and_unions(relation.right)]
    return [relation] if isinstance(relation, Block) else []


def relations_read(relation: Relation) -> Iterator[Relation]:
    """
    A relation and the entries of each FROM in it, those of its subqueries in expressions too.

    A SELECT over lookups alone may ask for rows of any time in its WHERE.
    """
    yield relation
    for block in blocks_of(relation, views=True):
        if isinstance(block, Block):
            yield from (entry.relation for entry in block.entries)


def entries_by_predicate(
    relation: Relation, scope_of: Callable[[Block], Scope]
) -> list[SubqueryEntry] | None:
    """How near the rows are that a subquery's own WHERE chooses; an entry for each SELECT of it."""
    parts = selects_and_unions(relation)
    if any(
        not selects_and_unions(side)
        for part in parts
        if isinstance(part, SetOperation)
        for side in (part.left, part.right)
    ):
        return None
    selects = [part for part in parts if isinstance(part, Block)]
    return [_entry_of(block, scope_of(block)) for block in selects] or None


def entry_by_value(
    holder: exp.Expr, relation: Relation, known: KnownColumns, around: Scope
) -> SubqueryEntry | None:
    """
    How near the rows are that IN compares with.

    ``known`` is known of the subquery, ``around`` is the scope of the SELECT around it.
    """
    query = holder.args.get("query") if isinstance(holder, exp.In) else None
    if not isinstance(relation, (Block, SetOperation)) or not isinstance(query, exp.Expr):
        return None
    if query.unnest() is not relation.node:
        return None
    compared = holder.this.expressions if isinstance(holder.this, exp.Tuple) else [holder.this]
    inputs = frozenset((relation, *path) for path in known.required)
    distances, truth = [], is_asked_for_truth(holder)
    columns = zip(compared, known.by_position or (), known.nulls_by_position, strict=False)
    for i, (value, shapes, nulls) in enumerate(columns):
        outer, (low, high) = value_and_offset(value)
        always = around.shapes(outer) and not around.null_sources(outer) and not nulls
        if truth or always:
            inner = {(relation, *path): shape for path, shape in shapes.items()}
            distances.append(Distance(outer, (relation, str(i)), inner, (-high, -low)))
    inside = seen_through(relation, known.required, optional=True)
    return SubqueryEntry(relation, inputs, tuple(distances), {}, inside)


def _entry_of(block: Block, scope: Scope) -> SubqueryEntry:
    inputs = frozenset((block, *path) for path in scope.inputs)
    distances = tuple(
        Distance(
            outer=link.left,
            inner=(block, _name(block, value)),
            shapes={(block, *path): shape for path, shape in scope.shapes(link.right).items()},
            span=(link.low, link.high),
        )
        for link in _correlated_links(block)
        if (value := scope.value_of(link.right)) is not None
    )
    inside = seen_through(block, scope.values.required, optional=True)
    return SubqueryEntry(block, inputs, distances, block.origins, inside)


def _name(block: Block, value: EntryValue) -> str:
    """A name for a value of one of a block's entries, unlike those of other entries' values."""
    entry, name = value
    assert isinstance(entry, FromEntry), "a column of FROM"
    return f"{block.place_of(entry)}.{name}"


def _correlated_links(block: Block) -> Iterator[Link]:
    """The links of a subquery's WHERE, and of its inner joins, seen from either side."""
    stated = list(links_of(block.node.args.get("where")))
    joins = [entry.join for entry in block.entries if entry.join is not None]
    if not any(join.side or join.kind.upper() in ("SEMI", "ANTI") for join in joins):
        stated += [link for join in joins for link in links_of(join.args.get("on"))]
    for link in stated:
        if link.or_null:
            continue
        yield link
        yield link.reversed
