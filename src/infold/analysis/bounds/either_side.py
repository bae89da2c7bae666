"""
Values that are of one side of a join or of the other.

A row of ``a FULL JOIN b`` has a row of ``a``, or one of ``b``, or both. So ``coalesce(a.ts, b.ts)``
is never NULL, though each of them may be, and so is the column that USING makes of both. It is
known by what both are known by: where it is ``a.ts``, the rows of ``b`` that matter are those that
ON could find for it, and the other way round.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from infold.analysis.bounds.entries import EntryValue
from infold.analysis.bounds.transitive import NullSources, Step
from infold.analysis.names.relation import FromEntry
from infold.analysis.names.visible_columns import joined_by_name
from infold.analysis.times.distances import UNBOUNDED
from infold.analysis.times.shape import Span

SomePresent = list[frozenset[Step]]
"""Sets of entries of a FROM: every row has a row of at least one entry of each set."""


def some_present_after(before: SomePresent, entry: FromEntry) -> SomePresent:
    """The same after one more entry of FROM, the first one among them."""
    join = entry.join
    if join is None:
        return before or [frozenset({entry})]  # behind the first: a LATERAL VIEW
    side, kind = join.side.upper(), join.kind.upper()
    if side == "RIGHT":
        return [frozenset({entry})]
    if side == "FULL":
        return [entries | {entry} for entries in before]
    return before if side == "LEFT" or kind in ("SEMI", "ANTI") else [*before, frozenset({entry})]


def one_is_there(present: SomePresent, nulls: Collection[NullSources]) -> bool:
    """
    Whether one of several values is not NULL in every row; ``nulls``: where those of each are from.

    That is so where the entries of one set have a value each that is NULL only without their row.
    """
    return any(
        all(any(sources <= {(entry,)} for sources in nulls) for entry in entries)
        for entries in present
    )


def merged_values(entries: Sequence[FromEntry], name: str) -> list[EntryValue]:
    """What USING or NATURAL makes one column of, where one of these joins is RIGHT or FULL."""
    joins = [entry for entry in entries if name in joined_by_name(entries, entry)]
    if not any(entry.join is not None and entry.join.side.upper() in _OTHER for entry in joins):
        return []
    first = entries.index(joins[0])
    before = [entry for entry in entries[:first] if name in _lower_names(entry)]
    return [(entry, name) for entry in (*before, *joins)]


_OTHER = ("RIGHT", "FULL")


def _lower_names(entry: FromEntry) -> set[str]:
    return {column.lower() for column in entry.relation.columns or ()}


def beyond_each(
    values: Iterable[EntryValue | None], distances: Mapping[tuple[EntryValue, EntryValue], Span]
) -> list[tuple[EntryValue, Span]]:
    """
    How much more each value may be than the first of them that is not NULL.

    ``coalesce(a.ts, b.ts)`` is ``b.ts``, or at the distance from it that ON states of both. A value
    without such a distance from one before it is left out, and so is all behind one that is None.
    """
    found: list[tuple[EntryValue, Span]] = []
    before: list[EntryValue] = []
    for value in values:
        if value is None:
            break
        spans = [_distance(value, one, distances) for one in before]
        low = min((span[0] for span in spans), default=0)
        high = max((span[1] for span in spans), default=0)
        if low > -UNBOUNDED and high < UNBOUNDED:
            found.append((value, (min(low, 0), max(high, 0))))
        before.append(value)
    return found


def _distance(
    value: EntryValue, other: EntryValue, distances: Mapping[tuple[EntryValue, EntryValue], Span]
) -> Span:
    """How much more a value is than another one where both are."""
    if (other, value) in distances:
        low, high = distances[other, value]
        return -high, -low
    return distances.get((value, other), (-UNBOUNDED, UNBOUNDED))
