"""
The project as production's tables were built by it: what an environment can share.

A table counts only if the definition that built it is known, and is understood here as it was then.
One that does not count is, to an environment, as if it were not there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from infold.core.definition import Definition
from infold.core.definition_text import digest_of
from infold.core.model import Kind
from infold.core.ports import Ledger
from infold.core.project import Node, Project
from infold.core.trace import Trace
from infold.messages.errors import InfoldErrors


@dataclass(frozen=True, slots=True)
class Production:
    """
    Production's tables that are there: ``project`` has no other, and the views between them.

    ``digests`` are those of the definitions that built them, by model. ``stretched`` are the traces
    of tables with cells of earlier definitions: what is proven of a definition is not, of these.
    """

    project: Project
    digests: Mapping[str, str]
    stretched: Mapping[str, Trace]


def production(
    declared: Project, definitions: Mapping[str, Definition], ledger: Ledger
) -> Production:
    """
    What there is in production; ``definitions`` are those of the ``declared`` project.

    Where both have the same definitions, nothing is compiled.
    """
    traces = ledger.traces()
    kept = _kept(ledger, traces, definitions)
    same = {name for name, one in kept.items() if definitions.get(name) == one}
    if len(same) == len(kept):
        found: Project | None = replace(
            declared, nodes=tuple(node for node in declared if node.name in kept)
        )
    else:
        found = _compiled(declared, kept)
    if found is None:  # together they are not understood; those in the files are
        found = replace(declared, nodes=tuple(node for node in declared if node.name in same))
    there = _with_tables(found, traces)
    digests = {node.name: digest_of(kept[node.name]) for node in there}
    stretched = {name: traces[name] for name in digests if name in traces and traces[name].earlier}
    return Production(there, digests, stretched)


def _kept(
    ledger: Ledger, traces: Mapping[str, Trace], definitions: Mapping[str, Definition]
) -> dict[str, Definition]:
    """The definition of each table and view of production, as far as it is known."""
    own = {one.key for each in ledger.environments().values() for one in each.tables}
    digests = {name: entry.digest for name, entry in ledger.applied().items()}
    built = {name: one for name, one in traces.items() if name not in own}
    digests |= {name: one.definition for name, one in built.items() if one.definition}
    by_digest = {digest_of(one): one for one in definitions.values()}
    by_digest |= ledger.definitions(frozenset(digests.values()) - by_digest.keys())
    found = {name: by_digest[one] for name, one in digests.items() if one in by_digest}
    for name, trace in built.items():  # of an infold that kept no definition
        declared = definitions.get(name)
        if not trace.definition and declared and declared.fingerprint == trace.fingerprint:
            found[name] = declared
    return found


def _compiled(declared: Project, kept: Mapping[str, Definition]) -> Project | None:
    from infold.declare.from_definitions import project_of_definitions

    try:
        found = project_of_definitions(declared, kept, {})
    except InfoldErrors:
        return None
    return replace(found, nodes=tuple(node for node in found if _as_kept(node, kept)))


def _as_kept(node: Node, kept: Mapping[str, Definition]) -> bool:
    definition = kept.get(node.name)
    return definition is not None and definition.fingerprint == node.fingerprint


def _with_tables(project: Project, traces: Mapping[str, Trace]) -> Project:
    """The tables that are as their definitions say, and views, if all that they read is there."""
    there: list[Node] = []
    names: set[str] = set()
    for node in project:
        reads = {name for name in node.reads if name not in project.sources}
        if node.model.kind is not Kind.VIEW:
            trace = traces.get(node.name)
            if trace is None or trace.fingerprint != node.fingerprint:
                continue
            reads |= {entry.name for entry in node.stored_inputs}
        if reads <= names:
            there.append(node)
            names.add(node.name)
    return replace(project, nodes=tuple(there))
