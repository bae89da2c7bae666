"""Values as literals of Spark SQL."""

from __future__ import annotations


def text_literal(text: str) -> str:
    """A string literal of exactly that text."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
