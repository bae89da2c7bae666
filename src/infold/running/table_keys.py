"""Which keys of the ledger are those of environments."""

from __future__ import annotations

from infold.core.ports import Ledger


def table_keys(ledger: Ledger) -> frozenset[str]:
    """The keys of all tables of environments, which production knows nothing of."""
    return frozenset(one.key for each in ledger.environments().values() for one in each.tables)
