"""
How the rows of lookups are found: by equality with columns of a row with a time.

Where every place that names a lookup joins it by such an equality, its rows of a key affect only
rows with that key. So when some keys of it change, the stale cells are those with rows of these
keys. The lookup may have several rows of a key.

Why this is sound: the content of a cell follows from the rows of the inputs within its bounds, and
from the lookup. If none of these rows has one of the changed keys, no join finds a changed row of
the lookup, so the cell stays the same. This requires that the values compared with the lookup's are
those of a stored column, or strict functions of some (NULL for NULL, so that the NULL rows of an
outer join find nothing), and that all queries in between pass them on unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from infold.analysis.names.column_lineage import TracedValue, TracePath, Tracer
from infold.analysis.names.relation import (
    Block,
    FromEntry,
    Origin,
    OtherRows,
    Relation,
    RenamedColumns,
    SetOperation,
    Table,
)
from infold.analysis.names.subject import time_column
from infold.analysis.times.distances import conjuncts
from infold.core.project import Match, Node, Validity

_Pair = tuple["tuple[TracedValue, ...]", TracedValue]
"""The values of other rows (of each side of a UNION ALL, one), and that of the lookup's."""


def lookup_matches_of(relation: Relation, nodes: Mapping[str, Node]) -> tuple[Match, ...]:
    """How each lookup that a query reads is matched; none of one that is also read otherwise."""
    finder = _LookupFinder(Tracer(nodes))
    finder.visit(relation)
    return tuple(m for m in dict.fromkeys(finder.found) if m.lookup not in finder.read_otherwise)


def unmatched_entries(block: Block, nodes: Mapping[str, Node]) -> tuple[FromEntry, ...]:
    """The entries of FROM that are not matched as a lookup by another entry's row."""
    finder = _LookupFinder(Tracer(nodes))
    return tuple(
        one for at, one in enumerate(block.entries) if not finder.matches_of_entry(block, at)
    )


