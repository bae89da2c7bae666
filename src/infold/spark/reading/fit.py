"""
Values that fit their declared types: from text, exactly or not at all.

Spark's own casts are close but not strict: ``'12:30'`` is a timestamp of today, ``'2024-01-01 x'``
a date, ``1.239`` a ``decimal(18,2)``. Nothing may be lost on the way in, so these are refused here.
Excess digits of a second beyond microseconds are the one thing that is cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.model import Column as Declared

_DATE = r"^\s*[+-]?\d{4,6}-\d{1,2}-\d{1,2}"

_SPACE = r"[\x00-\x20]*"  # what Java trims
_EXPONENT = rf"^{_SPACE}[+-]?([0-9.]+)[eE]([+-]?[0-9]+){_SPACE}$"

_EPOCHS = {
    "epoch_seconds": ("decimal(20,6)", 1_000_000),
    "epoch_millis": ("decimal(20,3)", 1_000),
    "epoch_micros": ("decimal(20,0)", 1),
}

FILE, PATH, RAW, PROBLEM, BROKEN = "_source_file", "_path", "_raw", "_problem", "_broken"

NOT_UTF8 = "unparsable: not UTF-8"
"""The problem of a row whose bytes are no text: read on, two users might become one."""


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
    # Looked at as text: a cast rounds, and there is no wider type to compare with at 38 digits.
    plain = rf"^{_SPACE}[+-]?[0-9]*(?:\.[0-9]{{0,{wanted.scale}}}0*)?{_SPACE}$"
    return F.when(text.rlike(plain) | _scientific(text, wanted.scale), text.try_cast(wanted))


def _scientific(text: Column, scale: int) -> Column:
    """Whether the text is a number with an exponent and has no digits beyond the scale."""
    mantissa = F.regexp_extract(text, _EXPONENT, 1)
    exponent = F.regexp_extract(text, _EXPONENT, 2).try_cast("int")
    fraction = F.length(F.regexp_extract(mantissa, r"\.([0-9]*?)0*$", 1))
    zeros = F.length(F.regexp_extract(mantissa, r"(0*)(?:\.0*)?$", 1))
    digits = F.when(fraction > 0, fraction).otherwise(-zeros) - exponent
    nothing = ~mantissa.rlike("[1-9]")
    return text.rlike(_EXPONENT) & (nothing | (digits <= F.lit(scale)))


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


def lost_name(at: int) -> str:
    """The name of the flag that the text of the declared column ``at`` is not what was written."""
    return f"_lost{at}"


def typed(texts: DataFrame, columns: Sequence[Declared], timestamp_format: str) -> DataFrame:
    """
    Rows of typed values from rows of texts (``_text0`` …, ``_path``, ``_raw``, ``_broken``).

    ``_broken`` says what is wrong with a row as a whole; it is NULL when it came apart well. Where
    there is a flag ``_lost0`` …, it says that a text is not what was written, and fits nothing.
    """
    wanted = [datatype(column) for column in columns]
    values = texts.withColumn(BROKEN, _apart(F.col(BROKEN))).select(
        "*",
        *(
            fitted(F.col(text_name(at)), type_, timestamp_format).alias(f"_value{at}")
            for at, type_ in enumerate(wanted)
        ),
    )
    misfit = {}
    for at, type_ in enumerate(wanted):
        tests = []
        if not isinstance(type_, T.StringType) or isinstance(type_, T.VarcharType | T.CharType):
            tests.append(F.col(text_name(at)).isNotNull() & F.col(f"_value{at}").isNull())
        if lost_name(at) in texts.columns:
            tests.append(F.coalesce(F.col(lost_name(at)), F.lit(False)))
        if tests:
            misfit[at] = reduce(or_, tests)
    problem = F.coalesce(F.col(BROKEN), misfits(columns, misfit))
    judged = values.withColumn(PROBLEM, _apart(problem))
    return judged.select(
        *(
            F.when(F.col(PROBLEM).isNull(), F.col(f"_value{at}")).alias(column.name)
            for at, column in enumerate(columns)
        ),
        PATH,
        RAW,
        PROBLEM,
    )


def _apart(value: Column) -> Column:
    """
    A value as it is, in a projection that Spark leaves alone.

    Spark pushes conditions below projections, and puts projections into each other, by writing an
    expression wherever its name stands. Texts are named many times over on their way to values:
    the plan of a table of ten columns would grow to gigabytes. Not so past a value that Spark does
    not take for a function of its row.
    """
    return F.when(F.spark_partition_id() >= 0, value)


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
