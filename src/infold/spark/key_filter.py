"""
A filter for the rows of a table that have one of a few keys, as a literal in SQL.

A MERGE that adds rows and removes some joins all rows of the table that its condition lets through:
Spark can send neither side to every task, and so it sorts the table by its keys. Nor does it take
a subquery there. With this filter most rows are gone before.
"""

from __future__ import annotations

from collections.abc import Collection

from infold.core.queries import quoted

PAYS_FROM = 100_000
"""With fewer rows in the table there is little to sort."""

MOST_KEYS = 131_072
"""The literal has 4 to 16 bytes for each key, and Spark parses it."""

_LITERAL = 4 * MOST_KEYS
_ROWS_PER_KEY = 8


def pays(keys: int, rows: int) -> bool:
    """Whether a filter for so many keys saves more than it costs, in a table of so many rows."""
    return rows >= PAYS_FROM and keys <= MOST_KEYS and keys * _ROWS_PER_KEY <= rows


def rows_passed(keys: int, rows: int) -> int:
    """About how many rows of a table have one of so many keys by the filter."""
    return min(rows, keys + rows // _slots_per_key(keys))


def may_have(hashes: Collection[int], name: str) -> str:
    """
    SQL over a table: whether a row's ``name`` may be one of those with these ``hashes``.

    A hash is Spark's ``xxhash64`` of a value. True for each that has one, and of the others for
    one in sixteen (of many keys one in four): it looks up a smaller hash of the value among those
    of the keys.
    """
    slots = max(1, len(hashes) * _slots_per_key(len(hashes)))
    used = bytearray(slots)
    for hash_ in hashes:
        used[hash_ % slots] = 1
    slot = f"cast(pmod(xxhash64({quoted(name)}), {slots}L) AS int)"
    return f"substring(X'{used.hex()}', 1 + {slot}, 1) = X'01'"


def _slots_per_key(keys: int) -> int:
    return max(4, min(16, _LITERAL // max(keys, 1)))
