"""
A run of production, as often as it takes: once, and again after tables were swapped.

Each time the project is found out anew that the run goes by. After it, the tables that were built
apart and are complete take the place of those that readers have, and another run brings readers up
to date.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from infold.api.extraction import Extraction
from infold.api.opening import (
    apart_as_asked,
    choose_models,
    destroyed_by,
    dropper,
    ledger_of,
    observer_of,
    refuse_unknown_allowed,
    with_selected,
)
from infold.api.sole_writer import sole_writer
from infold.api.spark_sessions import engine
from infold.core.environment import BUILT_APART
from infold.core.interval import now
from infold.core.plan import Observations, Plan, PlanOptions
from infold.core.ports import Engine, Progress
from infold.core.project import Project
from infold.core.report import BuiltApart, RunFailed, RunResult, together
from infold.core.swap import Swap, SwapKind
from infold.core.target import Apply
from infold.inspecting.changed_definitions import ChangedDefinitions
from infold.inspecting.tables_apart import TablesApart, progress_apart, tables_apart
from infold.messages import apply_errors, run_errors
from infold.messages.errors import InfoldError
from infold.planning.destructive import refuse_destructive, refuse_removals
from infold.planning.planner import plan
from infold.render.definitions import apart_note, waiting_notes
from infold.running.forget import Dropper, drop_what_is_over
from infold.running.keep_definitions import keep_definitions
from infold.running.observe import Observer
from infold.running.run_progress import Request
from infold.running.table_names import drop_left_tables

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
            models, notes = self._swap_complete()
            results[-1] = replace(results[-1], notes=(*results[-1].notes, *notes))
            if failed is not None:
                raise RunFailed(together(results)) from failed.__cause__
            if not models:
                break
            # What was asked to be built again was; the saved plan was carried out.
            options = replace(self.request.options, restated={})
            self.request, self.saved = replace(self.request, options=options), None
        return together(results)

    def _try_once(self) -> RunResult:
        for _ in range(TRIES - 1):
            try:
                return self._once()
            except InfoldError as error:
                if error.slug != "applied-meanwhile" or self.base.applies:
                    raise
        return self._once()

    def _tables_apart(self) -> TablesApart:
        """The project to run, as it is now."""
        options = with_selected(self.base, self.request.options, self.select, self.exclude)
        observer = self._observer(self.base, options)
        return apart_as_asked(observer, options, allowed=self.request.allow_refresh)

    def _observer(self, project: Project, options: PlanOptions | None = None) -> Observer:
        """Observes a project as it was asked for."""
        estimate = self.request.max_rows is not None
        return observer_of(project, self.as_of, estimate=estimate, asked=options)

    def _engine(self, project: Project, observer: Observer, run: str, first: Plan) -> Engine:
        """What carries steps out."""
        return engine(project, observer, run, first)

    def _dropper(self) -> Dropper:
        """What swaps tables."""
        return dropper(self.base)

    def _once(self) -> RunResult:
        from infold.declare.definitions import definitions_of

        apart = self._tables_apart()
        project, request = apart.project, self.request
        options = choose_models(project, request.options, self.select, self.exclude)
        options = replace(options, jobs=request.options.jobs)
        self._selected = options.selected
        refuse_unknown_allowed(self.base, options)
        observer = self._observer(project, options)
        changed = ChangedDefinitions(project, observer.ledger, options.forward_only)
        declared = ChangedDefinitions(self.base, observer.ledger, options.forward_only)
        observer.redefinitions = changed
        if self.saved is not None:
            from infold.running.carry_out_saved import dated_as_saved, listing_as_saved

            listing = listing_as_saved(self.saved, project, observer.ledger, observer.listing)
            observer.listing = listing
            observer.dated = dated_as_saved(self.saved, project, observer.ledger, observer.dated)
        observer.listing = self._extraction.checked(observer.listing)

        def at_begin() -> Iterator[str]:
            if apart.recorded:
                self._refuse_moved(apart, options)
            if self.saved is not None:
                refuse_if_outdated(
                    observer,
                    self.saved,
                    max_rows=request.max_rows,
                    allow_removals=request.allow_removals,
                )
            else:  # a saved plan has nothing of what a database has by now
                yield from self._extraction.extract(project, options.selected)
                if project.erasure_requests:
                    from infold.api.erasure_requests import take

                    taken = take(project, observer.ledger, observer.listing, self.progress)
                    observer.unrecovered = {**observer.unrecovered, **taken.refused}
                    yield from taken.notes

        def record() -> Mapping[str, str]:
            # The definitions come first: whoever is killed before that has applied nothing.
            digests = keep_definitions(
                *(project, observer.ledger, definitions_of(apart.once_complete)),
                changes=changed(observer.ledger.traces()),
                rebuilds_allowed=request.allow_refresh,
                forward_only=options.forward_only,
            )
            if apart.tables != observer.ledger.own_tables().get(BUILT_APART, ()):
                observer.ledger.put_own_tables(BUILT_APART, apart.tables)
            return {**digests, **apart.digests}

        def at_end(run: str) -> Iterator[str]:
            if apart.recorded:
                yield from drop_left_tables(observer.ledger, observer.lake, run, BUILT_APART)
            keep = project.target.keep_old
            yield from drop_what_is_over(observer.ledger, observer.lake, run, now(), keep_old=keep)

        from infold.running.execute import Runner  # a plan needs none of it

        runner = Runner(
            project=project,
            ledger=observer.ledger,
            lake=observer.lake,
            observer=observer,
            engine=partial(self._engine, project, observer),
            progress=self.progress,
            definitions=lambda: definitions_of(project),
            changes=lambda: apart.other_changes(declared.all()),
            at_begin=at_begin,
            record=record if apart.recorded else None,
            at_end=at_end,
            writer_lock=lambda: sole_writer(project, observer.ledger),
        )
        result = runner.run(replace(request, options=options))
        return replace(result, notes=(*result.notes, *waiting_notes(project)))

    def _refuse_moved(self, apart: TablesApart, options: PlanOptions) -> None:
        """
        Raise ``applied_meanwhile`` where another run changed what this one follows from.

        Raises ``destructive_change`` where what begins now would take something from readers.
        """
        if self._tables_apart().follows_from != apart.follows_from:
            raise apply_errors.applied_meanwhile(
                target=apart.project.target.name, models=sorted({one.model for one in apart.tables})
            )
        models = {one.model for one in apart.begun}
        lost = destroyed_by(apart.project, apart.begun, models, options)
        refuse_destructive(apart.once_complete, tuple(lost))

    def _swap_complete(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """
        Let complete tables take the place of those that readers have; these models, and notes.

        Another run may hold the lease by now: then it does that.
        """
        by = self._dropper()
        if BUILT_APART not in by.ledger.own_tables():
            return (), ()
        swap, left = self._next_swap(by)
        notes = tuple(map(apart_note, left))
        if not swap.tables:
            return (), notes
        try:
            command, wait = SwapKind.BUILT_APART.value, self.request.wait
            done = by.swap(lambda: self._next_swap(by)[0], command=command, wait=wait)
        except InfoldError as error:
            if error.slug != "locked":
                raise
            return (), notes
        models = tuple(table.model for table in done.tables)
        replaced = "{}: what was built apart has replaced its table"
        return models, (*notes, *map(replaced.format, models))

    def _next_swap(self, by: Dropper) -> tuple[Swap, Sequence[BuiltApart]]:
        """The swap of the tables that are complete, of none perhaps, and how far the others are."""
        from infold.inspecting.swaps import swap_of_complete  # parsers: most runs need none

        apart = tables_apart(self.base, by.ledger, by.lake)
        if not apart.project.apart:
            return Swap(SwapKind.BUILT_APART, "", ()), ()
        observed = self._observer(apart.project).observe_all()
        swap = swap_of_complete(apart, observed, by.ledger, by.lake, self._selected)
        done = {table.model for table in swap.tables}
        progress = progress_apart(apart.project, observed, by.ledger, by.lake)
        return swap, [one for one in progress if one.model not in done]


def plan_to_save(
    project: Project,
    observed: Observations,
    plan: Plan,
    asked: PlanOptions | None = None,
    *,
    select: Sequence[str] = (),
    exclude: Sequence[str] = (),
) -> SavedPlan:
    """A plan with everything that it follows from; the arguments are those of ``make_plan``."""
    from infold.running import carry_out_saved

    asked = with_selected(project, asked, select, exclude)
    ledger = ledger_of(project)
    return carry_out_saved.plan_to_save(project, ledger, observed, plan, asked, _digests(project))


def read_saved(path: Path) -> SavedPlan:
    """The plan in a file; raises ``apply_errors.bad_plan_file`` where there is none."""
    from infold.core.saved_plan import plan_of_text

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
    from infold.inspecting.applied_project import project_to_apply
    from infold.running import carry_out_saved

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
    from infold.running import carry_out_saved

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
    project: Project, plan: Plan, *, max_rows: int | None, allow_removals: bool
) -> None:
    """Refuse what a run would refuse for its limits, before anything is applied."""
    if max_rows is not None and plan.rows_to_read > max_rows:
        raise run_errors.over_budget(rows=plan.rows_to_read, max_rows=max_rows)
    refuse_destructive(project, plan.destroyed)
    refuse_removals(project, plan, allowed=allow_removals)


def _digests(project: Project) -> Mapping[str, str]:
    """The digests of the definitions that a plan goes by, and of those that wait or are apart."""
    from infold.core.definition import digest_of
    from infold.declare.definitions import definitions_of

    digests = {name: digest_of(definition) for name, definition in definitions_of(project).items()}
    if project.once_complete is not None:
        for name, definition in definitions_of(project.once_complete).items():
            if digests.get(name) != digest_of(definition):
                digests[f"{name}, as it is wanted"] = digest_of(definition)
    return digests
