"""Environments under a lease: recorded before they are built, tidied up after it, dropped."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from infold.core.environment import APART, Environment, OwnTable, set_aside_of
from infold.core.ports import Lake, Ledger
from infold.running.exchange import drop_forgotten


def drop_left_tables(ledger: Ledger, lake: Lake, run: str, name: str) -> Iterator[str]:
    """Drop the tables that an environment no longer uses; yields notes."""
    found = ledger.environments()[name]
    left = [one for one in found.tables if not one.current]
    if not left:
        return
    drop_tables(ledger, lake, run, left)
    ledger.put_environment(replace(found, tables=tuple(t for t in found.tables if t.current)))
    for model in dict.fromkeys(one.model for one in left):
        if model in found.own:
            yield f"{model}: its table by an earlier definition was dropped"
        else:
            yield f"{model}: its table was dropped, as production's has the same rows"


def drop_environment(ledger: Ledger, lake: Lake, run: str, name: str) -> Environment:
    """
    Drop an environment with its tables.

    The ledger knows of it until the last of them is gone, so that it can be done again.
    """
    found = ledger.environments()[name]
    drop_tables(ledger, lake, run, found.tables)
    lake.drop(set_aside_of(name))
    ledger.remove_environment(name)
    return found


def drop_expired(ledger: Ledger, lake: Lake, run: str, now: int) -> Iterator[Environment]:
    """Drop the environments with a time to live that is over."""
    for name, one in ledger.environments().items():
        if one.is_over(now):
            yield drop_environment(ledger, lake, run, name)


def expiry_note(dropped: Environment) -> str:
    """What a run of production says of an environment that it dropped."""
    return f"the environment {dropped.name} of {dropped.owner} had expired, and was dropped"


def drop_tables(ledger: Ledger, lake: Lake, run: str, tables: Iterable[OwnTable]) -> None:
    """Forget and drop tables; the rows about them go with their environment's."""
    for one in tables:
        step = f"{run}-drop_{one.key}"
        drop_forgotten(ledger, lake, run=run, step=step, seq=0, model=one.key)


# The ledger has them as those of an environment that nobody can name. So what knows tables of
# environments knows these.


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
