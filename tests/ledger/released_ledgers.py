"""
Ledgers of the formats that were released, as their programs made them; never changed again.

``released/N.sql`` has the statements that made the tables of format N, ``released/N.jsonl`` an
exported file of a ledger with rows in all of them. ``python -m tests.ledger.released_ledgers``
writes those of the present format, once, when it is released.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.ledger import filled
from tests.ledger.conftest import Place

from infold.ledger import SqlLedger
from infold.ledger.copying import export_ledger
from infold.ledger.database import FORMAT, FORMAT_ROW, ID_ROW, SCHEMA
from infold.ledger.postgresql import escaped, statement, table_statement

FOLDER = Path(__file__).with_name("released")
FORMATS = sorted(int(path.stem) for path in FOLDER.glob("*.sql"))

Rows = dict[str, list[dict[str, Any]]]


def rows_of(format_: int) -> Rows:
    """All rows of a released ledger, by table, each with its columns by name."""
    found: Rows = {}
    table, columns = "", list[str]()
    for text in (FOLDER / f"{format_}.jsonl").read_text(encoding="utf-8").splitlines()[1:]:
        line = json.loads(text)
        if isinstance(line, list):
            found[table].append(dict(zip(columns, line, strict=True)))
        elif "table" in line:
            table, columns = line["table"], line["columns"]
            found[table] = []
    return found


DROPPED = {"changes": {"last"}}
"""Columns that a later format has no more."""


def make(place: Place, format_: int) -> Rows:
    """Make the ledger of a released format; its rows."""
    rows = rows_of(format_)
    rows["meta"].append({"name": FORMAT_ROW, "value": str(format_)})
    texts = [
        line for line in (FOLDER / f"{format_}.sql").read_text("utf-8").splitlines() if line.strip()
    ]
    if not place.schema:
        file = Path(place.url.removeprefix("sqlite:///"))
        file.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(file)) as database, database:
            for text in texts:
                database.execute(text)
            for text, row in _inserts(rows):
                database.execute(text, row)
        return rows
    import psycopg

    with psycopg.connect(_plain(place.url)) as server:
        server.execute(f"CREATE SCHEMA {place.schema}; SET search_path TO {place.schema}")
        for text in texts:
            server.execute(table_statement(text))
        for text, row in _inserts(rows):
            known = {
                name: escaped(value) if isinstance(value, str) else value
                for name, value in row.items()
            }
            server.execute(statement(text), known)
    return rows


def kept(rows: Rows) -> Rows:
    """Rows of a released ledger without columns that are :data:`DROPPED`."""
    return {
        table: [
            {name: value for name, value in row.items() if name not in DROPPED.get(table, ())}
            for row in some
        ]
        for table, some in rows.items()
    }


def _inserts(rows: Mapping[str, list[dict[str, Any]]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for table, some in rows.items():
        for row in some:
            names = ", ".join(f'"{name}"' for name in row)
            marks = ", ".join(f":{name}" for name in row)
            yield f"INSERT INTO {table} ({names}) VALUES ({marks})", row


def structure(place: Place) -> dict[str, Any]:
    """Tables, columns, keys and indexes, in whatever order columns are."""
    if not place.schema:
        with closing(sqlite3.connect(place.url.removeprefix("sqlite:///"))) as database:
            names = [
                name
                for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type='table'")
            ]
            return {
                name: (
                    {row[1:4] + row[5:6] for row in database.execute(f"PRAGMA table_info({name})")},
                    {
                        (row[1], row[2], *database.execute(f"PRAGMA index_info({row[1]})"))
                        for row in database.execute(f"PRAGMA index_list({name})")
                        if row[3] == "c"
                    },
                )
                for name in names
            }
    import psycopg

    with psycopg.connect(_plain(place.url)) as server:
        columns = server.execute(
            "SELECT table_name, column_name, data_type, is_nullable, collation_name"
            " FROM information_schema.columns WHERE table_schema = %s",
            (place.schema,),
        ).fetchall()
        indexes = server.execute(
            "SELECT tablename, replace(indexdef, schemaname || '.', '') FROM pg_indexes"
            " WHERE schemaname = %s",
            (place.schema,),
        ).fetchall()
    return {"columns": set(columns), "indexes": set(indexes)}


def _plain(url: str) -> str:
    """A URL of infold's as psycopg takes it."""
    return url.replace("+psycopg", "", 1)


def stored_rows(place: Place, before: Rows) -> Rows:
    """The rows in a ledger now, of the tables and columns ``before`` that are kept."""
    found: Rows = {}
    with place.open().database.read() as query:
        for table, rows in before.items():
            names = [*rows[0]] if rows else []
            columns = ", ".join(f'of."{name}"' for name in names)
            if names:
                read = query.stream(f"SELECT {columns} FROM {table} AS of")
                found[table] = [dict(zip(names, row, strict=True)) for row in read]
    return found


def _write() -> None:
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{FORMAT}.sql").write_text("\n".join(SCHEMA) + "\n", encoding="utf-8")
    with TemporaryDirectory() as folder:
        ledger = SqlLedger(Path(folder) / "ledger.db")
        filled.fill(ledger)
        with ledger.database.write(None) as query:
            query.run("drop_meta", name=ID_ROW)
            query.run("add_meta", name=ID_ROW, value=f"a ledger of format {FORMAT}")
        file = FOLDER / f"{FORMAT}.jsonl"
        export_ledger(ledger, file, at="here", project="shop", warehouse="warehouse")
        ledger.close()


if __name__ == "__main__":
    _write()
