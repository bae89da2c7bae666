"""
Values of declared types from text: exactly, or not at all.

Spark's own casts are close but not strict: ``'12:30'`` is a timestamp of today, ``'2024-01-01 x'``
a date, ``1.239`` a ``decimal(18,2)``; the last digits of nanoseconds are cut off. No value may be
changed when it is read, so these are refused here, in lists and objects too.

Formats of text hand over a frame of texts, which :func:`typed_rows` turns into the frame that
``reading`` describes:

| column      | type   | meaning                                                          |
|-------------|--------|------------------------------------------------------------------|
| `_text0` …  | string | the text of each declared column, in order; NULL for no value    |
| `_path`     | string | the file, as Spark reports it                                    |
| `_raw`      | string | the row as text                                                  |
| `_broken`   | string | why the row as a whole cannot be read; NULL when it can          |
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.formats import EPOCH_UNITS
from infold.core.model import Column as Declared

_DATE = r"^\s*[+-]?\d{4,6}-\d{1,2}-\d{1,2}"

# Minutes without seconds, and hours without minutes, before a zone: ISO 8601, and NULL to a cast.
_TO_MINUTES = rf"({_DATE[1:]}[T ]\d{{1,2}}:\d{{1,2}})(?=\s*(?:Z|[+-]|[A-Z]))"
_TO_HOURS = rf"({_DATE[1:]}[T ]\d{{1,2}})(?=\s*(?:Z|[+-]|[A-Z]))"
_FINER = r"[.,]\d{6}\d*[1-9]"
"""A fraction of a second with digits beyond microseconds."""

_SPACE = r"[\x00-\x20]*"  # what Java trims

_AMBIGUOUS_ZONES = (
    r"(?<![A-Za-z/_+-])(?:A[CES]T|AGT|ART|B[ES]T|C[ANS]T|CTT|E[AC]T|I[ES]T|JST|MIT|N[ES]T|P[LNRS]T"
    rf"|[SV]ST|SystemV/\w+){_SPACE}$"
)
"""
Names that Java has for zones beside those of IANA's database: short ones, which mean several.

