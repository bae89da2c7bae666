"""
Events of lineage: each run, each of its steps, and what audits found, as OpenLineage has them.

A run is one of the job PROJECT.TARGET, and the parent of its steps, which are runs of jobs
PROJECT.TARGET.MODEL. What audits found of a table is about a run of PROJECT.TARGET.MODEL.audits,
which reads it. Runs have ids of their own, as OpenLineage wants UUIDs.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from infold import __version__
from infold.core.audits import AuditResult, AuditState, JudgedAudit, Severity
from infold.core.formats import Format
from infold.core.interval import now
from infold.core.model import Source, table_name
from infold.core.object_store import SCHEMES, StoreKind, bucket_url, is_url, scheme_of, split
from infold.core.plan import Step
from infold.core.project import Node, Project
from infold.core.record import Receipt
from infold.core.type_changes import Type
from infold.messages.errors import InfoldError
from infold.system.secrets import address
from infold.telling.listener import Listener, RunEnd, RunStart, written
from infold.telling.sender import Sender

# A dataset has the name of its place: the folder of a table in the warehouse, that of a source's
# files. So other programs that read or write there name it alike.

PRODUCER = f"https://pypi.org/project/infold/{__version__}"
"""Who makes the events, as a URI."""
SPEC = "https://openlineage.io/spec"
VERSIONS = {
    "ColumnLineageDatasetFacet": "1-2-0",
    "DataQualityAssertionsDatasetFacet": "1-1-0",
    "ErrorMessageRunFacet": "1-0-1",
    "JobTypeJobFacet": "2-0-4",
    "OutputStatisticsOutputDatasetFacet": "1-0-2",
    "ParentRunFacet": "1-2-0",
    "ProcessingEngineRunFacet": "1-1-1",
    "SQLJobFacet": "1-1-0",
    "SchemaDatasetFacet": "1-2-0",
    "StorageDatasetFacet": "1-0-1",
}
"""The facets that are sent, and of which version each is."""

JsonObject = dict[str, Any]
Columns = Callable[[str], Mapping[str, Type]]
"""The columns of a stored table, by its name in the storage."""
FindColumnSources = Callable[[Project], Callable[[Node], Any]]
"""What finds of a model of a project what its columns are made of; None where that is not known."""


def facet(name: str, /, **values: Any) -> JsonObject:
    """A facet, with who made it and by which schema."""
    url = f"{SPEC}/facets/{VERSIONS[name]}/{name}.json#/$defs/{name}"
    return {"_producer": PRODUCER, "_schemaURL": url, **values}


@dataclass
class Datasets:
    """The datasets of a project; ``columns`` looks into stored tables."""

    project: Project
    columns: Columns
    column_sources: FindColumnSources
    _sources_of: Callable[[Node], Any] | None = None
    _lineage: dict[str, JsonObject | None] = field(default_factory=dict)

    def named(self, name: str) -> JsonObject:
        """The namespace and name of a model's table, or of a source."""
        if name not in self.project and name in self.project.sources:
            return self._of_source(self.project.sources[name])
        place = self.project.warehouse_location.rstrip("/")
        return _placed(f"{place}/{self.project.namespace}/{table_name(name)}")

    def _of_source(self, source: Source) -> JsonObject:
        if source.url is not None:
            return self._in_database(source.url, source.table or "")
        if source.path is None:
            of = address(source.catalog.uri if source.catalog is not None else "catalog")
            place = f"{of.netloc}{of.path}".strip("/")
            kind = "hive" if source.format is Format.DELTA else "iceberg"
            return {"namespace": f"{kind}://{place.partition(',')[0]}", "name": source.table}
        folder = source.path.partition("*")[0].partition("{")[0].rpartition("/")[0]
        whole = "*" in source.path or "{" in source.path
        path = folder if whole else source.path
        return _placed(path if is_url(path) else str((self.project.root / path).resolve()))

    def _in_database(self, url: str, table: str) -> JsonObject:
        """As other programs name tables of PostgreSQL; of SQLite, below the file."""
        parts = address(url)
        if parts.scheme == "sqlite":
            return _placed(
                f"{(self.project.root / parts.path.removeprefix('/')).resolve()}/{table}"
            )
        return {
            "namespace": f"postgres://{parts.netloc}",
            "name": f"{parts.path.strip('/')}.{table}",
        }

    def inputs(self, node: Node) -> list[JsonObject]:
        """What a step of a model reads."""
        return [self.read(one.name) for one in node.inputs]

    def read(self, name: str) -> JsonObject:
        """A table or source that is read, with the declared columns of a source."""
        found = self.named(name)
        source = self.project.sources.get(name)
        if source is not None and name not in self.project and source.columns:
            columns = [{"name": one.name, "type": one.type} for one in source.columns]
            found["facets"] = {"schema": facet("SchemaDatasetFacet", fields=columns)}
        return found

    def output(self, node: Node, rows: int | None) -> JsonObject:
        """The table that a step of a model writes; with ``rows``, what it wrote."""
        storage = facet("StorageDatasetFacet", storageLayer=str(self.project.target.storage))
        facets = {"storage": storage | {"fileFormat": "parquet"}}
        if rows is None:
            return {**self.named(node.name), "facets": facets}
        stored = self.columns(table_name(node.name)) or {}
        columns = [{"name": name, "type": _type_name(one)} for name, one in stored.items()]
        if columns:
            facets["schema"] = facet("SchemaDatasetFacet", fields=columns)
        if lineage := self._column_lineage(node):
            facets["columnLineage"] = lineage
        written = facet("OutputStatisticsOutputDatasetFacet", rowCount=rows)
        return {
            **self.named(node.name),
            "facets": facets,
            "outputFacets": {"outputStatistics": written},
        }

    def _column_lineage(self, node: Node) -> JsonObject | None:
        if node.name not in self._lineage:
            self._lineage[node.name] = self._find_lineage(node)
        return self._lineage[node.name]

    def _find_lineage(self, node: Node) -> JsonObject | None:
        """What each column is made of; None where nothing is known of that."""
        if self._sources_of is None:
            self._sources_of = self.column_sources(self.project)
        found = self._sources_of(node)
        if found is None:
            return None
        fields = {
            column: {
                "inputFields": [
                    self._field(place, "DIRECT", how.name) for place, how in sorted(of.items())
                ]
            }
            for column, of in found.fields.items()
            if of  # made of no column, as count(*), or of what a function in Python does
        }
        rows = [self._field(place, "INDIRECT", use) for place, use in sorted(found.rows)]
        if not (fields or rows):
            return None
        return facet("ColumnLineageDatasetFacet", fields=fields, dataset=rows)

    def _field(self, place: tuple[str, str], kind: str, subtype: str) -> JsonObject:
        table, column = place
        how = {"type": kind, "subtype": str(subtype)}
        return {**self.named(table), "field": column, "transformations": [how]}


def _placed(location: str) -> JsonObject:
    """A dataset by a folder of this machine or a URL of a store."""
    if is_url(location) and scheme_of(location) in SCHEMES:
        is_path = scheme_of(location) == StoreKind.HDFS
        name = split(location)[1]
        return {"namespace": bucket_url(location), "name": f"/{name}" if is_path else name}
    return {"namespace": "file", "name": location}


def _type_name(type_: Type) -> str:
    return type_ if isinstance(type_, str) else str(type_.get("type", "struct"))


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

    ``columns`` are those of stored tables, ``audits`` what the ledger knows of audits,
    ``column_sources`` finds what columns are made of.
    """

    sender: Sender
    namespace: str
    columns: Columns
    audits: Callable[[], Sequence[JudgedAudit]]
    column_sources: FindColumnSources
    name = "lineage"
    _start: RunStart | None = None
    _run: _Job | None = None
    _open: dict[str, _Job] = field(default_factory=dict)

    def began(self, start: RunStart) -> None:
        """The run begins."""
        self._start = start
        self._datasets = Datasets(start.project, self.columns, self.column_sources)
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
                "eventTime": written(now() if at is None else at),
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
