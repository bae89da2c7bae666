"""
How the rows of lookups are found: by equality with columns of a row with a time.

Where every place that names a lookup joins it by such an equality, its rows of a key can show only
where rows with that key are. So when some keys of it change, the cells stale are those that hold
rows of these keys; whether the lookup has one row of each key does not matter.

Why this is sound: what a cell holds follows from the rows of the inputs within its bounds, and from
the lookup. If none of these rows has one of the changed keys, no join finds a changed row of the
lookup, so nothing about the cell can be different. For that, values compared with the lookup's have
to be those of a stored column, or strict functions of some (NULL for NULL, so that rows that an
outer join made up find nothing), passed on unchanged by whatever stands between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from infold.analysis.links import conjuncts
from infold.analysis.relation import (
    Block,
    From,
    Origin,
    Relation,
    Renamed,
    SetOperation,
    Table,
)
from infold.analysis.row_wise import calls_over_rows, clauses
from infold.analysis.subject import time_column
from infold.model import Kind
from infold.project import Match, Node

_STRICT = (
    exp.Cast,
    exp.Column,
    exp.DataType,
    exp.DateTrunc,
    exp.Identifier,
    exp.Literal,
    exp.Lower,
    exp.Paren,
    exp.TimestampTrunc,
    exp.Trim,
    exp.TryCast,
    exp.TsOrDsToDate,
    exp.Upper,
    exp.Var,
)
"""What a compared value may be made of: functions that are NULL where their column is."""


@dataclass(frozen=True, slots=True)
class _Found:
    """A value of a stored table's row: SQL over that row, and through which entries it came."""

    table: str
    sql: str
    way: tuple[int, ...]


def matches_of(relation: Relation, nodes: Mapping[str, Node]) -> tuple[Match, ...]:
    """How each lookup that a query reads is matched; none of one that is also read otherwise."""
    finder = _Finder(nodes)
    finder.visit(relation)
    return tuple(m for m in dict.fromkeys(finder.found) if m.lookup not in finder.others)


