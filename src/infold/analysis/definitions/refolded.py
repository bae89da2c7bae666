"""
Which changed definitions of sessions leave most of the stored sessions as they are.

Both definitions have to make sessions of the same events, with the same columns and states, and to
end them by rules that differ only in what the stored sessions tell: a gap (each keeps how long the
silences in it are), midnights, the greatest length, start events that no longer count, the limit of
the quarantine. A campaign or a start event that is new can be anywhere, and another rule may end
any session, so all events are read.
"""

from __future__ import annotations

from collections.abc import Sequence

from infold.core.definition import Difference
from infold.core.model import Kind
from infold.core.project import Node
from infold.core.session_cuts import Campaign, StartEvents

ENDS = frozenset(
    {
        "gap",
        "fallback_gap",
        "zone",
        "length",
        "quarantine_after",
        "keep",
        "cuts.midnight",
        "cuts.start_events",
        "max_length",
    }
)
"""The keys of sessions, as differences name them, that say only where one ends and if it counts."""


def ends_differ(differences: Sequence[Difference]) -> bool:
    """Whether the keys of two definitions differ in where sessions end, and in nothing else."""
    return bool(differences) and all(one.part in ENDS for one in differences)


def stored_sessions_tell(before: Node, after: Node) -> bool:
    """Whether the stored sessions tell which of them may end elsewhere."""
    old, new = before.query, after.query
    if {before.model.kind, after.model.kind} != {Kind.SESSIONS} or old is None or new is None:
        return False
    if (old.gap is None and old.fallback is None) != (new.gap is None and new.fallback is None):
        return False  # without a gap no silence is kept
    if old.quarantine_after is not None and new.quarantine_after is None:
        return False  # nothing is said of entries any more, and there may be some
    if not {cut for cut in new.cuts if isinstance(cut, StartEvents)} <= {*old.cuts}:
        return False
    campaigns = [[cut for cut in query.cuts if isinstance(cut, Campaign)] for query in (old, new)]
    return campaigns[0] == campaigns[1]
