"""
Traces of tables that new versions of their inputs leave as they are.

Without this a table would keep the version that it read last, for as long as it is not built. The
ledger could not drop what changed since, and a fold would compare with a table of other columns.
"""

from __future__ import annotations

from collections.abc import Container

from infold.core.plan import Observations
from infold.core.ports import Ledger


def advance_traces(
    ledger: Ledger, observed: Observations, but: Container[str] = frozenset()
) -> None:
    """
    Record the versions up to which nothing changed that a model reads; mostly there is none.

    Traces of some models are left alone.
    """
    found: dict[str, dict[str, int]] = {}
    for name, model in observed.models.items():
        for diff in model.inputs:
            known = model.trace is not None and model.trace.inputs.get(diff.name)
            if known and known < diff.read_version and name not in but:
                found.setdefault(name, {})[diff.name] = diff.read_version
    if found:
        ledger.advance(found)
