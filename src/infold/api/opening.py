"""
What the functions of the API begin with: the project, its ledger, its tables, and an observation.

The project is found out anew each time: with the tables of changed definitions that are built
apart, as they take more than a run (:func:`project_to_run`). Nothing here starts Spark but
``definition_errors`` and ``spark_work``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from infold.core.environment import BUILT_APART
from infold.core.files import DatedPath, Listed, ListedFile
from infold.core.interval import Granularity, now
from infold.core.model import Source
from infold.core.plan import Destroyed, Observations, PlanOptions
from infold.core.project import Node, Project
from infold.core.target import Apply
from infold.core.trace import CellState
from infold.inspecting.as_built import Stretches
from infold.inspecting.changed_definitions import ChangedDefinitions
from infold.messages import command_errors
from infold.messages.errors import InfoldError, InfoldErrors
from infold.planning.selection import select_models, with_landed
from infold.render.definitions import apart_note, waiting_notes
from infold.running.ledger_consistency import foreign_tables, refuse_other_project
from infold.running.observe import Observer

if TYPE_CHECKING:
    from infold.core.definition import Redefinition
    from infold.core.ports import Lake
    from infold.inspecting.tables_apart import TablesApart
    from infold.ledger import SqlLedger
    from infold.running.forget import Dropper
    from infold.spark.step_context import Work


def open_project(
    root: Path | str,
    target: str | None = None,
    *,
    downgrade: bool = False,
    declared: bool = False,
) -> Project:
    """
    Read a project folder. Raises all its errors at once.

    In a target where `infold apply` applies definitions, the project has those that are applied,
    or those in the files if they are asked for as ``declared``.
    """
    from infold.declare.load import load, load_with_mistakes

    if declared:
        return load(Path(root), target, downgrade=downgrade)
    project, wrong = load_with_mistakes(Path(root), target, downgrade=downgrade)
    return by_applied(project, wrong)


def by_applied(declared: Project, wrong: InfoldErrors | None = None) -> Project:
    """The project by the applied definitions, where that is another one; see ``declared``."""
    if declared.target.apply is not Apply.MANUAL and wrong is None:
        return declared
    from infold.inspecting.applied_project import project_as_applied

    ledger = ledger_of(declared)
    refuse_other_project(declared, ledger)
    return project_as_applied(declared, ledger, wrong)


def refuse_lost_ledger(project: Project) -> None:
    """Raise ``ledger_behind`` where nothing was ever applied, and there are tables all the same."""
    if project.unapplied and not project.nodes:
        declared = open_project(project.root, project.target.name, declared=True)
        ledger, tables = ledger_of(declared), lake_of(declared)
        foreign_tables(declared, ledger, tables, ledger.newest_versions(), tables.moved_tables({}))


def to_apply(declared: Project, select: Sequence[str] = (), exclude: Sequence[str] = ()) -> Project:
    """
    The project as `infold apply` applies it: the declared definitions of all models, or of some.

    Raises ``apply_errors.apply_incomplete`` where these do not fit those that stay applied.
    """
    chosen = None
    if select or exclude:
        chosen = with_landed(declared, select_models(declared, select, exclude), exclude)
    if declared.target.apply is not Apply.MANUAL:
        return declared
    from infold.inspecting.applied_project import project_to_apply

    ledger = ledger_of(declared)
    refuse_other_project(declared, ledger)
    return project_to_apply(declared, ledger, chosen)


def ledger_of(project: Project) -> SqlLedger:
    """The target's ledger; nothing is created before something is written."""
    from infold.ledger import ledger_schema, open_ledger

    target = project.target
    key, schema = f"ledger of target {target.name}", ledger_schema(project)
    return open_ledger(target.ledger, project.root, key=key, schema=schema)


def lake_of(project: Project) -> Lake:
    """The target's tables, readable without a JVM."""
    from infold.spark.storages import storage_of

    return storage_of(project).lake(project)


def published_lake(project: Project) -> Lake:
    """The target's tables as readers see them."""
    from infold.spark.storages import storage_of

    return storage_of(project).published_lake(project)


def definition_errors(project: Project) -> Mapping[str, InfoldError]:
    """
    What Spark's analyser finds wrong, by model; nothing is read but the project, and none written.

    A model that reads a wrong one is not analysed yet.
    """
    from infold.api.spark_sessions import session

    spark = session(project)  # what is imported next is imported while its JVM starts
    from infold.spark.engine import SparkEngine

    engine = SparkEngine(spark, project, ledger_of(project), lake_of(project), "check")
    return engine.analyse([node.name for node in project])


