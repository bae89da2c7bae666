"""No clock: a table whose rows depend on when it was built cannot be verified."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot.tokenizer_core import TokenType

from infold import refusals
from infold.analysis.calls import calls
from infold.analysis.subject import Subject
from infold.errors import InfoldError

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


def check(subject: Subject) -> Iterator[InfoldError]:
    """Every call of a clock."""
    text = subject.text
    for i, token in enumerate(text.tokens):
        after_dot = i > 0 and text.tokens[i - 1].token_type is TokenType.DOT
        if token.token_type in _BARE and not after_dot:
            yield refusals.clock(text.spot_of_token(token), token.text.lower())
    for call in calls(text.tokens, 0, len(text.tokens)):
        token = text.tokens[call.start]
        if token.token_type in _BARE:
            continue
        if call.name in _CALLS or (call.name in _NOW_WITHOUT_ARGUMENTS and not call.arguments):
            yield refusals.clock(text.spot_of_token(token), f"{call.name}()")
