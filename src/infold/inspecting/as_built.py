"""Projects as tables were built by them, where the files have other definitions since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from infold.core.definition import Definition
from infold.core.environment import PRODUCTION
from infold.core.interval import Interval, Ranges, datetime_of
from infold.core.project import Project, Stretch
from infold.core.trace import EarlierCells, Trace
from infold.messages import apply_errors
from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    from infold.core.ports import Ledger


def project_as_built(project: Project, ledger: Ledger, trace: Trace) -> Project:
    """
    A project with the definition that built a model's table; ``project`` itself if it has that.

    It is ``project`` too where that definition was not kept, or can no longer be understood.
    """
    if not trace.definition or project[trace.model].fingerprint == trace.fingerprint:
        return project
    if project.environment != PRODUCTION:  # a changed model has another table there
        return project
    definitions = KeptDefinitions(project, ledger)
    definition = definitions.definition(trace.definition)
    if definition is None or definition.fingerprint != trace.fingerprint:
        return project
    return definitions.project_of(definition) or project


class KeptDefinitions:
    """The definitions that a ledger keeps, compiled over those that built their inputs."""

    def __init__(self, project: Project, ledger: Ledger) -> None:
        self._project, self._ledger = project, ledger

    @cached_property
    def declared(self) -> Mapping[str, Definition]:
        """The definitions in the files, by model."""
        from infold.declare.definitions import definitions_of

        return definitions_of(self._project)

    def definition(self, digest: str) -> Definition | None:
        """The definition with this digest; None if it was not kept."""
        return self._ledger.definitions({digest}).get(digest)

    def project_of(self, definition: Definition, *, declared: bool = False) -> Project | None:
        """
        A project with this definition of its model; None where it can no longer be understood.

        Over the definitions that built its inputs, or over the ``declared`` ones.
        """
        from infold.declare.from_definitions import project_of_definition

        building = self.declared if declared else self._building
        views = {digest for one in building.values() for digest in one.views.values()}
        view_definitions = self._ledger.definitions(views | set(definition.views.values()))
        return project_of_definition(self._project, definition, building, view_definitions)

    def stays_computable(self, digest: str) -> bool:
        """Whether a definition means the same over the declared definitions of its inputs."""
        definition = self.definition(digest) if digest else None
        return definition is not None and self.project_of(definition, declared=True) is not None

    @cached_property
    def _building(self) -> Mapping[str, Definition]:
        """The definition that built each table; that in the files for other models."""
        traces = self._ledger.traces()
        digests = {name: one.definition for name, one in traces.items() if one.definition}
        built = self._ledger.definitions(digests.values())
        declared = dict(self.declared)
        return declared | {name: built[one] for name, one in digests.items() if one in built}


class Stretches:
    """
    The cells of tables that keep rows of earlier definitions, with these definitions compiled.

    Over the definitions that built their inputs, or over the ``declared`` ones, by which a run
    goes. Each definition is compiled once.
    """

    def __init__(self, project: Project, ledger: Ledger, *, declared: bool) -> None:
        self._kept = KeptDefinitions(project, ledger)
        self._declared = declared
        self._compiled_projects: dict[str, Project | None] = {}

    def __call__(self, trace: Trace) -> tuple[Stretch, ...]:
        """
        Those of one table.

        Raises ``earlier_definition_unknown`` where one is not understood any more.
        """
        return tuple(
            Stretch(one.cells, trace.model, self._project(trace, one)) for one in trace.earlier
        )

    def _project(self, trace: Trace, earlier: EarlierCells) -> Project:
        digest = earlier.definition
        if digest not in self._compiled_projects:
            self._compiled_projects[digest] = self._compiled(digest)
        project = self._compiled_projects[digest]
        if project is None:
            cells = ", ".join(map(str, earlier.cells))
            raise apply_errors.earlier_definition_unknown(
                model=trace.model, cells=cells, digest=digest[:12]
            )
        return project

    def _compiled(self, digest: str) -> Project | None:
        definition = self._kept.definition(digest)
        if definition is None:
            return None
        return self._kept.project_of(definition, declared=self._declared)


def in_force_at(
    project: Project, ledger: Ledger, trace: Trace, at: int
) -> tuple[Project, Interval]:
    """
    The project by the definition in force at an instant, after forward-only changes; and since
    when it is in force there, and until when.

    It is ``project`` where that definition is not understood any more.
    """
    newest = Ranges.ever() - trace.earlier_ranges
    parts = (*newest, *(part for one in trace.earlier for part in one.cells))
    times = next(part for part in parts if at in part)
    earlier = tuple(one for one in trace.earlier if at in one.cells)
    if not earlier:
        return project, times
    try:
        [stretch] = Stretches(project, ledger, declared=False)(replace(trace, earlier=earlier))
    except InfoldError:
        return project, times
    return stretch.project, times


def earlier_definition_note(ledger: Ledger, trace: Trace) -> str:
    """A note on a table that is compared by another definition than that in the files."""
    at = ledger.kept_at(trace.definition)
    of = "that built it" if at is None else f"of {datetime_of(at):%Y-%m-%d}"
    return f"by the definition {of}; the files have another since"
