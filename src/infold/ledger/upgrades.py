"""
How a ledger of an earlier format becomes one of the present format: one list for both databases.

Formats are numbered. The first one that was released is :data:`RELEASED`; each later one is an
:class:`Upgrade` of :data:`UPGRADES`, with statements that are valid in SQLite and PostgreSQL alike,
as `schema` has them. All upgrades that a ledger lacks are carried out in one transaction, by
whoever opens it first. Statements are never changed once they were released.

A new upgrade comes with: the changed ``schema``, its statements here, and the ledger of the format
before it in ``tests/ledger/released``. Tests upgrade each of those in both databases, and compare
what comes out with a new ledger.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

RELEASED = 10
"""The format of the first released ledgers; earlier ones are seen to by ``before_release``."""


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What makes a ledger of the format before it one of ``format``, and why, for people."""

    format: int
    why: str
    texts: tuple[str, ...]


UPGRADES: tuple[Upgrade, ...] = (
    Upgrade(
        11,
        "changes have no `last`: nobody asked for that of a cell as it was",
        ("ALTER TABLE changes DROP COLUMN last",),
    ),
)


def newest_format() -> int:
    """The format that this program writes."""
    return RELEASED + len(UPGRADES)


def texts_since(found: int) -> Iterator[str]:
    """The statements that a ledger of a released format lacks, in order."""
    for number, upgrade in enumerate(UPGRADES, RELEASED + 1):
        assert upgrade.format == number, f"{upgrade.format} is not the format after {number - 1}"
        if upgrade.format > found:
            yield from upgrade.texts
