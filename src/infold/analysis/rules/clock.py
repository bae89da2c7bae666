"""
No clock: a table that depends on when it was built cannot be verified.

A clock is a call, a bare name, or one of the strings that Spark reads as the time of the query
(``DATE 'today'``, ``event_ts < 'now'``). Such a string is refused where it becomes a time; in a
list of texts it is a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from infold.analysis.names.relation import Block, Table, blocks_of
from infold.analysis.names.subject import Subject
from infold.analysis.sql.token_calls import calls
from infold.messages import refusals
from infold.messages.errors import InfoldError

_CALLS = frozenset(
    {
        "curdate",
        "current_date",
        "current_time",
        "current_timestamp",
        "getdate",
        "localtimestamp",
        "now",
    }
)
_BARE = frozenset(
    {
        TokenType.CURRENT_DATE,
        TokenType.CURRENT_DATETIME,
        TokenType.CURRENT_TIME,
        TokenType.CURRENT_TIMESTAMP,
        TokenType.LOCALTIME,
        TokenType.LOCALTIMESTAMP,
    }
)
_NOW_WITHOUT_ARGUMENTS = frozenset({"unix_timestamp"})

# As Spark has it: the word, and a time zone perhaps ('epoch' is the same at every run).
_TODAY = re.compile(r"\s*(now|today|tomorrow|yesterday)(?![a-z])[ \t]*\S*\s*", re.IGNORECASE)
_STRINGS = (TokenType.STRING, TokenType.RAW_STRING)
_TIMES = frozenset({"date", "timestamp", "timestamp_ltz", "timestamp_ntz"})
_CASTS = frozenset({"cast", "try_cast"})
_OF_TIMES = frozenset(
    {
        *_TIMES,
        "add_months",
        "convert_timezone",
        "date_add",
        "date_diff",
        "date_format",
        "date_part",
        "date_sub",
        "date_trunc",
        "dateadd",
        "datediff",
        "datepart",
        "day",
        "dayofmonth",
        "dayofweek",
        "dayofyear",
        "extract",
        "from_utc_timestamp",
        "hour",
        "last_day",
        "minute",
        "month",
        "months_between",
        "next_day",
        "quarter",
        "second",
        "timestampadd",
        "timestampdiff",
        "to_date",
        "to_timestamp",
        "to_timestamp_ltz",
        "to_timestamp_ntz",
        "to_utc_timestamp",
        "trunc",
        "try_to_date",
        "try_to_timestamp",
        "unix_date",
        "unix_micros",
        "unix_millis",
        "unix_seconds",
        "weekday",
        "weekofyear",
        "year",
    }
)
"""Functions with arguments that Spark casts to times."""

_ORDERED = (TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE)
_CLAUSES = (TokenType.AND, TokenType.OR, TokenType.WHEN, TokenType.WHERE, TokenType.ON)
_EQUALS = (exp.EQ, exp.NEQ, exp.NullSafeEQ)


def check(subject: Subject) -> Iterator[InfoldError]:
    """Every call of a clock, then every string that is one."""
    yield from _clock_calls(subject)
    yield from _clock_literals(subject)


def _clock_calls(subject: Subject) -> Iterator[InfoldError]:
    text = subject.text
    for i, token in enumerate(text.tokens):
        after_dot = i > 0 and text.tokens[i - 1].token_type is TokenType.DOT
        if token.token_type in _BARE and not after_dot:
            yield refusals.clock(text.spot_of_token(token), call=token.text.lower())
    for call in calls(text.tokens, 0, len(text.tokens)):
        token = text.tokens[call.start]
        if token.token_type in _BARE:
            continue
        if call.name in _CALLS or (call.name in _NOW_WITHOUT_ARGUMENTS and not call.arguments):
            yield refusals.clock(text.spot_of_token(token), call=f"{call.name}()")


def _clock_literals(subject: Subject) -> Iterator[InfoldError]:
    """The strings that Spark makes a time of, and the time of the query."""
    text = subject.text
    today = [
        i
        for i, token in enumerate(text.tokens)
        if token.token_type in _STRINGS and _TODAY.fullmatch(token.text)
    ]
    if not today:
        return
    arguments = _arguments(text.tokens)
    compared = {
        (spot.line, spot.column) for spot in map(text.spot_of, _compared_to_a_time(subject))
    }
    for i in today:
        spot = text.spot_of_token(text.tokens[i])
        start, end = _unbracketed(text.tokens, i)
        if (
            not arguments.isdisjoint({(start, end), (i, i + 1)})
            or _becomes_a_time(text.tokens, start, end)
            or (spot.line, spot.column) in compared
        ):
            yield refusals.clock(
                spot, call=f"the string '{text.tokens[i].text.strip()}' read as a time"
            )


def _arguments(tokens: Sequence[Token]) -> set[tuple[int, int]]:
    """Ranges of tokens that are made a time as the argument of a call."""
    ranges: set[tuple[int, int]] = set()
    for call in calls(tokens, 0, len(tokens)):
        for start, end in call.arguments:
            if call.name in _CASTS and _names_clock(tokens, end - 2, TokenType.ALIAS):
                if _is_time(tokens, end - 1):
                    ranges.add((start, end - 2))
            elif call.name == "extract" and _names_clock(tokens, start + 1, TokenType.FROM):
                ranges.add((start + 2, end))
            elif call.name in _OF_TIMES:
                ranges.add((start, end))
    return ranges


def _unbracketed(tokens: Sequence[Token], i: int) -> tuple[int, int]:
    """The range of a token with the brackets around it alone."""
    start, end = i, i + 1
    while _names_clock(tokens, start - 1, TokenType.L_PAREN) and _names_clock(
        tokens, end, TokenType.R_PAREN
    ):
        start, end = start - 1, end + 1
    return start, end


def _becomes_a_time(tokens: Sequence[Token], start: int, end: int) -> bool:
    """Whether the words before or behind a string make it a time."""
    if _is_time(tokens, start - 1):
        return True
    if _names_clock(tokens, end, TokenType.DCOLON) and _is_time(tokens, end + 1):
        return True
    if _names_clock(tokens, start - 1, *_ORDERED, TokenType.BETWEEN):
        return True
    if _names_clock(tokens, end, *_ORDERED, TokenType.BETWEEN):
        return True
    if _names_clock(tokens, end, TokenType.NOT) and _names_clock(
        tokens, end + 1, TokenType.BETWEEN
    ):
        return True
    return _names_clock(tokens, start - 1, TokenType.AND) and _ends_between(tokens, start - 1)


def _ends_between(tokens: Sequence[Token], i: int) -> bool:
    """Whether the AND at ``i`` is that of a BETWEEN."""
    depth = 0
    for token in reversed(tokens[:i]):
        depth += (token.token_type is TokenType.R_PAREN) - (token.token_type is TokenType.L_PAREN)
        if depth < 0 or (depth == 0 and token.token_type in _CLAUSES):
            return False
        if depth == 0 and token.token_type is TokenType.BETWEEN:
            return True
    return False


def _is_time(tokens: Sequence[Token], i: int) -> bool:
    """Whether the token is the name of a type of times."""
    if not 0 <= i < len(tokens) or tokens[i].token_type in (*_STRINGS, TokenType.IDENTIFIER):
        return False
    return tokens[i].text.lower() in _TIMES and not _names_clock(tokens, i - 1, TokenType.DOT)


def _names_clock(tokens: Sequence[Token], i: int, *kinds: TokenType) -> bool:
    return 0 <= i < len(tokens) and tokens[i].token_type in kinds


def _compared_to_a_time(subject: Subject) -> Iterator[exp.Expr]:
    """What =, <> or IN compares with something that is known to be a time."""
    for block in blocks_of(subject.relation):
        if not isinstance(block, Block):
            continue
        for node in block.expressions():
            if isinstance(node, _EQUALS):
                sides = (node.this, node.expression)
            elif isinstance(node, exp.In):
                sides = (node.this, *node.expressions)
            else:
                continue
            if any(_known_time(side, block, subject) for side in sides):
                yield from (side.unnest() for side in sides)


def _known_time(node: exp.Expr, block: Block, subject: Subject) -> bool:
    node = node.unnest()
    if isinstance(node, exp.Cast):
        return node.to.sql(dialect="spark").lower() in _TIMES
    if not isinstance(node, exp.Column):
        return isinstance(node, exp.TsOrDsToDate | exp.TimestampTrunc | exp.DateTrunc)
    origin = block.origins.get(node)
    if origin is None or not isinstance(origin.entry.relation, Table):
        return False
    name, column = origin.entry.relation.name.lower(), origin.column.lower()
    source = subject.sources.get(name)
    if source is not None:
        types = {declared.name.lower(): declared.type.lower() for declared in source.columns}
        return types.get(column) in _TIMES
    return subject.is_time_of_model(origin)
