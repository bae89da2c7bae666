"""The project as a table was built by it, where the files have another definition since."""

from __future__ import annotations

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
    from infold.declare.definitions import definitions_of
    from infold.declare.from_definitions import project_of_definition

    traces = ledger.traces()
    digests = {name: one.definition for name, one in traces.items() if one.definition}
    built = ledger.definitions({trace.definition, *digests.values()})
    definition = built.get(trace.definition)
    if definition is None or definition.fingerprint != trace.fingerprint:
        return project
    building = dict(definitions_of(project))
    building |= {name: built[digest] for name, digest in digests.items() if digest in built}
    views = {digest for one in building.values() for digest in one.views.values()}
    kept = ledger.definitions(views | set(definition.views.values()))
    return project_of_definition(project, definition, building, kept) or project


def earlier_definition_note(ledger: Ledger, trace: Trace) -> str:
    """A note on a table that is compared by another definition than that in the files."""
    at = ledger.kept_at(trace.definition)
    of = "that built it" if at is None else f"of {datetime_of(at):%Y-%m-%d}"
    return f"by the definition {of}; the files have another since"
