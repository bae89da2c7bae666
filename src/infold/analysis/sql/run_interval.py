"""
The interval of a run in a query: ``@start_ts``, ``@end_ts``, ``@start_ds``, ``@end_ds``.

Queries from SQLMesh have ``WHERE event_ds BETWEEN @start_ds AND @end_ds``. Here a query defines the
whole table, and infold itself filters each input to what the cells being built are made from. So
the names mean the beginning and the end of all time, as texts that compare with dates, timestamps
and ISO texts alike. A filter by them keeps every row that has a value.
"""

from __future__ import annotations

from itertools import pairwise

from infold.analysis.sql.text import spot_in
from infold.messages import findings

_DATES = ("'0001-01-01'", "'9999-12-31'")
_TIMES = ("'0001-01-01 00:00:00+00:00'", "'9999-12-31 23:59:59.999999+00:00'")
NAMES = {
    f"{end}_{suffix}": texts[end == "end"]
    for end in ("start", "end")
    for suffix, texts in (
        ("ds", _DATES),
        ("date", _DATES),
        ("ts", _TIMES),
        ("tstz", _TIMES),
        ("dt", _TIMES),
        ("dtntz", _TIMES),
    )
}
"""What each name is replaced by."""


def replace_run_interval(file: str, source: str, start: int) -> tuple[str, tuple[str, ...]]:
    """
    The text with the names replaced behind ``start``, and the names that were used, in order.

    Raises InfoldError for any other ``@name``.
    """
    if "@" not in source[start:]:
        return source, ()
    from sqlglot.dialects.spark import Spark
    from sqlglot.errors import TokenError
    from sqlglot.tokenizer_core import TokenType

    try:
        tokens = Spark().tokenize(source[start:])
    except TokenError:
        return source, ()  # parsing says what is wrong
    parts, at, used = [source[:start]], 0, []
    query = source[start:]
    for mark, name in pairwise(tokens):
        if mark.token_type is not TokenType.PARAMETER:
            continue
        word = name.text.lower()
        if word not in NAMES or name.start != mark.end + 1:
            spot = spot_in(file, source, start + mark.start, start + name.end + 1)
            raise findings.unknown_variable(
                spot, name=f"@{name.text}", known=[f"@{known}" for known in sorted(NAMES)]
            )
        parts += [query[at : mark.start], NAMES[word]]
        at = name.end + 1
        used.append(f"@{word}")
    return "".join([*parts, query[at:]]), tuple(dict.fromkeys(used))
