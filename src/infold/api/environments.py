"""What commands do in an environment, and with environments."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from infold.api.extraction import Extraction
from infold.api.opening import (
    dropper,
    lake_of,
    ledger_of,
    observer_of,
    refuse_unknown_allowed,
    with_selected,
)
from infold.api.repairing import finish_steps, finish_swaps
from infold.api.rows import coverage, events_of, lateness, show
from infold.api.run_and_tell import run_and_tell
from infold.api.sole_writer import sole_writer
from infold.api.spark_sessions import engine
from infold.api.states import states
from infold.api.verifying import audit_models, verify_models
from infold.core.audits import AuditReport
from infold.core.definition import digest_of
from infold.core.environment import (
    Environment,
    EnvironmentSize,
    checked_name,
    command_of_run,
    model_of_key,
    set_aside_of,
    with_model_names,
)
from infold.core.hooks import Sinks
from infold.core.interval import Interval, Ranges, now
from infold.core.model import table_name
from infold.core.plan import Observations, Plan, PlanOptions
from infold.core.ports import Lake, Ledger, Progress, SilentProgress
from infold.core.project import Project
from infold.core.record import Receipt, RunRecord
from infold.core.report import (
    EnvironmentDiff,
    Explanation,
    Lateness,
    ModelStatus,
    RunFailed,
    RunResult,
    SwapPreview,
    TableDiff,
    VerificationReport,
    together,
)
from infold.core.swap import Swap
from infold.inspecting.environments import Variant, own_models, recorded, stored_variant, variant
from infold.messages import command_errors, environment_errors
from infold.planning.plan_draft import without_refused
from infold.planning.plan_notes import extraction_notes
from infold.planning.planner import plan as planned
from infold.planning.selection import select_models
from infold.running.execute import Runner
from infold.running.ledger_consistency import refuse_other_project
from infold.running.observe import Observer
from infold.running.run_progress import Request
from infold.running.table_names import drop_left_tables

if TYPE_CHECKING:
    import pyarrow as pa


_MOST_RUNS = 1_000
"""In how many runs of an environment those of one model are looked for."""


def variant_observer(
    environment: Variant,
    as_of: int | None = None,
    *,
    estimate: bool = False,
    asked: PlanOptions | None = None,
) -> Observer:
    """Observes an environment: a model that changed has another table there, never the same."""
    observer = observer_of(environment.project, as_of, estimate=estimate, asked=asked)
    observer.redefinitions = lambda _: {}
    return observer


def diff_environment(declared: Project, name: str, select: Sequence[str] = ()) -> EnvironmentDiff:
    """
    An environment as it was run last against production, of all models or of those that are named.

    Tables of production's own are the same by definition. Of others only the cells that differ are
    read; nothing is written, and no Spark is started.
    """
    from infold.inspecting.table_diff import table_diff

    environment = stored(declared, name)
    chosen = select_models(environment.declared, select)
    live, stretched = environment.production.project, environment.production.stretched
    decided = own_models(
        environment.declared, live, lambda *_: None, assume=True, stretched=stretched
    )
    changes = [change for change in decided.changes if not select or change.model in chosen]
    ledger, tables = ledger_of(declared), lake_of(declared)
    heads = ledger.newest_versions()
    diffs = []
    for model, key in environment.own.items():
        if model not in chosen or key not in heads:
            continue
        if model in live:
            diffs.append(table_diff(ledger, tables, environment.declared[model], model, key))
        else:
            diffs.append(TableDiff(model, (0, heads[key].rows), compared=False))
    return EnvironmentDiff(name, tuple(changes), tuple(diffs))


@dataclass(frozen=True)
class ShownByName:
    """A progress that is told of models by their names, not by the keys of their tables."""

    shown: Progress
    models: Mapping[str, str] = field(default_factory=dict)
    before: int = 0
    """How many steps came before these."""

    def step(self, index: int, total: int | None, step: Any) -> None:
        """Counted on from the steps of the levels before; keys are shown as models' names."""
        every = None if total is None else total + self.before
        self.shown.step(index + self.before, every, with_model_names(step, self.models))

    def done(self, step: Any, receipt: Receipt) -> None:
        """It ended well."""
        self.shown.done(with_model_names(step, self.models), receipt)

    def failed(self, step: Any, error: Any) -> None:
        """It did not succeed."""
        self.shown.failed(with_model_names(step, self.models), with_model_names(error, self.models))

    def note(self, text: str) -> None:
        """Something worth a line."""
        self.shown.note(with_model_names(text, self.models))


