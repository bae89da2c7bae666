"""
How one value of a row bounds another, through inputs that both are known against.

A window brings together rows with one value ``k``, and what is known of ``k`` is known of all of
them. A column ``v`` of one row is known against the other rows as far as it is known from ``k``. An
input that both are known against connects the two: the bridge.

Only an input with a row here connects them. After an outer join there may be none. A row of a UNION
comes from one side alone, and what is known of the other side's rows does not apply to it.
:data:`Requirements` keeps for each input what must be present. Where no single input is certain,
the hull over all of them is valid, because one of them is present.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from infold.analysis.names.relation import Block, FromEntry, SetOperation
from infold.analysis.times.shape import Shape, Span
from infold.core.interval import Granularity


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
    found = [hull_of(value[path].through(bridge[path], far) for path in paths) for paths in bridges]
    return min(found, key=lambda shape: _width(shape, unit))


def distance_between(one: Shapes, other: Shapes, bridges: Bridges) -> Span:
    """How far apart two values of one row are: the first less the second."""
    spans = []
    for paths in bridges:
        ends = [(one[path].difference(), other[path].difference()) for path in paths]
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
    found = dict(a)
    for path, shape in b.items():
        found[path] = found[path].hull(shape) if path in found else shape
    return found


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
