"""
Tables and sources as OpenLineage names them, and what is known of their columns.

A dataset has the name of its place: the folder of a table in the warehouse, that of a source's
files. So other programs that read or write there name it alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from infold import __version__
from infold.core.formats import Format
from infold.core.model import Source, table_name
from infold.core.object_store import SCHEMES, StoreKind, bucket_url, is_url, scheme_of, split
from infold.core.project import Node, Project
from infold.core.type_changes import Type
from infold.system.secrets import address

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


def facet(name: str, /, **values: Any) -> JsonObject:
    """A facet, with who made it and by which schema."""
    url = f"{SPEC}/facets/{VERSIONS[name]}/{name}.json#/$defs/{name}"
    return {"_producer": PRODUCER, "_schemaURL": url, **values}


@dataclass
class Datasets:
    """The datasets of a project; ``columns`` looks into stored tables."""

    project: Project
    columns: Columns
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
        from infold.analysis.definitions.column_sources import column_sources

        relation = self._meanings[node.name].relation
        if relation is None:
            return None
        found = column_sources(relation)
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

    @cached_property
    def _meanings(self) -> Any:
        from infold.analysis.definitions.meanings import Meanings

        return Meanings.of(self.project, self.project.sources)


def _placed(location: str) -> JsonObject:
    """A dataset by a folder of this machine or a URL of a store."""
    if is_url(location) and scheme_of(location) in SCHEMES:
        is_path = scheme_of(location) == StoreKind.HDFS
        name = split(location)[1]
        return {"namespace": bucket_url(location), "name": f"/{name}" if is_path else name}
    return {"namespace": "file", "name": location}


def _type_name(type_: Type) -> str:
    return type_ if isinstance(type_, str) else str(type_.get("type", "struct"))
