"""
The ledger's SQL: ``schema.sql`` and ``statements.sql``, as texts of one line.

Both are SQLite's; what PostgreSQL has otherwise is in ``postgresql``. A test parses all of them
for both, and the contract of a ledger is tested on both (docs/decisions/0007-ledger-statements.md).
"""

from __future__ import annotations

import re
from pathlib import Path

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_COMMENT = re.compile(r"^--.*$", re.MULTILINE)


def _texts(file: str) -> str:
    return Path(__file__).with_name(file).read_text(encoding="utf-8")


def _on_one_line(text: str) -> str:
    return " ".join(_COMMENT.sub("", text).split())


SCHEMA = tuple(filter(None, map(str.strip, _on_one_line(_texts("schema.sql")).split(";"))))
"""What makes each table, and its indexes; a stored ledger has these texts."""

_PARTS = _NAME.split(_texts("statements.sql"))
SQL = {
    name: _on_one_line(text).removesuffix(";")
    for name, text in zip(_PARTS[1::2], _PARTS[2::2], strict=True)
}
"""Every statement by its name, with parameters as ``:name``."""
