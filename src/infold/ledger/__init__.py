"""What was built from what, kept in a database: the adapter behind ``ports.Ledger``."""

from infold.ledger.opening import ledger_schema, open_ledger
from infold.ledger.store import SqlLedger

__all__ = ["SqlLedger", "ledger_schema", "open_ledger"]
