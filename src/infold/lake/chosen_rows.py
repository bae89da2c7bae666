"""
Which columns and rows of a stored table somebody asks for, whatever stores it.

Rows are chosen by predicates of pyiceberg (``filter``) over a schema of pyiceberg's, which
each storage makes of its table's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from infold.core.snapshot_reader import TimeSpan
from infold.messages import command_errors

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.schema import Schema


def shown_columns(schema: Schema, columns: Sequence[str] | None) -> list[str]:
    """The columns that are asked for, or all but technical ones. Raises ``unknown_columns``."""
    known = [field.name for field in schema.fields if not field.name.startswith("_")]
    wanted = list(columns) if columns is not None else known
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise command_errors.unknown_columns(names=unknown, known=known)
    return wanted


def truth_of(where: str, schema: Schema) -> BooleanExpression:
    """A comparison of columns with values, as it is written. Raises ``bad_filter``."""
    from infold.lake.filter import predicate

    try:
        return predicate(where, schema)
    except ValueError as error:
        raise command_errors.bad_filter(where=where, why=str(error)) from error


def columns_beside(
    schema: Schema,
    any_of: Sequence[Mapping[str, Any]],
    near: TimeSpan | None,
    columns: Sequence[str] | None,
) -> tuple[list[str], list[str]] | None:
    """
    The columns that are asked for of rows with some values, as the table and as the caller calls
    them: those that are there, or all but technical ones.

    None where a column is not there that tells which rows these are.
    """
    known = {entry.name.lower(): entry.name for entry in schema.fields}
    needed = {name for match in any_of for name in match}
    needed |= {near.first, near.last} if near else set()
    if not {name.lower() for name in needed} <= known.keys():
        return None
    every = [name for name in known.values() if not name.startswith("_")]
    wanted = [name for name in (every if columns is None else columns) if name.lower() in known]
    return [known[name.lower()] for name in wanted], wanted


def matching_rows(
    schema: Schema,
    read: Callable[[BooleanExpression, list[str]], pa.Table],
    tests: Mapping[str, str],
    by: str,
    beside: Sequence[str],
) -> pa.Table:
    """
    The rows for which one of several predicates is true, with the names of those in ``by``.

    ``read`` gives columns of the rows for which an expression is true. Technical columns are left
    out, except those ``beside``. Raises ValueError if a test needs Spark to be evaluated.
    """
    import pyarrow as pa
    from pyiceberg.expressions import AlwaysFalse, Or

    from infold.lake.arrow_filter import RowFilter
    from infold.lake.filter import predicate

    truths = {name: predicate(text, schema) for name, text in tests.items()}
    nothing: BooleanExpression = AlwaysFalse()
    names = [field.name for field in schema.fields]
    wanted = [name for name in names if not name.startswith("_") or name in beside]
    found = read(reduce(Or, truths.values(), nothing), wanted)
    found = found.append_column(_ROW, pa.array(range(found.num_rows), pa.int64()))
    true: list[list[str]] = [[] for _ in range(found.num_rows)]
    for name, truth in truths.items():
        for row in RowFilter(truth, schema)(found)[_ROW].to_pylist():
            true[row].append(name)
    return found.drop_columns(_ROW).append_column(by, pa.array(true, pa.list_(pa.string())))


_ROW = "_infold_row"
