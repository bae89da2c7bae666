"""
Events of lineage: each run, each of its steps, and what audits found, as OpenLineage has them.

A run is one of the job PROJECT.TARGET, and the parent of its steps, which are runs of jobs
PROJECT.TARGET.MODEL. What audits found of a table is about a run of PROJECT.TARGET.MODEL.audits,
which reads it. Runs have ids of their own, as OpenLineage wants UUIDs.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from infold import __version__
from infold.core.audits import AuditResult, AuditState, JudgedAudit, Severity
from infold.core.plan import Step
from infold.core.record import Receipt
from infold.messages.errors import InfoldError
from infold.running.telling.datasets import (
    PRODUCER,
    SPEC,
    Columns,
    Datasets,
    JsonObject,
    facet,
)
from infold.running.telling.listener import Listener, RunEnd, RunStart, written
from infold.running.telling.sender import Sender

SCHEMA = f"{SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"


@dataclass(frozen=True, slots=True)
class _Job:
    """A run of a job that began."""

    name: str
    kind: str
    run: str = field(default_factory=lambda: str(uuid.uuid4()))
    model: str = ""


@dataclass
class LineageEvents(Listener):
    """
    Sends events of a run as it goes on.

    ``columns`` are those of stored tables, ``audits`` what the ledger knows of audits.
    """

    sender: Sender
    namespace: str
    columns: Columns
    audits: Callable[[], Sequence[JudgedAudit]]
    name = "lineage"
    _start: RunStart | None = None
    _run: _Job | None = None
    _open: dict[str, _Job] = field(default_factory=dict)

    def began(self, start: RunStart) -> None:
        """The run begins."""
        self._start = start
        self._datasets = Datasets(start.project, self.columns)
        self._run = _Job(f"{start.project.name}.{start.project.target.name}", "PROJECT")
        self._send("START", self._run, start.at)

    def step(self, index: int, total: int | None, step: Step) -> None:
        """A step begins; one of several at a time is told again before its end."""
        del index, total
        if step.model not in self._open:
            job = self._job_of(step.model, "MODEL", step.model)
            self._open[step.model] = job
            self._send("START", job, **self._of_step(step.model, None))

    def done(self, step: Step, receipt: Receipt) -> None:
        """A step has written its rows."""
        job = self._open.pop(step.model)
        found: JsonObject = {}
        try:
            found = self._of_step(step.model, receipt.written)
        finally:  # whatever could not be found out about its table: the step is done
            self._send("COMPLETE", job, **found)

    def failed(self, step: Step, error: InfoldError) -> None:
        """A step has written nothing."""
        job = self._open.pop(step.model)
        self._send("FAIL", job, error=error, **self._of_step(step.model, None))

    def ended(self, end: RunEnd) -> Iterator[str]:
        """The run ended: the steps that it left, what audits found, and its own end."""
        for job in self._open.values():
            self._send("ABORT", job, end.at, **self._of_step(job.model, None))
        assert self._run is not None, "it began"
        try:
            if end.result is not None:
                self._send_audits(end.start.at)
        finally:  # the ledger may be what failed
            kind = "COMPLETE" if end.succeeded else "FAIL"
            self._send(kind, self._run, end.at, error=end.error)
            yield from self.sender.close()

    def _of_step(self, model: str, rows: int | None) -> JsonObject:
        if model not in self._datasets.project:  # a changed table that is built under another name
            return {"outputs": [self._datasets.named(model)]}
        node = self._datasets.project[model]
        return {
            "inputs": self._datasets.inputs(node),
            "outputs": [self._datasets.output(node, rows)],
        }

    def _job_of(self, name: str, kind: str, model: str) -> _Job:
        assert self._run is not None, "it began"
        return _Job(f"{self._run.name}.{name}", kind, model=model)

    def _send_audits(self, since: int) -> None:
        found: dict[str, list[AuditResult]] = {}
        for one in self.audits():
            judged = one.result.state is not AuditState.WAITING
            if one.at >= since and judged and not one.result.stored:
                found.setdefault(one.result.model, []).append(one.result)
        for model, results in found.items():
            assertions = facet(
                "DataQualityAssertionsDatasetFacet", assertions=[_assertion(one) for one in results]
            )
            about = {
                **self._datasets.named(model),
                "inputFacets": {"dataQualityAssertions": assertions},
            }
            job = self._job_of(f"{model}.audits", "AUDITS", model)
            self._send("START", job, inputs=[about])
            kind = "FAIL" if any(one.fails for one in results) else "COMPLETE"
            self._send(kind, job, inputs=[about])

    def _send(
        self,
        kind: str,
        job: _Job,
        at: int | None = None,
        *,
        error: InfoldError | None = None,
        **datasets: Any,
    ) -> None:
        assert self._run is not None, "it began"
        run_facets = {
            "processing_engine": facet(
                "ProcessingEngineRunFacet", version=__version__, name="infold"
            )
        }
        if job is not self._run:
            parent = {"namespace": self.namespace, "name": self._run.name}
            run = {"runId": self._run.run}
            run_facets["parent"] = facet("ParentRunFacet", run=run, job=parent)
        if error is not None:
            run_facets["errorMessage"] = facet(
                "ErrorMessageRunFacet", message=str(error), programmingLanguage="SQL"
            )
        self.sender.send(
            {
                "eventTime": written(time.time_ns() // 1000 if at is None else at),
                "producer": PRODUCER,
                "schemaURL": SCHEMA,
                "eventType": kind,
                "run": {"runId": job.run, "facets": run_facets},
                "job": {
                    "namespace": self.namespace,
                    "name": job.name,
                    "facets": self._job_facets(job),
                },
                "inputs": [],
                "outputs": [],
                **datasets,
            }
        )

    def _job_facets(self, job: _Job) -> JsonObject:
        kind = facet(
            "JobTypeJobFacet", processingType="BATCH", integration="INFOLD", jobType=job.kind
        )
        if job.kind != "MODEL" or job.model not in self._datasets.project:
            return {"jobType": kind}
        model = self._datasets.project[job.model].model
        if model.python is not None:
            return {"jobType": kind}
        return {"jobType": kind, "sql": facet("SQLJobFacet", query=model.sql, dialect="spark")}


def _assertion(result: AuditResult) -> JsonObject:
    """What an audit found; no rows, which may be anybody's."""
    severity = "error" if result.severity is Severity.ERROR else "warn"
    found = {
        "assertion": result.audit,
        "name": result.audit,
        "success": result.state is AuditState.PASSED,
        "severity": severity,
        "actual": f"{result.bad} bad",
    }
    return found | ({"description": result.what} if result.what else {})
