"""
The words of expressions that compute one value of one row, by its values and their types alone.

Aggregates, windows, generators, subqueries, chance and clocks are none. Neither are functions whose
last digits may differ between two processors (``sin``). ``struct_calls.py`` has lambdas, and the
functions that name fields by their arguments (``struct``). What is not listed is not understood.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

FUNCTIONS = frozenset(
    """
abs add_months array array_contains array_distinct array_join array_max array_min array_size
ascii base64 bigint binary bit_length boolean bround btrim cardinality cast ceil ceiling char
char_length character_length chr coalesce concat concat_ws contains crc32 date date_add date_diff
date_format date_from_unix_date date_sub date_trunc dateadd datediff day dayofmonth dayofweek
dayofyear decimal double element_at endswith equal_null find_in_set float floor format_number
from_unixtime from_utc_timestamp get get_json_object greatest hash hex hour if ifnull initcap
instr int isnan isnotnull isnull last_day lcase least left len length levenshtein locate lower
lpad ltrim make_date map_contains_key map_keys map_values md5 minute mod month months_between
nanvl negative next_day nullif nullifzero nvl nvl2 octet_length overlay pmod position positive
quarter regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like regexp_replace
regexp_substr repeat replace reverse right round rpad rtrim second sha sha1 sha2 shiftleft
shiftright sign signum size slice sort_array split split_part sqrt startswith string substr
substring substring_index timestamp timestamp_micros timestamp_millis timestamp_seconds
to_char to_date to_timestamp to_utc_timestamp translate trim trunc try_add try_cast try_divide
try_element_at try_multiply try_subtract try_to_timestamp ucase unbase64 unhex unix_date
unix_micros unix_millis unix_seconds upper url_decode url_encode weekday weekofyear xxhash64 year
zeroifnull
""".split()  # noqa: SIM905 - one word is one function
)
"""Functions with a value that follows from their arguments."""

_OPERATORS = frozenset(
    {
        TokenType.AMP,
        TokenType.AND,
        TokenType.BETWEEN,
        TokenType.CARET,
        TokenType.CASE,
        TokenType.COMMA,
        TokenType.DASH,
        TokenType.DIV,
        TokenType.DPIPE,
        TokenType.ELSE,
        TokenType.END,
        TokenType.EQ,
        TokenType.ESCAPE,
        TokenType.FALSE,
        TokenType.GT,
        TokenType.GTE,
        TokenType.HEX_STRING,
        TokenType.ILIKE,
        TokenType.IN,
        TokenType.INTERVAL,
        TokenType.IS,
        TokenType.LIKE,
        TokenType.LT,
        TokenType.LTE,
        TokenType.L_BRACKET,
        TokenType.L_PAREN,
        TokenType.MOD,
        TokenType.NEQ,
        TokenType.NOT,
        TokenType.NULL,
        TokenType.NULLSAFE_EQ,
        TokenType.NUMBER,
        TokenType.OR,
        TokenType.PIPE,
        TokenType.PLUS,
        TokenType.RAW_STRING,
        TokenType.RLIKE,
        TokenType.R_BRACKET,
        TokenType.R_PAREN,
        TokenType.SLASH,
        TokenType.STRING,
        TokenType.THEN,
        TokenType.TILDE,
        TokenType.TRUE,
        TokenType.WHEN,
    }
)
"""Operators, literals, and what holds expressions together."""

_TYPES = frozenset(
    {
        TokenType.BIGINT,
        TokenType.BINARY,
        TokenType.BOOLEAN,
        TokenType.DATE,
        TokenType.DECIMAL,
        TokenType.DOUBLE,
        TokenType.FLOAT,
        TokenType.INT,
        TokenType.TEXT,
        TokenType.TIMESTAMP,
        TokenType.TIMESTAMPTZ,
    }
)
_UNITS = frozenset(
    {f"{unit}{end}" for unit in ("day", "hour", "minute", "second", "week") for end in ("", "s")}
)


def is_known_word(tokens: Sequence[Token], at: int) -> bool:
    """Whether a token is an operator, a literal, or the name of a type or unit in its place."""
    token = tokens[at]
    kind, before = token.token_type, tokens[at - 1].token_type
    behind = tokens[at + 1].token_type if at + 1 < len(tokens) else None
    if kind is TokenType.STAR:  # a product, not all columns
        return before not in (TokenType.L_PAREN, TokenType.COMMA, TokenType.DOT)
    if kind is TokenType.ALIAS:
        return behind in _TYPES
    if kind is TokenType.DCOLON:
        return True
    if kind in _TYPES and before in (TokenType.ALIAS, TokenType.DCOLON):
        return True
    if kind in (TokenType.DATE, TokenType.TIMESTAMP, TokenType.TIMESTAMPTZ):
        return behind is TokenType.STRING
    if kind is TokenType.VAR and token.text.lower() in _UNITS:
        return at > 1 and tokens[at - 2].token_type is TokenType.INTERVAL
    return kind in _OPERATORS
