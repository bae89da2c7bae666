"""What was built from what, kept in a database: the adapter behind ``ports.Ledger``."""

from infold.ledger.store import SqlLedger, ledger_schema, open_ledger

__all__ = ["SqlLedger", "ledger_schema", "open_ledger"]
