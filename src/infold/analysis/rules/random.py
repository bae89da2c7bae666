"""Nothing by chance, and nothing that depends on who runs it or how Spark cut the data."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot.tokenizer_core import TokenType

from infold import refusals
from infold.analysis.calls import calls
from infold.analysis.subject import Subject
from infold.errors import InfoldError

_CHANCE = frozenset({"rand", "random", "randn", "randstr", "shuffle", "uniform", "uuid"})
_ENVIRONMENT = frozenset(
    {
        "current_catalog",
        "current_database",
        "current_schema",
        "current_user",
        "input_file_block_length",
        "input_file_block_start",
        "input_file_name",
        "java_method",
        "monotonically_increasing_id",
        "reflect",
        "session_user",
        "spark_partition_id",
        "try_reflect",
        "user",
        "version",
    }
)
_APPROXIMATE = frozenset(
    {"approx_percentile", "approx_top_k", "histogram_numeric", "percentile_approx"}
)
_BARE = frozenset({TokenType.CURRENT_USER, TokenType.SESSION_USER, TokenType.CURRENT_CATALOG})


def check(subject: Subject) -> Iterator[InfoldError]:
    """Every call whose value is not a function of its arguments, and every sample."""
    text = subject.text
    for i, token in enumerate(text.tokens):
        after_dot = i > 0 and text.tokens[i - 1].token_type is TokenType.DOT
        if token.token_type is TokenType.TABLE_SAMPLE:
            yield refusals.not_deterministic(text.spot_of_token(token), "TABLESAMPLE", _WHY[0])
        elif token.token_type in _BARE and not after_dot:
            yield refusals.not_deterministic(text.spot_of_token(token), token.text.lower(), _WHY[1])
    for call in calls(text.tokens, 0, len(text.tokens)):
        token = text.tokens[call.start]
        if token.token_type in _BARE:
            continue
        for names, why in zip((_CHANCE, _ENVIRONMENT, _APPROXIMATE), _WHY, strict=True):
            if call.name in names:
                yield refusals.not_deterministic(text.spot_of_token(token), call.name, why)


_WHY = (
    "another value at every run",
    "the value depends on who runs it, and where",
    "the value depends on how Spark cuts up the data",
)