def observer_of(
    project: Project,
    as_of: int | None = None,
    *,
    estimate: bool = False,
    asked: PlanOptions | None = None,
) -> Observer:
    """Observes sources and tables; ``estimate`` reads the event times of small new files."""
    from infold.lake.reading.formats import files_of
    from infold.running.source_listings import DatedLook

    ledger, tables, clock = ledger_of(project), lake_of(project), now()

    def files(source: Source) -> tuple[Sequence[ListedFile], Sequence[str]]:
        return files_of(source.format).list_files(project, source, clock)

    def path(source: Source) -> DatedPath:
        from infold.lake.reading.listing import dated_path

        return dated_path(project, source)

    def some(source: Source, skip: Collection[str]) -> Listed:
        from infold.lake.reading.listing import list_without

        return list_without(project, source, clock, skip)

    def times(
        source: Source, files: Sequence[ListedFile], granularity: Granularity, clock: int
    ) -> tuple[tuple[CellState, ...], int] | None:
        # pyarrow: half of the time of a run with nothing to do
        from infold.lake.reading.event_times import estimate_cells

        stores = project.target.stores
        return estimate_cells(project.root, source, files, granularity, clock, stores=stores)

    def count(source: Source, some: Sequence[ListedFile]) -> Mapping[str, int]:
        return files_of(source.format).row_counts(project, some)

    def others(source: Source) -> str:
        from infold.lake.reading.listing import other_files

        return other_files(project, source)

    return Observer(
        project,
        ledger,
        tables,
        files,
        clock if as_of is None else as_of,
        times if estimate else None,
        frozenset(asked.restated) if asked else frozenset(),
        count,
        redefinitions=ChangedDefinitions(project, ledger, asked.forward_only if asked else {}),
        stretches=Stretches(project, ledger, declared=True),
        dated=DatedLook(path, some),
        full_listing=asked is not None and asked.full_listing,
        other_files=others,
    )


def observe(
    project: Project, *, as_of: int | None = None, asked: PlanOptions | None = None
) -> Observations:
    """Everything that a plan follows from."""
    return observer_of(project, as_of, estimate=True, asked=asked).observe()


def observe_all(
    project: Project, *, as_of: int | None = None, asked: PlanOptions | None = None
) -> Observations:
    """
    As :func:`observe`, with all changed definitions; refused models are part of the result, and no
    error.
    """
    observer = observer_of(project, as_of, estimate=True, asked=asked)
    ledger, forward = observer.ledger, asked.forward_only if asked is not None else {}
    changes = ChangedDefinitions(project, ledger, forward)
    observer.redefinitions = changes
    declared = (
        ChangedDefinitions(project.once_complete, ledger, forward)
        if project.once_complete
        else changes
    )
    return replace(observer.observe_all(), redefinitions=declared.all())


def spark_work(project: Project, tables: Lake | None = None) -> Work:
    """
    The process's Spark session, tables and ledger, for a query outside of any step.

    ``tables`` are the ones to read, if they are not those that runs read.
    """
    from infold.api.spark_sessions import session

    spark = session(project)
    from infold.spark.engine import SparkEngine

    lake = lake_of(project) if tables is None else tables
    return SparkEngine(spark, project, ledger_of(project), lake, "show").work("")


def dropper(project: Project) -> Dropper:
    """Drops tables of the project's target, under its lease."""
    from infold.api.sole_writer import sole_writer
    from infold.running.forget import Dropper

    ledger = ledger_of(project)
    return Dropper(project, ledger, lake_of(project), now(), lambda: sole_writer(project, ledger))


def with_selected(
    project: Project, options: PlanOptions | None, select: Sequence[str], exclude: Sequence[str]
) -> PlanOptions:
    """What a plan is asked for, with the models that some terms name."""
    options = options or PlanOptions()
    chosen = chosen_models(project, select, exclude)
    if chosen is None:
        return options
    return replace(options, selected=with_landed(project, chosen, exclude))


