"""
A run of production, as often as it takes: once, and again after tables were swapped.

Each time the project is found out anew that the run goes by: with the tables that are built apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from infold.api.apart import ApartRun, choose_models, may_build_apart, swap_complete_tables
from infold.api.extraction import Extraction
from infold.api.opening import dropper, ledger_of, observer_of, refuse_unknown_allowed, with_chosen
from infold.api.sole_writer import sole_writer
from infold.api.spark_sessions import engine
from infold.core.interval import now
from infold.core.plan import Observations, Plan, PlanOptions
from infold.core.ports import Engine, Progress
from infold.core.project import Project
from infold.core.report import RunFailed, RunResult, together
from infold.core.saved_plan import SavedPlan, plan_of_text
from infold.inspecting.changed_definitions import ChangedDefinitions
from infold.inspecting.tables_apart import TablesApart, tables_apart
from infold.messages import apply_errors, run_errors
from infold.messages.errors import InfoldError
from infold.planning.destructive import refuse_destructive
from infold.planning.planner import plan
from infold.planning.removals import refuse_removals
from infold.render.definitions import waiting_notes
from infold.running import carry_out_saved
from infold.running.carry_out_saved import dated_as_saved, listing_as_saved
from infold.running.execute import Runner
from infold.running.forget import Dropper, drop_what_is_over
from infold.running.observe import Observer
from infold.running.run_progress import Request

if TYPE_CHECKING:
    from infold.core.saved_plan import SavedPlan


TRIES = 3
"""How often a run begins anew because another one changed what it followed from."""


@dataclass
class Building:
    """What a run of ``base`` was asked for: a project by the definitions that are wanted."""

    base: Project
    request: Request
    progress: Progress
    select: Sequence[str] = ()
    exclude: Sequence[str] = ()
    as_of: int | None = None
    saved: SavedPlan | None = None
    _selected: frozenset[str] | None = None
    _extraction: Extraction = field(init=False)

    def __post_init__(self) -> None:
        self._extraction = Extraction(self.progress)

    def run(self) -> RunResult:
        """
        Build, let tables that are complete replace others, and build what follows from that.

        Raises RunFailed where some tables are not up to date.
        """
        results: list[RunResult] = []
        for _ in range(len(self.base.nodes) + 1):
            failed: RunFailed | None = None
            try:
                results.append(self._try_once())
            except RunFailed as error:
                failed = error
                results.append(error.result)
            models, notes = swap_complete_tables(
                self.base, self._dropper(), self._observer, self.request.wait, self._selected
            )
            results[-1] = replace(results[-1], notes=(*results[-1].notes, *notes))
            if failed is not None:
                raise RunFailed(together(results)) from failed.__cause__
            if not models:
                break
            # What was asked to be built again was; the saved plan was carried out.
            left = replace(self.request.options, restated={})
            self.request, self.saved = replace(self.request, options=left), None
        return together(results)

    def _try_once(self) -> RunResult:
        for _ in range(TRIES - 1):
            try:
                return self._once()
            except InfoldError as error:
                if error.slug != "applied-meanwhile" or self.base.applies:
                    raise
        return self._once()

    def _found(self) -> TablesApart:
        """The project to run, as it is now."""
        asked = with_chosen(self.base, self.request.options, self.select, self.exclude)
        observer = self._observer(self.base, asked)
        may = may_build_apart(observer, asked, allowed=self.request.allow_refresh)
        return tables_apart(self.base, observer.ledger, observer.lake, may, asked)

    def _observer(self, project: Project, asked: PlanOptions | None = None) -> Observer:
        """Observes a project as it was asked for."""
        estimate = self.request.max_rows is not None
        return observer_of(project, self.as_of, estimate=estimate, asked=asked)

    def _engine(self, project: Project, observer: Observer, run: str, first: Plan) -> Engine:
        """What carries steps out."""
        return engine(project, observer, run, first)

    def _dropper(self) -> Dropper:
        """What swaps tables."""
        return dropper(self.base)

    def _once(self) -> RunResult:
        from infold.declare.definitions import definitions_of

        found = self._found()
        project, request = found.project, self.request
        asked = choose_models(project, request.options, self.select, self.exclude)
        asked = replace(asked, jobs=request.options.jobs)
        self._selected = asked.selected
        refuse_unknown_allowed(self.base, asked)
        observer = self._observer(project, asked)
        changed = ChangedDefinitions(project, observer.ledger, asked.forward_only)
        declared = ChangedDefinitions(self.base, observer.ledger, asked.forward_only)
        observer.redefinitions = changed
        if self.saved is not None:
            listing = listing_as_saved(self.saved, project, observer.ledger, observer.listing)
            observer.listing = listing
            observer.dated = dated_as_saved(self.saved, project, observer.ledger, observer.dated)
        observer.listing = self._extraction.checked(observer.listing)
        apart = ApartRun(
            found,
            observer.ledger,
            observer.lake,
            asked,
            again=self._found,
            changes=lambda: changed(observer.ledger.traces()),
            allowed=request.allow_refresh,
        )

        def at_begin() -> Iterator[str]:
            if found.recorded:
                apart.refuse_moved()
            if self.saved is not None:
                refuse_if_outdated(
                    observer,
                    self.saved,
                    max_rows=request.max_rows,
                    allow_removals=request.allow_removals,
                )
            else:  # a saved plan has nothing of what a database has by now
                yield from self._extraction.extract(project, asked.selected)

        def at_end(run: str) -> Iterator[str]:
            if found.recorded:
                yield from apart.at_end(run)
            keep = project.target.keep_old
            yield from drop_what_is_over(observer.ledger, observer.lake, run, now(), keep_old=keep)

        runner = Runner(
            project=project,
            ledger=observer.ledger,
            lake=observer.lake,
            observer=observer,
            engine=partial(self._engine, project, observer),
            progress=self.progress,
            definitions=lambda: definitions_of(project),
            changes=lambda: found.other_changes(declared.all()),
            at_begin=at_begin,
            record=apart.record if found.recorded else None,
            at_end=at_end,
            writer_lock=lambda: sole_writer(project, observer.ledger),
        )
        result = runner.run(replace(request, options=asked))
        return replace(result, notes=(*result.notes, *waiting_notes(project)))


def plan_to_save(
    project: Project,
    observed: Observations,
    made: Plan,
    asked: PlanOptions | None = None,
    *,
    select: Sequence[str] = (),
    exclude: Sequence[str] = (),
) -> SavedPlan:
    """A plan with everything that it follows from; the arguments are those of ``make_plan``."""
    asked = with_chosen(project, asked, select, exclude)
    ledger = ledger_of(project)
    return carry_out_saved.plan_to_save(project, ledger, observed, made, asked, _digests(project))


def read_saved(path: Path) -> SavedPlan:
    """The plan in a file; raises ``apply_errors.bad_plan_file`` where there is none."""
    try:
        return plan_of_text(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise apply_errors.bad_plan_file(path=str(path), why=why) from error


def project_of_saved(declared: Project, saved: SavedPlan) -> Project:
    """
    The project that a saved plan is carried out by.

    Raises ``apply_errors.plan_of_another`` if it is a plan of another one.
    """
    from infold.core.target import Apply
    from infold.inspecting.applied_project import project_to_apply

    carry_out_saved.refuse_plan_of_another(saved, declared)
    if declared.target.apply is not Apply.MANUAL:
        return declared
    return project_to_apply(declared, ledger_of(declared), saved.asked.selected)


def refuse_if_outdated(
    observer: Observer, saved: SavedPlan, *, max_rows: int | None, allow_removals: bool
) -> None:
    """
    Raise ``apply_errors.plan_outdated`` where a saved plan does not fit what is there now.

    Raises what a run would raise for its limits too, before anything is applied.
    """
    project = observer.project
    observed = carry_out_saved.refuse_outdated(
        saved, observer.ledger, observer.observe_all, _digests(project)
    )
    refuse_too_much(
        project,
        plan(project, observed, saved.asked),
        max_rows=max_rows,
        allow_removals=allow_removals,
    )


def refuse_too_much(
    project: Project, made: Plan, *, max_rows: int | None, allow_removals: bool
) -> None:
    """Refuse what a run would refuse for its limits, before anything is applied."""
    if max_rows is not None and made.rows_to_read > max_rows:
        raise run_errors.over_budget(rows=made.rows_to_read, max_rows=max_rows)
    refuse_destructive(project, made.destroyed)
    refuse_removals(project, made, allowed=allow_removals)


def _digests(project: Project) -> Mapping[str, str]:
    """The digests of the definitions that a plan goes by, and of those that wait or are apart."""
    from infold.core.definition_text import digest_of
    from infold.declare.definitions import definitions_of

    found = {name: digest_of(one) for name, one in definitions_of(project).items()}
    if project.once_complete is not None:
        for name, one in definitions_of(project.once_complete).items():
            if found.get(name) != digest_of(one):
                found[f"{name}, as it is wanted"] = digest_of(one)
    return found