``BST`` is Bangladesh to it, ``IST`` India. Others as short (``EDT``, ``CEST``) it does not know.
"""
_EXPONENT = rf"^{_SPACE}[+-]?([0-9.]+)[eE]([+-]?[0-9]+){_SPACE}$"

_WHOLE_WITH_POINT = rf"^{_SPACE}([+-]?[0-9]+)\.0*{_SPACE}$"

_EPOCH_TYPES = {name: T.DecimalType(20, len(str(unit)) - 1) for name, unit in EPOCH_UNITS.items()}
"""Numbers since 1970 with as many decimals as a microsecond needs."""

PATH, RAW, PROBLEM, BROKEN = "_path", "_raw", "_problem", "_broken"

NOT_UTF8 = "unparsable: not UTF-8"
"""The problem of a row that is not UTF-8: decoded anyway, two users might become one."""

HALF_PAIR = "unparsable: half of a pair of surrogates"
"""The same of an escape in JSON that is no character by itself."""


def datatype(declared: Declared) -> T.DataType:
    """The Spark type of a declared column; sized strings are strings with a check."""
    return T.DataType.fromDDL(declared.type)


def stored_type(declared: Declared) -> T.DataType:
    """The type that values of a declared column have once they are read."""
    type_ = datatype(declared)
    return T.StringType() if isinstance(type_, T.VarcharType | T.CharType) else type_


def is_epoch(timestamp_format: str) -> bool:
    """Whether timestamps are written as numbers."""
    return timestamp_format in EPOCH_UNITS


def fitted(text: Column, type_: T.DataType, timestamp_format: str) -> Column:
    """The value of ``text`` in a type; NULL if it is not exactly a value of that type."""
    if isinstance(type_, T.VarcharType | T.CharType):
        return F.when(F.length(text) <= type_.length, text)
    if isinstance(type_, T.TimestampType | T.TimestampNTZType):
        # Through an instant: a cast to TIMESTAMP_NTZ would ignore the offset that is written.
        return _timestamp(text, timestamp_format).cast(type_)
    if isinstance(type_, NESTED):
        return _nested(text, type_, timestamp_format)
    return _simple(text, type_)


NESTED = (T.ArrayType, T.MapType, T.StructType)


def _simple(text: Column, type_: T.DataType) -> Column:
    if isinstance(type_, T.StringType):
        return text
    if isinstance(type_, T.DateType):
        return F.when(text.rlike(_DATE + r"\s*$"), text.try_cast("date"))
    if isinstance(type_, T.DecimalType):
        return _decimal(text, type_)
    if isinstance(type_, T.DoubleType | T.FloatType):
        return _floating(text, type_)
    if isinstance(type_, T.BinaryType):
        return text.cast("binary")
    if isinstance(type_, T.IntegralType):
        # 1.0 is 1, but a cast reads no text with a point in it as a whole number.
        whole = F.nullif(F.regexp_extract(text, _WHOLE_WITH_POINT, 1), F.lit(""))
        return F.coalesce(text.try_cast(type_), whole.try_cast(type_))
    return text.try_cast(type_)


def _timestamp(text: Column, timestamp_format: str) -> Column:
    exact = ~text.rlike(f"{_FINER}|{_AMBIGUOUS_ZONES}" if timestamp_format == "iso" else _FINER)
    if timestamp_format == "iso":
        to_minutes = F.regexp_replace(text, _TO_MINUTES, "$1:00")
        to_hours = F.regexp_replace(text, _TO_HOURS, "$1:00:00")
        instant = F.coalesce(*(way.try_cast("timestamp") for way in (text, to_minutes, to_hours)))
        # Text without a date would be a time of today, which is no function of the file.
        return F.when(text.rlike(_DATE) & exact, instant)
    if timestamp_format in EPOCH_UNITS:
        unit = F.lit(EPOCH_UNITS[timestamp_format])
        value = _decimal(text, _EPOCH_TYPES[timestamp_format]) * unit
        return F.timestamp_micros(value.try_cast("bigint"))
    return F.when(exact, F.try_to_timestamp(text, F.lit(timestamp_format)))


def _decimal(text: Column, type_: T.DecimalType) -> Column:
    # Looked at as text: a cast rounds, and there is no wider type to compare with at 38 digits.
    plain = rf"^{_SPACE}[+-]?[0-9]*(?:\.[0-9]{{0,{type_.scale}}}0*)?{_SPACE}$"
    return F.when(text.rlike(plain) | _scientific(text, type_.scale), text.try_cast(type_))


def _scientific(text: Column, scale: int) -> Column:
    """Whether the text is a number with an exponent and has no digits beyond the scale."""
    mantissa = F.regexp_extract(text, _EXPONENT, 1)
    exponent = F.regexp_extract(text, _EXPONENT, 2).try_cast("int")
    fraction = F.length(F.regexp_extract(mantissa, r"\.([0-9]*?)0*$", 1))
    zeros = F.length(F.regexp_extract(mantissa, r"(0*)(?:\.0*)?$", 1))
    digits = F.when(fraction > 0, fraction).otherwise(-zeros) - exponent
    is_zero = ~mantissa.rlike("[1-9]")
    return text.rlike(_EXPONENT) & (is_zero | (digits <= F.lit(scale)))


def _floating(text: Column, type_: T.DataType) -> Column:
    value = text.try_cast(type_)
    infinite = F.lower(text).contains("inf")
    beyond = F.abs(value) == F.lit(float("inf")).cast(type_)
    suffixed = F.lower(F.substring(F.trim(text), -1, 1)).isin("d", "f")  # Java's 1d, 1f
    return F.when(infinite | ~(beyond | suffixed), value)


def _nested(text: Column, type_: T.DataType, timestamp_format: str) -> Column:
    """A list or an object from its JSON text: its parts are texts first, and fit or do not."""
    schema = T.StructType(
        [T.StructField("v", _text_type(type_)), T.StructField("c", T.StringType())]
    )
    marked_text = marked(text)
    parsed = F.from_json(
        F.concat(F.lit('{"v":'), marked_text, F.lit("}")),
        schema,
        {"columnNameOfCorruptRecord": "c"},
    )

    def exactly(parsed_text: Column) -> Column:
        good = parsed_text["c"].isNull() & ~_misfit(parsed_text["v"], type_, timestamp_format)
        return F.when(good, _typed(parsed_text["v"], type_, timestamp_format))

    # One value, of keys that are there once; a text from CSV may be anything.
    sound = alone(F.try_parse_json(wrapped(marked_text)))
    sound &= ~half_pair(text) & ~has_mark(text)
    # Through a list of one: what was parsed is named many times, and written out once.
    return F.when(sound, F.transform(F.array(parsed), exactly)[0])


def _text_type(type_: T.DataType) -> T.DataType:
    """The type in which all that is no list and no object is a text."""
    if isinstance(type_, T.ArrayType):
        return T.ArrayType(_text_type(type_.elementType))
    if isinstance(type_, T.MapType):
        return T.MapType(T.StringType(), _text_type(type_.valueType))
    if isinstance(type_, T.StructType):
        fields = [T.StructField(field.name, _text_type(field.dataType)) for field in type_.fields]
        return T.StructType(fields)
    return T.StringType()


def _typed(value: Column, type_: T.DataType, timestamp_format: str) -> Column:
    """A value made of texts, as the type that is wanted."""
    if isinstance(type_, T.ArrayType):
        element = type_.elementType
        return F.transform(value, lambda item: _typed(item, element, timestamp_format))
    if isinstance(type_, T.MapType):
        key, inner = type_.keyType, type_.valueType
        keys = F.transform(F.map_keys(value), lambda item: _typed(item, key, timestamp_format))
        values = F.transform(
            F.map_values(value), lambda item: _typed(item, inner, timestamp_format)
        )
        return F.map_from_arrays(keys, values)
    if isinstance(type_, T.StructType):
        parts = [
            _typed(value[field.name], field.dataType, timestamp_format).alias(field.name)
            for field in type_.fields
        ]
        return F.when(value.isNotNull(), F.struct(*parts))
    return fitted(unmarked(value), type_, timestamp_format)


def _misfit(value: Column, type_: T.DataType, timestamp_format: str) -> Column:
    """Whether a text in a nested value is not exactly a value of its type."""
    if isinstance(type_, T.ArrayType):
        element = type_.elementType
        misfits = F.exists(value, lambda item: _misfit(item, element, timestamp_format))
    elif isinstance(type_, T.MapType):
        key, inner = type_.keyType, type_.valueType
        misfits = F.exists(F.map_keys(value), lambda item: _misfit(item, key, timestamp_format))
        misfits |= F.exists(
            F.map_values(value), lambda item: _misfit(item, inner, timestamp_format)
        )
        # Two keys may be one number.
        keys = F.transform(F.map_keys(value), lambda item: _typed(item, key, timestamp_format))
        misfits |= F.size(F.array_distinct(keys)) < F.size(keys)
    elif isinstance(type_, T.StructType):
        parts = (_misfit(value[field.name], field.dataType, timestamp_format) for field in type_)
        misfits = F.coalesce(*(F.when(part, F.lit(True)) for part in parts), F.lit(False))
    elif isinstance(type_, T.StringType) and not isinstance(type_, T.VarcharType | T.CharType):
        return F.lit(False)
    else:
        misfits = value.isNotNull() & _typed(value, type_, timestamp_format).isNull()
    return F.coalesce(misfits, F.lit(False))


def text_name(at: int) -> str:
    """The name under which readers hand over the text of the declared column number ``at``."""
    return f"_text{at}"


def broken(problem: Column) -> Column:
    """The column of a frame of texts that says what is wrong with a row as a whole."""
    return _opaque(problem).alias(BROKEN)


def typed_rows(texts: DataFrame, columns: Sequence[Declared], timestamp_format: str) -> DataFrame:
    """Rows of typed values from a frame of texts; see above and ``reading``."""
    types = [datatype(column) for column in columns]
    values = texts.select(
        "*",
        *(
            fitted(F.col(text_name(at)), type_, timestamp_format).alias(f"_value{at}")
            for at, type_ in enumerate(types)
        ),
    )
    misfit = {
        at: F.col(text_name(at)).isNotNull() & F.col(f"_value{at}").isNull()
        for at, type_ in enumerate(types)
        if not isinstance(type_, T.StringType) or isinstance(type_, T.VarcharType | T.CharType)
    }
    problem = F.coalesce(F.col(BROKEN), misfit_problem(columns, misfit))
    judged = values.withColumn(PROBLEM, _opaque(problem))
    return judged.select(
        *(
            F.when(F.col(PROBLEM).isNull(), F.col(f"_value{at}")).alias(column.name)
            for at, column in enumerate(columns)
        ),
        PATH,
        RAW,
        PROBLEM,
    )


def unusable_rows(
    rows: DataFrame, columns: Sequence[Declared], path: Column, raw: Column, why: Column
) -> DataFrame:
    """Rows without values, and why they cannot be used."""
    nulls = [F.lit(None).cast(stored_type(declared)).alias(declared.name) for declared in columns]
    return rows.select(*nulls, path.alias(PATH), raw.alias(RAW), why.alias(PROBLEM))


def _opaque(value: Column) -> Column:
    """
    A value as it is, in a projection that Spark leaves alone.

    Spark pushes conditions below projections, and puts projections into each other, by writing an
    expression wherever its name is used. Texts are used many times on their way to values: the plan
    of a table of ten columns would grow to gigabytes. Spark does not do so with a value that it
    does not take for a function of its row.
    """
    return F.when(F.spark_partition_id() >= 0, value)


def misfit_problem(columns: Sequence[Declared], tests: dict[int, Column]) -> Column:
    """The problem of a row whose values do not fit their types, naming each such column."""
    if not tests:
        return F.lit(None).cast("string")
    named = [
        F.when(test, F.lit(f"{columns[at].name} is not {columns[at].type}"))
        for at, test in tests.items()
    ]
    # Not one OR in another: a client of Spark Connect takes no expression of a hundred levels.
    misfits = F.coalesce(*named).isNotNull()
    return F.when(misfits, F.concat(F.lit("unparsable: "), F.concat_ws(", ", *named)))


# Every JSON reader of Spark's takes a number for a decimal or a double, and gives another text for
# it: `1.50` becomes `1.5` and `1e5` becomes `100000.0`, so two ids become one. So each number is
# put into quotes, with a mark, before the text is read (`{"v":1.50}` becomes `{"v":"<mark>1.50"}`),
# and the mark is taken off what was read. A number in a place where JSON has none (`{1: 2}`, `01`)
# is left alone: then the text is no more JSON than it was.

_WORD = "infold number:"
_ESCAPED = f"\\u0001{_WORD}"
"""The mark as JSON writes it; in what was read it begins with the character itself."""

# From where the last number ended: whatever is neither a number nor the beginning of a text, and
# whole texts; then a number that a value may be. Nothing goes back, so long lines are no matter.
_NEXT_NUMBER = (
    r'\G((?:[^"0-9-]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+)'
    r"(-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+)(?=[\s,\]}]|$)(?!\s*:)"
)
_MARKED = f'^\\x01{_WORD}|"\\\\u0001{_WORD}([^"]*)"'

# All that a backslash may begin but half of a pair of surrogates.
_WHOLE_ESCAPE = (
    r"\\(?:[^u]|u(?![dD][89a-fA-F])"
    r"|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
)
_SURROGATE = r"\\u[dD][89a-fA-F]"


def marked(text: Column) -> Column:
    """The text with all its numbers in quotes, each with the mark."""
    return F.regexp_replace(text, _NEXT_NUMBER, f'$1"\\\\u0001{_WORD}$2"')


def unmarked(value: Column) -> Column:
    """A text that was read from a marked one, as if it had not been marked: numbers as written."""
    plain = F.regexp_replace(value, _MARKED, "$1")
    return F.when(F.contains(value, F.lit(_WORD)), plain).otherwise(value)


def has_mark(text: Column) -> Column:
    """Whether the text itself contains the mark."""
    return F.contains(text, F.lit(_ESCAPED))


def half_pair(text: Column) -> Column:
    """
    Whether the text contains half of a pair of surrogates (an escape), which is no character.

    Spark reads it as a question mark, whichever half it is, so two users would become one.
    """
    rest = F.regexp_replace(text, _WHOLE_ESCAPE, "")
    return F.when(text.rlike(_SURROGATE), rest.rlike(_SURROGATE)).otherwise(F.lit(False))


def wrapped(text: Column) -> Column:
    """The text in brackets: without them, a second value after the first is lost silently."""
    return F.concat(F.lit("["), text, F.lit("]"))


def place(name: str) -> str:
    """Where a variant of a text in brackets has the value of a key of its object."""
    quote = '"' if "'" in name else "'"
    return f"$[0][{quote}{name}{quote}]"


def alone(parsed: Column) -> Column:
    """Whether there is one value in the brackets."""
    more = F.try_variant_get(parsed, "$[1]", "variant")
    return parsed.isNotNull() & more.isNull()
