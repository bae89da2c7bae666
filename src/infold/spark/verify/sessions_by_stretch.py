"""
Sessions of several definitions from scratch: each over the events of its stretch, and all together.

A border between two definitions ends sessions, so no session has events of two stretches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import reduce

from pyspark.sql import DataFrame

from infold.core.interval import Ranges
from infold.core.plan import Step
from infold.core.queries import SessionsQuery
from infold.spark.content import column, time_predicate
from infold.spark.sessions.components import query_of
from infold.spark.step_context import Work
from infold.spark.verify import sessions_from_scratch

ReadEvents = Callable[[Work, SessionsQuery, Step], DataFrame]
"""Reads the events of a query, at the versions that a step names."""


def sessions_of_stretches(work: Work, step: Step, read: ReadEvents) -> DataFrame:
    """All sessions of a model, each by the definition in force at its events."""
    parts = [
        sessions_from_scratch.sessions(events, query)
        for events, query in _stretches(work, step, read)
    ]
    rows = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)
    query = query_of(work, step)
    if query.numbered and len(parts) > 1:
        return sessions_from_scratch.with_session_numbers(rows, column(query.owner_column))
    return rows


def quarantined_in_stretches(work: Work, step: Step, read: ReadEvents) -> set[tuple[str, int, int, int]]:
    """What each session in quarantine is of, its ends, and how many events it has."""
    return {
        (row["of"], row["start"], row["end"], row["events"])
        for events, query in _stretches(work, step, read)
        if query.may_quarantine
        # At most a row for each session in quarantine.
        for row in sessions_from_scratch.quarantined(events, query).collect()
    }


def _stretches(
    work: Work, step: Step, read: ReadEvents
) -> Iterator[tuple[DataFrame, SessionsQuery]]:
    """The events of each stretch, with the query in force there; the newest first."""
    held = Ranges.of(part for one in work.earlier for part in one.cells)
    every = [(work, part) for part in Ranges.ever() - held]
    every += [
        (replace(work, project=one.project, earlier=()), part)
        for one in work.earlier
        for part in one.cells
    ]
    for own, part in every:
        query = query_of(own, step)
        events = read(own, query, step)
        if held:
            test = time_predicate(events, query.time_column, Ranges((part,)), exact=True)
            events = events.where(test)
        yield events, query
