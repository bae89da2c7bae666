"""
A definition that the ledger kept, as a project again: to evaluate a model as it was declared.

The model is compiled as the files of a project are, over the definitions that built its inputs. The
fingerprint decides whether the node is the one that the definition was made from: if it is not,
there is none, rather than one that resembles it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from infold.analysis.compile import compile_models
from infold.analysis.inputs.ingested import landing_model, tables_named
from infold.analysis.names.subject import Draft
from infold.analysis.sql.parse import parse
from infold.core.definition import Definition
from infold.core.model import Materialization, Place, Source
from infold.core.project import Project
from infold.declare.load import deeply
from infold.declare.project import with_start_and_limit
from infold.messages.errors import InfoldError, InfoldErrors


def project_of_definition(
    project: Project,
    definition: Definition,
    building: Mapping[str, Definition],
    views: Mapping[str, Definition],
) -> Project | None:
    """
    A project in which the model of ``definition`` is declared by it; None where there is none.

    ``building`` are the definitions of its inputs, by name. ``views``
    has views by their digests. Name and target are those of ``project``.
    """
    return deeply(lambda: _project_of_definition(project, definition, building, views))


def _project_of_definition(
    project: Project,
    definition: Definition,
    building: Mapping[str, Definition],
    views: Mapping[str, Definition],
) -> Project | None:
    try:
        needed = _Needed(building, views)
        needed.add(definition)
        sources = sources_of(needed.found.values())
        landed = is_landed(definition)
        drafts = [needed.drafts[name] for name in needed.drafts]
        if landed and definition.source is not None:
            drafts = [_reader(definition.source)]
    except InfoldError:
        return None
    compiled = compile_models(drafts, sources)
    nodes = []
    for node in compiled.nodes:
        by = definition if node.name == definition.name else needed.found.get(node.name)
        if by is not None:
            node = with_start_and_limit(node, by.start, by.backfill_limit, in_force=True)
        nodes.append(node)
    declared = replace(project, sources=sources, nodes=tuple(nodes), start=None)
    if definition.name not in declared:
        return None
    return declared if declared[definition.name].fingerprint == definition.fingerprint else None


def project_of_definitions(
    project: Project, definitions: Mapping[str, Definition], sources: Mapping[str, Source]
) -> Project:
    """
    A project with exactly these definitions, by name; name, start and target are those given.

    ``sources`` are used in place of those in the definitions. Raises InfoldErrors where
    the definitions do not fit together.
    """
    return deeply(lambda: _project_of_definitions(project, definitions, sources))


def _project_of_definitions(
    project: Project, definitions: Mapping[str, Definition], sources: Mapping[str, Source]
) -> Project:
    sources = {**sources_of(definitions.values()), **sources}
    drafts = [_draft(one) for one in definitions.values() if not is_landed(one)]
    compiled = compile_models(drafts, sources)
    if compiled.errors:
        raise InfoldErrors(compiled.errors)
    nodes = []
    for node in compiled.nodes:
        by = definitions.get(node.name)
        start, limit = (by.start, by.backfill_limit) if by else (project.start, None)
        nodes.append(with_start_and_limit(node, start, limit, in_force=by is not None))
    return replace(project, sources=sources, nodes=tuple(nodes))


def sources_of(definitions: Iterable[Definition]) -> Mapping[str, Source]:
    """The sources of definitions; one that is ingested has all columns."""
    sources: dict[str, Source] = {}
    for definition in sorted(definitions, key=is_landed):
        if definition.source is not None:
            sources.setdefault(definition.source.name, definition.source)
    return sources


def is_landed(definition: Definition) -> bool:
    """Whether it is the definition of a landed source."""
    return definition.source is not None and definition.source.name == definition.name


class _Needed:
    """A definition with all that it reads: those of views first, as it knew them."""

    def __init__(self, building: Mapping[str, Definition], views: Mapping[str, Definition]) -> None:
        self.found: dict[str, Definition] = {}
        self.drafts: dict[str, Draft] = {}
        self._by_lower = {name.lower(): definition for name, definition in building.items()}
        self._kept = views

    def add(self, definition: Definition) -> None:
        """Add a definition, the views that it reads, and what they read."""
        views = [self._kept[digest] for digest in definition.views.values() if digest in self._kept]
        todo = [definition, *views]
        for each in todo:
            self.found.setdefault(each.name, each)
        names = {name.lower() for name in self.found}
        for each in todo:
            if is_landed(each):
                continue
            draft = self.drafts[each.name] = _draft(each)
            for name in (name.lower() for name in tables_named(draft.parsed.tree)):
                other = self._by_lower.get(name)
                if other is not None and name not in names:
                    names.add(name)
                    self.add(other)


def _draft(definition: Definition) -> Draft:
    above = "\n" * (definition.sql_line - 1)
    parsed = parse(definition.file, above + definition.sql, len(above))
    model = replace(
        definition.model,
        sql=definition.sql,
        sql_line=definition.sql_line,
        place=Place(definition.file),
    )
    return Draft(model, parsed)


def _reader(source: Source) -> Draft:
    """A view of all columns of a source, which makes it a landed one."""
    landing = landing_model(source)
    model = replace(
        landing.model,
        name=f"infold__reads_{source.name.replace('.', '_')}",
        materialization=Materialization.VIEW,
        timeseries=None,
    )
    return replace(landing, model=model, landed=False)
