"""
The definitions that changed since they were applied: those of the ledger and those in the files.

A model has a table by one definition, and the files may have another. Both are compiled, and
compared by canonical forms. Without a change this costs a comparison of digests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

from infold.core.definition import Category, How, Loss, Lost, Redefinition
from infold.core.model import Kind
from infold.core.project import Node, Project
from infold.core.sessions import STATE_VERSION
from infold.core.trace import UNKNOWN, Trace
from infold.inspecting.as_built import KeptDefinitions

if TYPE_CHECKING:
    from infold.analysis.definitions.meanings import Meanings
    from infold.core.ports import Ledger


class ChangedDefinitions:
    """
    Compares the models of a project with what the ledger keeps of them; each pair once.

    Changes to models of ``forward_only`` are to leave the cells before an instant as they are;
    None: before the first cell that is not built.
    """

    def __init__(
        self,
        project: Project,
        ledger: Ledger,
        forward_only: Mapping[str, int | None] = MappingProxyType({}),
    ) -> None:
        self._project, self._ledger, self._forward_only = project, ledger, forward_only
        self._kept = KeptDefinitions(project, ledger)
        self._compared: dict[tuple[str, str], Redefinition | None] = {}

    def __call__(self, traces: Mapping[str, Trace]) -> Mapping[str, Redefinition]:
        """The changes of models with a table that another definition built, by model."""
        changes = {}
        for name, trace in traces.items():
            if name not in self._project or self._project[name].fingerprint == trace.fingerprint:
                continue
            change = self._change(self._project[name], trace.definition)
            if change is not None:
                changes[name] = self._forward_only_if_asked(change, trace)
        return changes

    def _forward_only_if_asked(self, change: Redefinition, trace: Trace) -> Redefinition:
        """The change of a model with a table, forward-only where that was asked for."""
        from infold.planning.forward_only import forward_only, without_earlier_cells

        node = self._project[change.model]
        recorded = self._ledger.forward_only().get(node.name)
        if node.name in self._forward_only:
            since = self._forward_only[node.name]
        elif recorded is not None and recorded.digest == self._digests.get(node.name):
            since = recorded.effective_from
        elif node.model.changes_forward_only:
            since = None
        else:
            return without_earlier_cells(change, trace)
        computable = self._kept.stays_computable(trace.definition)
        cells = self._ledger.cells(node.name)
        return forward_only(change, trace, since, cells, computable=computable)

    def all(self) -> tuple[Redefinition, ...]:
        """
        Every model with a changed definition, in the order of the project; then removed models.

        Before the first run of a target nothing was applied, so nothing has changed.
        """
        applied = {name: entry.digest for name, entry in self._ledger.applied().items()}
        if not applied:
            return ()
        traces = self._ledger.traces()
        changes = []
        for node in self._project:
            if node.downgraded:
                continue
            trace, digest = traces.get(node.name), applied.get(node.name, "")
            known = trace is not None and trace.fingerprint != UNKNOWN
            if trace and known and trace.fingerprint != self._fingerprint(node, digest):
                digest = trace.definition
            if digest or trace is not None:
                change = self._change(node, digest)
                built = trace is not None and trace.fingerprint != node.fingerprint
                if change is not None and trace is not None and built:
                    change = self._forward_only_if_asked(change, trace)
                changes.append(change)
            else:
                changes.append(_new_model(node))
        removed_names = [name for name in applied if name not in self._project]
        removed = [self._removed_model(name, applied[name]) for name in removed_names]
        return tuple(change for change in (*changes, *removed) if change is not None)

    def _fingerprint(self, node: Node, digest: str) -> str:
        """The fingerprint of a kept definition; empty if there is none."""
        if digest and digest == self._digests.get(node.name):
            return node.fingerprint
        definition = self._kept.definition(digest) if digest else None
        return "" if definition is None else definition.fingerprint

    @cached_property
    def _digests(self) -> Mapping[str, str]:
        from infold.core.definition import digest_of

        return {name: digest_of(one) for name, one in self._kept.declared.items()}

    def _change(self, node: Node, digest: str) -> Redefinition | None:
        """What changed since the definition with this digest; None if that is the one."""
        if digest == self._digests.get(node.name, ""):
            return None
        at = node.name, digest
        if at not in self._compared:
            self._compared[at] = self._compare(node, digest)
        return self._compared[at]

    def _compare(self, node: Node, digest: str) -> Redefinition | None:
        from infold.analysis.definitions.compare import redefinition
        from infold.analysis.definitions.meanings import Meanings

        definition = self._kept.definition(digest) if digest else None
        built = None if definition is None else self._kept.project_of(definition)
        if built is None:
            return _unknown_change(node)
        before = Meanings.of(built, built.sources)
        after = self._declared_meanings[node.name]
        if renamed := self._renamed_inputs(node):
            after = after.with_renamed(renamed)
        change = redefinition(before[node.name], after)
        if change is None or node.model.kind is not Kind.SESSIONS or definition is None:
            return change
        # An earlier infold may have stored other states with sessions.
        has_same_state = definition.state == STATE_VERSION
        return change if has_same_state else replace(change, how=How.REBUILD, derivation=None)

    def _renamed_inputs(self, node: Node) -> Mapping[str, Mapping[str, str]]:
        """The stored tables that a model reads, with the columns that get other names now."""
        traces = self._ledger.traces()
        names: dict[str, Mapping[str, str]] = {}
        for name in (entry.name for entry in node.stored_inputs):
            if name in traces and name in self._project:
                change = self._change(self._project[name], traces[name].definition)
                if change is not None and change.derivation and change.how is How.EVOLVE:
                    renamed = change.derivation.renamed
                    names[name.lower()] = {new.lower(): old.lower() for old, new in renamed}
        return names

    def _removed_model(self, name: str, digest: str) -> Redefinition:
        """
        The removal of a model. Views have no rows to lose; nor is it a loss that nothing
        reads a landed source any more.
        """
        from infold.declare.from_definitions import is_landed

        kept = self._kept.definition(digest)
        lost = kept is None or not (kept.model.kind.is_view or is_landed(kept))
        return Redefinition(
            name,
            Category.REMOVED,
            (),
            How.NOTHING,
            None,
            None,
            losses=(name,),
            destroys=(Loss(Lost.TABLE, name, before=kept.file if kept else ""),) if lost else (),
            on_loss=kept.model.on_destructive_change if kept else None,
        )

    @cached_property
    def _declared_meanings(self) -> Meanings:
        from infold.analysis.definitions.meanings import Meanings

        return Meanings.of(self._project, self._project.sources)


def _new_model(node: Node) -> Redefinition:
    return Redefinition(node.name, Category.NEW, (), _how_built(node), None, node)


def _unknown_change(node: Node) -> Redefinition:
    """A change of a definition that was not kept, or that is no longer understood."""
    return Redefinition(node.name, Category.UNKNOWN, (), _how_built(node), None, node)


def _how_built(node: Node) -> How:
    return How.NOTHING if node.model.kind.is_view else How.REBUILD
