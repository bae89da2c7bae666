"""
What was built from what, kept in a database: the adapter behind ``ports.Ledger``.

``schema`` and ``statements`` are SQLAlchemy Core; ``generated_sql`` is what they compile to, so
that a command that only reads never imports SQLAlchemy (docs/decisions/0007-ledger-statements.md).
"""

from infold.ledger.store import SqlLedger, open_ledger

__all__ = ["SqlLedger", "open_ledger"]
