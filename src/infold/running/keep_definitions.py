"""
What a run records about definitions: all of them, which are applied, and which built each table.

A definition is applied as soon as runs are carried out by it. In a target with ``apply: manual``
the project that is run is made of the applied definitions, or is the one to be applied. In another
protected target a definition is only applied once the tables that it changes may be built again.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace
from types import MappingProxyType

from infold.core.definition import Definition, How, Redefinition, digest_of
from infold.core.plan import Plan, PlanOptions
from infold.core.ports import Ledger
from infold.core.project import Project
from infold.core.record import ForwardOnly
from infold.core.target import Apply
from infold.core.trace import Trace, merge_earlier
from infold.messages import apply_errors
from infold.messages.errors import InfoldErrors


def keep_definitions(
    project: Project,
    ledger: Ledger,
    declared: Mapping[str, Definition],
    *,
    changes: Mapping[str, Redefinition] | None = None,
    rebuilds_allowed: bool = False,
    forward_only: Mapping[str, int | None] = MappingProxyType({}),
) -> Mapping[str, str]:
    """
    Keep the declared definitions in the ledger; their digests by model.

    A table adopts the declared definition if that makes the same rows: ``changes`` says so of
    definitions with another fingerprint. A table of an earlier infold, which kept none, adopts it
    if the fingerprints are equal. Changes to models of ``forward_only`` are recorded as that, so
    that a later run carries them out where this one dies before it does.
    """
    digests = {name: digest_of(definition) for name, definition in declared.items()}
    traces = ledger.traces()
    restamped = {name for name, one in (changes or {}).items() if one.how is How.RESTAMP}
    adopted = {
        name: digests[name]
        for name, trace in traces.items()
        if not trace.definition
        and name in declared
        and trace.fingerprint == declared[name].fingerprint
    }
    adopted |= {name: digests[name] for name in restamped & digests.keys()}
    applied = dict(digests)
    if project.target.apply is Apply.MANUAL:
        _refuse_other_applied(project, ledger, digests)
    elif project.target.protected:
        before = {name: entry.digest for name, entry in ledger.applied().items()}
        refused = frozenset() if rebuilds_allowed else _redefined(project, ledger, restamped)
        for name in before.keys() - digests.keys():
            if name in traces:  # its table stays as it is
                applied[name] = before[name]
        for name in refused & digests.keys():
            applied.pop(name)
            if old := before.get(name) or getattr(traces.get(name), "definition", ""):
                applied[name] = old
    forward = {
        name: ForwardOnly(digests[name], at)
        for name, at in forward_only.items()
        if name in (changes or {}) and name in digests and applied.get(name) == digests[name]
    }
    if digests or adopted:
        by_digest = {digests[name]: definition for name, definition in declared.items()}
        ledger.keep_definitions(by_digest, applied, adopted, forward)
    return digests


def refuse_not_forward_only(
    project: Project, changes: Mapping[str, Redefinition], options: PlanOptions
) -> None:
    """
    Raise what keeps changes from being forward-only, where somebody asked for that just now.

    Before anything is applied. Where a file says so, the model alone is refused.
    """
    refusals = [
        change.refused
        for name, change in changes.items()
        if change.refused is not None
        and (name in options.forward_only or name in project.applies)
        and (options.selected is None or name in options.selected)
    ]
    if refusals:
        raise refusals[0] if len(refusals) == 1 else InfoldErrors(refusals)


def _refuse_other_applied(project: Project, ledger: Ledger, digests: Mapping[str, str]) -> None:
    """
    Raise ``applied_meanwhile`` where other definitions were applied since the project was read.

    Otherwise this run would take back what somebody applied while it waited for the lease.
    """
    applied = {name: entry.digest for name, entry in ledger.applied().items()}
    before = {} if project.applied is None else project.applied.digests
    if applied not in (before, digests):
        names = sorted(
            name for name in applied.keys() | before.keys() if applied.get(name) != before.get(name)
        )
        raise apply_errors.applied_meanwhile(target=project.target.name, models=names)


def _redefined(project: Project, ledger: Ledger, restamped: Container[str]) -> frozenset[str]:
    """The models with a table of another definition, and views that such tables are built from."""
    traces = ledger.traces()
    tables = [
        node.name
        for node in project
        if node.name in traces
        and traces[node.name].fingerprint != node.fingerprint
        and node.name not in restamped
    ]
    views = {name for name in project.upstream(tables) if project[name].model.kind.is_view}
    return frozenset(tables) | views


def with_definitions(plan: Plan, digests: Mapping[str, str]) -> Plan:
    """The plan, with the traces of its steps naming the definition that builds each table."""
    return replace(
        plan,
        steps=tuple(
            replace(step, trace=_restamped_trace(step.trace, digests.get(step.model, "")))
            if step.trace is not None
            else step
            for step in plan.steps
        ),
    )


def _restamped_trace(trace: Trace, digest: str) -> Trace:
    return replace(trace, definition=digest, earlier=merge_earlier(trace.earlier, digest))
