"""
Assets for Dagster: the tables of a project, with the cells of a table as its partitions.

There are two ways to bring them up to date, and both are runs of infold. ``infold_assets``
materializes tables that somebody selects, and of tables with partitions those. ``infold_job`` takes
in all that arrived: late rows decide which partitions that concerns, and each is reported.

Annotations here are no texts: Dagster looks at them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import dagster as dg

from infold.orchestration.command import WAIT_SECONDS, InfoldProject, RunningCommand, RunOptions
from infold.orchestration.graph import (
    GraphModel,
    ProjectGraph,
    overlap,
    partitions_of,
    window_words,
)
from infold.orchestration.outcome import JsonObject, Outcome, Verdict, models_with_work

__all__ = ["InfoldProject", "infold_assets", "infold_definitions", "infold_job", "infold_sensor"]


_VALID_TAG = re.compile(r"[A-Za-z0-9_.-]{1,63}")


@dataclass(frozen=True)
class ProjectView:
    """A project with the names that Dagster has for its parts."""

    project: InfoldProject
    graph: ProjectGraph
    prefix: tuple[str, ...]
    group_name: str | None
    wait: float

    @classmethod
    def of(
        cls, project: InfoldProject, prefix: Sequence[str], group_name: str | None, wait: float
    ) -> Self:
        """Of a project, as its files are now."""
        return cls(project, project.graph(), tuple(prefix), group_name, wait)

    @property
    def name(self) -> str:
        """The project's name, as part of the names of definitions."""
        return re.sub(r"\W", "_", self.graph.project)

    def key(self, name: str) -> dg.AssetKey:
        """The key of a table, or of a source, whose name has a dot."""
        return dg.AssetKey([*self.prefix, *name.split(".")])

    def partitions(self, model: GraphModel) -> dg.TimeWindowPartitionsDefinition | None:
        """The partitions of a table, up to the one that is not over."""
        found = partitions_of(model)
        if found is None:
            return None
        return dg.TimeWindowPartitionsDefinition(
            start=found.start,
            cron_schedule=found.cron,
            fmt=found.key_format,
            timezone="UTC",
            end_offset=1,
        )

    def specs(self) -> list[dg.AssetSpec]:
        """The tables."""
        return [
            dg.AssetSpec(
                self.key(model.name),
                deps=[self.key(read) for read in self.graph.reads(model.name)],
                description=model.description or None,
                group_name=self.group_name,
                kinds={"infold", "spark"},
                tags={tag: "" for tag in model.tags if _VALID_TAG.fullmatch(tag)},
                partitions_def=self.partitions(model),
                skippable=True,
                metadata={"materialization": model.kind, **_columns(model)},
            )
            for model in self.graph.tables
        ]

    def source_specs(self) -> list[dg.AssetSpec]:
        """What the tables are made from; nothing here materializes it."""
        landed = {table.name for table in self.graph.tables}
        return [
            dg.AssetSpec(
                self.key(source.name),
                group_name=self.group_name,
                kinds={"infold"},
                metadata=_columns(source),
            )
            for source in self.graph.sources
            if source.name not in landed
        ]

    def check_specs(self) -> list[dg.AssetCheckSpec]:
        """The audits of the tables."""
        return [
            dg.AssetCheckSpec(check, asset=self.key(model.name), description=audit)
            for model in self.graph.tables
            for audit, check in _checks(model).items()
        ]

    def check_results(
        self, model: GraphModel, audits: Sequence[Mapping[str, Any]]
    ) -> Iterator[dg.AssetCheckResult]:
        """What audits of a model found; those that wait for rows found nothing yet."""
        checks = _checks(model)
        for audit in audits:
            if audit["audit"] in checks and audit["state"] != "waiting":
                warn = audit["severity"] == "warn"
                yield dg.AssetCheckResult(
                    passed=audit["state"] == "passed",
                    asset_key=self.key(model.name),
                    check_name=checks[audit["audit"]],
                    severity=dg.AssetCheckSeverity.WARN if warn else dg.AssetCheckSeverity.ERROR,
                    metadata={"bad": audit.get("bad") or 0, "found": audit.get("found") or ""},
                )


@dataclass(frozen=True)
class Told:
    """What a run and the status after it say of each model."""

    result: JsonObject
    steps: Mapping[str, Sequence[Mapping[str, Any]]]
    status: Mapping[str, Mapping[str, Any]]

    def metadata(self, name: str) -> dict[str, Any]:
        """What is worth knowing of a materialization."""
        receipts = [step["receipt"] for step in self.steps.get(name, ())]
        found: dict[str, Any] = {"infold_run": self.result.get("run") or ""}
        for count in ("arrived", "read", "written", "removed", "set_aside", "cells_built"):
            found[count] = sum(receipt.get(count) or 0 for receipt in receipts)
        if name in self.status:
            found["dagster/row_count"] = self.status[name]["rows"]
        return found

    def audits(self, name: str) -> Sequence[Mapping[str, Any]]:
        """What the audits of a model found last."""
        return self.status.get(name, {}).get("audits") or ()


