"""
The project that a test runs: the models that it needs, over files of the rows that it gives.

Models are the project's own, definitions and all. In the place of a source there is one of the same
columns in a folder of JSON lines; in the place of a model whose rows are given, one that takes in
such a folder as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from infold.analysis.compile import landed_node
from infold.analysis.names.subject import time_column
from infold.core.formats import Format
from infold.core.model import Column, Source, any_result_will_do
from infold.core.project import Node, Project
from infold.core.type_changes import Type, shown
from infold.declare.definitions import definitions_of
from infold.declare.from_definitions import project_of_definitions
from infold.messages.errors import InfoldErrors
from infold.testing.scratch import LANDING

Types = Mapping[str, Mapping[str, Type]]
"""Table -> column -> type."""


@dataclass(frozen=True)
class Tables:
    """The columns of all that a project has, with types as Spark SQL writes them."""

    sources: Mapping[str, Mapping[str, str]]
    models: Mapping[str, Mapping[str, str]]

    @staticmethod
    def of(project: Project, model_types: Types, source_types: Types) -> Tables:
        """By what is declared, and the types found in models and in sources that are tables."""
        sources = {
            name: {column.name: column.type for column in source.columns}
            or {column: shown(type_) for column, type_ in source_types.get(name, {}).items()}
            for name, source in project.sources.items()
        }
        models = {
            name: {column: shown(type_) for column, type_ in columns.items()}
            for name, columns in model_types.items()
        }
        return Tables(sources, models)

    def columns(self, name: str) -> Mapping[str, str]:
        """The columns of a source or a model."""
        return self.sources[name] if name in self.sources else self.models[name]


def project_under_test(
    base: Project, models: Sequence[str], given: Sequence[str], tables: Tables
) -> Project:
    """
    The project that makes ``models`` from ``given`` rows.

    Raises InfoldErrors where a reader of a given view cannot read a table in its place.
    """
    needed = needed_models(base, models, given)
    stand_ins = {
        name: _given_model(base[name], tables.models[name])
        for name in needed
        if name in given and name not in base.sources
    }
    views = sorted(name for name in stand_ins if base[name].model.kind.is_view)
    compiled = over_tables(base, views, needed, stand_ins) if views else base
    stand_ins |= {name: compiled.sources[name] for name in views}
    nodes = tuple(
        landed_node(stand_ins[node.name])
        if node.name in stand_ins
        else replace(node, backfill_limit=None)
        for node in compiled
        if node.name in needed
    )
    sources = {
        name: _given_source(source, tables.sources[name]) for name, source in base.sources.items()
    }
    return replace(
        base,
        sources={**sources, **stand_ins},
        nodes=nodes,
        applied=None,
        shared=frozenset(),
        apart={},
        waits=(),
        once_complete=None,
    )


def _given_source(source: Source, columns: Mapping[str, str]) -> Source:
    """A source in a folder of JSON lines with these columns."""
    declared = source.columns or tuple(Column(name, of) for name, of in columns.items())
    return replace(
        source,
        format=Format.JSON,
        columns=declared,
        path=f"{LANDING}/{source.name}/*.json",
        table=None,
        catalog=None,
        url=None,
        key=None,
        reread=None,
        timestamp_format="iso",
        multiline=False,
        settle=0,
        full_listing=None,
        removal_limit=None,
        may_be_empty=True,
    )


def _given_model(node: Node, columns: Mapping[str, str]) -> Source:
    """A source with the columns of a model."""
    return Source(
        node.name,
        Format.JSON,
        tuple(Column(name, type_) for name, type_ in columns.items()),
        path=f"{LANDING}/{node.name}/*.json",
        event_time_column=time_column(node),
        place=node.model.place,
        may_be_empty=True,
    )


def stored_models(project: Project) -> Iterator[Node]:
    """The models with tables that follow from the rows alone, so in whichever order they came."""
    drawn: set[str] = set()
    for node in project:
        if any_result_will_do(node.model) or drawn & set(node.reads):
            drawn.add(node.name)
        elif node.model.kind.is_stored and not node.landed:
            yield node


def needed_models(project: Project, models: Iterable[str], given: Iterable[str]) -> frozenset[str]:
    """Some models and all that they are made from, as far as that is not given."""
    needed: set[str] = set()
    given = {name for name in given if name not in project.sources}
    todo = list(models)
    while todo:
        name = todo.pop()
        if name in needed or name not in project:
            continue
        needed.add(name)
        if name not in given:
            todo += project[name].reads
    return frozenset(needed)


# Nothing of a view is stored, and its readers are compiled through it. So they are compiled again,
# over a table of its columns. What a reader makes of equal rows is the same: it is the same query.
# Only which rows come first among events of one instant follows from the view's tables, and is
# kept.

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
    names = [one.name for one in base if one.name not in readers or one.name in needed]
    known = definitions_of(base)
    definitions = {name: known[name] for name in names if name in known and name not in views}
    first: InfoldErrors | None = None
    for times in product(*(_times(base, name, tables[name]) for name in views)):
        sources = {
            name: replace(tables[name], event_time_column=time)
            for name, time in zip(views, times, strict=True)
        }
        try:
            compiled = project_of_definitions(base, definitions, {**base.sources, **sources})
        except InfoldErrors as error:
            first = first or error
            continue
        nodes = (_as_in(base, node) if node.name in readers else node for node in compiled)
        return replace(compiled, nodes=tuple(nodes))
    assert first is not None, "a view may be read as a table without a time"
    raise first


def _readers(base: Project, views: Sequence[str]) -> frozenset[str]:
    """What is made from some views, directly or not; the views too."""
    readers = set(views)
    for node in base:  # in dependency order
        if readers & set(node.reads):
            readers.add(node.name)
    return frozenset(readers)


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
        if name in base and base[name].model.kind.is_view and source.event_time_column:
            yield name, source.event_time_column
