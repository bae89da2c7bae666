"""
What was built from what, kept in a database: the adapter behind ``ports.Ledger``.

``schema`` and ``statements`` are SQLAlchemy Core; ``generated_sql`` is what they compile to, so
that a command that only reads never imports SQLAlchemy (docs/decisions/0007-ledger-statements.md).
"""

from infold.ledger.opening import ledger_schema, open_ledger
from infold.ledger.store import SqlLedger

__all__ = ["SqlLedger", "ledger_schema", "open_ledger"]
