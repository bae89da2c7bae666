"""
One SELECT's FROM and WHERE: which columns follow the times of which inputs.

Every column of an entry of FROM comes with its shapes against the inputs that the entry reads. The
distances that predicates state (:mod:`infold.analysis.times.distances`) carry them over to the
other entries: after ``b.ts BETWEEN a.ts - INTERVAL 1 DAY AND a.ts`` the times of b's rows are known
from a's. The ON of an outer join, or of a SEMI or ANTI one, is true only where a row was found. So
such an entry passes on what is known of its own inputs, and nothing else.

Its columns are NULL where no row was found, and a shape says nothing about NULLs. GROUP BY and
windows put NULLs of rows of all times together. So each column has the sources of its NULLs
(:data:`NullSources`).

A subquery in an expression is an entry too (:mod:`infold.analysis.bounds.cells`): EXISTS
is a SEMI join, NOT EXISTS an ANTI join, a scalar subquery a LEFT join to one group.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from sqlglot import exp

from infold.analysis.bounds.known_columns import (
    Bridges,
    Entries,
    EntryValue,
    InputPath,
    MergedColumns,
    NullSources,
    Shapes,
    Step,
    SubqueryEntry,
    across,
    distance_between,
    either_shapes,
    hulls_of,
    seen_through,
)
from infold.analysis.names.relation import Block, FromEntry, Origin, own_nodes
from infold.analysis.names.resolve import joined_by_name
from infold.analysis.sql.parse import normal_sql
from infold.analysis.times.call_shapes import (
    coalesced_values,
    exploded_values,
    first_values,
    possible_values,
    shape_change,
)
from infold.analysis.times.distances import UNBOUNDED, Link, links_of, values_needed
from infold.analysis.times.floors import field_of, floor_of
from infold.analysis.times.shape import Grain, Shape, Span
from infold.core.interval import Granularity

# Two ways lead from value to value: the distance that a predicate states between them, and an input
# that both are known against (:mod:`infold.analysis.bounds.known_columns`).


@dataclass(slots=True, eq=False)
class Propagation:
    """
    What is known of the values of one FROM, and for which rows.

    ``nulls_of`` gives the NULL sources of a value before WHERE.
    """

    known: dict[EntryValue, dict[InputPath, Shape]]
    granularity: Granularity
    """Of cells: where a shape can be derived in several ways, the best for these is kept."""
    nulls_of: Callable[[EntryValue], NullSources]
    distances: dict[tuple[EntryValue, EntryValue], Span] = field(default_factory=dict)
    """What predicates state: how much less the second value is than the first."""
    required: dict[InputPath, NullSources | None] = field(default_factory=dict)
    """By input, the entries that must have a row; None: rows of a UNION may lack the input."""
    nullable: set[Step] = field(default_factory=set)
    """The entries that an outer join may find no row of."""
    present: set[InputPath] = field(default_factory=set)
    """What no row lacks, as WHERE or an inner join asks for a value of it."""
    present_with: dict[Step, NullSources] = field(default_factory=dict)
    """
    What is present wherever a row of an entry is, as ON asks for it: of a LEFT JOIN where it has
    found one, of a RIGHT JOIN where it has kept one.
    """

    def state(self, left: EntryValue, right: EntryValue, span: Span) -> None:
        """A predicate says that ``left - right`` lies in ``span``."""
        if (right, left) in self.distances:
            left, right, span = right, left, (-span[1], -span[0])
        low, high = self.distances.get((left, right), (-UNBOUNDED, UNBOUNDED))
        self.distances[left, right] = max(low, span[0]), min(high, span[1])

    def run(self) -> None:
        """Carry shapes on until nothing new follows."""
        both = dict(self.distances)
        both |= {(right, left): (-high, -low) for (left, right), (low, high) in both.items()}
        bounded = [
            (left, right, span)
            for (left, right), span in self._completed(both)
            if -UNBOUNDED < span[0] <= span[1] < UNBOUNDED
        ]
        grains = {value: common_grain(shapes) for value, shapes in self.known.items()}
        while any([*self._along_distances(bounded, grains), *self._along_inputs()]):
            pass

    def bridges(self, shared: Collection[InputPath], nulls: NullSources) -> Bridges:
        """
        The inputs, or groups of them, that connect one value with another.

        ``shared`` are the inputs that both values are known against. The first value's NULLs come
        from ``nulls``; the connection is valid where it is not NULL.
        """
        bridges_between: Bridges = []
        for path, needed_nulls in self.required.items():
            if path in shared and needed_nulls is not None and needed_nulls - self.present <= nulls:
                bridges_between.append((path,))
        for step in dict.fromkeys(path[0] for path in self.required):
            group = [path for path in self.required if path[0] is step]
            is_present = not self.optional(step) or (step,) in nulls
            if len(group) > 1 and is_present and all(path in shared for path in group):
                bridges_between.append(tuple(group))
        return bridges_between

    def connects(self, entry: Step, entries: Collection[Step]) -> bool:
        """Whether a value is known against an input of one entry, and of any of the others."""
        return any(
            any(path[0] is entry for path in shapes) and any(path[0] in entries for path in shapes)
            for shapes in self.known.values()
        )

    def optional(self, step: Step) -> bool:
        """Whether rows may lack a row of an entry."""
        return step in self.nullable and (step,) not in self.present

    def _completed(
        self, distances: Mapping[tuple[EntryValue, EntryValue], Span]
    ) -> Iterator[tuple[tuple[EntryValue, EntryValue], Span]]:
        """
        The distances, where an open end is taken from a neighbour of the value.

        ``b.ts >= cast(a.ts AS date) AND b.ts <= a.ts`` bounds ``b.ts`` by a.ts on both sides.
        """
        for (left, right), (low, high) in distances.items():
            for (other, neighbour), (least, most) in distances.items():
                distance = self._distance_in_entry(neighbour, right) if other == left else None
                if distance is None:
                    continue
                if low == -UNBOUNDED < least:
                    low = least + distance[0]
                if high == UNBOUNDED > most:
                    high = most + distance[1]
            yield (left, right), (low, high)

    def _distance_in_entry(self, first: EntryValue, second: EntryValue) -> Span | None:
        """How far apart two values of one entry are, as both are known against one input."""
        if first == second or first[0] is not second[0]:
            return None
        bridges = self._between(first, second)
        return distance_between(self.known[first], self.known[second], bridges) if bridges else None

    def _along_distances(
        self,
        distances: list[tuple[EntryValue, EntryValue, Span]],
        grains: Mapping[EntryValue, Grain],
    ) -> Iterator[bool]:
        """Carry shapes over stated distances; yields for each new one."""
        for left, right, span in distances:
            for path in self._new_for(left, right):
                shape = self.known[right][path]
                self.known[left][path] = shape.at_distance(span, grains[left])
                yield True

    def _along_inputs(self) -> Iterator[bool]:
        """Carry shapes over inputs that two values are both known against; yields for each."""
        values = [value for value, shapes in self.known.items() if shapes]
        for value in values:
            for bridge in values:
                bridges = self._between(value, bridge) if value != bridge else []
                if not bridges:
                    continue
                own_shapes, others = dict(self.known[value]), self.known[bridge]
                for path in self._new_for(value, bridge):
                    carried = across(own_shapes, others, others[path], bridges, self.granularity)
                    self.known[value][path] = carried
                    yield True

    def _between(self, value: EntryValue, bridge: EntryValue) -> Bridges:
        """The inputs that connect two values wherever the first is not NULL."""
        both = self.known[value].keys() & self.known[bridge].keys()
        return self.bridges(both, self.nulls_of(value)) if both else []

    def _new_for(self, taker: EntryValue, giver: EntryValue) -> list[InputPath]:
        """The inputs that one value may tell another about, which does not know them yet."""
        paths = [path for path in self.known[giver] if path not in self.known[taker]]
        if self.optional(giver[0]) and giver[0] is not taker[0]:
            # Where such a row is, there is a row of the giver's too.
            paths = [
                path
                for path in paths
                if path[0] is giver[0] or (giver[0],) in self.present_with.get(path[0], ())
            ]
        return paths


def common_grain(shapes: Shapes) -> Grain:
    """How coarse a value is, where all its shapes agree."""
    grains = {shape.grain for shape in shapes.values()}
    return grains.pop() if len(grains) == 1 else None


# A row of `a FULL JOIN b` has a row of `a`, or one of `b`, or both. So `coalesce(a.ts, b.ts)` is
# never NULL, though each of them may be, and so is the column that USING makes of both. It is known
# by what both are known by: where it is `a.ts`, the rows of `b` that matter are those that ON could
# find for it, and the other way round.

SomePresent = list[frozenset[Step]]
"""Sets of entries of a FROM: every row has a row of at least one entry of each set."""


def some_present_after(before: SomePresent, entry: FromEntry) -> SomePresent:
    """The same after one more entry of FROM, the first one among them."""
    join = entry.join
    if join is None:
        return before or [frozenset({entry})]  # behind the first: a LATERAL VIEW
    side, kind = join.side.upper(), join.kind.upper()
    if side == "RIGHT":
        return [frozenset({entry})]
    if side == "FULL":
        return [entries | {entry} for entries in before]
    return before if side == "LEFT" or kind in ("SEMI", "ANTI") else [*before, frozenset({entry})]


def is_any_present(present: SomePresent, nulls: Collection[NullSources]) -> bool:
    """
    Whether one of several values is not NULL in every row; ``nulls``: where those of each are from.

    That is so where the entries of one set have a value each that is NULL only without their row.
    """
    return any(
        all(any(sources <= {(entry,)} for sources in nulls) for entry in entries)
        for entries in present
    )


def merged_values(entries: Sequence[FromEntry], name: str) -> list[EntryValue]:
    """What USING or NATURAL makes one column of, where one of these joins is RIGHT or FULL."""
    joins = [entry for entry in entries if name in joined_by_name(entries, entry)]
    if not any(entry.join is not None and entry.join.side.upper() in _OTHER for entry in joins):
        return []
    first = entries.index(joins[0])
    before = [entry for entry in entries[:first] if name in (entry.names or ())]
    return [(entry, name) for entry in (*before, *joins)]


_OTHER = ("RIGHT", "FULL")


def offsets_from_first(
    values: Iterable[EntryValue | None], distances: Mapping[tuple[EntryValue, EntryValue], Span]
) -> list[tuple[EntryValue, Span]]:
    """
    How much more each value may be than the first of them that is not NULL.

    ``coalesce(a.ts, b.ts)`` is ``b.ts``, or at the distance from it that ON states of both. A value
    without such a distance from one before it is left out, and so is all behind one that is None.
    """
    offsets: list[tuple[EntryValue, Span]] = []
    before: list[EntryValue] = []
    for value in values:
        if value is None:
            break
        spans = [_distance(value, earlier, distances) for earlier in before]
        low = min((span[0] for span in spans), default=0)
        high = max((span[1] for span in spans), default=0)
        if low > -UNBOUNDED and high < UNBOUNDED:
            offsets.append((value, (min(low, 0), max(high, 0))))
        before.append(value)
    return offsets


def _distance(
    value: EntryValue, other: EntryValue, distances: Mapping[tuple[EntryValue, EntryValue], Span]
) -> Span:
    """How much more a value is than another one where both are."""
    if (other, value) in distances:
        low, high = distances[other, value]
        return -high, -low
    return distances.get((value, other), (-UNBOUNDED, UNBOUNDED))


@dataclass(slots=True, eq=False)
class Scope:
    """
    The rows of a block before it groups them.

    ``subqueries`` are those in its expressions that count as entries of FROM.
    """

    block: Block
    entries: Entries
    granularity: Granularity
    """Of the model's cells."""
    subqueries: tuple[SubqueryEntry, ...] = ()
    lenient: bool = False
    """Whether a value that is known against one input counts as known against all."""
    values: Propagation = field(init=False)
    compared: set[EntryValue] = field(default_factory=set)
    """The values that WHERE compares: its predicate is true for every row."""
    preserved: set[FromEntry] = field(default_factory=set)
    """The lookups with rows that an outer join preserves without a match."""
    some_present: SomePresent = field(default_factory=list)
    """Sets of entries of which every row has at least one."""
    complete: bool = False
    """Whether all of FROM and WHERE has been read."""

    def __post_init__(self) -> None:
        known = {value: dict(shapes) for value, shapes in self.entries.columns.items()}
        self.values = Propagation(
            known, self.granularity, lambda value: self._nulls_of(value, merged=False)
        )
        for at, entry in enumerate(self.block.entries):
            self._join(at, entry)
            self._explode(entry)
        where = self.block.node.args.get("where")
        for link in links_of(where):
            self._state(link)
            both = self.value_of(link.left), self.value_of(link.right)
            self.compared.update(value for value in both if value is not None)
        self._require(where)
        for subquery in self.subqueries:
            self._add(subquery)
        for entry, required in self.entries.required.items():
            optional = self.values.optional(entry)
            self.values.required |= seen_through(entry, required, optional=optional)
        for subquery in self.subqueries:
            self.values.required |= subquery.required
        self.values.run()
        self.complete = True

    @property
    def inputs(self) -> frozenset[InputPath]:
        """All inputs with a time column that the block reads."""
        subquery_inputs = (subquery.inputs for subquery in self.subqueries)
        return frozenset(
            path for paths in (*self.entries.inputs.values(), *subquery_inputs) for path in paths
        )

    def against_all(self, shapes: Shapes) -> bool:
        """Whether something is known against every input."""
        return bool(shapes) and (self.lenient or self.inputs <= shapes.keys())

    def connected(self, upto: int) -> bool:
        """Whether some value of the first ``upto`` entries and one more is known against all."""
        entries = self.block.entries[: upto + 1]
        if self.lenient:
            return self.values.connects(entries[-1], entries[:-1])
        all_paths = {path for entry in entries for path in self.entries.inputs.get(entry, ())}
        return any(
            value[0] in entries and all_paths <= shapes.keys()
            for value, shapes in self.values.known.items()
        )

    def reaches(self, inputs: frozenset[InputPath]) -> bool:
        """Whether a value that every row here has is known against a subquery's inputs as well."""
        always = [
            entry
            for entry in self.block.entries
            if entry not in self.values.nullable and not entry.hidden
        ]
        own_paths = frozenset(path for paths in self.entries.inputs.values() for path in paths)
        is_connected = self.connected(len(self.block.entries))
        needed_paths = inputs | own_paths if is_connected else inputs
        return any(
            value[0] in always and needed_paths <= shapes.keys()
            for value, shapes in self.values.known.items()
        )

    # -- expressions

    def shapes(self, node: exp.Expr) -> Shapes:
        """What is known of an expression over one row."""
        if isinstance(node, (exp.Paren, exp.Alias)):
            return self.shapes(node.this)
        if isinstance(node, exp.Column):
            if node in self.block.aliases:
                return self.shapes(self.block.aliases[node])
            value = self._column(node)
            if value is None:
                return {}
            if self.complete and self.lenient and value[0] in self.preserved:
                return self.values.known.get(value) or {path: Shape() for path in self.inputs}
            return self.values.known.get(value, {}) if node.table else self._merged_shapes(value)
        if isinstance(node, exp.Dot) and isinstance(node.this, exp.Column):
            return self._field(node)
        computed = self._computed(node)
        value = self.value_of(node)
        if value is not None and value in self.values.known and self._holds(value, node):
            return {**self.values.known[value], **computed}
        return computed

    def _field(self, node: exp.Dot) -> Shapes:
        """What is known of a field of a column, or of a field of the SELECT's own alias."""
        name = node.expression.name.lower()
        if node.this in self.block.aliases:
            return self.shapes(field_of(self.block.aliases[node.this], name))
        value = self._column(node.this, name)
        return self.values.known.get(value, {}) if value is not None else {}

    def _computed(self, node: exp.Expr) -> Shapes:
        change = shape_change(node)
        if change is None:
            return self._one_of(node)
        inner, how = change
        return {path: how(shape) for path, shape in self.shapes(inner).items()}

    def _one_of(self, node: exp.Expr) -> Shapes:
        """The shapes of a value that is one of several, if its NULLs are accounted for."""
        values = possible_values(node) or coalesced_values(node) or exploded_values(node)
        if values is None or self._nulls_of_any(node) is None:
            return {}
        if isinstance(node, exp.Coalesce) and not self.null_sources(values[0]):
            return self.shapes(values[0])  # it is never NULL
        return self._either([self.shapes(value) for value in values])

    def _merged_shapes(self, value: EntryValue) -> Shapes:
        """What is known of a column that is named without its table: one of each side of a join."""
        sides = merged_values(self.block.entries, value[1])
        known = self.values.known
        return self._either([known.get(one, {}) for one in sides or [value]])

    def _either(self, known: Sequence[Shapes]) -> Shapes:
        """What is known of a value that is one of several."""
        return reduce(either_shapes, known) if self.lenient else hulls_of(known)

    def _nulls_of_any(self, node: exp.Expr) -> NullSources | None:
        """The NULL sources of such a value; None where it may be NULL elsewhere."""
        each, options = possible_values(node) or exploded_values(node), coalesced_values(node)
        if each is not None:
            sources = {self._nulls_before_where(value) for value in each if self.shapes(value)}
            return sources.pop() if len(sources) == 1 else None
        known = [self._nulls_before_where(value) for value in options or () if self.shapes(value)]
        known = [nulls - self.values.present for nulls in known]
        if is_any_present(self.some_present, known) or frozenset() in known:
            return frozenset()
        return known[0] if known and len(set(known)) == 1 else None

    def _holds(self, value: EntryValue, node: exp.Expr) -> bool:
        """
        Whether the shapes of an expression are valid wherever it is not NULL.

        ``coalesce(o.ts, DATE '2020-01-01') = x.ts`` ON an outer join to ``o`` says nothing about
        the rows without one. A call that makes NULL of NULL has no other value there.
        """
        strict = self._null_with(node) is not None
        return strict or value[0] not in self.values.nullable or value in self.compared

    def _null_with(self, node: exp.Expr) -> exp.Column | None:
        """The column that an expression is NULL with, and only with."""
        while not isinstance(node, exp.Column):
            of_column = isinstance(node, exp.Dot) and isinstance(node.this, exp.Column)
            if isinstance(node, (exp.Paren, exp.Alias)) or of_column:
                node = node.this
                continue
            change = shape_change(node)
            if change is None:
                return None
            node = change[0]
        if node in self.block.aliases:
            return self._null_with(self.block.aliases[node])
        return node

    def underlying_column(self, value: exp.Expr | Origin) -> tuple[EntryValue, Shape] | None:
        """The column that a value is NULL with, and the value's shape against that column's."""
        if isinstance(value, Origin):
            column: EntryValue | None = value.entry, "\0".join((value.column, *value.fields))
        elif isinstance(value, (exp.Paren, exp.Alias)):
            return self.underlying_column(value.this)
        elif isinstance(value, exp.Column):
            if value in self.block.aliases:
                return self.underlying_column(self.block.aliases[value])
            column = self._column(value)
        else:
            change = shape_change(value)
            inner = self.underlying_column(change[0]) if change is not None else None
            return None if inner is None or change is None else (inner[0], change[1](inner[1]))
        if column is None:
            return None
        return column, Shape(grain=common_grain(self.values.known.get(column, {})))

    # -- NULLs

    def null_sources(self, node: exp.Expr) -> NullSources:
        """Where the NULLs come from of an expression that has a shape."""
        return self._nulls_before_where(node) - self.values.present

    def column_nulls(self, entry: FromEntry, name: str, *, merged: bool) -> NullSources:
        """
        Where the NULLs come from of a column of an entry, by its lower-case name.

        ``merged``: whether the query names it without its table. After an outer join with USING
        that is the value of either side.
        """
        return self._nulls_of((entry, name), merged=merged) - self.values.present

    def _nulls_before_where(self, node: exp.Expr) -> NullSources:
        """The same, before WHERE and inner joins have left out any of them."""
        while (change := shape_change(node)) is not None or isinstance(
            node, (exp.Paren, exp.Alias)
        ):
            node = change[0] if change is not None else node.this
        column = self._null_with(node)
        value = self._column(column) if column is not None else None
        if column is None or value is None:
            if isinstance(node, exp.Column) and node in self.block.aliases:
                return self._nulls_before_where(self.block.aliases[node])
            return self._nulls_of_any(node) or frozenset()
        return self._nulls_of(value, merged=not column.table)

    def _nulls_of(self, value: EntryValue, *, merged: bool) -> NullSources:
        step, name = value
        sides = merged_values(self.block.entries, name) if merged else []
        if sides:  # missing where no side has the value
            nulls = [self._nulls_of(side, merged=False) - self.values.present for side in sides]
            present = is_any_present(self.some_present, nulls)
            return frozenset() if present else frozenset({(MergedColumns(self.block.entries[-1]),)})
        own_row: set[InputPath] = {(step,)} if step in self.values.nullable else set()
        struct = step, name.partition("\0")[0]  # a field of a struct is NULL with the struct
        return self.entries.nulls.get(struct, frozenset()) | own_row

    def _require(self, predicate: exp.Expr | None) -> None:
        """Note what is present in all rows for which a predicate is true."""
        for node in values_needed(predicate):
            self.values.present |= self._nulls_before_where(node)

    # -- values of one entry

    def column(self, entry: FromEntry, name: str, *, merged: bool = False) -> Shapes:
        """What is known of a column of an entry, lower case; nothing of one that is not there."""
        if entry not in self.block.entries or entry.hidden:
            return {}
        value = entry, name
        return self._merged_shapes(value) if merged else self.values.known.get(value, {})

    def _column(self, node: exp.Column, *fields: str) -> EntryValue | None:
        origin = self.block.origins.get(node)
        for subquery in self.subqueries:
            origin = origin or subquery.origins.get(node)
        if origin is None or origin.entry not in self.block.entries:
            return None
        return origin.entry, "\0".join((origin.column, *origin.fields, *fields))

    def value_of(self, node: exp.Expr) -> EntryValue | None:
        """The value that an expression is, where it draws on one entry alone."""
        while isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, exp.Column):
            return self._column(node)
        floor = floor_of(node)
        if floor is not None and floor.changes_nothing(self.shapes(floor.inner).values()):
            return self.value_of(floor.inner)
        entries: set[Step] = set()
        for part in own_nodes(node):
            if isinstance(part, exp.Column):
                value = self._column(part)
                if value is None:
                    return None
                entries.add(value[0])
            elif isinstance(part, (exp.Query, exp.Window)):
                return None
        return (
            (entries.pop(), normal_sql(node, lambda column: (self._column(column) or ("", ""))[1]))
            if len(entries) == 1
            else None
        )

    # -- joins and predicates

    def _explode(self, entry: FromEntry) -> None:
        """The column of LATERAL VIEW explode(…), which the rows before it determine."""
        node, columns = entry.node, entry.relation.columns
        if not isinstance(node, exp.Lateral) or not node.args.get("view"):
            return
        if node.args.get("outer"):  # its NULLs are of rows of any time
            return
        if columns is None or len(columns) != 1 or not isinstance(node.this, exp.Explode):
            return
        shapes, nulls = self.shapes(node.this), self._nulls_before_where(node.this)
        if shapes and not nulls:
            self.values.known[entry, columns[0].lower()] = dict(shapes)

    def _join(self, at: int, entry: FromEntry) -> None:
        join, values = entry.join, self.values
        self.some_present = some_present_after(self.some_present, entry)
        if join is None:
            return
        side, kind = join.side.upper(), join.kind.upper()
        if side in ("LEFT", "FULL") or kind in ("SEMI", "ANTI"):
            values.nullable.add(entry)
        if side in ("RIGHT", "FULL"):
            values.nullable.update(self.block.entries[:at])
            values.present.clear()
        outer = side in ("LEFT", "RIGHT", "FULL") or kind in ("SEMI", "ANTI")
        self._preserve(side, at, entry)
        if side in ("LEFT", "RIGHT"):
            self._ask(join, [entry] if side == "LEFT" else self.block.entries[:at])
        for link in links_of(join.args.get("on")):
            self._state(link, only=entry if outer else None)
        if not outer:
            self._require(join.args.get("on"))
        for name in joined_by_name(self.block.entries, entry):
            for other in self.block.entries[:at]:
                left, right = (other, name), (entry, name)
                if left in values.known and right in values.known:
                    values.state(left, right, (0, 0))

    def _ask(self, join: exp.Join, optional: Iterable[FromEntry]) -> None:
        """Note what the ON of a join for some entries has asked for, wherever they have a row."""
        sources = (self._nulls_before_where(node) for node in values_needed(join.args.get("on")))
        needed = frozenset(one for nulls in sources for one in nulls)
        for entry in optional:
            known = self.values.present_with.get(entry, frozenset())
            self.values.present_with[entry] = known | needed

    def _preserve(self, side: str, at: int, entry: FromEntry) -> None:
        """Note the lookups with rows that an outer join preserves."""
        before = self.block.entries[:at]
        if side == "LEFT" and not any(self.entries.inputs.get(one) for one in before):
            self.preserved.update(before)
        if side == "RIGHT" and not self.entries.inputs.get(entry):
            self.preserved.add(entry)

    def _state(self, link: Link, only: FromEntry | None = None) -> None:
        """
        Note a predicate's distance; ``only``: the predicate only chooses matches of
        this entry.
        """
        for left, first in self._values_of(link.left):
            for right, second in self._values_of(link.right):
                span = link.low + first[0] - second[1], link.high + first[1] - second[0]
                self._state_of(link, left, right, span, only)

    def _values_of(self, node: exp.Expr) -> list[tuple[EntryValue, Span]]:
        """The values that an expression is, or is one of, and how much more each may be than it."""
        value = self.value_of(node)
        if value is not None:
            return [(value, (0, 0))]
        sides = (self.value_of(side) for side in first_values(node) or ())
        return offsets_from_first(sides, self.values.distances)

    def _state_of(
        self,
        link: Link,
        left: EntryValue,
        right: EntryValue,
        span: Span,
        only: FromEntry | None,
    ) -> None:
        if left == right:
            return
        if only is not None and only not in (left[0], right[0]):
            return  # it chooses matches, and is not true of rows without one
        if link.or_null and not (self._never_null(left, only) or self._never_null(right, only)):
            return  # two NULLs, of rows of any time
        for value, node in ((left, link.left), (right, link.right)):
            if value not in self.values.known:
                self.values.known[value] = dict(self.shapes(node))
        self.values.state(left, right, span)

    def _never_null(self, value: EntryValue, joined: FromEntry | None) -> bool:
        """Whether a value is never NULL where a predicate is asked, that of a join for one."""
        nulls = self._nulls_of(value, merged=False) - self.values.present
        allowed: set[InputPath] = {(joined,)} if joined is not None else set()
        return value in self.entries.columns and nulls <= allowed

    def _add(self, subquery: SubqueryEntry) -> None:
        """What a subquery says of its own rows; of the rows here it says nothing."""
        self.values.nullable.add(subquery.relation)
        for distance in subquery.distances:
            value = self.value_of(distance.outer)
            if value is None:
                continue
            if value not in self.values.known:
                self.values.known[value] = dict(self.shapes(distance.outer))
            self.values.known.setdefault(distance.inner, dict(distance.shapes))
            self.values.state(value, distance.inner, distance.span)
