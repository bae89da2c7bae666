"""
What commands do, as functions: open, observe, plan, run, verify, status, history, explain.

Everything that needs Spark is imported where it is used, so that a command that does not need it
starts at once. A process keeps one Spark session for each project it runs, so a program (or a
test) that runs many times pays for one start.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from infold.api.opening import (
    by_applied,
    choose_models,
    chosen_models,
    definition_errors,
    dropper,
    lake_of,
    ledger_of,
    lost_by_beginning,
    notes_apart,
    observe,
    observe_all,
    observer_of,
    once_complete,
    open_project,
    project_to_run,
    refuse_lost_ledger,
    refuse_unknown_allowed,
    to_apply,
    with_apart,
)
from infold.core.interval import Interval, now
from infold.core.model import table_name
from infold.core.plan import Observations, Plan, PlanOptions
from infold.core.project import Project
from infold.core.target import Apply
from infold.messages.errors import InfoldError
from infold.planning.plan_draft import without_refused
from infold.planning.plan_notes import (
    not_yet_applied,
    refuse_nothing_applied,
    unapplied_notes,
)
from infold.planning.planner import plan as planned
from infold.planning.selection import select_models

if TYPE_CHECKING:
    from infold.api.building import plan_to_save, project_of_saved, read_saved, refuse_too_much
    from infold.api.purging import purge
    from infold.api.quarantine import add_quarantine_entries, list_quarantine_entries
    from infold.api.rows import coverage, evaluate, lateness, manifest, session_history, show
    from infold.api.spark_sessions import close, session
    from infold.core.audits import AuditReport
    from infold.core.erasure import ErasureRequest
    from infold.core.hooks import Sinks
    from infold.core.ports import Progress, SilentProgress
    from infold.core.record import RunRecord
    from infold.core.report import (
        ErasureProof,
        Explanation,
        Forgotten,
        ModelStatus,
        RunFailed,
        RunResult,
        VerificationReport,
    )
    from infold.core.saved_plan import SavedPlan
    from infold.running.erasures import AskedErasure, RewrittenFiles, StoredRows

__all__ = [
    "InfoldError",
    "PlanOptions",
    "Progress",
    "RunFailed",
    "RunResult",
    "SilentProgress",
    "add_quarantine_entries",
    "audit",
    "backbuild",
    "by_applied",
    "close",
    "coverage",
    "definition_errors",
    "erase",
    "evaluate",
    "explain",
    "forget",
    "forgettable",
    "history",
    "lake_of",
    "lateness",
    "ledger_of",
    "list_erasures",
    "list_quarantine_entries",
    "make_plan",
    "manifest",
    "now",
    "observe",
    "observe_all",
    "observer_of",
    "open_project",
    "plan",
    "plan_to_save",
    "project_of_saved",
    "project_to_run",
    "prove_erased",
    "purge",
    "read_saved",
    "refuse_too_much",
    "restate",
    "rewritten_files",
    "run",
    "session",
    "session_history",
    "show",
    "status",
    "stored_rows_of",
    "teardown",
    "to_apply",
    "told_of_requests",
    "verify",
    "window_of",
    "with_apart",
]

_MODULES = {
    "infold.api.building": ("plan_to_save", "project_of_saved", "read_saved", "refuse_too_much"),
    "infold.api.purging": ("purge",),
    "infold.api.quarantine": ("add_quarantine_entries", "list_quarantine_entries"),
    "infold.api.rows": (
        *("coverage", "evaluate", "lateness", "manifest"),
        *("session_history", "show"),
    ),
    "infold.api.spark_sessions": ("close", "session"),
    "infold.core.ports": ("Progress", "SilentProgress"),
    "infold.core.report": ("RunFailed", "RunResult"),
}
"""Where names are that few commands need; they are imported when they are asked for."""


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(name)


def window_of(
    project: Project, start: str | None, end: str | None, select: Sequence[str] = ()
) -> Interval | None:
    """
    The event times between two dates or times, ``[start, end)``, to be asked for.

    Raises ``command_errors.window_unaligned`` where one lies inside a cell of a model.
    """
    from infold.planning.selection import parse_window

    return parse_window(project, select_models(project, select), start, end)


def plan(
    project: Project,
    *,
    asked: PlanOptions | None = None,
    window: Interval | None = None,
    select: Sequence[str] = (),
    exclude: Sequence[str] = (),
    as_of: int | None = None,
) -> Plan:
    """
    What :func:`run` would do, asked the same; nothing is written and no Spark started.

    What it could not do, as models are refused, is in the plan's ``refused``.
    """
    if window is not None:
        asked = replace(asked or PlanOptions(), window=window)
    project = project_to_run(project, asked, select=select, exclude=exclude, as_of=as_of)
    observed = observe_all(project, as_of=as_of, asked=asked)
    return make_plan(project, observed, asked, select=select, exclude=exclude)


def make_plan(
    project: Project,
    observed: Observations,
    asked: PlanOptions | None = None,
    *,
    select: Sequence[str] = (),
    exclude: Sequence[str] = (),
) -> Plan:
    """The steps that a run would carry out."""
    from infold.planning import destructive
    from infold.planning.destructive import (
        destroyed,
        loss_notes,
        protection_warnings,
        unrecorded_table,
    )
    from infold.planning.plan_notes import audit_notes, extraction_notes, unused_forward_only

    asked = choose_models(project, asked, select, exclude)
    draft = without_refused(
        project, planned(project, observed, asked), observed.refused, asked.selected
    )
    refuse_unknown_allowed(once_complete(project), asked)
    tables = lake_of(project)
    lost = destroyed(
        project, draft, observed.redefinitions, lambda m: tables.columns(table_name(m)), asked
    )
    lost = (*lost, *lost_by_beginning(project, observed, asked))
    notes = (*draft.notes, *destructive.removal_warnings(project, draft), *unapplied_notes(project))
    notes = (*notes, *notes_apart(project, observed), *extraction_notes(project, asked.selected))
    notes = (*notes, *audit_notes(project, draft, observed.redefinitions))
    if project.erasure_requests:
        from infold.running.erasure_requests import untaken_notes

        listing = observer_of(project).listing
        notes = (*notes, *untaken_notes(project, ledger_of(project), listing))
    draft = replace(
        draft,
        notes=(*notes, *loss_notes(lost, planned=True), *unused_forward_only(observed, asked)),
        destroyed=lost,
        redefinitions=observed.redefinitions,
        unapplied=not_yet_applied(project),
    )
    if project.target.protected:
        notes = protection_warnings(
            project, draft, asked, unrecorded_table(ledger_of(project), lake_of(project))
        )
        draft = replace(draft, notes=(*draft.notes, *notes))
    return draft


def run(
    project: Project,
    *,
    asked: PlanOptions | None = None,
    window: Interval | None = None,
    select: Sequence[str] = (),
    exclude: Sequence[str] = (),
    as_of: int | None = None,
    max_rows: int | None = None,
    wait: float = 0.0,
    command: str = "run",
    jobs: int | None = None,
    allow_refresh: bool = False,
    fail_fast: bool = False,
    allow_removals: bool = False,
    progress: Progress | None = None,
    saved: SavedPlan | None = None,
    sinks: Sinks | None = None,
) -> RunResult:
    """
    Bring the project's tables up to date; see :meth:`infold.running.execute.Runner.run`.

    A project that :func:`to_apply` made is applied first. With a ``saved`` plan, exactly that is
    carried out, or ``apply_errors.plan_outdated`` is raised. ``sinks`` are files to write besides.
    Raises RunFailed where some tables are not up to date, once all others are (``fail_fast``: at
    once).
    """
    from infold.api.building import Building
    from infold.api.repairing import after_swaps
    from infold.api.run_and_tell import run_and_tell
    from infold.running.run_progress import Request

    project = once_complete(project)
    asked = replace(asked or PlanOptions(), jobs=jobs)
    if window is not None:
        asked = replace(asked, window=window)
    request = Request(asked, max_rows, wait, command, allow_refresh, fail_fast, allow_removals)

    def carry_out(shown: Progress) -> RunResult:
        base = project
        if base.target.apply is Apply.MANUAL and base.applied is None:
            base = by_applied(base)
        refuse_lost_ledger(base)
        refuse_nothing_applied(base)
        base = after_swaps(base, wait)
        return Building(base, request, shown, select, exclude, as_of, saved).run()

    result = run_and_tell(project, command, progress, carry_out, sinks=sinks)
    if result.steps:
        from infold.spark.jvm import class_archive

        class_archive.make_later()
    return result


def restate(
    project: Project, terms: Sequence[str], window: Interval | None = None, **options: Any
) -> RunResult:
    """Build models again, as `infold restate` does; ``options`` are those of :func:`run`."""
    from infold.planning import selection

    asked = selection.restate(project, terms, window).options
    return run(project, asked=asked, command="restate", **options)


def backbuild(
    project: Project, terms: Sequence[str], window: Interval, **options: Any
) -> RunResult:
    """Build models over a window again, with all that they read for it; as `infold backbuild`."""
    from infold.planning import selection

    asked = selection.backbuild(project, terms, window).options
    return run(project, asked=asked, command="backbuild", **options)


def erase(
    project: Project,
    erasure: str,
    keys: Collection[str] = (),
    *,
    source: str | None = None,
    before: int | None = None,
    reason: str = "",
    request: str = "",
    max_rows: int | None = None,
) -> ErasureRequest:
    """
    Record that the rows with some keys are to be erased; the next :func:`run` erases them.

    See :func:`infold.running.erasures.ask_to_erase`. Of more than ``max_rows`` stored rows nothing
    is recorded: raises ``command_errors.erasure_over_budget``.
    """
    from infold.running.erasures import ask_to_erase, refuse_more_rows

    refuse_lost_ledger(project)
    ledger = ledger_of(project)
    if max_rows is not None:
        stored = stored_rows_of(project, erasure, keys, source=source, before=before)
        refuse_more_rows(stored, max_rows)
    return ask_to_erase(
        project, ledger, erasure, keys, source=source, before=before, reason=reason, id_=request
    )


def list_erasures(project: Project) -> Sequence[AskedErasure]:
    """All requests to erase, the newest first, and which models have yet to apply them."""
    from infold.running import erasures

    return erasures.list_erasures(project, ledger_of(project))


def told_of_requests(project: Project) -> Sequence[str]:
    """What is wrong with the sources of requests, as they were read last."""
    from infold.running.erasure_requests import told_of_requests as told

    return tuple(told(project, ledger_of(project)))


def prove_erased(project: Project, values: Collection[str] = ()) -> ErasureProof:
    """What is left of erased persons in files and ledger, of known keys in texts as well."""
    from infold.inspecting.erasure_proof import prove_erased as look

    return look(project, ledger_of(project), lake_of(project), values)


def stored_rows_of(
    project: Project,
    erasure: str,
    keys: Collection[str],
    *,
    source: str | None = None,
    before: int | None = None,
) -> Sequence[StoredRows]:
    """The stored rows that :func:`erase` would have erased."""
    from infold.running import erasures

    ledger, lake = ledger_of(project), lake_of(project)
    return erasures.stored_rows_of(
        project, ledger, lake, erasure, keys, source=source, before=before
    )


def rewritten_files(project: Project, stored: Sequence[StoredRows]) -> Sequence[RewrittenFiles]:
    """The data files that a purge writes again once these rows are gone."""
    from infold.running import erasures

    return erasures.rewritten_files(project, lake_of(project), stored)


def erasing_took(project: Project) -> tuple[float, ...]:
    """How long the last runs took that ``infold erase`` began, in seconds, the newest first."""
    runs = ledger_of(project).runs(5, command="erase")
    return tuple(
        (run.finished_at - run.started_at) / 1e6
        for run in runs
        if run.state == "done" and run.finished_at is not None
    )


def forgettable(
    project: Project, terms: Sequence[str] | None, *, allow_refresh: bool = False
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """
    The models that terms name (None: all of a teardown), and the terms that match nothing.

    Raises ``run_errors.protected``, so that nobody is asked to confirm what would be refused.
    """
    drops = dropper(project)
    models, missing = (drops.models_with_data(), ()) if terms is None else drops.find_models(terms)
    drops.refuse_protected("forget" if terms else "tear down", models, allowed=allow_refresh)
    return models, missing


def forget(
    project: Project, terms: Sequence[str], *, allow_refresh: bool = False, wait: float = 0.0
) -> Forgotten:
    """Forget models and drop their tables; see :class:`infold.running.forget.Dropper`."""
    return dropper(project).forget(terms, allowed=allow_refresh, wait=wait)


def teardown(project: Project, *, allow_refresh: bool = False, wait: float = 0.0) -> Forgotten:
    """Drop all tables of the target, and its ledger."""
    return dropper(project).teardown(allowed=allow_refresh, wait=wait)


def verify(
    project: Project,
    *,
    select: Sequence[str] = (),
    sample: int | None = None,
    progress: Progress | None = None,
) -> VerificationReport:
    """Compare every stored table with a full rebuild of it."""
    from infold.api.verifying import verify_models

    project = with_apart(project)
    return verify_models(project, chosen_models(project, select, ()), sample, progress)


def audit(
    project: Project,
    *,
    select: Sequence[str] = (),
    as_of: int | None = None,
    progress: Progress | None = None,
) -> AuditReport:
    """Judge all stored rows by the audits of their models, and record what is found."""
    from infold.api.verifying import audit_models

    project = with_apart(project)
    return audit_models(project, chosen_models(project, select, ()), as_of, progress)


def status(
    project: Project, as_of: int | None = None, *, with_cells: bool = False
) -> tuple[ModelStatus, ...]:
    """The state of each model; ``with_cells`` with those of its table, of which there are many."""
    from infold.api.states import states

    project = with_apart(project)
    return states(project, observer_of(project, as_of), with_cells=with_cells)


def explain(
    project: Project, model: str, cell: Interval | None = None, as_of: int | None = None
) -> Explanation:
    """Everything that is known about a model, or about one cell of it."""
    from infold.declare.definitions import definitions_of
    from infold.inspecting.explain import explain as explained

    declared = definitions_of(once_complete(project)).get(model)
    project = with_apart(project)
    return explained(observer_of(project, as_of, estimate=True), model, cell, declared)


def history(project: Project, limit: int = 10, model: str | None = None) -> Sequence[RunRecord]:
    """Past runs, newest first."""
    return ledger_of(project).runs(limit, model)
