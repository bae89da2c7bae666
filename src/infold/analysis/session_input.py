"""The input of a sessions model: one input with event times, maybe behind a view."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from infold.analysis.event_sql import check_event_sql
from infold.analysis.inputs.fold_inputs import FoldInputs, fold_inputs_of
from infold.analysis.names.relation import Block, Table
from infold.analysis.names.subject import Subject
from infold.core.model import Kind
from infold.core.project import Node
from infold.core.session_cuts import EventSql
from infold.messages import refusals
from infold.messages.errors import InfoldError, Spot


@dataclass(frozen=True, slots=True)
class SessionInput:
    """The name in FROM, its event time column and unique key, and what was wrong with it."""

    name: str
    time_column: str
    key: tuple[str, ...]
    errors: tuple[InfoldError, ...] = ()
    unique: bool = True
    """Whether the key tells all events of one instant apart."""
    passed_columns: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    """As ``SessionsQuery.passed``."""


def session_input(subject: Subject) -> SessionInput:
    """The input of a sessions query; its shape is checked elsewhere."""
    nothing = SessionInput("", "", ())
    if not isinstance(subject.relation, Block) or not subject.relation.entries:
        return nothing
    entry = subject.relation.entries[0]
    if not isinstance(entry.relation, Table):
        return nothing
    table, at = entry.relation, subject.text.spot_of(entry.node)
    node = subject.nodes.get(table.name)
    if node is None:  # it has errors of its own
        return nothing
    errors = tuple(_of_events(subject, table))
    if errors:
        return SessionInput(table.name, "", (), errors)
    fed = fold_inputs_of(subject, table)
    for feed in fed.inputs or (None,):
        if feed is None or _event_time(subject, feed.node) is None:
            why = fed.why_not or _why_not(feed.node if feed else None)
            return SessionInput(
                table.name, "", (), (refusals.no_event_time(at, name=table.name, why=why),)
            )
    return _in_order(subject, table, at, fed)


def _in_order(subject: Subject, table: Table, at: Spot, fed: FoldInputs) -> SessionInput:
    """The columns of the input that put events in order."""
    if table.view is None:
        [feed] = fed.inputs
        return SessionInput(
            table.name, str(_event_time(subject, feed.node)), feed.node.model.unique_key
        )
    times: list[tuple[str, ...]] = []
    keys: dict[str, None] = {}
    for feed in fed.inputs:
        time = str(_event_time(subject, feed.node))
        for column in (time, *feed.node.model.unique_key):
            if not feed.names_of(column):
                error = refusals.view_hides(
                    at, view=table.name, column=column, table=feed.node.name
                )
                return SessionInput(table.name, time, (), (error,))
        times.append(feed.names_of(time))
        keys |= {feed.names_of(column)[0]: None for column in feed.node.model.unique_key}
    both = [name for name in times[0] if all(name in shown for shown in times)]
    if not both:
        error = refusals.view_mixes_times(
            at, view=table.name, times=sorted({shown[0] for shown in times})
        )
        return SessionInput(table.name, "", (), (error,))
    written = {name.lower(): name for name in table.columns or ()}
    named = tuple(written.get(name, name) for name in (both[0], *keys))
    return SessionInput(
        table.name, named[0], named[1:], unique=fed.unique, passed_columns=_passed_columns(fed)
    )


def _passed_columns(fed: FoldInputs) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    """The columns that a view shows as they are, of each table (wherever it reads the table)."""
    found: dict[str, frozenset[tuple[str, str]]] = {}
    for feed in fed.inputs:
        pairs = frozenset(feed.passed_columns.items())
        found[feed.node.name] = found.get(feed.node.name, pairs) & pairs
    return tuple((name, tuple(sorted(pairs))) for name, pairs in found.items())


def _of_events(subject: Subject, table: Table) -> Iterator[InfoldError]:
    """What is wrong with the SQL over one event in the front matter."""
    sessions = subject.model.sessions
    if sessions is None:
        return
    declared = [EventSql(("user",), sessions.user)] if sessions.user else []
    declared += [EventSql((f"identifier.{at}",), sql) for at, sql in enumerate(sessions.identifier)]
    declared += [one for cut in sessions.cuts for one in cut.event_sql]
    for one in declared:
        key = _written_key(subject, one)
        at = subject.draft.places.get(key) or subject.draft.place(_list_key(key))
        yield from check_event_sql(at, _ITEM.sub("", key), one.sql, table.columns)


_ITEM = re.compile(r"\.\d+\Z")
"""The number of an item at the end of a key."""


def _written_key(subject: Subject, sql: EventSql) -> str:
    """The key under which SQL is written in the model's file: of a list, with the item's number."""
    keys = [f"sessions.{key}" for key in sql.keys]
    places = subject.draft.places
    return next((key for key in keys if _list_key(key) in places), keys[-1])


def _list_key(key: str) -> str:
    """The key of the list or the mapping around a key."""
    return key.rpartition(".")[0]


def _event_time(subject: Subject, node: Node) -> str | None:
    series = node.model.timeseries
    if node.model.kind is Kind.SESSIONS:
        return "session_start"
    if series is None or node.model.granularity is None:
        return None
    if node.model.kind is Kind.EVENTS:
        return series.event_time_column
    proven = subject.kept_columns.get(node.name, {})
    return series.event_time_column if series.event_time_column.lower() in proven else None


def _why_not(node: Node | None) -> str:
    if node is None:
        return "nothing of a table can be followed through it"
    if node.model.kind is Kind.TABLE:
        return "a whole table has no cells; add timeseries and incremental"
    if node.model.kind is Kind.CUMULATIVE_AGGREGATE:
        return "a cumulative aggregate has no cells"
    if node.model.kind is Kind.SCD_TYPE_2:
        return "an scd_type_2 table has no cells"
    if node.landed:
        return "the source declares no event_time_column"
    return "its event_time_column is not among its own columns, or not a time of its cells"
