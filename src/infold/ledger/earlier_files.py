"""
Rows of an exported file of an earlier format, as the present tables have them.

They are put into tables as that format had them, in a database of SQLite's own that is gone
afterwards, and upgraded there: what ``upgrades`` says of a ledger holds for its file as well.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

from infold.ledger import upgrades, whole_tables
from infold.ledger.copying import Rows
from infold.ledger.database import Statements
from infold.ledger.generated_sql import SCHEMA
from infold.ledger.query import Query
from infold.ledger.whole_tables import TABLES
from infold.messages import run_errors

ANONYMOUS = ""
"""By this name SQLite makes a file where those that pass by are, and deletes it at the end."""


@contextmanager
def upgraded_rows(found: int, tables: Rows) -> Iterator[Rows]:
    """The present tables, of those of a released format; all rows are read before the first."""
    with closing(sqlite3.connect(ANONYMOUS, isolation_level=None)) as connection:
        query = Query(Statements(connection))
        try:
            connection.execute("BEGIN")
            for text in upgrades.tables_of(found, SCHEMA):
                connection.execute(text)
            for table, batches in tables:
                for rows in batches:
                    whole_tables.add_rows(query, table, rows)
            for text in upgrades.texts_since(found):
                connection.execute(text)
        except sqlite3.OperationalError as error:  # such as a disk that is full
            path = "a temporary file of SQLite's"
            raise run_errors.ledger_unusable(path=path, why=str(error)) from error
        yield ((table, whole_tables.batches(query, table)) for table in TABLES)
