"""Queries drawn at random, good and bad, over a few rows around the ends of a month and a week."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st
from tests.analysis.rules.grammar import drawn

from infold.core.interval import Ranges, datetime_of, parse_instant_text
from infold.core.project import Node, Reference


def declared(columns: str) -> str:
    """A project with a source ``raw.clicks`` of these columns, ``ts`` among them."""
    return f"""
name: shop
sources:
  raw.clicks:
    path: clicks/*.json
    event_time_column: ts
    columns: {{{columns}}}
"""


LOOKUP = """\
  raw.places:
    path: places.csv
    columns: {code: string, place: string, since: timestamp}
"""
TAKEN = "---\nmaterialization: {}\n---\nSELECT * FROM raw.{}"
EVENTS = "events\nunique_key: id\ntimeseries: {event_time_column: ts}"
FILES = {
    "infold.yml": declared("id: int, who: string, ts: timestamp, code: string") + LOOKUP,
    "models/clicks.sql": TAKEN.format(EVENTS, "clicks"),
    "models/orders.sql": TAKEN.format(EVENTS, "clicks"),
    "models/places.sql": TAKEN.format("table", "places"),
}


@st.composite
def queries(draw: st.DrawFn) -> str:
    """A query with the columns part and n, sometimes a subquery and nothing around it."""
    deep = draw(st.integers(0, 7)) > 0
    return draw(drawn("query" if deep else "bare", 2 if deep else 0))


ROWS = [
    (1, "ann", "2024-01-31T22:10:00", "a"),
    (2, "ann", "2024-01-31T23:50:00", "b"),
    (3, "ann", "2024-02-01T00:10:00", "a"),
    (4, "bob", "2024-02-01T00:20:00", "z"),
    (5, "bob", "2024-02-03T12:00:00", "b"),
    (6, "ann", "2024-02-04T23:30:00", "b"),
    (7, "bob", "2024-02-05T00:00:00", "a"),
    (8, "ann", "2024-02-05T00:00:00", "a"),
    (9, "eve", "2024-02-05T05:00:00", "z"),
    (10, "ann", "2024-02-05T05:30:00", "b"),
]

PLACES = [
    ("a", "here", "2024-02-01"),
    ("b", "there", "2024-02-04"),
    ("b", "b2", None),
    ("y", "no", None),
]

GRANULARITIES = st.sampled_from(["hour", "day", "day", "week", "month"])


def model(sql: str, granularity: str) -> str:
    """The file of a model of a drawn query."""
    series = f"{{event_time_column: part, partition_column: part, granularity: {granularity}}}"
    return f"---\nmaterialization: table\nincremental: {{}}\ntimeseries: {series}\n---\n{sql}"


def replaced(node: Node, times: Callable[[Reference], Ranges | None], without: int = 0) -> str:
    """
    A model's query over no more of each reference than its rows of certain times.

    None for all rows, as of tables without a time; one row, by its id, may be missing.
    """
    sql = node.model.sql
    for reference in sorted(node.references, key=lambda entry: -entry.start):
        rows, wanted = f"SELECT * FROM {reference.name}", times(reference)
        if wanted is not None:
            parts = [
                f"(ts >= {literal(part.start)} AND ts < {literal(part.end)})" for part in wanted
            ]
            rows += f" WHERE id <> {without} AND ({' OR '.join(parts) or 'false'})"
        sql = f"{sql[: reference.start]}({rows}){sql[reference.end :]}"
    return sql


_FIRST, _LAST = parse_instant_text("1900-01-01"), parse_instant_text("2100-01-01")


def literal(at: int) -> str:
    """An instant as both engines write it in UTC, ends of time cut off."""
    return f"TIMESTAMP '{datetime_of(min(max(at, _FIRST), _LAST)).replace(tzinfo=None)}'"
