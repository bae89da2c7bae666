"""
The project by the applied definitions, for targets where `infold apply` applies them.

Most of the time the files have exactly these: then the project of the files is the one, and digests
are all that is compared. Otherwise the applied definitions are compiled, all of them together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from infold.core.definition import Definition, digest_of
from infold.core.project import AppliedDefinitions, Node, Project
from infold.core.target import Apply
from infold.messages import apply_errors
from infold.messages.errors import InfoldError, InfoldErrors

if TYPE_CHECKING:
    from infold.core.ports import Ledger


def project_as_applied(
    declared: Project, ledger: Ledger, wrong: InfoldErrors | None = None
) -> Project:
    """
    The project that runs go on with; ``declared`` itself if its target takes what files have.

    ``wrong`` is what is wrong with the files: then ``declared`` has no more than the target. That
    is raised where nothing is applied.
    """
    if declared.target.apply is not Apply.MANUAL:
        if wrong is not None:
            raise wrong
        return declared
    state = _State.of(declared, ledger, wrong)
    if state.is_declared:
        return replace(declared, applied=AppliedDefinitions(state.digests))
    if wrong is not None and not state.definitions:
        raise wrong
    project = _compiled(declared, state.definitions)
    if wrong is not None:
        mistakes = len(wrong.errors)
        return replace(project, applied=AppliedDefinitions(state.digests, mistakes=mistakes))
    unapplied = _differing(state.declared, _definitions_of(project))
    return replace(project, applied=AppliedDefinitions(state.digests, unapplied=unapplied))


def project_to_apply(
    declared: Project, ledger: Ledger, chosen: frozenset[str] | None = None
) -> Project:
    """
    The project once the definitions of ``chosen`` models in the files are applied; None: all.

    Landed sources that these read are among them. Raises ``apply_errors.apply_incomplete`` where
    they do not fit the definitions that stay applied.
    """
    if declared.target.apply is not Apply.MANUAL:
        return declared
    state = _State.of(declared, ledger, needs_all=chosen is not None)
    if chosen is None or state.is_declared:
        applies = _differing(state.declared, state.definitions)
        return replace(declared, applied=AppliedDefinitions(state.digests, applies))
    from infold.declare.from_definitions import project_of_definitions

    newer = {name: one for name, one in state.declared.items() if name in chosen}
    sources = {
        name: declared.sources[name]
        for name in (node.source for node in declared if node.name in chosen)
        if name is not None
    }
    try:
        project = project_of_definitions(declared, {**state.definitions, **newer}, sources)
    except InfoldError as error:
        raise apply_errors.apply_incomplete(_mistakes(error)) from error
    after = _definitions_of(project)
    applies, unapplied = _differing(after, state.definitions), _differing(state.declared, after)
    return replace(project, applied=AppliedDefinitions(state.digests, applies, unapplied))


@dataclass(frozen=True, slots=True)
class _State:
    """
    The declared definitions, the applied ones, and the digests of those that the ledger has.

    Tables that an earlier infold built have no applied definition in the ledger. If they were
    built by the declared one, that counts as applied.
    """

    declared: Mapping[str, Definition]
    definitions: Mapping[str, Definition]
    digests: Mapping[str, str]

    @classmethod
    def of(
        cls,
        declared: Project,
        ledger: Ledger,
        wrong: InfoldErrors | None = None,
        *,
        needs_all: bool = True,
    ) -> _State:
        """
        What is declared and applied.

        Raises ``applied_unknown`` if it ``needs_all`` and some were not kept.
        """
        digests = {name: entry.digest for name, entry in ledger.applied().items()}
        known = {} if wrong is not None else _definitions_of(declared)
        if digests and digests == {name: digest_of(one) for name, one in known.items()}:
            return cls(known, known, digests)
        if not digests:
            return cls(known, {} if wrong else _adopted(declared, known, ledger), digests)
        kept = ledger.definitions(digests.values())
        lost = sorted(name for name, digest in digests.items() if digest not in kept)
        if lost and needs_all:
            raise apply_errors.applied_unknown(
                target=declared.target.name, models=lost, why="the ledger does not have them"
            )
        definitions = {name: kept[digest] for name, digest in digests.items() if digest in kept}
        return cls(known, definitions, digests)

    @property
    def is_declared(self) -> bool:
        """Whether exactly the declared definitions are applied."""
        return bool(self.definitions) and self.definitions is self.declared


def _adopted(
    declared: Project, definitions: Mapping[str, Definition], ledger: Ledger
) -> Mapping[str, Definition]:
    """The declared definitions of the tables that were built by them, with the views they read."""
    traces = ledger.traces()
    adopted: dict[str, Definition] = {}

    def is_built(node: Node) -> bool:
        trace = traces.get(node.name)
        view = node.model.kind.is_view
        return view or (trace is not None and trace.fingerprint == node.fingerprint)

    for node in declared:
        reads = all(name in adopted for name in node.reads if name in declared)
        if node.name in definitions and reads and is_built(node):
            adopted[node.name] = definitions[node.name]
    if len(adopted) == len(definitions):
        return definitions
    return adopted if adopted.keys() & traces.keys() else {}


def _compiled(declared: Project, definitions: Mapping[str, Definition]) -> Project:
    """The project of applied definitions, each with the fingerprint that it was kept with."""
    from infold.declare.from_definitions import project_of_definitions

    target = declared.target.name
    try:
        project = project_of_definitions(declared, definitions, {})
    except InfoldError as error:
        places, whys = zip(*_mistakes(error), strict=True)
        raise apply_errors.applied_unknown(
            target=target, models=sorted(set(places)), why=whys[0]
        ) from error
    changed = [
        node.name
        for node in project
        if node.name in definitions and definitions[node.name].fingerprint != node.fingerprint
    ]
    if changed:
        raise apply_errors.applied_unknown(
            target=target, models=changed, why="they mean other rows to this version of infold"
        )
    return project


def _mistakes(error: InfoldError) -> tuple[tuple[str, str], ...]:
    """The place and words of each mistake."""
    every = error.errors if isinstance(error, InfoldErrors) else (error,)
    return tuple((str(one.at) if one.at else one.slug, one.what) for one in every)


def _differing(
    declared: Mapping[str, Definition], applied: Mapping[str, Definition]
) -> tuple[str, ...]:
    """The models that do not have the same definition in both, removed ones last."""
    names = dict.fromkeys((*declared, *applied))
    return tuple(name for name in names if declared.get(name) != applied.get(name))


def _definitions_of(project: Project) -> Mapping[str, Definition]:
    from infold.declare.definitions import definitions_of

    return definitions_of(project)
