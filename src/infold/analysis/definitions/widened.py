"""
Outputs that are a CAST to a wider type than before: the stored value, cast, is the new one.

Of whole numbers, and of decimals with as many digits after the point. A CAST that does not fail
gives the same number in each type that has it: it cuts, rounds and reads texts by the digits that
are kept, not by the type's width. A number out of range is an error (ANSI mode is fixed), so no row
with one was ever stored. ``float`` rounds by its width, and TRY_CAST stores NULL for a number out
of range: neither is widened here.
"""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from infold.analysis.definitions.clauses import Range
from infold.analysis.definitions.selects import Select
from infold.analysis.sql.token_calls import closing_bracket
from infold.core.type_changes import holds_all_values, is_exact_number


def cast_of(select: Select, span: Range) -> tuple[Range, str] | None:
    """What a whole expression casts, and the type; None where it is no CAST."""
    start, stop = span
    tokens = select.block.text.tokens
    if stop - start < 6 or tokens[start].text.lower() != "cast":
        return None
    if tokens[start + 1].token_type is not TokenType.L_PAREN:
        return None
    if closing_bracket(tokens, start + 1) != stop - 1:
        return None
    at = next((at for at in range(start + 2, stop - 1) if _is_own_as(select, start + 2, at)), None)
    if at is None or at == start + 2:
        return None
    first, last = tokens[at + 1], tokens[stop - 2]
    return (start + 2, at), select.block.text.sql[first.start : last.end + 1].lower()


def is_widened(old: str, new: str) -> bool:
    """Whether a CAST to the new type gives the numbers that one to the old type gave."""
    return is_exact_number(old) and is_exact_number(new) and holds_all_values(old, new)


def _is_own_as(select: Select, start: int, at: int) -> bool:
    """Whether a token is the AS of a CAST whose argument begins at ``start``: in no brackets."""
    tokens = select.block.text.tokens
    if tokens[at].token_type is not TokenType.ALIAS:
        return False
    opened = sum(token.token_type is TokenType.L_PAREN for token in tokens[start:at])
    return opened == sum(token.token_type is TokenType.R_PAREN for token in tokens[start:at])
