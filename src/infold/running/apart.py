"""
Tables that are built apart, under a lease: recorded before they are built, and dropped.

The ledger has them as those of an environment that nobody can name. So what knows tables of
environments knows these.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from infold.core.environment import APART, Environment, OwnTable
from infold.core.ports import Lake, Ledger
from infold.running.environments import drop_tables


def record_apart(ledger: Ledger, tables: Sequence[OwnTable], now: int) -> None:
    """Record which tables are built apart from now on, before anything is written to them."""
    known = ledger.environments().get(APART)
    if tuple(tables) != (known.tables if known is not None else ()):
        made = known or Environment(APART, "infold", now)
        ledger.put_environment(replace(made, last_run_at=now, tables=tuple(tables)))


def drop_left(ledger: Ledger, lake: Lake, run: str) -> Iterator[str]:
    """Drop the tables that are not built apart any more; yields notes."""
    known = ledger.environments().get(APART)
    left = [one for one in known.tables if not one.current] if known is not None else []
    _drop(ledger, lake, run, left)
    for one in left:
        yield f"{one.model}: what was built apart of it was dropped, as another table is wanted"


def drop_apart(ledger: Ledger, lake: Lake, run: str, models: Collection[str]) -> None:
    """Drop what is built apart of some models."""
    known = ledger.environments().get(APART)
    if known is not None:
        _drop(ledger, lake, run, [one for one in known.tables if one.model in models])


def _drop(ledger: Ledger, lake: Lake, run: str, left: Sequence[OwnTable]) -> None:
    if not left:
        return
    drop_tables(ledger, lake, run, left)
    known, keys = ledger.environments()[APART], {one.key for one in left}
    stay = tuple(one for one in known.tables if one.key not in keys)
    ledger.put_environment(replace(known, tables=stay))