def told_of(view: ProjectView, outcome: Outcome, context: Any) -> Told:
    """What to report; rows and audits are those that `infold status` has now."""
    steps: dict[str, list[Mapping[str, Any]]] = {}
    for step in outcome.result.get("steps") or ():
        steps.setdefault(step["model"], []).append(step)
    status = RunningCommand().carry_out(view.project, "status").result
    for warning in outcome.warnings:
        context.log.warning(warning)
    for name, done in steps.items():
        sources = [read for read in view.graph.reads(name) if "." in read]
        files = sum(step["receipt"].get("files_new") or 0 for step in done)
        arrived = sum(step["receipt"].get("arrived") or 0 for step in done)
        if len(sources) == 1 and (files or arrived):
            context.log_event(
                dg.AssetObservation(
                    view.key(sources[0]), metadata={"files_new": files, "rows_arrived": arrived}
                )
            )
    return Told(outcome.result, steps, {one["model"]: one for one in status.get("models") or ()})


def built_events(
    view: ProjectView, model: GraphModel, told: Told
) -> Iterator[dg.AssetMaterialization]:
    """A materialization for each partition with rows that a run built, or one for all."""
    key, metadata = view.key(model.name), told.metadata(model.name)
    partitions = view.partitions(model)
    if partitions is None:
        yield dg.AssetMaterialization(key, metadata=metadata)
        return
    built = [cells for step in told.steps[model.name] for cells in step["cells"]]
    covered = told.status.get(model.name, {}).get("covered") or ()
    keys = {
        name
        for start, end in overlap(built, covered)
        for name in partitions.get_partition_keys_in_time_window(dg.TimeWindow(start, end))
    }
    for name in sorted(keys):
        yield dg.AssetMaterialization(key, partition=name, metadata=metadata)


def _columns(model: GraphModel) -> dict[str, Any]:
    """The columns of a table; their types are known only once it is stored."""
    columns = [dg.TableColumn(name, type="unknown") for name in model.columns]
    return {"dagster/column_schema": dg.TableSchema(columns)} if columns else {}


def _checks(model: GraphModel) -> dict[str, str]:
    """The name of each audit's check: letters, digits and underscores, and each once."""
    found: dict[str, str] = {}
    for audit, _ in model.audits:
        name = re.sub(r"\W+", "_", audit).strip("_") or "audit"
        taken = set(found.values())
        number = next(n for n in range(1, len(taken) + 2) if _numbered(name, n) not in taken)
        found[audit] = _numbered(name, number)
    return found


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name}_{number}"


def infold_definitions(
    project: InfoldProject,
    *,
    key_prefix: Sequence[str] = (),
    group_name: str | None = None,
    retry_policy: dg.RetryPolicy | None = None,
    sensor_seconds: int = 60,
    wait: float = WAIT_SECONDS,
) -> dg.Definitions:
    """All of a project: its assets, their checks, the job that runs it, and a sensor for that."""
    view = ProjectView.of(project, key_prefix, group_name, wait)
    job = _job(view, retry_policy)
    return dg.Definitions(
        assets=[_assets(view, retry_policy), *view.source_specs()],
        jobs=[job],
        sensors=[_sensor(view, job, sensor_seconds)],
    )


def infold_assets(
    project: InfoldProject,
    *,
    key_prefix: Sequence[str] = (),
    group_name: str | None = None,
    retry_policy: dg.RetryPolicy | None = None,
    wait: float = WAIT_SECONDS,
) -> dg.AssetsDefinition:
    """The tables of a project, each of which can be materialized by itself, with their checks."""
    return _assets(ProjectView.of(project, key_prefix, group_name, wait), retry_policy)


def infold_job(
    project: InfoldProject,
    *,
    key_prefix: Sequence[str] = (),
    retry_policy: dg.RetryPolicy | None = None,
    wait: float = WAIT_SECONDS,
) -> dg.JobDefinition:
    """A job that takes in all that arrived, and reports what it built of which asset."""
    return _job(ProjectView.of(project, key_prefix, None, wait), retry_policy)


def infold_sensor(
    project: InfoldProject, job: dg.JobDefinition, *, seconds: int = 60
) -> dg.SensorDefinition:
    """A sensor that starts the job when `infold plan` has something to do."""
    return _sensor(ProjectView.of(project, (), None, WAIT_SECONDS), job, seconds)


