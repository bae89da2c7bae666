"""A ledger with rows in every table, of values that are hard to copy."""

from __future__ import annotations

from itertools import chain
from typing import Any

from infold.core.record import Receipt
from infold.ledger import SqlLedger
from infold.ledger.lease import NAME
from infold.ledger.whole_tables import META, TABLES, Row, WholeTable, add_rows, batches

TEXTS = ("", "a\0b", "\ue000", "\ue0000", "ä€😀", "'\"\\%s %(a)s :b\t\r\n", " NULL \\N ", "{}")
NUMBERS = (-(2**63), -1, 0, 3, 2**53 + 1, 2**63 - 1, 7, 8)
SMALL = (-(2**31), -1, 0, 1, 5, 2**31 - 1, 7, 8)
ROWS = len(TEXTS)


def fill(ledger: SqlLedger, *, project: str = "shop", warehouse: str = "warehouse") -> None:
    """Rows in every table, after a run that is done; nobody has the lease then."""
    ledger.acquire("r1")
    ledger.begin_run("r1", "run", 5, {})
    ledger.set_owner(project, warehouse)
    ledger.finish_run("r1", "done", Receipt())
    with ledger.database.write(None) as query:
        for table in TABLES:
            if table.name != META:
                add_rows(query, table, [_row(table, number) for number in range(ROWS)])
    ledger.release()


def _row(table: WholeTable, number: int) -> Row:
    found: list[Any] = []
    for at, column in enumerate(table.columns):
        which = (number + at) % ROWS
        if column.null and number % 3 == at % 3:
            found.append(None)
        elif column.kind is bool:
            found.append(number % 2 == 0)
        elif column.kind is int:
            found.append((SMALL if column.bits == 32 else NUMBERS)[which])
        else:
            found.append(TEXTS[which])
    return tuple(found)


def rows_of(ledger: SqlLedger) -> dict[str, list[Row]]:
    """All rows, by table, in the order of Python's values."""
    with ledger.database.read() as query:
        found = {table.name: [*chain(*batches(query, table))] for table in TABLES}
    return {name: sorted(rows, key=repr) for name, rows in found.items()}


def token_of(ledger: SqlLedger) -> tuple[int, str | None]:
    """The token of the lease, and who has it."""
    with ledger.database.read() as query:
        lease = query.one("lease", name=NAME)
    return lease[1], lease[2]
