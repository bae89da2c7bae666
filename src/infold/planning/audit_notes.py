"""What a plan says about audits: what a run does not judge, and `infold audit` does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from infold.core.definition import Redefinition
from infold.core.model import Kind
from infold.core.plan import Plan
from infold.core.project import Project


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
        read = {name for one in node.model.audits for name in one.reads(node.name)} & built
        if read and node.model.kind is not Kind.VIEW:
            yield (
                f"{node.name}: its audits read {', '.join(sorted(read))}, which changes; a run "
                f"judges what it writes, and `infold audit {node.name}` all that is stored"
            )
