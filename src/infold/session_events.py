"""
The events of a user or identifier in a stretch of time, read in-process from the stored input.

What only Spark could tell is not guessed: whose events are if that is computed, and what a view
shows of its input. A simple WHERE is applied; of any other it is said that it was not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from infold.interval import instants
from infold.model import table_name
from infold.ports import Ledger, Near, Past
from infold.project import Node
from infold.story import Event

if TYPE_CHECKING:
    import pyarrow as pa

VERSION, FILE = "_version", "_source_file"


@dataclass(frozen=True, slots=True)
class Theirs:
    """
    The events of somebody, by time; ``untold`` says why there are none to tell.

    ``unsure`` is the WHERE that was not applied, and ``undated`` is whether rows of the input do
    not say when they came.
    """

    events: tuple[Event, ...] = ()
    untold: str = ""
    unsure: str = ""
    undated: bool = False


def events_of(
    ledger: Ledger, past: Past, node: Node, match: Mapping[str, Any], start: int, end: int
) -> Theirs:
    """
    The events from ``start`` to ``end`` of those whose sessions have what ``match`` says.

    They are read at the version of the input that the sessions were made from, if it is kept.
    """
    query, name = node.query, node.inputs[0].name
    assert query is not None, "a sessions model has a compiled query"
    if query.input != name:
        return Theirs(untold=f"they are seen through the view {query.input}, by Spark alone")
    any_of = _any_of(node, match)
    if any_of is None:
        said = query.who or query.user
        return Theirs(untold=f"whose an event is follows from {said}, by Spark alone")
    near = Near(query.time_column, query.time_column, start, end)
    columns = [query.time_column, VERSION, FILE]
    snapshot = _snapshot(ledger, past, node)

    def read(where: str | None) -> pa.Table | None:
        return past.found(
            table_name(name), any_of, columns=columns, near=near, where=where, snapshot=snapshot
        )

    where = query.where
    try:
        found = read(where)
    except (ValueError, TypeError):  # more than columns compared with values
        where, found = None, read(None)
    if found is None:
        return Theirs(untold=f"{name} has no column that says whose they are")
    unsure = query.where is not None and where is None
    return Theirs(
        events=_events(found, query.time_column),
        unsure=f"`WHERE {' '.join(str(query.where).split())}`" if unsure else "",
        undated=VERSION not in found.column_names,
    )


def _events(found: pa.Table, time: str) -> tuple[Event, ...]:
    nothing = [None] * found.num_rows
    versions, files = (
        found[name].to_pylist() if name in found.column_names else nothing
        for name in (VERSION, FILE)
    )
    events = map(Event, instants(found, time), versions, files)
    return tuple(sorted(events, key=lambda event: event.at))


def _snapshot(ledger: Ledger, past: Past, node: Node) -> int | None:
    """The input as the model has read it; None (as it is now) where that is no longer kept."""
    name = node.inputs[0].name
    read = ledger.traces()[node.name].inputs.get(name)
    kept = past.kept(table_name(name))
    for version in ledger.versions(name):
        if version.number == read and version.snapshot in kept:
            return version.snapshot
    return None


def _any_of(node: Node, match: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """What events of the same user or identifier have; None where that is computed."""
    query, said = node.query, node.model.sessions
    assert query is not None
    assert said is not None
    value = match[query.user]
    if not said.identifier:
        return None if query.who is not None else [{query.user: value}]
    columns = [name for name in map(_plain, said.identifier) if name is not None]
    if len(columns) < len(said.identifier):
        return None
    if value is not None:  # the first of several that is not NULL counts
        return [{**dict.fromkeys(columns[:at]), name: value} for at, name in enumerate(columns)]
    user = _plain(said.user or "")
    own = next(given for name, given in match.items() if name != query.user)
    return None if user is None else [{**dict.fromkeys(columns), user: own}]


_COLUMN = re.compile(r"\s*(\w+|`[^`]+`)\s*\Z")


def _plain(sql: str) -> str | None:
    """The column that SQL over an event names, if it is no more than that."""
    return sql.strip().strip("`") if _COLUMN.match(sql) else None