@dataclass(slots=True)
class _LookupFinder:
    tracer: Tracer
    found: list[Match] = field(default_factory=list)
    read_otherwise: set[str] = field(default_factory=set)
    """Lookups that are read in some other way."""

    def visit(self, relation: Relation) -> None:
        """Find the lookups in a relation, and how each is matched."""
        if isinstance(relation, RenamedColumns):
            self.visit(relation.inner)
        elif isinstance(relation, SetOperation):
            self.visit(relation.left)
            self.visit(relation.right)
        elif isinstance(relation, Table):
            if relation.view is not None:
                self.visit(relation.view)
            elif self.tracer.is_lookup(relation):
                self.read_otherwise.add(relation.name)
        elif isinstance(relation, Block):
            self._block(relation)

    def _block(self, block: Block) -> None:
        for at, entry in enumerate(block.entries):
            self._add(self.matches_of_entry(block, at), entry.relation)
        for holder, inner in block.nested_queries:
            self._add(
                self._list_matches(block, holder, inner) or self._of_subquery(block, inner), inner
            )

    def _add(self, matches: Sequence[Match], relation: Relation) -> None:
        """A relation that is matched as a whole, or else may be in its parts."""
        if not matches:
            self.visit(relation)
        self.found.extend(matches)

    # -- joins

    def matches_of_entry(self, block: Block, at: int) -> Sequence[Match]:
        """How the lookup that an entry of FROM is, if it is one, is matched with another entry."""
        if self.tracer.lookup_of(block.entries[at].relation) is None:
            return ()
        pairs = list(self._equal_values(block, at))
        matches = self._as_matches(pairs)
        if len(matches) != 1:
            return matches
        [(fact_values, _), *_] = self._pairs_of_one_row(pairs)
        finder = ValidityFinder(self.tracer, block, block.entries[at], fact_values[0].path)
        return [replace(matches[0], validity=finder.find(self._conditions(block, at)))]

    def _equal_values(self, block: Block, at: int) -> Iterator[_Pair]:
        """What of another entry's row, and of the lookup's, has to be equal where both are."""
        for number, condition in self._conditions(block, at):
            yield from self._pairs_of_condition(block, at, number, condition)
            if number < len(block.entries):
                join = block.entries[number].join
                assert join is not None, "it has a condition"
                yield from self._of_using(block, at, number, join)

    def _conditions(self, block: Block, at: int) -> Iterator[tuple[int, exp.Expr | None]]:
        """What has to be true where the lookup's row is joined, and how many entries it is over."""
        joins = [entry.join for entry in block.entries]
        plain = [join is None or _is_plain_join(join, "", "LEFT") for join in joins]
        for number, join in enumerate(joins):
            if join is None or number < at:
                continue
            fits = (
                _is_plain_join(join, "", "LEFT")
                if number == at
                else _is_plain_join(join, "", "RIGHT")
            )
            inner = number == at or join.kind.upper() not in ("SEMI", "ANTI")
            if fits and inner and all(plain[:number]):
                yield number, join.args.get("on")
        if all(plain):
            yield len(joins), block.node.args.get("where")

    def _pairs_of_condition(
        self, block: Block, at: int, upto: int, condition: exp.Expr | None
    ) -> Iterator[_Pair]:
        entry = block.entries[at]
        for node in conjuncts(condition):
            if not isinstance(node, exp.EQ):
                continue
            for mine, other in ((node.this, node.expression), (node.expression, node.this)):
                own, facts = (
                    self.tracer.traced_value(block, side, block.entries) for side in (mine, other)
                )
                if own is None or facts is None or own[0] is not entry or facts[0] is entry:
                    continue
                if any(facts[0] is one for one in block.entries[: upto + 1]) and len(own[1]) == 1:
                    yield facts[1], own[1][0]

    def _of_using(self, block: Block, at: int, number: int, join: exp.Join) -> Iterator[_Pair]:
        """Columns of USING: of the joined entry, and of the first one before it that has them."""
        for name in join.args.get("using") or ():
            column = name.name.lower()
            sides = [block.entries[number]]
            sides += [e for e in block.entries[:number] if column in (e.names or ())][:1]
            mine = [e for e in sides if e is block.entries[at]]
            earlier = [e for e in sides if e is not block.entries[at]]
            if len(sides) == 2 and len(mine) == 1:
                own = self.tracer.traced_column(mine[0].relation, column, (mine[0],))
                fact_values = self.tracer.traced_column(earlier[0].relation, column, (earlier[0],))
                if len(own) == 1 and fact_values:
                    yield fact_values, own[0]

    # -- subqueries

    def _of_subquery(self, block: Block, inner: Relation) -> Sequence[Match]:
        """How a lookup is matched by a subquery that is about one row of the query around it."""
        if not isinstance(inner, Block) or len(inner.entries) != 1:
            return ()
        [entry] = inner.entries
        if self.tracer.lookup_of(entry.relation) is None:
            return ()
        pairs = []
        for node in conjuncts(inner.node.args.get("where")):
            if isinstance(node, exp.EQ):
                for mine, other in ((node.this, node.expression), (node.expression, node.this)):
                    own = self.tracer.traced_value(inner, mine, (entry,))
                    fact_values = self.tracer.traced_value(inner, other, block.entries)
                    if own is not None and fact_values is not None and len(own[1]) == 1:
                        pairs.append((fact_values[1], own[1][0]))
        return self._as_matches(pairs)

    def _list_matches(self, block: Block, holder: exp.Expr, inner: Relation) -> Sequence[Match]:
        """How a lookup is matched that WHERE looks a value up in: ``k IN (SELECT k FROM …)``."""
        while isinstance(holder, (exp.Subquery, exp.Paren)) and holder.parent is not None:
            holder = holder.parent
        where = conjuncts(block.node.args.get("where"))
        if not isinstance(holder, exp.In) or not any(holder is node for node in where):
            return ()
        columns = inner.columns
        if self.tracer.lookup_of(inner) is None or columns is None or len(columns) != 1:
            return ()
        value = self.tracer.traced_value(block, holder.this, block.entries)
        own = self.tracer.traced_column(inner, columns[0].lower(), ())
        if value is None or len(own) != 1:
            return ()
        return self._as_matches([(value[1], own[0])])

    # -- values

    def _as_matches(self, pairs: Iterable[_Pair]) -> Sequence[Match]:
        """The equalities with one row of inputs with times: as many as there are."""
        best = self._pairs_of_one_row(pairs)
        sides = zip(*(fact_values for fact_values, _ in best), strict=True)
        owns = [own for _, own in best]
        return [
            Match(
                owns[0].table,
                values[0].table,
                tuple(sorted({(v.sql, own.sql) for v, own in zip(values, owns, strict=True)})),
            )
            for values in sides
        ]

    def _pairs_of_one_row(self, pairs: Iterable[_Pair]) -> list[_Pair]:
        """
        The most equalities that are with one row of inputs with times.

        Values that came through the same entries are of the same row.
        """
        groups: dict[tuple[tuple[str, TracePath], ...], list[_Pair]] = {}
        for facts, own in pairs:
            nodes = [self.tracer.nodes.get(one.table) for one in facts]
            if all(node is not None and time_column(node) is not None for node in nodes):
                groups.setdefault(tuple((o.table, o.path) for o in facts), []).append((facts, own))
        return max(groups.values(), key=len, default=[])


def _is_plain_join(join: exp.Join, *sides: str) -> bool:
    """Whether a join is of one of some sides, says itself what it joins by, and is no LATERAL."""
    return (
        join.side.upper() in sides
        and join.kind.upper() in ("", "INNER", "OUTER", "CROSS", "SEMI", "ANTI")
        and join.args.get("method") is None
    )


# A row of such a lookup is found only by rows with its key and a time in its stretch. So when it
# changed, only cells with such rows can differ. If the query makes no other use of the two columns,
# a row of an input sees no more of the lookup than the other columns of the rows that hold at its
# time; then a version that merely ended differs only from its new end on.

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
            compared = self._compared(side, exp.LT)
            other = other.unnest()
            null = isinstance(other, exp.Is) and isinstance(other.expression, exp.Null)
            if compared is not None and null and self._own(other.this) == compared[1]:
                return compared, True
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
        origin = self.block.origins.get(node) if isinstance(node, exp.Column) else None
        return origin if isinstance(origin, Origin) and origin.entry is self.entry else None

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
