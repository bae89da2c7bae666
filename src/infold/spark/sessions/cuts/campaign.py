"""Campaigns: a session ends where an event brings another campaign than the one in force."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from infold.core.session_cuts import Campaign, Nulls
from infold.spark.sessions.aggregate_state import StateColumn
from infold.spark.sessions.cuts.base import InnerCut
from infold.spark.sessions.frames import (
    CAMPAIGN,
    CAMPAIGN_BEFORE,
    CAMPAIGN_IN_FORCE,
    ISLAND,
    START,
    TIME,
)

_OF_INSTANT = "__campaign_of_instant"
"""Of an event: the campaign of its instant, which is that of the last event that has one."""

_LEAST_NEW, _GREATEST_NEW = "__least_new_campaign", "__greatest_new_campaign"
"""The first and last campaign, in alphabetical order, among new events."""


@dataclass(frozen=True, slots=True)
class CampaignCut(InnerCut):
    """
    A session begins at an instant that has another campaign than was in force before.

    The campaign in force at a session's first event is stored with it, so a fold can begin there.
    """

    declared: Campaign
    merges = False

    def event_columns(self) -> Sequence[Column]:
        """The event's campaign: a text that is another one for any other values."""
        values = [F.expr(sql).cast("string") for sql in self.declared.columns]
        for word in self.declared.direct:
            values = [F.when(value != F.lit(word), value) for value in values]
        text = F.to_json(F.struct(*(value.alias(f"c{at}") for at, value in enumerate(values))))
        if self.declared.nulls is Nulls.IGNORE:
            text = F.when(F.coalesce(*values).isNotNull(), text)
        return [text.alias(CAMPAIGN)]

    def begins_session(
        self, rows: DataFrame, island: Sequence[str], order: Sequence[str]
    ) -> tuple[DataFrame, Column | None]:
        """
        Whether the campaign of an instant is another one than was in force before.

        Events that begin within an island bring what was in force in ``CAMPAIGN_BEFORE``.
        """
        # The order makes the choice among the events of an instant one of content.
        known = F.when(F.col(CAMPAIGN).isNotNull(), F.struct(*order))
        earlier = Window.partitionBy(*island).orderBy(TIME)
        earlier = earlier.rangeBetween(Window.unboundedPreceding, -1)
        before = F.max_by(CAMPAIGN, known).over(earlier)
        if CAMPAIGN_BEFORE in rows.columns:
            brought = F.when(F.col(ISLAND) == 1, F.col(CAMPAIGN_BEFORE))
            before = F.coalesce(before, brought)
        own = F.max_by(CAMPAIGN, known).over(Window.partitionBy(*island, TIME))
        found = rows.withColumn(CAMPAIGN_BEFORE, before).withColumn(_OF_INSTANT, own)
        same = F.col(_OF_INSTANT).eqNullSafe(F.col(CAMPAIGN_BEFORE))
        return found, F.col(_OF_INSTANT).isNotNull() & ~same

    def session_columns(self) -> Sequence[Column]:
        """The campaign in force before its first event."""
        return [F.min_by(CAMPAIGN_BEFORE, TIME).alias(CAMPAIGN_BEFORE)]

    @property
    def state(self) -> Mapping[str, str]:
        """A stored session keeps the campaign before it."""
        return {CAMPAIGN_BEFORE: "carried"}

    def quarantine_columns(self) -> Mapping[str, Column]:
        """The campaign in force, the same at every instant of a session."""
        return {CAMPAIGN_IN_FORCE: F.coalesce(_OF_INSTANT, CAMPAIGN_BEFORE)}

    @property
    def entry_fields(self) -> Mapping[str, str]:
        """An entry keeps the campaign before it and the one in force."""
        return {"carried": CAMPAIGN_BEFORE, "campaign": CAMPAIGN_IN_FORCE}

    def component_columns(self, known: str) -> Sequence[Column]:
        """The campaign before it: that of the stored session or entry at its first instant."""
        first = F.struct(START, ~F.expr(known))
        return [F.min_by(CAMPAIGN_BEFORE, first).alias(CAMPAIGN_BEFORE)]

    def component_entry_columns(self) -> Sequence[Column]:
        """The campaign in force in its entry."""
        return [F.max(CAMPAIGN_IN_FORCE).alias(CAMPAIGN_IN_FORCE)]

    def new_event_state(self) -> Sequence[StateColumn]:
        """The first and last of their campaigns: both are the one in force, or there are others."""
        return [
            StateColumn.of_new_events(_LEAST_NEW, "min", CAMPAIGN),
            StateColumn.of_new_events(_GREATEST_NEW, "max", CAMPAIGN),
        ]

    def leaves_whole(self) -> Column | None:
        """
        New events have the campaign in force, or none.

        One campaign is in force in a session from its first instant on, so wherever they lie in it
        they leave it whole.
        """
        both = [F.col(_LEAST_NEW), F.col(_GREATEST_NEW)]
        least, greatest = (new.isNull() | (new == F.col(CAMPAIGN_IN_FORCE)) for new in both)
        return least & greatest
