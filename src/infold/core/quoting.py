"""Names as Spark SQL takes them."""

from __future__ import annotations


def quoted(name: str) -> str:
    """A name as a quoted Spark SQL identifier, whatever its characters."""
    return "`" + name.replace("`", "``") + "`"


def text_literal(text: str) -> str:
    """A string literal of exactly that text."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
