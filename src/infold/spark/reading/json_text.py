"""
JSON texts whose numbers stay as they are written.

Every JSON reader of Spark's takes a number for a decimal or a double, and gives another text for
it: ``1.50`` becomes ``1.5`` and ``1e5`` becomes ``100000.0``, so two ids become one. So each number
is put into quotes, with a mark, before the text is read (``{"v":1.50}`` becomes
``{"v":"<mark>1.50"}``), and the mark is taken off what was read. A number in a place where JSON has
none (``{1: 2}``, ``01``) is left alone: then the text is no more JSON than it was.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

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
