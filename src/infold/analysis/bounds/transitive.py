"""
What one value of a row says of another, by the inputs that both are known against.

A window brings together rows with one value ``k``, and what is known of ``k`` is known of all of
them; a column ``v`` of one row is then known against the others as far as it is known from ``k``,
which an input says that both are known against: the bridge.

Only an input of which the row has a row says anything. After an outer join it may have none, and a
row of a UNION is of one side alone: what the other side says of its own rows does not hold of it.
:data:`Needs` keeps of each input what has to be there for it. Where no single input is certain,
the hull of what all of them say is, as one of them is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from infold.analysis.times.shape import Shape, Span
from infold.core.interval import Granularity

Key = tuple[int, ...]
"""One input with a time column as a query reads it: the entries of FROM on the way to its table."""

Shapes = Mapping[Key, Shape]
"""What is known of a column: its shape against each of some inputs."""

Gaps = frozenset[Key]
"""
Where the NULLs of a column that follows the time come from: the entries of FROM, on the way to
them as in a :data:`Key`, of which an outer join may have found no row. The column is NULL in the
rows where one of them is missing, and in no other.
"""

Needs = Mapping[Key, Gaps | None]
"""Of each input the entries that have to be there for it; None: rows of a UNION may lack it."""

Ways = list[tuple[Key, ...]]
"""Bridges to choose from: the hull of what the inputs of one say holds of every row."""


def beyond(value: Shapes, bridge: Shapes, far: Shape, ways: Ways, unit: Granularity) -> Shape:
    """
    The shape of ``value`` against an input of other rows, which ``far`` says of the bridge's value.

    Of several ways the one that says most of cells of ``unit``.
    """
    found = [
        hull(value[key].through(bridge[key], far) for key in way)
        for way in ways
        if all(key in value and key in bridge for key in way)
    ]
    return min(found, key=lambda shape: _room(shape, unit))


def apart(one: Shapes, other: Shapes, ways: Ways) -> Span:
    """How far apart two values of one row are, the first less the second."""
    spans = []
    for way in ways:
        ends = [(one[key].difference(), other[key].difference()) for key in way]
        spans.append((min(a[0] - b[1] for a, b in ends), max(a[1] - b[0] for a, b in ends)))
    return min(spans, key=lambda span: span[1] - span[0])


def hull(shapes: Iterable[Shape]) -> Shape:
    """What holds of a value that has one of several shapes, at least one."""
    first, *rest = shapes
    for shape in rest:
        first = first.hull(shape)
    return first


def either(a: Shapes, b: Shapes) -> Shapes:
    """What holds of a value that has the shapes of one or of the other."""
    found = dict(a)
    for key, shape in b.items():
        found[key] = found[key].hull(shape) if key in found else shape
    return found


def under(at: int, needs: Needs, *, optional: bool = False) -> Needs:
    """What the inputs of an entry of FROM need, seen from outside."""
    own = {(at,)} if optional else set()
    return {
        (at, *key): None if some is None else frozenset((at, *gap) for gap in some) | own
        for key, some in needs.items()
    }


def _room(shape: Shape, unit: Granularity) -> tuple[int, int]:
    low, high = shape.difference()
    return sum(max(0, end) for end in shape.bound(unit)), high - low
