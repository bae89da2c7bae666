"""
Subqueries in expressions, analysed as joins.

``EXISTS (SELECT … FROM b WHERE b.ts BETWEEN a.ts - INTERVAL 1 DAY AND a.ts)`` asks each row of
``a`` for rows of ``b`` that are near: it is a SEMI join, NOT EXISTS an ANTI join, a scalar subquery
a LEFT join to the one group of the near rows. The predicates between both sides in the subquery's
own WHERE say how near they are. All of the rows that these choose are read. So what the subquery
does with them afterwards (groups, DISTINCT, windows, LIMIT) is done with the same rows, and the
subquery may be inside NOT or any expression.

``a.day IN (SELECT day FROM b)`` states the distance by its value. That is valid for a match only: a
NULL among the other values makes the result unknown instead of false. So IN has to be where false
and unknown mean the same, which is not inside NOT. The subquery itself is checked like any relation
in FROM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp

from infold.analysis.bounds.entries import Distance, EntryValue, SubqueryEntry
from infold.analysis.bounds.scope import Scope
from infold.analysis.bounds.transitive import Requirements, Shapes, seen_through
from infold.analysis.names.relation import (
    Block,
    FromEntry,
    Relation,
    SetOperation,
    blocks_of,
)
from infold.analysis.times.distances import Link, asked_for_truth, links_of, value_and_offset


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
    found = selects_and_unions(relation)
    if any(
        not selects_and_unions(side)
        for part in found
        if isinstance(part, SetOperation)
        for side in (part.left, part.right)
    ):
        return None
    selects = [part for part in found if isinstance(part, Block)]
    return [_entry_of(block, scope_of(block)) for block in selects] or None


def entry_by_value(
    holder: exp.Expr, relation: Relation, required: Requirements, columns: tuple[Shapes, ...]
) -> SubqueryEntry | None:
    """
    How near the rows are that IN compares with.

    ``required`` are the inputs of the subquery with what they require, ``columns`` the shapes of
    its columns in order.
    """
    query = holder.args.get("query") if isinstance(holder, exp.In) else None
    if not isinstance(relation, (Block, SetOperation)) or not isinstance(query, exp.Expr):
        return None
    if query.unnest() is not relation.node or not asked_for_truth(holder):
        return None
    asked = holder.this.expressions if isinstance(holder.this, exp.Tuple) else [holder.this]
    inputs = frozenset((relation, *path) for path in required)
    distances = []
    for i, (value, shapes) in enumerate(zip(asked, columns, strict=False)):
        outer, (low, high) = value_and_offset(value)
        known = {(relation, *path): shape for path, shape in shapes.items()}
        distances.append(Distance(outer, (relation, str(i)), known, (-high, -low)))
    inside = seen_through(relation, required, optional=True)
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
