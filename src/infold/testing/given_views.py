"""
Tables in the place of views whose rows a test gives.

Nothing of a view is stored, and its readers are compiled through it. So they are compiled again,
over a table of its columns. What a reader makes of equal rows is the same: it is the same query.
Only which rows come first among events of one instant follows from the view's tables, and is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from infold.core.model import Kind, Source
from infold.core.project import Node, Project
from infold.declare.definitions import definitions_of
from infold.declare.from_definitions import project_of_definitions
from infold.messages.errors import InfoldErrors

_TIMES = ("timestamp", "timestamp_ltz", "timestamp_ntz", "date")


def over_tables(
    base: Project, views: Sequence[str], needed: Collection[str], tables: Mapping[str, Source]
) -> Project:
    """
    A project with tables in the place of ``views``, as far as their ``needed`` readers go.

    ``tables`` has the source of each, without a time; its event time is the first of its columns
    with which all readers can be compiled. Raises InfoldErrors where there is none.
    """
    readers = _readers(base, views)
    kept = [one.name for one in base if one.name not in readers or one.name in needed]
    known = definitions_of(base)
    definitions = {name: known[name] for name in kept if name in known and name not in views}
    first: InfoldErrors | None = None
    for times in product(*(_times(base, name, tables[name]) for name in views)):
        sources = {
            name: replace(tables[name], event_time_column=time)
            for name, time in zip(views, times, strict=True)
        }
        try:
            found = project_of_definitions(base, definitions, {**base.sources, **sources})
        except InfoldErrors as error:
            first = first or error
            continue
        nodes = (_as_in(base, node) if node.name in readers else node for node in found)
        return replace(found, nodes=tuple(nodes))
    assert first is not None, "a view may be read as a table without a time"
    raise first


def _readers(base: Project, views: Sequence[str]) -> frozenset[str]:
    """What is made from some views, directly or not; the views too."""
    found = set(views)
    for node in base:  # in dependency order
        if found & set(node.reads):
            found.add(node.name)
    return frozenset(found)


def _times(base: Project, view: str, table: Source) -> Iterator[str | None]:
    """
    What may be the event time, the likeliest first; None: it is a lookup.

    So it is where no input has a time: rows of a lookup may be without some timestamp.
    """
    columns = {column.name: column.type.lower() for column in table.columns}
    of_sessions = [n.query.time_column for n in base if n.query and n.query.input == view]
    of_inputs = [entry.time_column or "" for entry in base[view].inputs]
    likely = {name.lower() for name in (*of_sessions, *of_inputs)}
    times = [name for name, of in columns.items() if of in _TIMES]
    if not any(likely):
        yield None
    yield from sorted(times, key=lambda name: name.lower() not in likely)
    if any(likely):
        yield None


def _as_in(base: Project, node: Node) -> Node:
    """A reader that was compiled again, with what decides nothing about its shape as it was."""
    if node.name not in base:
        return node
    before = base[node.name]
    query = node.query
    if query is not None and before.query is not None and query.input == before.query.input:
        query = replace(query, key=before.query.key, unique=before.query.unique)
    model = replace(node.model, audits=before.model.audits)
    return replace(node, model=model, query=query)


def view_times(project: Project, base: Project) -> Iterator[tuple[str, str]]:
    """The views of ``base`` that are tables in ``project``, with their event times."""
    for name, source in project.sources.items():
        if name in base and base[name].model.kind is Kind.VIEW and source.event_time_column:
            yield name, source.event_time_column
