"""
The frames that sessions are made of, on their way from events to rows of the table.

An *owner* is the user or identifier that a session belongs to. Instants are microseconds. Frames of
one module alone are declared at its head.
"""

from __future__ import annotations

from infold.spark.frame_schema import ANY, FrameColumn, FrameSchema

OWNER, TIME = "__owner", "__time"
"""Of an event: the user or identifier that its session belongs to, and its time (µs)."""
CAMPAIGN, BEGINS_SESSION = "__campaign", "__begins_session"
"""Of an event: its campaign, and whether it is a start event."""
GIVEN = "__given"
"""Of an event: a struct of the arguments that a session rule gets for it."""
ISLAND = "__island"
"""Of an event: the number of its island among those of its owner, from 1."""
START, END, EVENTS = "__start", "__end", "__events"
"""Of an island or session: its first and last instant, and how many events it has."""
CAMPAIGN_BEFORE = "__campaign_before"
"""The campaign in force before an event or a session; NULL for none."""
CAMPAIGN_IN_FORCE = "__campaign_in_force"
"""The campaign in force from a session's first instant to its end: another one would end it."""
WHOLE_END, WHOLE_EVENTS = "__whole_end", "__whole_events"
"""The last instant and the number of events of a session, those past the limit included."""
WHOLE_USER, WHOLE_USER_AT = "__whole_user", "__whole_user_at"
"""A session's user by all of its events, and when one names it."""
EVENT_COUNT, USER_VALUE, USER_AT = "_events_n", "_user_v", "_user_at"
"""State columns of the aggregates that infold adds: the number of events, the user, and when."""
SILENCE = "_silence"
"""The state column with a silence that is at least as long as any within an island."""
QUIET = "__quiet"
"""The silence (µs) before an event, or before an island that joins the one before."""
SPAN_OWNER, SPAN_START, SPAN_END = "__span_owner", "__span_start", "__span_end"
"""A span of time of one owner, both ends included."""
AGAIN = "__again"
"""Of a component: whether its events have to be read again."""
VANISHES = "__vanishes"
"""Of a component: whether it has lost all of its events."""


def key_column(number: int) -> str:
    """The column of prepared events for a column of their order after the time."""
    return f"__key{number}"


PREPARED_EVENTS = FrameSchema(
    "an event that belongs to a session",
    (
        FrameColumn(OWNER, ANY, "the user or identifier; never NULL"),
        FrameColumn(TIME, "bigint", "the event time; never NULL"),
        FrameColumn(CAMPAIGN, "string", "its campaign as JSON; NULL: none", "campaign"),
        FrameColumn(BEGINS_SESSION, "boolean", "whether it begins a session", "start events"),
        FrameColumn(GIVEN, "struct<…", "what a session rule is given of it", "rule"),
    ),
    "__key0 …, which order events of one instant; the arguments of aggregates, __x0 … and __f0 …;"
    " where whole calls are evaluated, the input's own columns",
)

NUMBERED_EVENTS = PREPARED_EVENTS.plus(
    "a prepared event with its island",
    FrameColumn(ISLAND, ANY, "int or bigint: the island's number among those of its owner, from 1"),
    FrameColumn(QUIET, "bigint", "the silence before it; 0 for an island's first", "gap"),
)

ISLANDS = FrameSchema(
    "an island",
    (
        FrameColumn(OWNER, ANY, "the user or identifier"),
        FrameColumn(START, "bigint", "its first instant"),
        FrameColumn(END, "bigint", "its last instant"),
        FrameColumn(EVENTS, "bigint", "how many events it has"),
    ),
    "a column for each part of the aggregates' states",
)

SESSIONS = ISLANDS.plus(
    "a session made from its events",
    FrameColumn(CAMPAIGN_BEFORE, "string", "the campaign in force before it", "campaign"),
    FrameColumn(WHOLE_END, "bigint", "its last instant, past the limit too", "quarantine"),
    FrameColumn(WHOLE_EVENTS, "bigint", "its events, those past the limit too", "quarantine"),
    FrameColumn(WHOLE_USER, ANY, "its user by all events", "quarantine, by identifier"),
    FrameColumn(WHOLE_USER_AT, "bigint", "when an event names it", "quarantine, by identifier"),
    FrameColumn(CAMPAIGN_IN_FORCE, "string", "the campaign in force", "quarantine, campaign"),
)

SPANS = FrameSchema(
    "a span of time in which the events of an owner are read again",
    (
        FrameColumn(SPAN_OWNER, ANY, "the user or identifier"),
        FrameColumn(SPAN_START, "bigint", "the first instant"),
        FrameColumn(SPAN_END, "bigint", "the last instant, included"),
    ),
    "what the events are to bring along",
)
