"""
The states of a cumulative aggregate: what a row keeps beside its columns, so that it follows.

Each aggregate is computed from *parts*: counts, exact sums, least and greatest values of its key's
rows. A part that a column of the table shows is read from there, the others are in ``_state``. A
value is as Spark's own aggregate would have it; where that is not certain, it is in doubt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.own_columns import state_mark
from infold.core.queries import Aggregate, GroupedQuery
from infold.spark.cumulative.parts import ROWS, Merge, Part, States, Value
from infold.spark.sessions.mergeable import decimal_average
from infold.spark.sql_types import sql_type

_WHOLE = "decimal(38,0)"
_EXACT_DOUBLES = 2**53
"""Up to here every whole number is a double."""


def states_of(rows: DataFrame, query: GroupedQuery, fingerprint: str) -> States | None:
    """
    The states for a query over ``rows``; None if some aggregate has none that is exact.

    Keys with a collation have none: equal ones differ, and any of them is shown.
    """
    followed = query.followed
    if followed is None:
        return None
    keys = rows.select(*(F.expr(key.sql) for key in query.keys)).schema.fields
    if not all(_is_key(one.dataType) for one in keys):
        return None
    own = {output.sql.strip(): output.name for output in followed.outputs}
    found = _Parts(rows)
    found.add(Merge.COUNT, None, "bigint", name=ROWS)
    values = []
    for one in followed.aggregates:
        value = found.value(one, own.get(one.name))
        if value is None:
            return None
        values.append((one.name, value))
    mark = state_mark(fingerprint)
    parts, outputs = tuple(found.parts.values()), followed.outputs
    return States(parts, tuple(values), outputs, followed.having, followed.items_end, mark)


@dataclass
class _Parts:
    """Collects the parts of aggregates over some rows; equal ones are one."""

    rows: DataFrame
    parts: dict[tuple[Merge, str | None, str | None], Part] = field(default_factory=dict)

    def add(
        self,
        merge: Merge,
        argument: str | None,
        type_: str,
        *,
        of: str = "",
        by: str | None = None,
        shown: str | None = None,
        name: str | None = None,
    ) -> Part:
        """The part of that kind; ``shown`` is the column with its value, if there is one."""
        known = self.parts.get((merge, argument, by))
        name = known.name if known else name or f"_p{len(self.parts)}"
        shown = known.shown if known and known.shown else shown
        part = Part(name, merge, argument, type_, of, by, shown)
        self.parts[merge, argument, by] = part
        return part

    def value(self, one: Aggregate, shown: str | None) -> Value | None:
        """The value of an aggregate, with its parts added; None: it has no exact state."""
        if one.call in ("count", "count_if"):
            argument = one.argument
            if one.call == "count_if":
                argument = f"CASE WHEN ({one.argument}\n) THEN 1 END"
            counted = self._where(one, argument) if one.filter or argument else None
            part = self.add(Merge.COUNT, counted, "bigint", shown=shown)
            return Value(part.name)
        assert one.argument is not None, "only a count is of rows"
        [type_] = (f.dataType for f in self.rows.select(F.expr(one.argument)).schema.fields)
        return _VALUES[one.call](self, one, type_, shown)

    def _where(self, one: Aggregate, sql: str | None) -> str:
        """SQL over a row, NULL where FILTER leaves it out: there it may raise."""
        inner = "1" if sql is None else f"({sql}\n)"
        return inner if one.filter is None else f"CASE WHEN ({one.filter}\n) THEN {inner} END"

    def total(self, one: Aggregate, type_: T.DataType, shown: str | None) -> Value | None:
        """A sum of whole numbers or decimals; NULL without values, as a sum of none."""
        exact = _sum_types(type_)
        if exact is None:
            return None
        working, result = exact
        argument = self._where(one, one.argument)
        count = self.add(Merge.COUNT, argument, "bigint")
        whole = not isinstance(type_, T.DecimalType)
        summand = f"cast({argument} AS decimal(19,0))" if whole else argument
        part = self.add(Merge.SUM, summand, working, of=count.name, shown=shown)
        value = f"try_cast({part.name} AS {result})"
        return Value(value, f"{count.name} > 0 AND {value} IS NULL")

    def average(self, one: Aggregate, type_: T.DataType, shown: str | None) -> Value | None:
        """
        An average, as Spark computes it.

        Of whole numbers it adds doubles: exact in any order as long as the sum of what they amount
        to is. That of decimals is rounded once.
        """
        del shown
        total = self.total(one, type_, None)
        if total is None:
            return None
        argument = self._where(one, one.argument)
        count = self.add(Merge.COUNT, argument, "bigint").name
        if isinstance(type_, T.DecimalType):
            part = self.parts[Merge.SUM, argument, None]
            sql = decimal_average(part.name, count, type_)
            if sql is None:
                return None
            return Value(f"CASE WHEN {count} > 0 THEN {sql} END", total.doubt)
        whole = f"cast({argument} AS decimal(19,0))"
        part = self.parts[Merge.SUM, whole, None]
        size = self.add(Merge.SUM, f"abs({whole})", _WHOLE, of=count).name
        sql = f"cast({part.name} AS double) / cast({count} AS double)"
        doubt = f"{count} > 0 AND NOT coalesce({size} <= {_EXACT_DOUBLES}, false)"
        return Value(f"CASE WHEN {count} > 0 THEN {sql} END", doubt)

    def extreme(self, one: Aggregate, type_: T.DataType, shown: str | None) -> Value | None:
        """A least or greatest value, of a type where equal ones are the same."""
        if not is_exact(type_):
            return None
        merge = Merge(one.call)
        argument = self._where(one, one.argument)
        part = self.add(merge, argument, sql_type(type_), shown=shown)
        return Value(part.name)

    def boolean(self, one: Aggregate, type_: T.DataType, shown: str | None) -> Value | None:
        """Whether some, or all, values are true: by how many are."""
        del shown
        if not isinstance(type_, T.BooleanType):
            return None
        argument = self._where(one, one.argument)
        count = self.add(Merge.COUNT, argument, "bigint").name
        true = self.add(Merge.COUNT, f"CASE WHEN {argument} THEN 1 END", "bigint").name
        test = f"{true} > 0" if one.call == "bool_or" else f"{true} = {count}"
        return Value(f"CASE WHEN {count} > 0 THEN {test} END")

    def chosen(self, one: Aggregate, type_: T.DataType, shown: str | None) -> Value | None:
        """
        A value by the least or greatest of another.

        Rows of a key that agree in what it is chosen by agree in the value: the analysis refuses
        others.
        """
        assert one.order is not None, "it is chosen by something"
        [of] = (f.dataType for f in self.rows.select(F.expr(one.order)).schema.fields)
        if not is_exact(of) or not is_exact(type_):
            return None
        by, argument = self._where(one, one.order), self._where(one, one.argument)
        end = Merge.LEAST if one.call == "min_by" else Merge.GREATEST
        extreme = self.add(end, by, sql_type(of))
        merge = Merge(one.call)
        type_name = sql_type(type_)
        part = self.add(merge, argument, type_name, of=extreme.name, by=by, shown=shown)
        return Value(part.name)


_VALUES: dict[str, Callable[[_Parts, Aggregate, T.DataType, str | None], Value | None]] = {
    "sum": _Parts.total,
    "avg": _Parts.average,
    "min": _Parts.extreme,
    "max": _Parts.extreme,
    "bool_and": _Parts.boolean,
    "bool_or": _Parts.boolean,
    "min_by": _Parts.chosen,
    "max_by": _Parts.chosen,
}


def _sum_types(type_: T.DataType) -> tuple[str, str] | None:
    """
    The type in which values are summed exactly, and the type of Spark's own sum.

    Two sums of 38 digits are added without rounding only if at most 6 are behind the point.
    """
    if isinstance(type_, T.ByteType | T.ShortType | T.IntegerType | T.LongType):
        return _WHOLE, "bigint"
    if isinstance(type_, T.DecimalType):
        digits = min(38, type_.precision + 10)
        if digits == 38 and type_.scale > 6:
            return None
        result = f"decimal({digits},{type_.scale})"
        return result, result
    return None


_PLAIN = (
    T.BooleanType,
    T.ByteType,
    T.ShortType,
    T.IntegerType,
    T.LongType,
    T.DecimalType,
    T.DateType,
    T.TimestampType,
    T.TimestampNTZType,
    T.BinaryType,
)


def is_exact(type_: T.DataType) -> bool:
    """Whether values can be compared, and equal ones are the same: no doubles, no collations."""
    if isinstance(type_, T.ArrayType):
        return is_exact(type_.elementType)
    if isinstance(type_, T.StructType):
        return all(f.name.isidentifier() and is_exact(f.dataType) for f in type_.fields)
    return isinstance(type_, _PLAIN) or type_ == T.StringType()


def _is_key(type_: T.DataType) -> bool:
    """Whether equal keys are shown alike; GROUP BY makes equal doubles the same."""
    return is_exact(type_) or isinstance(type_, T.DoubleType | T.FloatType)
