"""
Which columns and rows of a stored table somebody asks for, whatever stores it.

Rows are chosen by predicates of pyiceberg (``filter``) over a schema of pyiceberg's, which
each storage makes of its table's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infold.core.interval import DAY
from infold.core.ports import TimeSpan
from infold.messages import command_errors

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.schema import Schema
    from pyiceberg.types import IcebergType


def shown_columns(schema: Schema, columns: Sequence[str] | None) -> list[str]:
    """The columns that are asked for, or all but technical ones. Raises ``unknown_columns``."""
    known = [field.name for field in schema.fields if not field.name.startswith("_")]
    names = list(columns) if columns is not None else known
    unknown = [name for name in names if name not in known]
    if unknown:
        raise command_errors.unknown_columns(names=unknown, known=known)
    return names


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
    names = [name for name in (every if columns is None else columns) if name.lower() in known]
    return [known[name.lower()] for name in names], names


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

    from infold.lake.filter import predicate

    truths = {name: predicate(text, schema) for name, text in tests.items()}
    nothing: BooleanExpression = AlwaysFalse()
    names = [field.name for field in schema.fields]
    columns = [name for name in names if not name.startswith("_") or name in beside]
    rows = read(reduce(Or, truths.values(), nothing), columns)
    rows = rows.append_column(_ROW, pa.array(range(rows.num_rows), pa.int64()))
    true: list[list[str]] = [[] for _ in range(rows.num_rows)]
    for name, truth in truths.items():
        for row in RowFilter(truth, schema)(rows)[_ROW].to_pylist():
            true[row].append(name)
    return rows.drop_columns(_ROW).append_column(by, pa.array(true, pa.list_(pa.string())))


_ROW = "_infold_row"


# pyiceberg takes a dot in a name for a step into a struct. So columns have other names meanwhile.


class RowFilter:
    """A predicate over the columns of a schema; ``needed`` are those that it is about."""

    def __init__(self, truth: BooleanExpression, schema: Schema) -> None:
        from pyiceberg.expressions.visitors import bind, extract_field_ids
        from pyiceberg.io.pyarrow import expression_to_pyarrow
        from pyiceberg.schema import Schema as OfSchema

        bound = bind(schema, truth, case_sensitive=False)
        plain = [
            field.model_copy(update={"name": f"c{number}"})
            for number, field in enumerate(schema.fields)
        ]
        renamed = OfSchema(*plain)
        compared = {renamed.find_column_name(number) or "" for number in extract_field_ids(bound)}
        tops = {name.partition(".")[0] for name in compared}
        self._names = {
            field.name: simple.name for field, simple in zip(schema.fields, plain, strict=True)
        }
        self._expression = expression_to_pyarrow(bound, renamed)
        self.needed = tuple(name for name, top in self._names.items() if top in tops)

    def __call__(self, rows: pa.Table) -> pa.Table:
        """The rows for which it is true."""
        names = rows.column_names
        renamed = rows.rename_columns(
            [self._names.get(name, f"x{at}") for at, name in enumerate(names)]
        )
        return renamed.filter(self._expression).rename_columns(names)


def filtered_rows(rows: pa.Table, where: str) -> pa.Table:
    """
    The rows for which ``where`` is true, as ``infold show --where`` writes it.

    Columns are of strings, whole numbers or instants, as those of a manifest are.
    """
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField, StringType, TimestamptzType

    from infold.lake.filter import predicate

    types = {"string": StringType, "int64": LongType}
    schema = Schema(
        *(
            NestedField(
                number, field.name, types.get(str(field.type), TimestamptzType)(), required=False
            )
            for number, field in enumerate(rows.schema, 1)
        )
    )
    try:
        chosen = RowFilter(predicate(where, schema), schema)
    except (ValueError, TypeError) as error:
        raise command_errors.bad_filter(where=where, why=str(error)) from error
    return chosen(rows)


def truth_of_equality(
    schema: Schema, any_of: Sequence[Mapping[str, Any]], near: TimeSpan | None, where: str | None
) -> BooleanExpression:
    """What ``rows_equal_to`` asks of a row of a table with these columns."""
    from pyiceberg.expressions import AlwaysFalse, AlwaysTrue, And, Or

    from infold.lake.filter import predicate

    alternatives: BooleanExpression = AlwaysFalse() if any_of else AlwaysTrue()
    for match in any_of:
        alternatives = Or(alternatives, _equal_columns(schema, match))
    parts = And(alternatives, _overlaps(schema, near)) if near else alternatives
    return parts if where is None else And(parts, predicate(where, schema))


def _equal_columns(schema: Schema, match: Mapping[str, Any]) -> BooleanExpression:
    """Every column has its value; none has, where a value is none of the column's type."""
    from pyiceberg.expressions import AlwaysFalse, AlwaysTrue, And
    from pyiceberg.expressions.literals import literal

    truth: BooleanExpression = AlwaysTrue()
    for column, value in match.items():
        own = schema.find_field(column, case_sensitive=False)
        name = own.name
        if value is None:
            truth = And(truth, _column_predicate("IsNull", name))
            continue
        try:
            bound = literal(value).to(own.field_type)
        except (ValueError, TypeError):
            return AlwaysFalse()
        truth = And(truth, _column_predicate("EqualTo", name, bound))
    return truth


