"""
What a query reads and yields, as a tree of relations: tables, SELECT blocks, set operations.

``resolve`` makes it from sqlglot's tree, with every name looked up; the rules then walk it. Names
are compared without regard to case, as Spark does, and kept in lower case here. ``columns`` is
None where the columns cannot be known (a table declared without any).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import Any, Protocol, TypeAlias, TypeVar

from sqlglot import exp

from infold.analysis.sql.parse import NodeMap
from infold.analysis.sql.text import Text

Columns: TypeAlias = tuple[str, ...] | None


class _HasColumns(Protocol):
    @property
    def columns(self) -> Columns: ...


class _Columns:
    """What has columns in an order: it is asked for each of thousands."""

    @cached_property
    def places(self: _HasColumns) -> Mapping[str, Sequence[int]]:
        """The positions of the columns by their names in lower case."""
        places: dict[str, list[int]] = {}
        for at, name in enumerate(self.columns or ()):
            places.setdefault(name.lower(), []).append(at)
        return places


@dataclass(frozen=True, eq=False)
class Table(_Columns):
    """
    A source or a model named in FROM; ``view`` is the query of a view, seen through.

    ``columns`` are as declared, not lower-cased.
    """

    name: str
    columns: Columns
    view: Relation | None = None


@dataclass(frozen=True, eq=False)
class OtherRows(_Columns):
    """Rows from nowhere that matters: VALUES, a table function, an exploded column."""

    columns: Columns


@dataclass(frozen=True, eq=False)
class RenamedColumns(_Columns):
    """A relation with new names for its columns: ``(SELECT …) AS t(a, b)``."""

    inner: Relation
    columns: Columns


@dataclass(frozen=True, slots=True, eq=False)
class FromEntry:
    """
    One entry of FROM: the name it goes by, what it is, and how it is joined (the first is not).

    ``lateral`` is a LATERAL VIEW or subquery: it belongs to the row at its left.
    """

    alias: str
    relation: Relation
    node: exp.Expr
    join: exp.Join | None = None
    lateral: bool = False
    qualifier: str = ""
    """What is before the dot of a two-part name (``raw`` of ``raw.clicks``)."""

    @property
    def names(self) -> Collection[str] | None:
        """The names of its columns in lower case; None where they cannot be known."""
        return None if self.relation.columns is None else self.relation.places.keys()

    @property
    def hidden(self) -> bool:
        """Whether it filters only and yields no columns (the right side of SEMI and ANTI)."""
        return self.join is not None and self.join.kind in ("SEMI", "ANTI")


@dataclass(frozen=True, slots=True)
class Origin:
    """What a column name means: a column of an entry of FROM (of this block or one outside)."""

    entry: FromEntry
    column: str
    fields: tuple[str, ...] = ()
    """Of a struct: which of its fields."""


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """One output column: its name as written, and its expression or, from a star, its origin."""

    name: str
    node: exp.Expr
    origin: Origin | None = None
    label: exp.Expr | None = None
    """The alias, where one was given."""


@dataclass(eq=False)
class Block(_Columns):
    """One SELECT with its names looked up."""

    node: exp.Select
    text: Text
    outer: Block | None = None
    entries: list[FromEntry] = field(default_factory=list)
    origins: NodeMap[Origin | None] = field(default_factory=NodeMap)
    """By Column node; None when it comes from an entry of unknown columns."""
    aliases: NodeMap[exp.Expr] = field(default_factory=NodeMap)
    """Columns that name an output of this same SELECT -> that output's expression."""
    nested_queries: list[tuple[exp.Expr, Relation]] = field(default_factory=list)
    """Subqueries in expressions: the node around one, and its relation."""
    outputs: list[OutputColumn] | None = field(default_factory=list)
    ctes: list[Relation] = field(default_factory=list)
    """CTEs declared here."""
    known: dict[object, Any] = field(default_factory=dict, repr=False)
    """What functions found that look at all of it (``once_per_block``)."""

    @cached_property
    def columns(self) -> Columns:
        """The names of the output columns; '' for one without a name. They are known by then."""
        return None if self.outputs is None else tuple(out.name for out in self.outputs)

    def named(self, name: str) -> Sequence[OutputColumn]:
        """The output columns of a name in lower case."""
        outputs = self.outputs or ()
        return [outputs[at] for at in self.places.get(name, ())]

    def place_of(self, entry: FromEntry) -> str:
        """A name for an entry of FROM, of this block or of one around it; each has another."""
        block: Block | None = self
        depth = 0
        while block is not None and entry not in block.entries:
            block, depth = block.outer, depth + 1
        assert block is not None, "an entry of this block or of one around it"
        return f"{depth}.{block.entries.index(entry)}"

    def expressions(self) -> Iterator[exp.Expr]:
        """Every node of this SELECT's own clauses; those of subqueries left out."""
        for key, value in self.node.args.items():
            if key not in ("from_", "with_", "hint", "laterals", "joins"):
                yield from own_nodes(value)
        for join in self.node.args.get("joins") or ():
            yield from own_nodes(join.args.get("on"))


