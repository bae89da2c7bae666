"""Who is told of a run: what its target declares, and what its command asks for."""

from __future__ import annotations

from collections.abc import Callable

from infold.core.progress import Progress, SilentProgress
from infold.core.project import Project
from infold.core.report import RunResult


def told(
    project: Project,
    command: str,
    progress: Progress | None,
    carry_out: Callable[[Progress], RunResult],
) -> RunResult:
    """Carry a run out, and tell of it whoever is to know."""
    shown = progress or SilentProgress()
    if not project.target.hooks:
        return carry_out(shown)
    from infold.running.telling.hooks import Hooks
    from infold.running.telling.tell import tell

    return tell(project, command, shown, [Hooks(project.target.hooks)], carry_out)