def stored(declared: Project, name: str) -> Variant:
    """An environment as it was run last."""
    ledger = ledger_of(declared)
    refuse_other_project(declared, ledger)
    return stored_variant(checked_name(name), declared, ledger)


def show_environment(declared: Project, name: str, table: str, **options: Any) -> pa.Table:
    """
    Rows of a model as an environment has them: its own table, or production's.

    ``options`` are those of :func:`infold.api.show`.
    """
    environment = stored(declared, name)
    project, key = project_of(environment, table)
    return show(project, key, **options)


def environment_lateness(
    declared: Project, name: str, terms: Sequence[str] = (), bins: tuple[int, int] | None = None
) -> tuple[Lateness, ...]:
    """How late rows came in tables of events as an environment has them: own, or production's."""
    environment = stored(declared, name)
    measured: list[Lateness] = []
    for model in events_of(environment.declared, terms):
        project, key = project_of(environment, model)
        if key in project:
            measured += lateness(project, (key,), bins)
    return with_model_names(tuple(measured), environment.models)


def project_of(environment: Variant, table: str) -> tuple[Project, str]:
    """The project that has a table of an environment, and the table's name in it."""
    keys = {model: key for key, model in environment.models.items()}
    if table in keys:
        return environment.project, keys[table]
    if table == "set_aside":
        return environment.project, table
    return environment.production.project, table


T = TypeVar("T")


def _of_own_tables(
    declared: Project,
    name: str,
    select: Sequence[str],
    progress: Progress | None,
    judge: Callable[[Project, frozenset[str], Progress], T],
) -> T:
    """What is found of the tables that an environment has of its own, by the names of models."""
    environment = stored(declared, name)
    chosen = select_models(environment.declared, select)
    keys = frozenset(key for model, key in environment.own.items() if model in chosen)
    shown = ShownByName(progress or SilentProgress(), environment.models)
    return with_model_names(judge(environment.project, keys, shown), environment.models)


def verify_environment(
    declared: Project,
    name: str,
    *,
    select: Sequence[str] = (),
    sample: int | None = None,
    progress: Progress | None = None,
) -> VerificationReport:
    """Compare the tables that an environment has of its own with their rebuilds."""

    def verify(project: Project, keys: frozenset[str], shown: Progress) -> VerificationReport:
        return verify_models(project, keys, sample, shown)

    return _of_own_tables(declared, name, select, progress, verify)


def audit_environment(
    declared: Project,
    name: str,
    select: Sequence[str] = (),
    as_of: int | None = None,
    progress: Progress | None = None,
) -> AuditReport:
    """Judge the tables that an environment has of its own by their audits."""

    def audit(project: Project, keys: frozenset[str], shown: Progress) -> AuditReport:
        return audit_models(project, keys, as_of, shown)

    return _of_own_tables(declared, name, select, progress, audit)


def environment_status(
    declared: Project, name: str, as_of: int | None = None, *, with_cells: bool = False
) -> tuple[Project, tuple[ModelStatus, ...]]:
    """The state of each table that is an environment's own, and the project of these."""
    environment = stored(declared, name)
    observer = variant_observer(environment, as_of)
    options = PlanOptions(selected=frozenset(environment.own.values()))
    known = states(environment.project, observer, options, with_cells=with_cells)
    own = tuple(entry for entry in known if entry.model in environment.models)
    return with_model_names((environment.project, own), environment.models)


def explain_environment(
    declared: Project,
    name: str,
    model: str,
    cell: Interval | None = None,
    as_of: int | None = None,
) -> Explanation:
    """
    Everything that is known about a model in an environment, or about one cell of it.

    Of a table of its own it is what the environment's next run would do, and why. A table that it
    has not is production's, and is explained as that.
    """
    from infold.inspecting.explain import explain

    environment = stored(declared, name)
    project, key = project_of(environment, model)
    if key not in project:
        raise command_errors.unknown_model(model, [*environment.own, *(n.name for n in project)])
    if project is not environment.project:
        shared = (("table", f"production's: {name} has none of its own"),)
        explained = explain(observer_of(project, as_of, estimate=True), key, cell)
        return replace(explained, applied=None, notes=(*shared, *explained.notes))
    explained = explain(variant_observer(environment, as_of, estimate=True), key, cell)
    shown = with_model_names(explained, environment.models)
    return replace(shown, sql=environment.declared[model].model.written)


