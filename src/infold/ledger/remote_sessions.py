"""
The sessions on servers of Spark Connect that work for whoever has the lease.

A server finishes what a client asked for that has died. So these are in the ledger before anything
is written by them, and whoever takes the lease over ends them first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from infold.ledger.store import SqlLedger

ROW = "infold.remote_sessions"


def kept_sessions(ledger: SqlLedger) -> Sequence[Mapping[str, str]]:
    """Those that may be at work."""
    if not ledger.exists():
        return ()
    with ledger.database.read() as query:
        row = query.one("meta", name=ROW)
    return tuple(json.loads(row[0])) if row else ()


def keep_sessions(ledger: SqlLedger, sessions: Sequence[Mapping[str, str]]) -> None:
    """Let these be the ones that may be at work; with the lease."""
    with ledger.writing("remote_sessions") as query:
        query.run("drop_meta", name=ROW)
        if sessions:
            query.run("add_meta", name=ROW, value=json.dumps(sessions))
