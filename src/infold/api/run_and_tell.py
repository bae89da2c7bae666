"""Who is told of a run: what its target declares, and what its command asks for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from infold.api.opening import lake_of, ledger_of
from infold.core.hooks import Sinks
from infold.core.ports import Progress, SilentProgress
from infold.core.project import Project
from infold.core.report import RunResult
from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    from infold.core.hooks import Lineage
    from infold.telling.listener import Listener


def run_and_tell(
    project: Project,
    command: str,
    progress: Progress | None,
    carry_out: Callable[[Progress], RunResult],
    *,
    sinks: Sinks | None = None,
    environment: str = "",
) -> RunResult:
    """
    Carry a run out, and tell of it whoever is to know.

    What a target declares is about production; files that a command was given are for any run, and
    so are traces. Files come first: then they are there when a hook is told.
    """
    end: BaseException | None = None
    try:
        return _run_with_listeners(
            project, command, progress or SilentProgress(), carry_out, sinks, environment
        )
    except BaseException as error:
        end = error
        raise
    finally:
        if sinks is not None:
            sinks.told.append(end)


def tell_of_end(
    root: Path,
    target: str | None,
    command: str,
    sinks: Sinks,
    error: BaseException | None = None,
    *,
    environment: str = "",
) -> None:
    """
    Tell of the end of a command that did not come to a run: nothing was to be done, or an error.

    Whoever was told of the error is not told again. Where infold.yml cannot be read, nobody is
    known who could be told.
    """
    from infold.declare.load import load_with_mistakes

    if any(one is error for one in sinks.told):
        return

    def end(_: Progress) -> RunResult:
        if error is not None:
            raise error
        return RunResult("", "done")

    try:
        project, _ = load_with_mistakes(root, target)
    except InfoldError:
        return
    try:
        run_and_tell(project, command, None, end, sinks=sinks, environment=environment)
    except BaseException as again:
        if again is not error:
            raise


def _run_with_listeners(
    project: Project,
    command: str,
    shown: Progress,
    carry_out: Callable[[Progress], RunResult],
    sinks: Sinks | None,
    environment: str,
) -> RunResult:
    hooks = () if environment else project.target.hooks
    lineage = None if environment else project.target.lineage
    traces = _traces_are_wanted()
    if not (hooks or sinks or lineage or traces):
        return carry_out(shown)
    from infold.telling.listener import tell

    listeners: list[Listener] = []
    if sinks is not None and sinks.log is not None:
        from infold.telling.log import JsonLog

        listeners.append(JsonLog(sinks.log))
    if sinks is not None and sinks.metrics is not None:
        from infold.telling.metrics import Metrics

        listeners.append(Metrics(sinks.metrics))
    if lineage is not None:
        listeners.append(_lineage_of(project, lineage))
    if traces:
        from infold.telling.traces import Traces

        listeners.append(Traces())
    if hooks:
        from infold.telling.hooks import Hooks

        listeners.append(Hooks(hooks))
    return tell(project, command, shown, listeners, carry_out, environment=environment)


_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


def _traces_are_wanted() -> bool:
    """Whether the environment says where traces go, and does not say that none are sent."""
    off = os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    exporter = os.environ.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    is_declared = any(os.environ.get(name, "").strip() for name in _ENDPOINTS)
    return is_declared and not off and exporter in ("", "otlp")


def _lineage_of(project: Project, declared: Lineage) -> Listener:
    from infold.analysis.definitions.column_sources import column_sources_of
    from infold.telling.lineage import LineageEvents
    from infold.telling.sender import sender_of

    return LineageEvents(
        sender_of(declared, project.root),
        declared.namespace,
        columns=lambda table: lake_of(project).columns(table),
        audits=lambda: ledger_of(project).audits(),
        column_sources=column_sources_of,
    )