def environment_history(
    declared: Project, name: str, limit: int = 10, model: str | None = None
) -> Sequence[RunRecord]:
    """The runs of an environment, newest first; with ``model`` those that built its table of it."""
    find_environment(declared, name)
    most = limit if model is None else _MOST_RUNS
    runs = ledger_of(declared).runs(most, command=command_of_run(name))
    named = [
        replace(
            run, steps=tuple(replace(step, model=model_of_key(step.model)) for step in run.steps)
        )
        for run in runs
    ]
    return [run for run in named if model is None or any(s.model == model for s in run.steps)][
        :limit
    ]


def list_environments(project: Project) -> tuple[EnvironmentSize, ...]:
    """The environments of a target with the rows and bytes of their own tables."""
    ledger, tables = ledger_of(project), lake_of(project)
    refuse_other_project(project, ledger)
    heads = ledger.newest_versions()
    return tuple(
        EnvironmentSize(
            one,
            {model: heads[key].rows if key in heads else 0 for model, key in one.own.items()},
            sum(tables.size(table_name(table.key)) for table in one.tables)
            + tables.size(set_aside_of(one.name)),
        )
        for one in ledger.environments().values()
    )


def drop_environment(project: Project, name: str, *, wait: float = 0.0) -> Environment:
    """Drop an environment with its tables; production is as it was."""
    find_environment(project, name)
    return dropper(project).drop_environment(name, wait)


def find_environment(project: Project, name: str) -> Environment:
    """An environment by its name, or ``unknown_environment``."""
    known = ledger_of(project).environments()
    if checked_name(name) not in known:
        target = project.target.name
        raise environment_errors.unknown_environment(name=name, target=target, known=known)
    return known[name]


def expire_environments(project: Project, *, wait: float = 0.0) -> tuple[str, ...]:
    """Drop the environments with a time to live that is over; their names."""
    return dropper(project).drop_expired(now(), wait)


# Planning an environment, and running it.


@dataclass(frozen=True)
class PlannedEnvironment:
    """A plan of an environment with all that is shown with it, by the names of models."""

    project: Project
    observed: Observations
    plan: Plan
    covered: Mapping[str, Ranges]


def plan_environment(
    declared: Project,
    name: str,
    *,
    asked: PlanOptions | None = None,
    select: Sequence[str] = (),
    exclude: Sequence[str] = (),
    as_of: int | None = None,
) -> PlannedEnvironment:
    """
    What :func:`run_environment` would do; nothing is written, and no Spark is started.

    Readers of tables that are to be built count as different until these are there.
    """
    ledger, tables = ledger_of(declared), lake_of(declared)
    refuse_other_project(declared, ledger)
    known: frozenset[str] = frozenset()
    while True:
        environment = variant(checked_name(name), declared, ledger, tables, known, assume=True)
        observer = variant_observer(environment, as_of, estimate=True)
        observed = observer.observe_all()
        everything = planned(
            environment.project, observed, PlanOptions(selected=environment.to_build)
        )
        if known == (known := environment.up_to_date(observed, everything)):
            break
    chosen = _options_for_own(environment, asked, select, exclude)
    plan = without_refused(
        environment.project,
        planned(environment.project, observed, chosen),
        observed.refused,
        chosen.selected,
    )
    shared = [node.name for node in declared if node.name in environment.production.project]
    shared = [name for name in shared if name not in environment.models.values()]
    plan = replace(
        plan,
        skipped=tuple(one for one in plan.skipped if one.model not in environment.project.shared),
        redefinitions=environment.decided.changes,
        notes=(
            *plan.notes,
            *extraction_notes(environment.project, chosen.selected),
            *_sharing_notes(shared),
        ),
    )
    covered = coverage(environment.project, plan) if plan else {}
    shown = PlannedEnvironment(environment.project, observed, plan, covered)
    return with_model_names(shown, environment.models)


def _sharing_notes(shared: Sequence[str]) -> Iterator[str]:
    if shared:
        yield f"production's tables are used of: {', '.join(shared)}"


def _options_for_own(
    environment: Variant, options: PlanOptions | None, select: Sequence[str], exclude: Sequence[str]
) -> PlanOptions:
    """What is asked for, of the tables that are the environment's own."""
    options = with_selected(environment.declared, options, select, exclude)
    models = environment.decided.identities
    chosen = models if options.selected is None else [m for m in models if m in options.selected]
    return replace(
        options,
        selected=frozenset(environment.own[model] for model in chosen),
        allow_destructive=frozenset(environment.own.values()),  # nobody relies upon its tables
    )


