"""What is known of the columns that a relation yields, and how far an input is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from sqlglot import exp

from infold.analysis.names.relation import Block, Columns, FromEntry, Origin, SetOperation
from infold.analysis.times.shape import Shape, Span
from infold.core.interval import Granularity
from infold.core.project import Bound

# A window brings together rows with one value `k`, and what is known of `k` is known of all of
# them. A column `v` of one row is known against the other rows as far as it is known from `k`. An
# input that both are known against connects the two: the bridge.
#
# Only an input with a row here connects them. After an outer join there may be none. A row of a
# UNION comes from one side alone, and what is known of the other side's rows does not apply to it.
# :data:`Requirements` keeps for each input what must be present. Where no single input is certain,
# the hull over all of them is valid, because one of them is present.


@dataclass(frozen=True, slots=True)
class MergedColumns:
    """The columns that a RIGHT or FULL join with USING makes of both of its sides."""

    joined: FromEntry


Step: TypeAlias = FromEntry | Block | SetOperation | MergedColumns
"""An entry of FROM, or a subquery in an expression, which is read like one."""

InputPath: TypeAlias = tuple[Step, ...]
"""One input with a time column as a query reads it: the entries of FROM on the way to its table."""

Shapes: TypeAlias = Mapping[InputPath, Shape]
"""What is known of a column: its shape against each of some inputs."""

NullSources: TypeAlias = frozenset[InputPath]
"""
Where the NULLs of a column that follows the time come from: the entries of FROM that an outer join
may have found no row of, as paths. The column is NULL in the rows that lack one of them, and in no
other.
"""

Requirements: TypeAlias = Mapping[InputPath, NullSources | None]
"""For each input the entries that must have a row; None: rows of a UNION may lack the input."""

Bridges: TypeAlias = list[tuple[InputPath, ...]]
"""Bridges to choose from; one with several inputs gives the hull over them."""


def across(value: Shapes, bridge: Shapes, far: Shape, bridges: Bridges, unit: Granularity) -> Shape:
    """
    The shape of ``value`` against other rows, when ``far`` is the shape of the bridge's value
    there.

    Of several bridges, which connect both and are at least one, the one that gives the shortest
    bounds for cells of ``unit``.
    """
    hulls = [hull_of(value[path].through(bridge[path], far) for path in paths) for paths in bridges]
    return min(hulls, key=lambda shape: _width(shape, unit))


def distance_between(first: Shapes, second: Shapes, bridges: Bridges) -> Span:
    """How far apart two values of one row are: the first less the second."""
    spans = []
    for paths in bridges:
        ends = [(first[path].difference(), second[path].difference()) for path in paths]
        spans.append((min(a[0] - b[1] for a, b in ends), max(a[1] - b[0] for a, b in ends)))
    return min(spans, key=lambda span: span[1] - span[0])


def hull_of(shapes: Iterable[Shape]) -> Shape:
    """The shape of a value that has one of several shapes, at least one."""
    first, *rest = shapes
    for shape in rest:
        first = first.hull(shape)
    return first


def hulls_of(known: Sequence[Shapes]) -> Shapes:
    """The shapes of a value that is one of several, against the inputs that all are known by."""
    shared = [path for path in known[0] if all(path in shapes for shapes in known)]
    return {path: hull_of(shapes[path] for shapes in known) for path in shared}


def either_shapes(a: Shapes, b: Shapes) -> Shapes:
    """The shapes of a value that has those of one or of the other."""
    merged = dict(a)
    for path, shape in b.items():
        merged[path] = merged[path].hull(shape) if path in merged else shape
    return merged


def seen_through(step: Step, inner: Requirements, *, optional: bool = False) -> Requirements:
    """What the inputs of an entry of FROM require, seen from the SELECT that has the entry."""
    own = {(step,)} if optional else set()
    return {
        (step, *path): None if some is None else frozenset((step, *one) for one in some) | own
        for path, some in inner.items()
    }


def _width(shape: Shape, unit: Granularity) -> tuple[int, int]:
    low, high = shape.difference()
    return sum(max(0, end) for end in shape.bound(unit)), high - low


@dataclass(frozen=True, slots=True)
class KnownColumns:
    """
    What is known of a relation: the inputs with a time column that it reads, and its columns.

    ``columns`` are those with a shape against every input, by lower-case name. A field of a struct
    is named by both, with a NUL between.
    """

    inputs: frozenset[InputPath] = frozenset()
    columns: Mapping[str, Shapes] = field(default_factory=dict)
    by_position: tuple[Shapes, ...] | None = None
    """Shapes by position; None where not all columns are known, {} of one without a shape."""
    nulls: Mapping[str, NullSources] = field(default_factory=dict)
    """Where the NULLs of these columns come from."""
    nulls_by_position: tuple[NullSources, ...] = ()
    """NULL sources by position, as many as ``by_position`` has."""
    required: Requirements = field(default_factory=dict)
    """What must be present for each of the inputs."""

    @property
    def without_fields(self) -> Mapping[str, Shapes]:
        """The columns without the fields of structs, for messages and for tables."""
        return {name: shapes for name, shapes in self.columns.items() if "\0" not in name}

    def with_fields(self, fields: Iterable[tuple[str, Shapes, NullSources]]) -> KnownColumns:
        """The same with fields of structs: their names, their shapes, and their NULLs."""
        known_fields = [one for one in fields if one[1]]
        columns = {**self.columns, **{name: shapes for name, shapes, _ in known_fields}}
        nulls = {**self.nulls, **{name: sources for name, _, sources in known_fields}}
        return replace(self, columns=columns, nulls=nulls) if known_fields else self

    @property
    def reads_time(self) -> bool:
        """Whether the relation reads an input with a time column."""
        return bool(self.inputs)

    @staticmethod
    def in_order(
        inputs: frozenset[InputPath],
        names: Columns,
        shapes: tuple[Shapes, ...] | None,
        nulls: tuple[NullSources, ...],
        required: Requirements,
    ) -> KnownColumns:
        """From what is known of each column in order."""
        if names is None or shapes is None:
            return KnownColumns(inputs, required=required)
        known = [
            (name.lower(), shape, sources)
            for name, shape, sources in zip(names, shapes, nulls, strict=False)
            if shape and name
        ]
        columns = {name: shape for name, shape, _ in known}
        nulls_of = {name: sources for name, _, sources in known}
        return KnownColumns(inputs, columns, shapes, nulls_of, nulls, required)


def columns_of_set_operation(
    relation: SetOperation, left: KnownColumns, right: KnownColumns
) -> KnownColumns:
    """A column is known when it is on both sides; each side's rows are of its own inputs."""
    inputs = left.inputs | right.inputs
    required: dict[InputPath, NullSources | None] = dict.fromkeys(inputs)
    if not isinstance(relation.node, exp.Union):
        required |= left.required  # its rows are rows of the left side
    sides = left.by_position, right.by_position
    if not (left.reads_time and right.reads_time) or sides[0] is None or sides[1] is None:
        return KnownColumns(inputs, required=required)
    other_shapes, other_nulls = sides[1], right.nulls_by_position
    if relation.node.args.get("by_name"):
        names = [name.lower() for name in relation.left.columns or ()]
        other_shapes = tuple(right.columns.get(name, {}) for name in names)
        other_nulls = tuple(right.nulls.get(name, frozenset()) for name in names)
    each = tuple(
        either_shapes(a, b) if a and b else {} for a, b in zip(sides[0], other_shapes, strict=False)
    )
    nulls = tuple(a | b for a, b in zip(left.nulls_by_position, other_nulls, strict=False))
    return KnownColumns.in_order(inputs, relation.columns, each, nulls, required)


