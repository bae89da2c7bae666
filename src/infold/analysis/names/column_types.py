"""
The types of columns, as far as they follow from declarations.

Only the types that a table cannot store are followed: times, intervals and NULLs. For all others
Spark decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from infold.analysis.names.relation import (
    Block,
    Origin,
    OutputColumn,
    Relation,
    RenamedColumns,
    SetOperation,
    Table,
)

Types = Mapping[str, str]
"""Column, in lower case → ``timestamp``, ``date``, ``interval`` or ``void``."""

_SAME = (exp.AnyValue, exp.First, exp.FirstValue, exp.Lag, exp.Last, exp.LastValue, exp.Lead)
_GREATEST = (exp.Avg, exp.Greatest, exp.Least, exp.Max, exp.Median, exp.Min, exp.Sum)
_HOLDERS = (exp.Paren, exp.Alias, exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.Window)
_INTERVALS = (exp.Interval, exp.MakeInterval)
_TIMES = frozenset({"timestamp", "timestamp_ltz", "timestamp_ntz"})


def types_of(relation: Relation, tables: Mapping[str, Types]) -> Types:
    """What is known of a relation's columns; ``tables`` are those of stored tables and sources."""
    if isinstance(relation, Table):
        return tables.get(relation.name, {})
    if isinstance(relation, RenamedColumns):
        inner = types_of(relation.inner, tables)
        pairs = zip(relation.columns or (), relation.inner.columns or (), strict=False)
        return {new.lower(): inner[old.lower()] for new, old in pairs if old.lower() in inner}
    if isinstance(relation, SetOperation):
        left, right = types_of(relation.left, tables), types_of(relation.right, tables)
        return {name: type_ for name, type_ in left.items() if right.get(name) == type_}
    if isinstance(relation, Block):
        return {out.name.lower(): type_ for out, type_ in typed_outputs(relation, tables)}
    return {}


def _type_in(relation: Relation, column: str, tables: Mapping[str, Types]) -> str | None:
    """
    The type of one column, by its name in lower case.

    Of this column alone: each level of nested queries would be asked for all of its columns by
    every column of the level around it.
    """
    if isinstance(relation, Table):
        return tables.get(relation.name, {}).get(column)
    if isinstance(relation, RenamedColumns):
        names = relation.inner.columns or ()
        inner = [names[at].lower() for at in relation.places.get(column, ()) if at < len(names)]
        return _type_in(relation.inner, inner[-1], tables) if inner else None
    if isinstance(relation, SetOperation):
        left = _type_in(relation.left, column, tables)
        return left if left == _type_in(relation.right, column, tables) else None
    if isinstance(relation, Block):
        outs = relation.named(column)
        types = [type_ for out in outs if (type_ := _type_of_output(relation, out, tables))]
        return types[-1] if types else None
    return None


def typed_outputs(block: Block, tables: Mapping[str, Types]) -> Iterator[tuple[OutputColumn, str]]:
    """The outputs of a SELECT that have a known type."""
    for out in block.outputs or ():
        type_ = _type_of_output(block, out, tables)
        if type_ is not None:
            yield out, type_


def _type_of_output(block: Block, out: OutputColumn, tables: Mapping[str, Types]) -> str | None:
    if out.origin is not None:
        return _type_of_origin(out.origin, tables)
    return _type_of(block, out.node, tables)


def _type_of(block: Block, node: exp.Expr, tables: Mapping[str, Types]) -> str | None:
    while isinstance(node, (*_HOLDERS, *_SAME, *_GREATEST)):
        node = node.this
    if isinstance(node, exp.Column):
        if node in block.aliases:
            return _type_of(block, block.aliases[node], tables)
        return _type_of_origin(block.origins.get(node), tables)
    if isinstance(node, exp.Null):
        return "void"
    if isinstance(node, exp.Cast):
        return followed_type(node.to.sql("spark"))
    if isinstance(node, _INTERVALS):
        return "interval"
    if isinstance(node, exp.TimestampTrunc):
        return "timestamp"
    if isinstance(node, (exp.TsOrDsToDate, exp.DateTrunc)):
        return "date"
    if isinstance(node, (exp.Sub, exp.Add)):
        return _type_of_sum(
            node, _type_of(block, node.this, tables), _type_of(block, node.expression, tables)
        )
    return None


def _type_of_sum(node: exp.Expr, left: str | None, right: str | None) -> str | None:
    """Two times are an interval apart; a time and an interval are a time."""
    if left in ("timestamp", "date") and right in ("timestamp", "date"):
        return "interval" if isinstance(node, exp.Sub) else None
    if left == right == "interval":
        return "interval"
    return None


def _type_of_origin(origin: Origin | None, tables: Mapping[str, Types]) -> str | None:
    if origin is None or origin.fields:
        return None
    return _type_in(origin.entry.relation, origin.column.lower(), tables)


def followed_type(type_: str) -> str | None:
    """One name for times, intervals, dates and void; None: of other types nothing is concluded."""
    name = type_.lower()
    if name in _TIMES:
        return "timestamp"
    if name.startswith("interval"):
        return "interval"
    return name if name in ("date", "void") else None
