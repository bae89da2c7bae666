"""
Environments as values: named variants of a target, with tables of their own where they differ.

A table of production has the name of its model as its key. A table of an environment has another
one, ``model__<hex digits>``. The key is what the ledger and the storage know the table by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PRODUCTION = ""
"""The environment of the tables that everybody reads."""


@dataclass(frozen=True, slots=True)
class OwnTable:
    """
    A table that belongs to an environment.

    ``identity`` is the hash of everything that the table follows from: the fingerprint of its
    definition, and the keys of the inputs that are the environment's own. ``definition`` is the
    digest of the definition, ``base`` of that which had built production's table then (empty: none
    had). One that is not ``current`` is to be dropped: no name points to it.
    """

    model: str
    key: str
    identity: str
    definition: str
    base: str = ""
    current: bool = True


@dataclass(frozen=True, slots=True)
class Environment:
    """
    A named variant of a target.

    ``owner`` is who made it, ``user@host``. ``expires_at`` None: never. ``built_at`` is the end of
    the last run that built all of its tables; None while one is going on, or after one failed.
    """

    name: str
    owner: str
    created_at: int
    expires_at: int | None = None
    last_run_at: int | None = None
    built_at: int | None = None
    tables: tuple[OwnTable, ...] = ()

    @property
    def own(self) -> Mapping[str, str]:
        """The keys of the tables that are its own now, by model."""
        return {one.model: one.key for one in self.tables if one.current}

    def is_over(self, now: int) -> bool:
        """Whether its time to live is over."""
        return self.expires_at is not None and self.expires_at <= now