@dataclass(frozen=True, slots=True)
class InputBound:
    """How far one naming of an input is read; ``start``: its position in the model's own SQL."""

    name: str
    bound: Bound
    start: int | None


# `propagation` starts from it: it adds what the join conditions say about the entries.

EntryValue: TypeAlias = tuple[Step, str]
"""A value of one entry of FROM: the entry, and a column's name or an expression's text."""


@dataclass(frozen=True, slots=True)
class Entries:
    """What is known of the entries of a FROM before they are joined."""

    columns: Mapping[EntryValue, Shapes]
    """The shapes of each entry's columns, by entry and lower-case name."""
    inputs: Mapping[Step, frozenset[InputPath]]
    """The inputs with a time column that each entry reads, as paths that begin with it."""
    nulls: Mapping[EntryValue, NullSources] = field(default_factory=dict)
    """Where the NULLs of an entry's columns come from."""
    required: Mapping[FromEntry, Requirements] = field(default_factory=dict)
    """By entry, which of its own entries must have a row for each of its inputs."""


@dataclass(frozen=True, slots=True, eq=False)
class Distance:
    """``low <= outer - inner <= high``: how far a value here is from one of a subquery's rows."""

    outer: exp.Expr
    inner: EntryValue
    shapes: Shapes
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class SubqueryEntry:
    """
    A subquery as an entry of FROM: the inputs that it reads, and how far away its rows are.

    ``origins`` are the columns that its own text names, also those of the rows around it.
    """

    relation: Block | SetOperation
    inputs: frozenset[InputPath]
    distances: tuple[Distance, ...]
    origins: Mapping[exp.Expr, Origin | None]
    required: Requirements