Found = TypeVar("Found")


def once_per_block(find: Callable[[Block], Found]) -> Callable[[Block], Found]:
    """
    A function that looks at a block once and remembers what it found; its names are looked up.

    Rules ask for each column or call, and there are thousands of either.
    """

    @wraps(find)
    def once(block: Block) -> Found:
        if find not in block.known:
            block.known[find] = find(block)
        result: Found = block.known[find]
        return result

    return once


@dataclass(eq=False)
class SetOperation(_Columns):
    """UNION, EXCEPT or INTERSECT of two relations."""

    node: exp.SetOperation
    text: Text
    left: Relation
    right: Relation
    ctes: list[Relation] = field(default_factory=list)

    @cached_property
    def columns(self) -> Columns:
        """The left side names the columns."""
        return self.left.columns


Relation: TypeAlias = Table | OtherRows | RenamedColumns | Block | SetOperation

Key: TypeAlias = frozenset[str]
"""Columns, in lower case, that no two rows of a relation agree in."""


@dataclass(frozen=True, slots=True)
class Rows:
    """What tells the rows of a stored table apart: keys, or what follows from its ``query``."""

    keys: tuple[Key, ...] = ()
    query: Relation | None = None


def own_nodes(value: object) -> Iterator[exp.Expr]:
    """A node and those under it, or those of a list, subqueries left out."""
    todo = [value]
    while todo:
        value = todo.pop()
        if isinstance(value, exp.Expr):
            yield value
            if not isinstance(value, exp.Query):
                todo.extend(reversed(value.args.values()))
        elif isinstance(value, list):
            todo.extend(reversed(value))


def without_renaming(relation: Relation) -> Relation:
    """What a relation is below new names for its columns."""
    while isinstance(relation, RenamedColumns):
        relation = relation.inner
    return relation


def first_block(relation: Relation) -> Block | None:
    """The first SELECT of a query, which names its columns; None where it is no SELECT's."""
    while isinstance(relation, SetOperation | RenamedColumns):
        relation = relation.left if isinstance(relation, SetOperation) else relation.inner
    return relation if isinstance(relation, Block) else None


def subqueries_of(block: Block) -> Iterable[Relation]:
    """The subqueries in a block's expressions."""
    return [relation for _, relation in block.nested_queries]


def blocks_of(
    relation: Relation,
    *,
    views: bool = False,
    nested: Callable[[Block], Iterable[Relation]] = subqueries_of,
) -> Iterator[Block | SetOperation]:
    """
    Every SELECT and set operation in a relation, the outermost first.

    Those of ``views`` on request; ``nested`` says which subqueries in expressions are looked into.
    """
    todo: list[Relation] = [relation]
    visited: set[Relation] = set()
    while todo:
        item = todo.pop()
        if item in visited:
            continue
        visited.add(item)
        if isinstance(item, Block):
            yield item
            todo.extend(entry.relation for entry in reversed(item.entries))
            todo.extend(reversed([*nested(item)]))
            todo.extend(item.ctes)
        elif isinstance(item, SetOperation):
            yield item
            todo.extend((item.right, item.left, *item.ctes))
        elif isinstance(item, RenamedColumns):
            todo.append(item.inner)
        elif isinstance(item, Table) and item.view is not None and views:
            todo.append(item.view)
