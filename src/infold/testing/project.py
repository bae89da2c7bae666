"""
The project that a test runs: the models that it needs, over files of the rows that it gives.

Models are the project's own, definitions and all. In the place of a source there is one of the same
columns in a folder of JSON lines; in the place of a model whose rows are given, one that takes in
such a folder as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from infold.analysis.compile import landed_node
from infold.analysis.names.subject import time_column
from infold.core.formats import Format
from infold.core.model import Column, Kind, Source, any_result_will_do
from infold.core.project import Node, Project
from infold.core.type_changes import Type, shown
from infold.testing.given_views import over_tables
from infold.testing.scratch import LANDING

Types = Mapping[str, Mapping[str, Type]]
"""Table -> column -> type."""


@dataclass(frozen=True)
class Tables:
    """The columns of all that a project has, with types as Spark SQL writes them."""

    sources: Mapping[str, Mapping[str, str]]
    models: Mapping[str, Mapping[str, str]]

    @staticmethod
    def of(project: Project, found: Types, tables: Types) -> Tables:
        """By what is declared, what was ``found`` of models and of sources that are ``tables``."""
        sources = {
            name: {column.name: column.type for column in source.columns}
            or {column: shown(type_) for column, type_ in tables.get(name, {}).items()}
            for name, source in project.sources.items()
        }
        models = {
            name: {column: shown(type_) for column, type_ in columns.items()}
            for name, columns in found.items()
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
    views = sorted(name for name in stand_ins if base[name].model.kind is Kind.VIEW)
    found = over_tables(base, views, needed, stand_ins) if views else base
    stand_ins |= {name: found.sources[name] for name in views}
    nodes = tuple(
        landed_node(stand_ins[node.name])
        if node.name in stand_ins
        else replace(node, backfill_limit=None)
        for node in found
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
        wanted=None,
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
        elif node.model.kind is not Kind.VIEW and not node.landed:
            yield node


def needed_models(project: Project, models: Iterable[str], given: Iterable[str]) -> frozenset[str]:
    """Some models and all that they are made from, as far as that is not given."""
    found: set[str] = set()
    given = {name for name in given if name not in project.sources}
    todo = list(models)
    while todo:
        name = todo.pop()
        if name in found or name not in project:
            continue
        found.add(name)
        if name not in given:
            todo += project[name].reads
    return frozenset(found)
