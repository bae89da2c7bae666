"""
Where sessions end: one module for each cut, listed in ``CUTS``.

Each phase of building and folding asks every cut what ``base`` lists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from infold.core.queries import SessionsQuery
from infold.core.session_cuts import Campaign, DeclaredCut, MaxLength, Midnight, Rule, StartEvents
from infold.spark.sessions.cuts.base import InnerCut, PairwiseCut
from infold.spark.sessions.cuts.campaign import CampaignCut
from infold.spark.sessions.cuts.max_length import MaxLengthCut
from infold.spark.sessions.cuts.midnight import MidnightCut
from infold.spark.sessions.cuts.rule import RuleCut
from infold.spark.sessions.cuts.silence import silence_of
from infold.spark.sessions.cuts.start_events import StartEventsCut

AnyCut = TypeVar("AnyCut", PairwiseCut, InnerCut)

CUTS: Mapping[type[DeclaredCut], Callable[..., PairwiseCut | InnerCut]] = {
    Midnight: MidnightCut,
    Campaign: CampaignCut,
    StartEvents: StartEventsCut,
    Rule: RuleCut,
    MaxLength: MaxLengthCut,
}
"""A cut as declared -> what Spark does for it."""


@dataclass(frozen=True, slots=True)
class Cuts:
    """The cuts of a sessions query by what they depend on, in the order in which they are asked."""

    pairwise: tuple[PairwiseCut, ...]
    inner: tuple[InnerCut, ...]

    def like(self, cut: AnyCut) -> AnyCut | None:
        """The cut of the same sort, if there is one."""
        every = (*self.pairwise, *self.inner)
        return next((one for one in every if isinstance(one, type(cut))), None)

    @property
    def merge(self) -> bool:
        """Whether all cuts let new events be merged into stored sessions."""
        return all(cut.merges for cut in self.inner)


def cuts_of(query: SessionsQuery) -> Cuts:
    """A query's cuts, silences among them."""
    silence = silence_of(query)
    found = [CUTS[type(cut)](cut) for cut in query.cuts]
    pairwise = [cut for cut in found if isinstance(cut, PairwiseCut)]
    return Cuts(
        ((silence, *pairwise) if silence else tuple(pairwise)),
        tuple(cut for cut in found if isinstance(cut, InnerCut)),
    )
