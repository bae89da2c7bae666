"""
Writes ``generated_sql.py``: the schema and the statements as SQLite's text.

Run ``python -m infold.ledger.generate_sql`` after changing ``schema`` or ``statements``; a test
compares the file with what they compile to, and compiles them for PostgreSQL as well, so that a
statement which only SQLite understands cannot come in.
"""

from __future__ import annotations

import re
from pathlib import Path

from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.sqlite import dialect as sqlite_dialect
from sqlalchemy.engine import Dialect
from sqlalchemy.schema import CreateIndex, CreateTable

from infold.ledger.schema import metadata
from infold.ledger.statements import all_statements

HEAD = '''"""
The ledger's SQL, generated; tests/ledger/test_store.py proves it equal to what it comes from.

``generate_sql`` compiles it from ``schema`` and ``statements``. To do so at the start of every
command would take 0.2 s (docs/decisions/0007-ledger-statements.md has the figures).
"""

from __future__ import annotations

# fmt: off
'''


def dialects() -> dict[str, Dialect]:
    """The dialects that every statement has to be valid for."""
    return {
        "sqlite": sqlite_dialect(paramstyle="named"),
        "postgresql": PGDialect_psycopg(),  # type: ignore[no-untyped-call]
    }


def schema(dialect: Dialect) -> tuple[str, ...]:
    """CREATE TABLE and CREATE INDEX, in order."""
    found: list[str] = []
    for table in metadata.sorted_tables:
        found.append(_tidy(str(CreateTable(table).compile(dialect=dialect))))
        found += [
            _tidy(str(CreateIndex(index).compile(dialect=dialect)))
            for index in sorted(table.indexes, key=lambda index: str(index.name))
        ]
    return tuple(found)


def statements(dialect: Dialect) -> dict[str, str]:
    """The text of every statement, by name."""
    return {
        name: _tidy(str(statement.compile(dialect=dialect)))
        for name, statement in sorted(all_statements().items())
    }


def text() -> str:
    """The whole of ``generated_sql.py``."""
    dialect = dialects()["sqlite"]
    parts = [HEAD, "SCHEMA: tuple[str, ...] = (\n"]
    parts += [f"    {_literal(line, 4)},\n" for line in schema(dialect)]
    parts.append(")\n\nSQL: dict[str, str] = {\n")
    parts += [f'    "{key}": {_literal(line, 4)},\n' for key, line in statements(dialect).items()]
    parts.append("}\n")
    return "".join(parts)


def main() -> None:
    """Write the file beside this one."""
    Path(__file__).with_name("generated_sql.py").write_text(text(), encoding="utf-8")


def _tidy(sql: str) -> str:
    return re.sub(r"\s+", " ", sql).strip()


def _literal(line: str, indent: int) -> str:
    """A string literal, split so that no line is longer than 100."""
    room = 100 - indent - 8
    words, lines, now = line.split(" "), [], ""
    for i, word in enumerate(words):
        piece = word + (" " if i < len(words) - 1 else "")
        if now and len(now + piece) > room:
            lines.append(now)
            now = ""
        now += piece
    lines.append(now)
    quoted = [_quote(part) for part in lines]
    if len(quoted) == 1 and len(quoted[0]) < room - 20:
        return quoted[0]
    pad = " " * (indent + 4)
    return "(\n" + "".join(f"{pad}{part}\n" for part in quoted) + " " * indent + ")"


def _quote(part: str) -> str:
    escaped = part.replace("\\", "\\\\")
    if '"' not in escaped:
        return f'"{escaped}"'
    if "'" not in escaped:
        return f"'{escaped}'"
    return '"' + escaped.replace('"', '\\"') + '"'


if __name__ == "__main__":
    main()
