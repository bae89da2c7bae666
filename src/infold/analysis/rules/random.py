"""
Nothing by chance, and nothing that depends on who runs it or how Spark cut the data.

The last goes for texts by a collation, too: ``check_collations``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from infold.analysis.names.subject import Subject
from infold.analysis.sql.functions import CHANCE, is_python, varies, written_name
from infold.analysis.sql.token_calls import Call, calls
from infold.messages import refusals
from infold.messages.errors import InfoldError

ENVIRONMENT = frozenset(
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
    {
        "approx_percentile",
        "approx_top_k",
        "approx_top_k_accumulate",
        "approx_top_k_combine",
        "histogram_numeric",
        "hll_sketch_agg",
        "hll_union_agg",
        "kll_merge_agg_bigint",
        "kll_merge_agg_double",
        "kll_merge_agg_float",
        "kll_sketch_agg_bigint",
        "kll_sketch_agg_double",
        "kll_sketch_agg_float",
        "percentile_approx",
        "theta_intersection_agg",
        "theta_sketch_agg",
        "theta_union_agg",
    }
)
"""
Sketches that are made of samples, or estimate by the order in which values came.

``approx_count_distinct`` (the greatest of each register) and ``count_min_sketch`` (sums of
counters, with a seed that it is given) come out the same however rows are cut up.
"""

_BARE = frozenset({TokenType.CURRENT_USER, TokenType.SESSION_USER, TokenType.CURRENT_CATALOG})


def check(subject: Subject) -> Iterator[InfoldError]:
    """Every call that is not a function of its arguments, and every sample."""
    text = subject.text
    for i, token in enumerate(text.tokens):
        after_dot = i > 0 and text.tokens[i - 1].token_type is TokenType.DOT
        if token.token_type is TokenType.TABLE_SAMPLE:
            yield refusals.not_deterministic(
                text.spot_of_token(token), call="TABLESAMPLE", why=_WHY_VARYING[0]
            )
        elif token.token_type in _BARE and not after_dot:
            yield refusals.not_deterministic(
                text.spot_of_token(token), call=token.text.lower(), why=_WHY_VARYING[1]
            )
    for call in calls(text.tokens, 0, len(text.tokens)):
        token = text.tokens[call.start]
        if token.token_type in _BARE:
            continue
        for names, why in zip((CHANCE, ENVIRONMENT, _APPROXIMATE), _WHY_VARYING, strict=True):
            if call.name in names:
                yield refusals.not_deterministic(text.spot_of_token(token), call=call.name, why=why)
        if is_python(call.name) and varies(call.name):
            name = written_name(call.name)
            yield refusals.not_deterministic(text.spot_of_token(token), call=name, why=_UNDECLARED)
        if call.name == "aes_encrypt" and not _seeded(text.tokens, call):
            yield refusals.random_vector(text.spot_of_token(token))


def _seeded(tokens: Sequence[Token], call: Call) -> bool:
    """Whether a call of aes_encrypt draws no initialization vector by chance."""
    if len(call.arguments) >= 5:
        return True
    mode = [t.text.upper() for t in tokens[slice(*call.arguments[2])]] if call.arguments[2:] else []
    return mode == ["ECB"]


_UNDECLARED = "it is not declared with deterministic=True"
_WHY_VARYING = (
    "another value at every run",
    "the value depends on who runs it, and where",
    "the value depends on how Spark cuts up the data",
)


_BINARY = "UTF8_BINARY"
"""The collation of text without one: equal texts are the same."""


def check_collations(subject: Subject) -> Iterator[InfoldError]:
    """
    COLLATE and `collate` outside of comparisons.

    Texts that count as equal may differ there. So which of them a group, a key or a greatest value
    shows would follow from the order in which Spark met them; and a stored table has the text
    without its collation. A comparison is true or false of two texts, whatever is beside them.
    """
    for node in subject.draft.parsed.tree.find_all(exp.Collate):
        name = node.expression.name
        if name.upper() != _BINARY and not _compared(node):
            yield refusals.collation(subject.text.spot_of(node), name=name)


def _compared(node: exp.Expr) -> bool:
    """Whether all that a query makes of a text is whether a comparison with it is true."""
    parent = node.parent
    while parent is not None and not isinstance(parent, exp.Query):
        if isinstance(parent, exp.Predicate):
            return True
        parent = parent.parent
    return False
