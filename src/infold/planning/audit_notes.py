"""What a plan says about audits: what a run does not judge, and `infold audit` does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from infold.core.definition import Redefinition
from infold.core.model import Kind
from infold.core.plan import Plan
from infold.core.project import Node, Project


def tables_of_audits(project: Project, node: Node) -> frozenset[str]:
    """The other tables that audits of a model read, views expanded."""
    named = {name for audit in node.model.audits for name in audit.reads(node.name)}
    views = {n for n in named if n in project and project[n].model.kind is Kind.VIEW}
    below = (entry.name for name in views for entry in project[name].stored_inputs)
    return frozenset({*(named - views), *below})


def audit_notes(project: Project, plan: Plan, changes: Sequence[Redefinition]) -> Iterator[str]:
    """
    Notes on stored rows that audits are not asked about: those of changed audits, and of audits
    that read tables which are built.
    """
    built = {step.model for step in plan.steps}
    for one in changes:
        if one.before is None or one.after is None or one.after.model.kind is Kind.VIEW:
            continue
        if any(difference.part == "audits" for difference in one.differences):
            yield (
                f"{one.model}: its audits changed; a run judges what it writes, and "
                f"`infold audit {one.model}` all that is stored"
            )
    for node in project:
        read = tables_of_audits(project, node) & built
        if read and node.model.kind is not Kind.VIEW:
            yield (
                f"{node.name}: its audits read {', '.join(sorted(read))}, which changes; a run "
                f"judges what it writes, and `infold audit {node.name}` all that is stored"
            )
