"""
Decimals of Avro as texts, whatever their bytes are.

They are whole numbers of any length beside a scale, and the precision of a file is its writer's
word. Spark reads none with more than 38 digits, fails at a value beyond the precision, and of one
that is far beyond it takes the last digits. So it reads bytes here, and what they say is a text,
which fits the declared type or does not.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

_BYTES = 16
"""More than a decimal of 38 digits has."""
_DIGITS = 2 * _BYTES
_HALF = _BYTES  # of the hexadecimal digits


def text_of(found: Column, scale: int) -> Column:
    """The number that bytes are: two's complement, the highest first; in hex where it is longer."""
    digits = F.hex(found)
    negative = F.substring(digits, 1, 1).rlike("[89A-F]")
    fill = F.when(negative, F.lit("F")).otherwise(F.lit("0"))
    filled = F.concat(F.repeat(fill, F.lit(_DIGITS)), digits)
    last = F.right(filled, F.lit(_DIGITS))
    before = F.substring(filled, 1, F.length(filled) - F.lit(_DIGITS))
    fits = (
        (F.length(digits) > 0)
        & (F.replace(before, fill, F.lit("")) == F.lit(""))
        & (F.substring(last, 1, 1).rlike("[89A-F]") == negative)
    )
    high, low = (
        F.conv(half, 16, 10).cast("decimal(20,0)")
        for half in (F.substring(last, 1, _HALF), F.substring(last, _HALF + 1, _HALF))
    )
    turn = F.lit(str(2**64)).cast("decimal(20,0)")
    # Of both parts the sign of the whole, so that none of 38 digits overflows on the way.
    turns = F.when(negative, high - turn + F.lit(1)).otherwise(high)
    rest = F.when(negative, low - turn).otherwise(low)
    whole = F.try_add(F.try_multiply(turns, turn), rest)
    return F.coalesce(F.when(fits, _with_point(whole, scale)), F.concat(F.lit("0x"), digits))


def _with_point(whole: Column, scale: int) -> Column:
    """A whole number as a text with so many of its digits behind the point."""
    if not scale:
        return whole.cast("string")
    # Not its `abs`, which Spark rounds to 34 digits.
    digits = F.replace(whole.cast("string"), F.lit("-"), F.lit(""))
    digits = F.lpad(digits, F.greatest(F.length(digits), F.lit(scale + 1)), F.lit("0"))
    point = F.length(digits) - F.lit(scale)
    sign = F.when(whole < 0, F.lit("-")).otherwise(F.lit(""))
    return F.concat(
        sign, F.substring(digits, F.lit(1), point), F.lit("."), F.right(digits, F.lit(scale))
    )
