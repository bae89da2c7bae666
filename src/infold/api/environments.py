"""What commands do in an environment, and with environments."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from infold.api.opening import dropper, lake_of, ledger_of, observer_of, refuse_unknown_allowed
from infold.api.repairing import finish_swaps
from infold.api.rows import events_of, lateness, show
from infold.api.states import states
from infold.api.verifying import audit_models, verify_models
from infold.core.audits import AuditReport
from infold.core.environment import (
    Environment,
    EnvironmentSize,
    checked_name,
    command_of_run,
    model_of_key,
    set_aside_of,
    with_model_names,
)
from infold.core.interval import Interval, now
from infold.core.model import table_name
from infold.core.plan import PlanOptions
from infold.core.ports import Lake, Ledger, Progress, SilentProgress
from infold.core.project import Project
from infold.core.record import Receipt, RunRecord
from infold.core.report import (
    EnvironmentDiff,
    Explanation,
    Lateness,
    ModelStatus,
    SwapPreview,
    TableDiff,
    VerificationReport,
)
from infold.core.swap import Swap
from infold.inspecting.environments import Variant, stored_variant
from infold.messages import command_errors, environment_errors
from infold.planning.selection import select_models
from infold.running.ledger_consistency import refuse_other_project
from infold.running.observe import Observer

if TYPE_CHECKING:
    import pyarrow as pa


_MOST_RUNS = 1_000
"""In how many runs of an environment those of one model are looked for."""


def variant_observer(
    found: Variant,
    as_of: int | None = None,
    *,
    estimate: bool = False,
    asked: PlanOptions | None = None,
) -> Observer:
    """Observes an environment: a model that changed has another table there, never the same."""
    observer = observer_of(found.project, as_of, estimate=estimate, asked=asked)
    observer.redefinitions = lambda _: {}
    return observer


def diff_environment(declared: Project, name: str, select: Sequence[str] = ()) -> EnvironmentDiff:
    """
    An environment as it was run last against production, of all models or of those that are named.

    Tables of production's own are the same by definition. Of others only the cells that differ are
    read; nothing is written, and no Spark is started.
    """
    from infold.inspecting.own_models import own_models
    from infold.inspecting.table_diff import table_diff

    found = stored(declared, name)
    wanted = select_models(found.declared, select)
    there, stretched = found.production.project, found.production.stretched
    decided = own_models(found.declared, there, lambda *_: None, assume=True, stretched=stretched)
    changes = [one for one in decided.changes if not select or one.model in wanted]
    ledger, tables = ledger_of(declared), lake_of(declared)
    heads = ledger.newest_versions()
    diffs = []
    for model, key in found.own.items():
        if model not in wanted or key not in heads:
            continue
        if model in there:
            diffs.append(table_diff(ledger, tables, found.declared[model], model, key))
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
        """A step begins."""
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
    found = stored(declared, name)
    project, own = project_of(found, table)
    return show(project, own, **options)


def environment_lateness(
    declared: Project, name: str, terms: Sequence[str] = (), bins: tuple[int, int] | None = None
) -> tuple[Lateness, ...]:
    """How late rows came in tables of events as an environment has them: own, or production's."""
    found = stored(declared, name)
    measured: list[Lateness] = []
    for model in events_of(found.declared, terms):
        project, own = project_of(found, model)
        if own in project:
            measured += lateness(project, (own,), bins)
    return with_model_names(tuple(measured), found.models)


def project_of(found: Variant, table: str) -> tuple[Project, str]:
    """The project that has a table of an environment, and the table's name in it."""
    keys = {model: key for key, model in found.models.items()}
    if table in keys:
        return found.project, keys[table]
    if table == "set_aside":
        return found.project, table
    return found.production.project, table


def verify_environment(
    declared: Project,
    name: str,
    *,
    select: Sequence[str] = (),
    sample: int | None = None,
    progress: Progress | None = None,
) -> VerificationReport:
    """Compare the tables that an environment has of its own with their rebuilds."""
    found = stored(declared, name)
    wanted = select_models(found.declared, select)
    keys = frozenset(key for model, key in found.own.items() if model in wanted)
    shown = ShownByName(progress or SilentProgress(), found.models)
    report = verify_models(found.project, keys, sample, shown)
    return with_model_names(report, found.models)


def audit_environment(
    declared: Project,
    name: str,
    select: Sequence[str] = (),
    as_of: int | None = None,
    progress: Progress | None = None,
) -> AuditReport:
    """Judge the tables that an environment has of its own by their audits."""
    found = stored(declared, name)
    wanted = select_models(found.declared, select)
    keys = frozenset(key for model, key in found.own.items() if model in wanted)
    shown = ShownByName(progress or SilentProgress(), found.models)
    return with_model_names(audit_models(found.project, keys, as_of, shown), found.models)


def environment_status(
    declared: Project, name: str, as_of: int | None = None, *, with_cells: bool = False
) -> tuple[Project, tuple[ModelStatus, ...]]:
    """The state of each table that is an environment's own, and the project of these."""
    found = stored(declared, name)
    observer = variant_observer(found, as_of)
    asked = PlanOptions(selected=frozenset(found.own.values()))
    known = states(found.project, observer, asked, with_cells=with_cells)
    own = tuple(entry for entry in known if entry.model in found.models)
    return with_model_names((found.project, own), found.models)


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

    found = stored(declared, name)
    project, key = project_of(found, model)
    if key not in project:
        raise command_errors.unknown_model(model, [*found.own, *(n.name for n in project)])
    if project is not found.project:
        shared = (("table", f"production's: {name} has none of its own"),)
        explained = explain(observer_of(project, as_of, estimate=True), key, cell)
        return replace(explained, applied=None, notes=(*shared, *explained.notes))
    explained = explain(variant_observer(found, as_of, estimate=True), key, cell)
    shown = with_model_names(explained, found.models)
    return replace(shown, sql=found.declared[model].model.written)


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
    """The environments of a target."""
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
    return _found(project, _promotion(project, name, allow_destructive))


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
    return _found(project, _rollback(project))


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


def _found(project: Project, find: FindSwap) -> SwapPreview:
    refuse_other_project(project, ledger_of(project))
    finish_swaps(project)
    outside = dropper(project)
    return find(outside.ledger, outside.lake)


def _carry_out(project: Project, shown: SwapPreview, find: FindSwap, wait: float) -> None:
    if not shown.changes:
        return  # a swap of nothing would hide the one before it from a rollback
    by = dropper(project)

    def swap() -> Swap:
        now = find(by.ledger, by.lake)
        if now != shown:
            raise environment_errors.promote_changed()
        return now.swap

    by.swap(swap, command=shown.swap.kind.value, wait=wait)
