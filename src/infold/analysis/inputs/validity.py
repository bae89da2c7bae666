"""
Lookups that are read as of the time of a row: ``ts >= valid_from AND (ts < valid_to OR …)``.

A row of such a lookup is found only by rows with its key and a time in its stretch. So when it
changed, only cells with such rows can differ. If the query makes no other use of the two columns, a
row of an input sees no more of the lookup than the other columns of the rows that hold at its time;
then a version that merely ended differs only from its new end on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from infold.analysis.names.column_lineage import TracePath, Tracer
from infold.analysis.names.relation import Block, FromEntry, Origin, OtherRows, Table
from infold.analysis.times.distances import conjuncts
from infold.core.project import Validity

_MIRRORED: dict[type[exp.Binary], type[exp.Binary]] = {exp.GTE: exp.LTE, exp.LT: exp.GT}
"""The same comparison with its sides exchanged."""


@dataclass(frozen=True, slots=True)
class ValidityFinder:
    """Looks for the stretch in which rows of a lookup are found by those of one other input."""

    tracer: Tracer
    block: Block
    entry: FromEntry
    """The lookup, a stored table."""
    path: TracePath
    """Where the rows come from that find it by key."""

    def find(self, conditions: Iterable[tuple[int, exp.Expr | None]]) -> Validity | None:
        """The stretch that some conditions, each true where the rows meet, say; or None."""
        if not isinstance(self.entry.relation, Table) or self.entry.relation.view is not None:
            return None
        every = [node for _, condition in conditions for node in conjuncts(condition)]
        for first in every:
            start = self._compared(first, exp.GTE)
            for second in every if start is not None else ():
                end, is_open = self._end(second)
                if start is None or end is None or start[0] != end[0] or start[1] == end[1]:
                    continue
                passed_on = self._used_elsewhere({start[1], end[1]}, (first, second))
                return Validity(start[0], start[1], end[1], is_open, passed_on)
        return None

    def _end(self, node: exp.Expr) -> tuple[tuple[str, str] | None, bool]:
        """A time and the column that it is before; and whether it may be NULL instead."""
        if not isinstance(node, exp.Or):
            return self._compared(node, exp.LT), False
        for side, other in ((node.this, node.expression), (node.expression, node.this)):
            found = self._compared(side, exp.LT)
            other = other.unnest()
            null = isinstance(other, exp.Is) and isinstance(other.expression, exp.Null)
            if found is not None and null and self._own(other.this) == found[1]:
                return found, True
        return None, False

    def _compared(self, node: exp.Expr, by: type[exp.Binary]) -> tuple[str, str] | None:
        """The time of an input and the lookup's column, if a node compares the two so."""
        node = node.unnest()
        if not isinstance(node, (by, _MIRRORED[by])):
            return None
        sides = (node.this, node.expression)
        time, own = sides if isinstance(node, by) else sides[::-1]
        column, value = self._own(own), self.tracer.traced_value(self.block, time, self._others())
        if column is None or value is None or len(value[1]) != 1 or value[1][0].path != self.path:
            return None
        return value[1][0].sql, column

    def _own(self, node: exp.Expr) -> str | None:
        """The name of the lookup's column that a node is."""
        origin = self._origin(node.unnest())
        return origin.column if origin is not None and not origin.fields else None

    def _origin(self, node: exp.Expr) -> Origin | None:
        found = self.block.origins.get(node) if isinstance(node, exp.Column) else None
        return found if isinstance(found, Origin) and found.entry is self.entry else None

    def _others(self) -> list[FromEntry]:
        return [entry for entry in self.block.entries if entry is not self.entry]

    def _used_elsewhere(self, names: set[str], inside: tuple[exp.Expr, ...]) -> bool:
        """Whether columns of the lookup are used beside the two conditions, or may be."""
        known = {id(node) for one in inside for node in one.walk()}
        if self.block.nested_queries or self.block.node.args.get("laterals"):
            return True
        if any(one.lateral or isinstance(one.relation, OtherRows) for one in self.block.entries):
            return True  # it may be made of columns of the lookup
        if any(self._may_pass_all(node) for node in self.block.expressions()):
            return True
        if any(join.args.get("using") or join.args.get("method") for join in self._joins()):
            return True
        return any(
            id(node) not in known
            and (one := self._origin(node)) is not None
            and one.column in names
            for node in self.block.expressions()
        )

    def _joins(self) -> Iterator[exp.Expr]:
        return (entry.join for entry in self.block.entries if entry.join is not None)

    @staticmethod
    def _may_pass_all(node: exp.Expr) -> bool:
        """Whether a node is a star that stands for columns."""
        return isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count)
