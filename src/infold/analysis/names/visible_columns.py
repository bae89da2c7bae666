"""Columns by their names: those that the entries of a FROM show, and those that a star covers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sqlglot import exp

from infold.analysis.names.relation import Columns, FromEntry, Origin, OutputColumn
from infold.core.model import Kind, Model

UNKNOWN = object()
"""Not found among known columns, but an entry's columns are unknown, so it may be there."""


def find_column(entries: Sequence[FromEntry], parts: Sequence[str]) -> Origin | object | None:
    """
    The column that dotted, lower-case ``parts`` name, fields of a struct ignored.

    ``table.column`` and ``raw.table.column`` before ``struct.field``, as Spark does.
    """
    unknown = False
    for entry in entries:
        depth = len(entry.qualifier.split(".")) if entry.qualifier else 0
        prefixes: list[tuple[str, ...]] = [(entry.alias,)] if entry.alias else []
        if depth:
            prefixes.append((*entry.qualifier.split("."), entry.alias))
        for prefix in prefixes:
            behind = parts[len(prefix) :]
            if behind and tuple(parts[: len(prefix)]) == prefix:
                if entry.names is None:
                    return UNKNOWN
                if behind[0] in entry.names:
                    return Origin(entry, behind[0], tuple(behind[1:]))
    for entry in entries:
        if entry.names is None:
            unknown = True
        elif parts[0] in entry.names:
            return Origin(entry, parts[0], tuple(parts[1:]))
    return UNKNOWN if unknown else None


def visible_columns(entries: Iterable[FromEntry]) -> list[str]:
    """Every column name that an unqualified name could mean."""
    return [column for entry in entries for column in entry.relation.columns or ()]


def alias_columns(node: exp.Expr) -> Columns:
    """The column names of a table alias, ``t(a, b)``; None without them."""
    alias = node.args.get("alias")
    columns = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
    return tuple(column.name for column in columns) if columns else None


def lateral_view_columns(lateral: exp.Lateral) -> Columns:
    """The columns of a LATERAL VIEW; Spark names them itself when the user does not."""
    names = alias_columns(lateral)
    if names is None and isinstance(lateral.this, (exp.Posexplode, exp.PosexplodeOuter)):
        return ("pos", "col")
    return names


def values_columns(values: exp.Values) -> Columns:
    """The names that Spark gives to the columns of VALUES."""
    row = values.expressions[0] if values.expressions else None
    width = len(row.expressions) if isinstance(row, exp.Tuple) else 1
    return tuple(f"col{i + 1}" for i in range(width))


def select_outputs(item: exp.Expr) -> list[OutputColumn]:
    """The output columns of one item of a SELECT that is no star."""
    if isinstance(item, exp.Aliases):
        return [OutputColumn(name.name, item) for name in item.args["expressions"]]
    if isinstance(item, exp.Alias):
        return [OutputColumn(item.alias, item.this, label=item.args["alias"])]
    if isinstance(item, exp.Column):
        return [OutputColumn(item.name, item)]
    if isinstance(item, exp.Dot):
        return [OutputColumn(item.expression.name, item)]
    return [OutputColumn("", item)]


def star_outputs(
    entries: Sequence[FromEntry], star: exp.Star, node: exp.Expr
) -> list[OutputColumn] | None:
    """The columns of a star: those of all entries, shared ones of USING and NATURAL once."""
    if any(entry.relation.columns is None for entry in entries):
        return None
    skip = {name.name.lower() for name in star.args.get("except_") or ()}
    outputs: list[OutputColumn] = []
    for entry in entries:
        right = [
            OutputColumn(c, node, Origin(entry, c.lower())) for c in entry.relation.columns or ()
        ]
        once = dict.fromkeys(_shared_columns(entry, outputs, right))
        at = {out.name.lower(): i for i, out in reversed([*enumerate(outputs)])}
        first = {at[name]: outputs[at[name]] for name in once}
        left = (out for i, out in enumerate(outputs) if i not in first)
        outputs = [*first.values(), *left, *(out for out in right if out.name.lower() not in once)]
    return [out for out in outputs if out.name.lower() not in skip]


def _shared_columns(
    entry: FromEntry, left: Sequence[OutputColumn], right: Sequence[OutputColumn]
) -> list[str]:
    """The columns that a join with USING, or a NATURAL one, shows once, in their order."""
    if entry.join is None:
        return []
    here, there = [dict.fromkeys(out.name.lower() for out in side) for side in (left, right)]
    if entry.join.args.get("method") == "NATURAL":
        return [name for name in here if name in there]
    using = [name.name.lower() for name in entry.join.args.get("using") or ()]
    return [name for name in using if name in here]


def joined_by_name(entries: Sequence[FromEntry], entry: FromEntry) -> list[str]:
    """The columns of USING, or those that a NATURAL join is by, in lower case."""
    join = entry.join
    if join is None or join.args.get("method") != "NATURAL":
        return [name.name.lower() for name in (join.args.get("using") if join else None) or ()]
    before = entries[: entries.index(entry)]
    known = {name.lower() for one in before for name in one.relation.columns or ()}
    return [name.lower() for name in entry.relation.columns or () if name.lower() in known]


def as_written(node: exp.Column) -> str:
    """A column with its qualifiers, as the query names it."""
    return ".".join(part.name for part in node.parts)


# SQL does not mind the case of a name, and what reads a table by its stored names does: after `AS
# Day`, a `partition_column: day` means the column `Day`.


def with_column_spelling(model: Model, columns: Sequence[str]) -> Model:
    """The model with the names in its declaration as its table has them."""
    if model.kind in (Kind.SESSIONS, Kind.VIEW):
        return model
    known = {column.lower(): column for column in reversed(columns)}

    def own(name: str) -> str:
        return known.get(name.lower(), name)

    series, incremental = model.timeseries, model.incremental
    if series is not None:
        own_time = model.kind is Kind.EVENTS
        series = replace(
            series,
            event_time_column=own(series.event_time_column)
            if own_time
            else series.event_time_column,
            partition_column=own(series.partition_column),
        )
    if incremental is not None:
        incremental = replace(incremental, unique_key=tuple(map(own, incremental.unique_key)))
    key = tuple(map(own, model.unique_key))
    return replace(model, timeseries=series, incremental=incremental, unique_key=key)