def refuse_unknown_allowed(project: Project, options: PlanOptions) -> None:
    """Raise ``unknown_model`` where an allowed change is of no model, not even a removed one."""
    names = options.allow_destructive - {node.name for node in project}
    if names:
        known = {node.name for node in project} | ledger_of(project).applied().keys()
        for name in sorted(names - known):
            raise command_errors.unknown_model(name, sorted(known))


def chosen_models(
    project: Project, select: Sequence[str], exclude: Sequence[str]
) -> frozenset[str] | None:
    """The models that some terms name; None without a term."""
    return select_models(project, select, exclude) if select or exclude else None


def once_complete(project: Project) -> Project:
    """A project by the definitions that are wanted, whatever is built apart."""
    return project.once_complete or project


def project_to_run(
    project: Project,
    asked: PlanOptions | None = None,
    *,
    select: Sequence[str] = (),
    exclude: Sequence[str] = (),
    as_of: int | None = None,
) -> Project:
    """The project as a run goes by it, with what it would begin to build apart."""
    base = once_complete(project)
    asked = with_selected(base, asked, select, exclude)
    return apart_as_asked(observer_of(base, as_of, asked=asked), asked, allowed=False).project


def apart_as_asked(observer: Observer, options: PlanOptions, *, allowed: bool) -> TablesApart:
    """The project as a run goes by it, now."""
    from infold.inspecting.tables_apart import tables_apart

    may_begin = may_build_apart(observer, options, allowed=allowed)
    return tables_apart(observer.project, observer.ledger, observer.lake, may_begin, options)


def with_apart(project: Project) -> Project:
    """The project with the tables that are being built apart."""
    from infold.inspecting.tables_apart import tables_apart

    base, ledger = once_complete(project), ledger_of(project)
    return (
        tables_apart(base, ledger, lake_of(base)).project
        if BUILT_APART in ledger.own_tables()
        else base
    )


def notes_apart(project: Project, observed: Observations) -> tuple[str, ...]:
    """What is said of the tables of a project that are, or would be, built apart."""
    from infold.inspecting.tables_apart import progress_apart

    if not project.apart:
        return ()
    tables = progress_apart(project, observed, ledger_of(project), lake_of(project))
    return (*map(apart_note, tables), *waiting_notes(project))


def lost_by_beginning(
    project: Project, observed: Observations, options: PlanOptions
) -> Iterator[Destroyed]:
    """What readers lose by tables that would begin to be built apart."""
    new = {model for key, model in project.apart.items() if observed.models[key].trace is None}
    yield from destroyed_by(project, observed.redefinitions, new, options)


def may_build_apart(
    observer: Observer, options: PlanOptions, *, allowed: bool
) -> Callable[[Sequence[Node]], Collection[str]]:
    """Which changed models begin to be built apart: those that take more than one run."""
    from infold.inspecting.tables_apart import exceeds_limit

    target = observer.project.target

    def may_begin(nodes: Sequence[Node]) -> Collection[str]:
        limited = [
            node
            for node in nodes
            if node.backfill_limit is not None
            and (options.selected is None or node.name in options.selected)
        ]
        if not limited or (target.protected and target.apply is not Apply.MANUAL and not allowed):
            return ()
        models = observer.observe_all().models
        return [node.name for node in limited if exceeds_limit(node, models[node.name], options)]

    return may_begin


def with_own_tables(project: Project, options: PlanOptions) -> PlanOptions:
    """What is asked for, with the tables that are built apart of the models that are asked for."""
    if not project.apart or options.selected is None:
        return options
    keys = {key for key, model in project.apart.items() if model in options.selected}
    return replace(options, selected=(options.selected - project.apart.keys()) | keys)


def choose_models(
    project: Project, options: PlanOptions | None, select: Sequence[str], exclude: Sequence[str]
) -> PlanOptions:
    """What is asked for of a project with tables that are built apart."""
    return with_own_tables(project, with_selected(project, options, select, exclude))


def destroyed_by(
    project: Project, changes: Sequence[Redefinition], models: Collection[str], options: PlanOptions
) -> Iterator[Destroyed]:
    """What changes of some models destroy, unless `infold apply` has permitted it before."""
    from infold.planning.destructive import policy

    base = once_complete(project)
    permitted = base.target.apply is Apply.MANUAL
    for change in changes:
        asks = change.model in base.applies or not permitted
        if asks and change.model in models and change.destroys:
            yield Destroyed(
                change.model, change.destroys, policy(base, change.model, options, change)
            )
