"""
Where sessions end: what Spark does for each cut that a model may declare, listed in ``CUTS``.

Each phase of building and folding asks every cut what ``base`` lists. A silence, which ends
sessions first of all, is in ``silence``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.queries import SessionsQuery
from infold.core.sessions import (
    Campaign,
    DeclaredCut,
    MaxLength,
    Midnight,
    Nulls,
    Rule,
    StartEvents,
)
from infold.spark.python_functions.register import rule_function
from infold.spark.sessions.aggregates import StateColumn
from infold.spark.sessions.cuts.base import InnerCut, PairwiseCut, by_session, in_pieces, silence_of
from infold.spark.sessions.frames import (
    BEGINS_SESSION,
    CAMPAIGN,
    CAMPAIGN_BEFORE,
    CAMPAIGN_IN_FORCE,
    END,
    GIVEN,
    ISLAND,
    START,
    TIME,
)


@dataclass(frozen=True, slots=True)
class MidnightCut(PairwiseCut):
    """Parts two events of different local days."""

    declared: Midnight

    def parts(self, before: Column, after: Column) -> Column:
        """Whether a midnight lies between two events."""
        zone = self.declared.zone
        return local_day(before, zone) != local_day(after, zone)

    def bucket_columns(self) -> Sequence[Column]:
        """The local day: a bucket may lie around midnight."""
        return [local_day(F.col(TIME), self.declared.zone)]


def local_day(at: Column, zone: str) -> Column:
    """
    The day of an instant in a time zone, such that later instants have no earlier days.

    A clock set back over midnight shows the day before once more. That hour is of the new day
    here: a day begins once, when it first begins.
    """
    when, name = F.timestamp_micros(at), F.lit(zone)
    day = F.to_date(F.from_utc_timestamp(when, name))
    following = F.date_add(day, 1)
    begins = F.to_utc_timestamp(following.cast("timestamp"), name)
    return F.when(begins <= when, following).otherwise(day)


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
        of_instant = F.max_by(CAMPAIGN, known).over(Window.partitionBy(*island, TIME))
        marked = rows.withColumn(CAMPAIGN_BEFORE, before).withColumn(_OF_INSTANT, of_instant)
        same = F.col(_OF_INSTANT).eqNullSafe(F.col(CAMPAIGN_BEFORE))
        return marked, F.col(_OF_INSTANT).isNotNull() & ~same

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


_ANY_NEW = "__any_new_begins_session"
"""Whether any of the new events begins a session."""


@dataclass(frozen=True, slots=True)
class StartEventsCut(InnerCut):
    """A session begins at an instant if any event of it is a start event."""

    declared: StartEvents
    merges = False

    def event_columns(self) -> Sequence[Column]:
        """Whether the event is a start event."""
        return [F.coalesce(F.expr(self.declared.sql), F.lit(False)).alias(BEGINS_SESSION)]

    def begins_session(
        self,
        rows: DataFrame,
        island: Sequence[str],  # noqa: ARG002
        order: Sequence[str],  # noqa: ARG002
    ) -> tuple[DataFrame, Column | None]:
        """Whether the event is a start event."""
        return rows, F.col(BEGINS_SESSION)

    def may_have_parted(
        self,
        later: Self | None,
        distance: Column,  # noqa: ARG002
    ) -> Column | None:
        """Any neighbours: which events were start events is not stored."""
        return None if self == later else F.lit(True)

    def new_event_state(self) -> Sequence[StateColumn]:
        """Whether any of them begins a session."""
        return [StateColumn.of_new_events(_ANY_NEW, "bool_or", BEGINS_SESSION)]

    def leaves_whole(self) -> Column | None:
        """No new event begins a session."""
        return ~F.coalesce(_ANY_NEW, F.lit(False))


_EVENTS, _BEGINS = "__session_events", "__event_begins"
"""Of a session: its events in order, and of each whether it begins another session."""


@dataclass(frozen=True, slots=True)
class RuleCut(InnerCut):
    """
    Divides what all other cuts leave whole, so it starts again where these end a session.

    Its function sees the events of a session in order, and answers for each before it sees the next
    one. So an answer depends on the session's events up to it, and a fold can begin at any stored
    session, as it does where campaigns end them.
    """

    declared: Rule
    merges = False

    def event_columns(self) -> Sequence[Column]:
        """What the function is given of the event."""
        return [F.expr(self.declared.sql).alias(GIVEN)]

    def pieces(
        self, rows: DataFrame, session: Sequence[str], order: Sequence[str]
    ) -> tuple[DataFrame, Sequence[str]]:
        """Sessions in pieces, as the function divides them."""
        assert self.declared.code is not None, "a rule that was found"
        given = rows.schema[GIVEN].dataType
        assert isinstance(given, T.StructType), "a struct of the rule's parameters"
        fields = ", ".join(f"'{name}', e.{GIVEN}.`{name}`" for name in given.fieldNames())
        ordered = F.array_sort(F.collect_list(F.struct(*order, GIVEN)))
        sessions = rows.groupBy(*by_session(session)).agg(ordered.alias(_EVENTS))
        call_arguments = F.expr(
            f"transform({_EVENTS}, e -> named_struct('time', timestamp_micros(e.{TIME}), {fields}))"
        )
        several = sessions.where(F.size(_EVENTS) > 1)
        answered = several.withColumn(_BEGINS, rule_function(self.declared.code)(call_arguments))
        return in_pieces(rows, session, answered, F.expr(_STARTS_BY_RULE))

    def leaves_whole(self) -> Column | None:
        """Nobody knows before it is asked again."""
        return F.lit(False)


_STARTS_BY_RULE = f"""array_distinct(transform(
    filter(arrays_zip({_EVENTS}, {_BEGINS}), e -> e.{_BEGINS}), e -> e.{_EVENTS}.{TIME}
))"""


_LENGTH, _TIMES = "__length", "__times"
"""Of a session that is too long: its length, and its instants in order."""

_STARTS_BY_LENGTH = f"""aggregate(
    {_TIMES},
    named_struct('at', {_TIMES}[0], 'starts', array({_TIMES}[0])),
    (a, t) -> if(
        t - a.at > {{most}}L, named_struct('at', t, 'starts', array_append(a.starts, t)), a
    )
).starts"""


@dataclass(frozen=True, slots=True)
class MaxLengthCut(InnerCut):
    """
    A session that is not too long stays whole, so new events are merged as long as it is not.

    It is counted from the first event after any other cut, so this cut comes last.
    """

    declared: MaxLength

    def pieces(
        self,
        rows: DataFrame,
        session: Sequence[str],
        order: Sequence[str],  # noqa: ARG002
    ) -> tuple[DataFrame, Sequence[str]]:
        """Sessions in pieces: each begins with the first event too far from the last start."""
        most = self.declared.length
        whole = Window.partitionBy(*session)
        length = F.max(TIME).over(whole) - F.min(TIME).over(whole)
        spans = rows.select(*session, TIME, length.alias(_LENGTH))
        sessions = (
            spans.where(F.col(_LENGTH) > most)
            .groupBy(*by_session(session))
            .agg(F.expr(f"array_sort(collect_set({TIME}))").alias(_TIMES))
        )
        return in_pieces(rows, session, sessions, F.expr(_STARTS_BY_LENGTH.format(most=most)))

    def may_divide(self) -> Column | None:
        """What is longer is more than one session."""
        return F.col(END) - F.col(START) > self.declared.length

    def may_divide_stored(self, earlier: Self | None) -> Column | None:
        """What is longer, where less is allowed now."""
        less = earlier is None or self.declared.length < earlier.declared.length
        return self.may_divide() if less else None

    def may_have_parted(self, later: Self | None, distance: Column) -> Column | None:
        """Neighbours that may be one session, as it may be longer now."""
        if later is None:
            return F.lit(True)
        more = later.declared.length > self.declared.length
        return distance <= later.declared.length if more else None

    def leaves_whole(self) -> Column | None:
        """It is not too long."""
        return F.col(END) - F.col(START) <= self.declared.length


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
        all_cuts = (*self.pairwise, *self.inner)
        return next((other for other in all_cuts if isinstance(other, type(cut))), None)

    @property
    def merge(self) -> bool:
        """Whether all cuts let new events be merged into stored sessions."""
        return all(cut.merges for cut in self.inner)


def cuts_of(query: SessionsQuery) -> Cuts:
    """A query's cuts, silences among them."""
    silence = silence_of(query)
    query_cuts = [CUTS[type(cut)](cut) for cut in query.cuts]
    pairwise = [cut for cut in query_cuts if isinstance(cut, PairwiseCut)]
    return Cuts(
        ((silence, *pairwise) if silence else tuple(pairwise)),
        tuple(cut for cut in query_cuts if isinstance(cut, InnerCut)),
    )