def run_environment(
    declared: Project,
    name: str,
    *,
    asked: PlanOptions | None = None,
    select: Sequence[str] = (),
    exclude: Sequence[str] = (),
    as_of: int | None = None,
    max_rows: int | None = None,
    wait: float = 0.0,
    jobs: int | None = None,
    allow_refresh: bool = False,
    fail_fast: bool = False,
    allow_removals: bool = False,
    progress: Progress | None = None,
    sinks: Sinks | None = None,
) -> RunResult:
    """
    Bring an environment up to date; it is made if there is none of this name.

    Its tables are built level by level, as what a model reads has to be there before it is known
    whether the model differs from production's. What is asked for is as in
    :func:`infold.api.run`; no table of an environment needs ``allow_refresh``.
    """
    del allow_refresh
    command = command_of_run(checked_name(name))
    asked = replace(asked or PlanOptions(), jobs=jobs)
    request = Request(
        asked,
        max_rows,
        wait,
        command,
        allow_refresh=True,
        fail_fast=fail_fast,
        allow_removals=allow_removals,
    )

    def carry_out(shown: Progress) -> RunResult:
        refuse_other_project(declared, ledger_of(declared))
        finish_steps(declared, wait)
        extraction = Extraction(shown, beside=True)
        level = _Level(declared, name, request, shown, extraction, select, exclude, as_of)
        return _run_by_levels(level)

    return run_and_tell(declared, "run", progress, carry_out, sinks=sinks, environment=name)


def _run_by_levels(level: _Level) -> RunResult:
    """Build an environment, each level once those before it are there."""
    results: list[RunResult] = []
    for _ in range(len(level.declared.nodes) + 1):
        try:
            results.append(level.run())
        except RunFailed as failed:
            raise RunFailed(together([*results, failed.result])) from failed
        if level.is_last:
            break
        before = sum(len(result.steps) for result in results)
        level = replace(
            level, known=level.up_to_date, up_to_date=frozenset(), is_last=True, before=before
        )
    return together(results)


@dataclass
class _Level:
    """One run of an environment, of the tables that are known to be its own."""

    declared: Project
    name: str
    request: Request
    progress: Progress
    extraction: Extraction
    select: Sequence[str] = ()
    exclude: Sequence[str] = ()
    as_of: int | None = None
    known: frozenset[str] = frozenset()
    """The identities of tables with contents that may be compared."""
    up_to_date: frozenset[str] = frozenset()
    is_last: bool = True
    before: int = 0
    """How many steps the levels before it took."""

    def run(self) -> RunResult:
        """Build what is known to be its own; whether that was all is known then."""
        ledger, tables = ledger_of(self.declared), lake_of(self.declared)
        refuse_other_project(self.declared, ledger)
        environment = self._variant(ledger, tables, self.known)
        options = _options_for_own(environment, self.request.options, self.select, self.exclude)
        estimate = self.request.max_rows is not None
        observer = variant_observer(environment, self.as_of, estimate=estimate, asked=options)
        observer.listing = self.extraction.checked(observer.listing)

        def at_begin() -> Iterator[str]:
            newest = self._variant(observer.ledger, observer.lake, self.known)
            if newest.follows_from != environment.follows_from:
                raise environment_errors.environment_moved(name=self.name)
            yield from self.extraction.extract(environment.project, options.selected)

        runner = Runner(
            project=environment.project,
            ledger=observer.ledger,
            lake=observer.lake,
            observer=observer,
            engine=lambda run_id, first: engine(environment.project, observer, run_id, first),
            progress=ShownByName(self.progress, environment.models, self.before),
            at_begin=at_begin,
            record=partial(_record_environment, environment, observer.ledger),
            at_end=partial(self._end, environment, observer),
            writer_lock=lambda: sole_writer(self.declared, observer.ledger),
        )
        request = replace(self.request, options=options)
        try:
            return with_model_names(runner.run(request), environment.models)
        except RunFailed as failed:
            raise RunFailed(with_model_names(failed.result, environment.models)) from failed

    def _variant(self, ledger: Ledger, tables: Lake, known: frozenset[str]) -> Variant:
        return variant(self.name, self.declared, ledger, tables, known)

    def _end(self, environment: Variant, observer: Observer, run: str) -> Iterator[str]:
        """Find out what else is its own; if nothing is, drop what it no longer uses."""
        observed = observer.observe_all()
        rest = planned(environment.project, observed, PlanOptions(selected=environment.to_build))
        self.up_to_date = environment.up_to_date(observed, rest)
        after = self._variant(observer.ledger, observer.lake, self.up_to_date)
        self.is_last = self.up_to_date == self.known or (
            after.decided.identities == environment.decided.identities
            and after.decided.waiting == environment.decided.waiting
        )
        if not self.is_last:
            return
        recorded = observer.ledger.environments()[self.name]
        whole = not after.decided.waiting and len(self.up_to_date) == len(after.decided.identities)
        built_at = now() if whole else None
        observer.ledger.put_environment(replace(recorded, tables=after.tables, built_at=built_at))
        yield from drop_left_tables(observer.ledger, observer.lake, run, self.name)
        for model in after.decided.waiting:
            yield f"{model} waits: whether it differs is known once what it reads is up to date"


