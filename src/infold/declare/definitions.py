"""Everything that defines the tables and views of a project, as values that a ledger keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from infold.core.definition import Definition, digest_of
from infold.core.model import Model, Place, Source
from infold.core.project import Node, Project
from infold.core.sessions import STATE_VERSION

_MODEL_PLACE = Place("models")
_SOURCE_PLACE = Place("infold.yml")


def definitions_of(project: Project) -> Mapping[str, Definition]:
    """
    The definition of every model, landed sources included, by name.

    Models that are built whole because a run was told to downgrade them have none: another run
    refuses them.
    """
    definitions: dict[str, Definition] = {}
    views: dict[str, Mapping[str, str]] = {}
    for node in project:
        if node.downgraded:
            continue
        views_read: dict[str, str] = {}
        for name in node.reads:
            views_read |= views.get(name, {})
        definitions[node.name] = definition = _definition(project, node, views_read)
        if node.model.kind.is_view:
            views[node.name] = {**views_read, node.name: digest_of(definition)}
    return definitions


def _definition(project: Project, node: Node, views: Mapping[str, str]) -> Definition:
    model = node.model
    return Definition(
        name=node.name,
        sql=model.sql,
        file=model.place.file,
        sql_line=model.sql_line,
        model=without_text_and_place(model),
        source=_source(project, node),
        start=node.start,
        backfill_limit=node.backfill_limit,
        columns=node.columns,
        views=dict(sorted(views.items())),
        fingerprint=node.fingerprint,
        state=STATE_VERSION,
    )


def without_text_and_place(model: Model) -> Model:
    """A model's declaration alone."""
    audits = tuple(replace(one, file="", line=1, sql_line=1) for one in model.audits)
    return replace(model, sql="", sql_line=1, place=_MODEL_PLACE, audits=audits)


def _source(project: Project, node: Node) -> Source | None:
    """
    The source that an events model ingests. A landed one is without the columns that no model
    names, as nothing but its readers says which these are.
    """
    if node.source is None:
        return None
    source = replace(project.sources[node.source], place=_SOURCE_PLACE)
    return source.without_columns(node.unread_columns) if node.landed else source
