"""Whether a table in FROM has an alias, told from the words that follow its name."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType, tokenize


def has_alias(sql: str, end: int) -> bool:
    """Whether an alias follows a table name that ends at ``end`` in a Spark SQL text."""
    rest = tokenize(sql[end:], read="spark")
    if not rest:
        return False
    if rest[0].token_type is TokenType.ALIAS:
        return True
    return rest[0].token_type in (TokenType.VAR, TokenType.IDENTIFIER) and (
        rest[0].text.upper() not in _AFTER_TABLE
    )


_AFTER_TABLE = frozenset({"LATERAL", "TABLESAMPLE", "PIVOT", "UNPIVOT", "ANTI", "SEMI", "NATURAL"})