def _overlaps(schema: Schema, near: TimeSpan) -> BooleanExpression:
    from pyiceberg.expressions import And

    first, last = (
        schema.find_field(name, case_sensitive=False) for name in (near.first, near.last)
    )
    return And(
        _column_predicate("LessThanOrEqual", first.name, _instant(first.field_type, near.end)),
        _column_predicate("GreaterThanOrEqual", last.name, _instant(last.field_type, near.start)),
    )


def _column_predicate(how: str, *words: Any) -> BooleanExpression:
    """A predicate over a column; pyiceberg's own types do not know its positional form."""
    from pyiceberg import expressions

    predicate: BooleanExpression = getattr(expressions, how)(*words)
    return predicate


def _instant(kind: IcebergType, at: int) -> Any:
    """An instant as a literal of a column: microseconds, or days in a column of dates."""
    from pyiceberg.expressions.literals import literal
    from pyiceberg.types import DateType

    return literal(at // DAY if isinstance(kind, DateType) else at).to(kind)


# A Parquet file can name them beside its own types (delta-rs does). What it has is the same.


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The same columns, each of its plain type."""
    import pyarrow as pa

    return pa.schema([field.with_type(plain_type(field.type)) for field in schema])


def plain_type(type_: pa.DataType) -> pa.DataType:
    """The type of the same values, at any depth."""
    import pyarrow as pa

    types = pa.types
    if types.is_string_view(type_) or types.is_large_string(type_):
        return pa.string()
    if types.is_binary_view(type_) or types.is_large_binary(type_):
        return pa.binary()
    if types.is_dictionary(type_):
        return plain_type(type_.value_type)
    if any(is_(type_) for is_ in (types.is_list, types.is_large_list, types.is_list_view)):
        return pa.list_(type_.value_field.with_type(plain_type(type_.value_type)))
    if types.is_map(type_):
        return pa.map_(
            type_.key_field.with_type(plain_type(type_.key_type)),
            type_.item_field.with_type(plain_type(type_.item_type)),
        )
    if types.is_struct(type_):
        return pa.struct([one.with_type(plain_type(one.type)) for one in type_])
    return type_


# Where values repeat, Parquet stores each once in a part of a file, and rows as numbers. Reading
# these dictionaries is some twenty times faster than counting rows by value.

_ROWS = 1 << 20
"""How many rows are read at a time: values that do not repeat are all in memory."""


def distinct_values(
    files: Iterable[Path | AbstractContextManager[Any]], column: str, limit: int
) -> pa.Array | None:
    """
    The values of a column in some files, each once, NULL left out.

    When there are more than ``limit``, some that are more than that. None: a file does not have
    the column by this name.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    distinct = pa.array([], pa.string())
    for each in files:
        with each.open("rb") if isinstance(each, Path) else each as file:
            known = pq.read_metadata(file)
            if column not in known.schema.names:  # written when it had another name
                return None
            parts = pq.ParquetFile(file, metadata=known, read_dictionary=[column])
            for batch in parts.iter_batches(_ROWS, columns=[column]):
                own = batch.column(0).dictionary.cast(pa.string())
                distinct = pa.chunked_array([distinct, own]).unique().drop_null()
                if len(distinct) > limit:
                    return distinct
    return distinct
