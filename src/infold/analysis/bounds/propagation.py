"""
Shapes carried from one value of a FROM to the others until nothing new follows.

Two ways lead from value to value: the distance that a predicate states between them, and an input
that both are known against (:mod:`infold.analysis.bounds.transitive`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from infold.analysis.bounds.known_columns import EntryValue
from infold.analysis.bounds.transitive import (
    Bridges,
    InputPath,
    NullSources,
    Shapes,
    Step,
    across,
    distance_between,
)
from infold.analysis.times.distances import UNBOUNDED
from infold.analysis.times.shape import Grain, Shape, Span
from infold.core.interval import Granularity


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
    """What must be present for each input."""
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
        found: Bridges = []
        for path, wanted in self.required.items():
            if path in shared and wanted is not None and wanted - self.present <= nulls:
                found.append((path,))
        for step in dict.fromkeys(path[0] for path in self.required):
            group = [path for path in self.required if path[0] is step]
            there = not self.optional(step) or (step,) in nulls
            if len(group) > 1 and there and all(path in shared for path in group):
                found.append(tuple(group))
        return found

    def connects(self, one: Step, others: Collection[Step]) -> bool:
        """Whether a value is known against an input of one entry, and of any of the others."""
        return any(
            any(path[0] is one for path in shapes) and any(path[0] in others for path in shapes)
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

    def _distance_in_entry(self, one: EntryValue, other: EntryValue) -> Span | None:
        """How far apart two values of one entry are, as both are known against one input."""
        if one == other or one[0] is not other[0]:
            return None
        bridges = self._between(one, other)
        return distance_between(self.known[one], self.known[other], bridges) if bridges else None

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
                mine, theirs = dict(self.known[value]), self.known[bridge]
                for path in self._new_for(value, bridge):
                    found = across(mine, theirs, theirs[path], bridges, self.granularity)
                    self.known[value][path] = found
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
