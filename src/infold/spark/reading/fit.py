"""
Values that fit their declared types: from text, exactly or not at all.

Spark's own casts are close but not strict: ``'12:30'`` is a timestamp of today, ``'2024-01-01 x'``
a date, ``1.239`` a ``decimal(18,2)``. Nothing may be lost on the way in, so these are refused here.
Excess digits of a second beyond microseconds are the one thing that is cut off.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.model import Column as Declared

_DATE = r"^\s*[+-]?\d{4,6}-\d{1,2}-\d{1,2}"
_EXTRA_DIGITS = 18

_EPOCHS = {
    "epoch_seconds": ("decimal(20,6)", 1_000_000),
    "epoch_millis": ("decimal(20,3)", 1_000),
    "epoch_micros": ("decimal(20,0)", 1),
}

FILE, PATH, RAW, PROBLEM, BROKEN = "_source_file", "_path", "_raw", "_problem", "_broken"


def datatype(declared: Declared) -> T.DataType:
    """The Spark type of a declared column; sized strings are strings with a check."""
    return T.DataType.fromDDL(declared.type)


def stored_type(declared: Declared) -> T.DataType:
    """The type that values of a declared column have once they are read."""
    wanted = datatype(declared)
    return T.StringType() if isinstance(wanted, T.VarcharType | T.CharType) else wanted


def is_epoch(timestamp_format: str) -> bool:
    """Whether timestamps are written as numbers."""
    return timestamp_format in _EPOCHS


def fitted(text: Column, wanted: T.DataType, timestamp_format: str) -> Column:
    """The value that ``text`` stands for; NULL where it stands for none of that type exactly."""
    if isinstance(wanted, T.VarcharType | T.CharType):
        return F.when(F.length(text) <= wanted.length, text)
    if isinstance(wanted, T.StringType):
        return text
    if isinstance(wanted, T.TimestampType):
        return _timestamp(text, timestamp_format)
    if isinstance(wanted, T.TimestampNTZType):
        # Through an instant: a cast to TIMESTAMP_NTZ would ignore the offset that is written.
        return _timestamp(text, timestamp_format).cast("timestamp_ntz")
    if isinstance(wanted, T.DateType):
        return F.when(text.rlike(_DATE + r"\s*$"), text.try_cast("date"))
    if isinstance(wanted, T.DecimalType):
        return _decimal(text, wanted)
    if isinstance(wanted, T.DoubleType | T.FloatType):
        return _floating(text, wanted)
    if isinstance(wanted, T.BinaryType):
        return text.cast("binary")
    if isinstance(wanted, T.ArrayType | T.MapType | T.StructType):
        return _nested(text, wanted)
    return text.try_cast(wanted)


def _timestamp(text: Column, written: str) -> Column:
    if written == "iso":
        # Text without a date would be a time of today, which is no function of the file.
        return F.when(text.rlike(_DATE), text.try_cast("timestamp"))
    if written in _EPOCHS:
        type_, unit = _EPOCHS[written]
        return F.timestamp_micros((text.try_cast(type_) * F.lit(unit)).try_cast("bigint"))
    return F.try_to_timestamp(text, F.lit(written))


def _decimal(text: Column, wanted: T.DecimalType) -> Column:
    narrow = text.try_cast(wanted)
    scale = min(38 - (wanted.precision - wanted.scale), wanted.scale + _EXTRA_DIGITS)
    if scale <= wanted.scale:
        return narrow
    wide = T.DecimalType(wanted.precision - wanted.scale + scale, scale)
    return F.when(text.try_cast(wide) == narrow, narrow)


def _floating(text: Column, wanted: T.DataType) -> Column:
    value = text.try_cast(wanted)
    infinite = F.lower(text).contains("inf")
    beyond = F.abs(value) == F.lit(float("inf")).cast(wanted)
    suffixed = F.lower(F.substring(F.trim(text), -1, 1)).isin("d", "f")  # Java's 1d, 1f
    return F.when(infinite | ~(beyond | suffixed), value)


def _nested(text: Column, wanted: T.DataType) -> Column:
    schema = T.StructType([T.StructField("v", wanted), T.StructField("c", T.StringType())])
    parsed = F.from_json(
        F.concat(F.lit('{"v":'), text, F.lit("}")), schema, {"columnNameOfCorruptRecord": "c"}
    )
    return F.when(parsed["c"].isNull(), parsed["v"])


def text_name(at: int) -> str:
    """The name under which readers hand over the text of the declared column number ``at``."""
    return f"_text{at}"


def typed(texts: DataFrame, columns: Sequence[Declared], timestamp_format: str) -> DataFrame:
    """
    Rows of typed values from rows of texts (``_text0`` …, ``_path``, ``_raw``, ``_broken``).

    ``_broken`` says what is wrong with a row as a whole; it is NULL when it came apart well.
    """
    wanted = [datatype(column) for column in columns]
    values = texts.select(
        "*",
        *(
            fitted(F.col(text_name(at)), type_, timestamp_format).alias(f"_value{at}")
            for at, type_ in enumerate(wanted)
        ),
    )
    misfit = {
        at: F.col(text_name(at)).isNotNull() & F.col(f"_value{at}").isNull()
        for at, type_ in enumerate(wanted)
        if not isinstance(type_, T.StringType) or isinstance(type_, T.VarcharType | T.CharType)
    }
    judged = values.withColumn(PROBLEM, F.coalesce(F.col(BROKEN), misfits(columns, misfit)))
    return judged.select(
        *(
            F.when(F.col(PROBLEM).isNull(), F.col(f"_value{at}")).alias(column.name)
            for at, column in enumerate(columns)
        ),
        PATH,
        RAW,
        PROBLEM,
    )


def misfits(columns: Sequence[Declared], tests: dict[int, Column]) -> Column:
    """The problem of a row whose values do not fit their types, naming each such column."""
    if not tests:
        return F.lit(None).cast("string")
    named = [
        F.when(test, F.lit(f"{columns[at].name} is not {columns[at].type}"))
        for at, test in tests.items()
    ]
    any_ = named[0].isNotNull()
    for entry in named[1:]:
        any_ = any_ | entry.isNotNull()
    return F.when(any_, F.concat(F.lit("unparsable: "), F.concat_ws(", ", *named)))