@dataclass(slots=True)
class _Finder:
    nodes: Mapping[str, Node]
    found: list[Match] = field(default_factory=list)
    others: set[str] = field(default_factory=set)
    """Lookups that are read in some other way."""

    def visit(self, relation: Relation) -> None:
        """Find the lookups in a relation, and how each is matched."""
        if isinstance(relation, Renamed):
            self.visit(relation.inner)
        elif isinstance(relation, SetOperation):
            self.visit(relation.left)
            self.visit(relation.right)
        elif isinstance(relation, Table):
            if relation.view is not None:
                self.visit(relation.view)
            elif self._lookup(relation):
                self.others.add(relation.name)
        elif isinstance(relation, Block):
            self._block(relation)

    def _block(self, block: Block) -> None:
        for at, entry in enumerate(block.entries):
            self._take(self._joined(block, at), entry.relation)
        for holder, inner in block.nested:
            self._take(self._listed(block, holder, inner) or self._asked(block, inner), inner)

    def _take(self, found: Match | None, relation: Relation) -> None:
        """A relation that is matched as a whole, or else may be in its parts."""
        if found is None:
            self.visit(relation)
        else:
            self.found.append(found)

    def _lookup(self, table: Table) -> bool:
        node = self.nodes.get(table.name)
        return node is not None and node.model.kind is not Kind.VIEW and time_column(node) is None

    # -- joins

    def _joined(self, block: Block, at: int) -> Match | None:
        """How the lookup that an entry of FROM is, if it is one, is matched with another entry."""
        if self._base(block.entries[at].relation) is None:
            return None
        return self._match(self._pairs(block, at))

    def _base(self, relation: Relation) -> str | None:
        """The lookup that a relation is, maybe through projections and WHERE."""
        if isinstance(relation, Renamed):
            return self._base(relation.inner)
        if isinstance(relation, Table):
            if relation.view is not None:
                return self._base(relation.view)
            return relation.name if self._lookup(relation) else None
        if isinstance(relation, Block) and _row_wise(relation):
            return self._base(relation.entries[0].relation)
        return None

    def _pairs(self, block: Block, at: int) -> Iterator[tuple[_Found, _Found]]:
        """What of another entry's row, and of the lookup's, has to be equal where both are."""
        joins = [entry.join for entry in block.entries]
        plain = [join is None or _fits(join, "", "LEFT") for join in joins]
        for number, join in enumerate(joins):
            if join is None or number < at:
                continue
            fits = _fits(join, "", "LEFT") if number == at else _fits(join, "", "RIGHT")
            inner = number == at or join.kind.upper() not in ("SEMI", "ANTI")
            if fits and inner and all(plain[:number]):
                yield from self._equal(block, at, number, join.args.get("on"))
                yield from self._using(block, at, number, join)
        if all(plain):
            yield from self._equal(block, at, len(joins), block.node.args.get("where"))

    def _equal(
        self, block: Block, at: int, upto: int, condition: exp.Expr | None
    ) -> Iterator[tuple[_Found, _Found]]:
        entry = block.entries[at]
        for node in conjuncts(condition):
            if not isinstance(node, exp.EQ):
                continue
            for mine, other in ((node.this, node.expression), (node.expression, node.this)):
                own, others = (self._value(block, side, block.entries) for side in (mine, other))
                if own is None or others is None or own[0] is not entry or others[0] is entry:
                    continue
                if any(others[0] is one for one in block.entries[: upto + 1]):
                    yield others[1], own[1]

    def _using(
        self, block: Block, at: int, number: int, join: exp.Join
    ) -> Iterator[tuple[_Found, _Found]]:
        """Columns of USING: of the joined entry, and of the first one before it that has them."""
        for name in join.args.get("using") or ():
            column = name.name.lower()
            sides = [block.entries[number]]
            sides += [e for e in block.entries[:number] if column in _columns(e)][:1]
            mine = [e for e in sides if e is block.entries[at]]
            others = [e for e in sides if e is not block.entries[at]]
            if len(sides) == 2 and len(mine) == 1:
                own = self._traced(mine[0].relation, column, (id(mine[0]),))
                theirs = self._traced(others[0].relation, column, (id(others[0]),))
                if own is not None and theirs is not None:
                    yield _as_sql(theirs), _as_sql(own)

    # -- subqueries

    def _asked(self, block: Block, inner: Relation) -> Match | None:
        """How a lookup is matched by a subquery that is about one row of the query around it."""
        if not isinstance(inner, Block) or len(inner.entries) != 1:
            return None
        [entry] = inner.entries
        if self._base(entry.relation) is None:
            return None
        pairs = []
        for node in conjuncts(inner.node.args.get("where")):
            if isinstance(node, exp.EQ):
                for mine, other in ((node.this, node.expression), (node.expression, node.this)):
                    own = self._value(inner, mine, (entry,))
                    theirs = self._value(inner, other, block.entries)
                    if own is not None and theirs is not None:
                        pairs.append((theirs[1], own[1]))
        return self._match(pairs)

    def _listed(self, block: Block, holder: exp.Expr, inner: Relation) -> Match | None:
        """How a lookup is matched that WHERE looks a value up in: ``k IN (SELECT k FROM …)``."""
        while isinstance(holder, (exp.Subquery, exp.Paren)) and holder.parent is not None:
            holder = holder.parent
        where = conjuncts(block.node.args.get("where"))
        if not isinstance(holder, exp.In) or not any(holder is node for node in where):
            return None
        columns = inner.columns
        if self._base(inner) is None or columns is None or len(columns) != 1:
            return None
        value = self._value(block, holder.this, block.entries)
        own = self._traced(inner, columns[0].lower(), ())
        if value is None or own is None:
            return None
        return self._match([(value[1], _as_sql(own))])

    # -- values

    def _match(self, pairs: Iterable[tuple[_Found, _Found]]) -> Match | None:
        """The equalities with one row of one input with times: as many as there are."""
        groups: dict[tuple[str, tuple[int, ...]], dict[tuple[str, str], str]] = {}
        for theirs, own in pairs:
            node = self.nodes.get(theirs.table)
            if node is not None and time_column(node) is not None:
                group = groups.setdefault((theirs.table, theirs.way), {})
                group[theirs.sql, own.sql] = own.table
        if not groups:
            return None
        (table, _), best = max(groups.items(), key=lambda item: len(item[1]))
        return Match(next(iter(best.values())), table, tuple(sorted(best)))

    def _value(
        self, block: Block, node: exp.Expr, entries: Sequence[From]
    ) -> tuple[From, _Found] | None:
        """A value of one row of one of some entries, as SQL over the stored row that it is of."""
        if any(not isinstance(part, _STRICT) for part in node.walk()):
            return None
        copy = node.copy()
        columns = list(zip(node.find_all(exp.Column), copy.find_all(exp.Column), strict=True))
        origins = [block.origins.get(id(column)) for column, _ in columns]
        known = [one for one in origins if isinstance(one, Origin) and not one.fields]
        if not known or len(known) < len(columns):
            return None
        entry = known[0].entry
        if not any(entry is one for one in entries) or any(o.entry is not entry for o in known):
            return None
        traced = [self._traced(entry.relation, one.column, (id(entry),)) for one in known]
        found = [one for one in traced if one is not None]
        if len(found) < len(traced) or len({one.way for one in found}) > 1:
            return None
        for (_, twin), one in zip(columns, found, strict=True):
            if twin is copy:
                return entry, _as_sql(one)
            twin.replace(exp.column(one.sql, quoted=True))
        return entry, replace(found[0], sql=copy.sql(dialect="spark"))

    def _traced(self, relation: Relation, column: str, way: tuple[int, ...]) -> _Found | None:
        """The stored column that a column is, passed on unchanged."""
        if isinstance(relation, Renamed):
            names = [name.lower() for name in relation.columns or ()]
            inner = relation.inner.columns
            if names.count(column) != 1 or inner is None or len(inner) != len(names):
                return None
            return self._traced(relation.inner, inner[names.index(column)].lower(), way)
        if isinstance(relation, Table):
            if relation.view is not None:
                return self._traced(relation.view, column, way)
            found = [name for name in relation.columns or () if name.lower() == column]
            return _Found(relation.name, found[0], way) if len(found) == 1 else None
        if not isinstance(relation, Block):
            return None
        outputs = [out for out in relation.outputs or () if out.name.lower() == column]
        if len(outputs) != 1 or _merges_columns(relation):
            return None
        origin = outputs[0].origin
        if origin is None and id(outputs[0].node) not in relation.aliases:
            origin = relation.origins.get(id(outputs[0].node))
        if not isinstance(origin, Origin) or origin.fields:
            return None
        if not any(origin.entry is one for one in relation.entries):
            return None
        return self._traced(origin.entry.relation, origin.column, (*way, id(origin.entry)))


def _as_sql(found: _Found) -> _Found:
    """A stored column that was traced, as SQL."""
    return replace(found, sql=exp.column(found.sql, quoted=True).sql(dialect="spark"))


def _fits(join: exp.Join, *sides: str) -> bool:
    """Whether a join is of one of some sides, says itself what it joins by, and is no LATERAL."""
    return (
        join.side.upper() in sides
        and join.kind.upper() in ("", "INNER", "OUTER", "CROSS", "SEMI", "ANTI")
        and join.args.get("method") is None
    )


def _merges_columns(block: Block) -> bool:
    """Whether a column of USING may be that of another entry than the first which has it."""
    joins: Sequence[exp.Join] = block.node.args.get("joins") or ()
    return any(
        (join.args.get("using") or join.args.get("method"))
        and join.side.upper() not in ("", "LEFT")
        for join in joins
    )


def _row_wise(block: Block) -> bool:
    if next(clauses(block.text, block), None) or next(calls_over_rows(block), None):
        return False
    return len(block.entries) == 1


def _columns(entry: From) -> set[str]:
    return {name.lower() for name in entry.relation.columns or ()}
