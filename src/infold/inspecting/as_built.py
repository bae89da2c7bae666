"""Projects as tables were built by them, where the files have other definitions since."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from infold.core.definition import Definition
from infold.core.environment import PRODUCTION
from infold.core.interval import datetime_of
from infold.core.ports import Ledger
from infold.core.project import Project
from infold.core.trace import Trace


def project_as_built(project: Project, ledger: Ledger, trace: Trace) -> Project:
    """
    A project with the definition that built a model's table; ``project`` itself if it has that.

    It is ``project`` too where that definition was not kept, or can no longer be understood.
    """
    if not trace.definition or project[trace.model].fingerprint == trace.fingerprint:
        return project
    if project.environment != PRODUCTION:  # a changed model has another table there
        return project
    kept = KeptDefinitions(project, ledger)
    definition = kept.definition(trace.definition)
    if definition is None or definition.fingerprint != trace.fingerprint:
        return project
    return kept.project_of(definition) or project


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

    def project_of(self, definition: Definition) -> Project | None:
        """
        A project with this definition of its model.

        None where it can no longer be understood.
        """
        from infold.declare.from_definitions import project_of_definition

        building = self._building
        views = {digest for one in building.values() for digest in one.views.values()}
        kept = self._ledger.definitions(views | set(definition.views.values()))
        return project_of_definition(self._project, definition, building, kept)

    @cached_property
    def _building(self) -> Mapping[str, Definition]:
        """The definition that built each table; that in the files for other models."""
        traces = self._ledger.traces()
        digests = {name: one.definition for name, one in traces.items() if one.definition}
        built = self._ledger.definitions(digests.values())
        found = dict(self.declared)
        return found | {name: built[one] for name, one in digests.items() if one in built}


def earlier_definition_note(ledger: Ledger, trace: Trace) -> str:
    """A note on a table that is compared by another definition than that in the files."""
    at = ledger.kept_at(trace.definition)
    of = "that built it" if at is None else f"of {datetime_of(at):%Y-%m-%d}"
    return f"by the definition {of}; the files have another since"