def _assets(view: ProjectView, retry_policy: dg.RetryPolicy | None) -> dg.AssetsDefinition:
    @dg.multi_asset(
        name=f"{view.name}_tables",
        specs=view.specs(),
        check_specs=view.check_specs(),
        can_subset=True,
        retry_policy=retry_policy,
        # Many partitions are one run, which infold cuts into batches itself.
        backfill_policy=dg.BackfillPolicy.single_run(),
    )
    def tables(context: dg.AssetExecutionContext) -> Iterator[Any]:
        asked = [
            model
            for model in view.graph.tables
            if view.key(model.name) in context.selected_asset_keys
        ]
        if not asked:
            yield from _judged(view, context)
            return
        start, end = _window(context, asked, view)
        options = RunOptions([model.name for model in asked], start=start, end=end, wait=view.wait)
        outcome = _carried_out(view.project, "run", options.words(), context)
        told = told_of(view, outcome, context)
        wanted = context.selected_asset_check_keys
        unbuilt = _not_built(outcome.result)
        for model in asked:
            if outcome.exit_code == 0 or model.name not in unbuilt:
                yield dg.MaterializeResult(
                    asset_key=view.key(model.name), metadata=told.metadata(model.name)
                )
            for found in view.check_results(model, told.audits(model.name)):
                if _key_of(found) in wanted:
                    yield found
        _raise_if_failed(outcome)

    return tables


def _judged(view: ProjectView, context: dg.AssetExecutionContext) -> Iterator[dg.AssetCheckResult]:
    """The checks alone: `infold audit` judges the stored rows."""
    wanted = context.selected_asset_check_keys
    models = [
        model
        for model in view.graph.tables
        if any(check.asset_key == view.key(model.name) for check in wanted)
    ]
    outcome = _carried_out(view.project, "audit", [model.name for model in models], context)
    if "audits" not in outcome.result:
        _raise_if_failed(outcome)
    for model in models:
        mine = [one for one in outcome.result["audits"] if one["model"] == model.name]
        for found in view.check_results(model, mine):
            if _key_of(found) in wanted:
                yield found


def _key_of(found: dg.AssetCheckResult) -> dg.AssetCheckKey:
    """Which check it is the result of."""
    return dg.AssetCheckKey(found.asset_key, found.check_name)


def _job(view: ProjectView, retry_policy: dg.RetryPolicy | None) -> dg.JobDefinition:
    @dg.op(name=f"{view.name}_run_all", retry_policy=retry_policy)
    def run_all(context: dg.OpExecutionContext) -> None:
        words = RunOptions(wait=view.wait).words()
        outcome = _carried_out(view.project, "run", words, context)
        told = told_of(view, outcome, context)
        for model in view.graph.tables:
            if model.name in told.steps:
                for event in built_events(view, model, told):
                    context.log_event(event)
            for found in view.check_results(model, told.audits(model.name)):
                context.instance.report_runless_asset_event(
                    dg.AssetCheckEvaluation(
                        asset_key=view.key(model.name),
                        check_name=found.check_name or "",
                        passed=found.passed,
                        severity=found.severity,
                        metadata=found.metadata,
                    )
                )
        _raise_if_failed(outcome)

    @dg.job(name=f"{view.name}_run")
    def run() -> None:
        run_all()

    return run


def _sensor(view: ProjectView, job: dg.JobDefinition, seconds: int) -> dg.SensorDefinition:
    @dg.sensor(name=f"{view.name}_has_work", job=job, minimum_interval_seconds=seconds)
    def has_work(context: dg.SensorEvaluationContext) -> Iterator[Any]:
        going_on = dg.RunsFilter(job_name=job.name, statuses=_GOING_ON)
        if context.instance.get_runs(going_on, limit=1):
            yield dg.SkipReason("A run goes on.")
            return
        outcome = RunningCommand().carry_out(view.project, "plan")
        models = models_with_work(outcome.result)
        if models:
            yield dg.RunRequest(tags={"infold/models": ", ".join(models)[:200]})
        else:
            yield dg.SkipReason("Nothing to do." if outcome.exit_code == 0 else outcome.why)

    return has_work


_GOING_ON = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def _carried_out(
    project: InfoldProject, command: str, words: Sequence[str], context: Any
) -> Outcome:
    """A command's end; it is stopped as SIGTERM does if Dagster ends the run."""
    running = RunningCommand()
    try:
        return running.carry_out(project, command, words, context.log.info)
    except BaseException:
        running.stop()
        raise


def _raise_if_failed(outcome: Outcome) -> None:
    """Raise a failure for Dagster, which tries again only if that may help."""
    if outcome.exit_code:
        again = outcome.verdict is Verdict.TRY_AGAIN
        raise dg.Failure(description=outcome.why, allow_retries=again)


def _not_built(result: JsonObject) -> set[str]:
    """The models that a run did not bring up to date; all of them if it says nothing of them."""
    if "failed" not in result:
        return _Everything()
    return {one["model"] for part in ("failed", "not_tried") for one in result.get(part) or ()}


class _Everything(set[str]):
    """A set that has every name."""

    def __contains__(self, name: object) -> bool:
        return True


def _window(
    context: dg.AssetExecutionContext, asked: Sequence[GraphModel], view: ProjectView
) -> tuple[str | None, str | None]:
    """The window of the partitions that are materialized; open if none of the tables has some."""
    if not (context.has_partition_key or context.has_partition_key_range):
        return None, None
    definition = next(found for model in asked if (found := view.partitions(model)) is not None)
    first = definition.time_window_for_partition_key(context.partition_key_range.start)
    last = definition.time_window_for_partition_key(context.partition_key_range.end)
    return window_words(first.start, last.end)