def _record_environment(environment: Variant, ledger: Ledger) -> Mapping[str, str]:
    """Record an environment before it is built; the digests of definitions, by key."""
    name, at = environment.project.environment, now()
    digests = {model: digest_of(one) for model, one in environment.definitions.items()}
    by_digest = {digests[model]: one for model, one in environment.definitions.items()}
    lifetime = environment.declared.target.environment_ttl
    known = ledger.environments().get(name)
    # First of all that it is not built: nobody may promote it by definitions that nothing is of.
    ledger.put_environment(recorded(environment, known, _user_and_host(), at, lifetime))
    ledger.keep_definitions(by_digest, digests, {}, environment=name)
    for model, key in environment.own.items():  # entries made by hand hold in the environment too
        have = len(ledger.entries(key))
        if missing := ledger.entries(model)[have:]:
            ledger.add_entries(key, missing)
    return {key: digests[model] for model, key in environment.own.items()}


def _user_and_host() -> str:
    """Who is at work, and where."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError):  # no such user on this machine, as in some containers
        name = "unknown"
    return f"{name}@{socket.gethostname()}"


# Promoting an environment, and going back.

FindSwap = Callable[[Ledger, Lake], SwapPreview]


def find_promotion(
    project: Project, name: str, *, allow_destructive: Collection[str] = ()
) -> SwapPreview:
    """
    What :func:`promote` would do; nothing is written, but what a dead swap left is finished.

    Raises ``destructive_change`` where readers of a table would lose something, but for those of
    the models that are allowed to.
    """
    return _find_swap(project, _promotion(project, name, allow_destructive))


def promote(
    project: Project,
    shown: SwapPreview,
    *,
    allow_destructive: Collection[str] = (),
    wait: float = 0.0,
) -> None:
    """
    Make the tables of an environment production's, as it was ``shown``.

    Raises ``promote_changed`` where something else would be done by now.
    """
    find = _promotion(project, shown.swap.environment, allow_destructive)
    _carry_out(project, shown, find, wait)


def find_rollback(project: Project) -> SwapPreview:
    """What :func:`rollback` would do; nothing is written, but a dead swap is finished."""
    return _find_swap(project, _rollback(project))


def rollback(project: Project, shown: SwapPreview, *, wait: float = 0.0) -> None:
    """Give the tables that the last promote replaced their names back, as it was ``shown``."""
    _carry_out(project, shown, _rollback(project), wait)


def _promotion(project: Project, name: str, allow: Collection[str]) -> FindSwap:
    from infold.inspecting.swaps import promotion

    refuse_unknown_allowed(project, PlanOptions(allow_destructive=frozenset(allow)))
    return lambda ledger, tables: promotion(
        stored(project, name), name, ledger, tables, frozenset(allow)
    )


def _rollback(project: Project) -> FindSwap:
    from infold.inspecting.swaps import rollback as rolled_back

    return lambda ledger, tables: rolled_back(project, ledger, tables)


def _find_swap(project: Project, find: FindSwap) -> SwapPreview:
    refuse_other_project(project, ledger_of(project))
    finish_swaps(project)
    outside = dropper(project)
    return find(outside.ledger, outside.lake)


def _carry_out(project: Project, shown: SwapPreview, find: FindSwap, wait: float) -> None:
    if not shown.changes:
        return  # a swap of nothing would hide the one before it from a rollback
    by = dropper(project)

    def swap() -> Swap:
        current = find(by.ledger, by.lake)
        if current != shown:
            raise environment_errors.promote_changed()
        return current.swap

    by.swap(swap, command=shown.swap.kind.value, wait=wait)
