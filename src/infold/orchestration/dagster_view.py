"""
A project with the names that Dagster has for its parts, and what a run says of them.

Annotations of this module and the one that uses it are no texts: Dagster looks at them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import dagster as dg

from infold.orchestration.command import InfoldProject, RunningCommand
from infold.orchestration.graph import GraphModel, ProjectGraph, overlap, partitions_of
from infold.orchestration.outcome import JsonObject, Outcome

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
