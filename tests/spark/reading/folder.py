"""A folder of files that the reader of a source is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from tests.spark.reading import written

from infold.core.files import ListedFile
from infold.core.formats import Format, format_of_path, unpacked_name
from infold.core.model import Column, Source
from infold.core.project import Project
from infold.core.target import Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Folder:
    """A project's folder with files of one source, each with an id in the order written."""

    def __init__(self, root: Path, spark: SparkSession) -> None:
        self.root, self.spark = root, spark
        self.files: list[tuple[int, ListedFile]] = []

    def put(self, name: str, content: str | bytes | pa.Table) -> None:
        """A file; text as UTF-8, packed when its name says so."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, pa.Table):
            written.TABLES[path.suffix](content, path)
        else:
            raw = content.encode() if isinstance(content, str) else content
            path.write_bytes(written.packed(name, raw))
        self.listed(name)

    def listed(self, name: str) -> None:
        """Take in a file that is there."""
        stat = (self.root / name).stat()
        seen = ListedFile(name, stat.st_size, 0, f"{stat.st_size}:{stat.st_mtime_ns}")
        self.files.append((len(self.files) + 1, seen))

    def source(
        self,
        columns: Mapping[str, str],
        *,
        optional: bool = False,
        of_folders: Sequence[Column] = (),
        **others: Any,
    ) -> Source:
        """A source of these columns; its format follows from the first file."""
        name = unpacked_name(self.files[0][1].path)
        declared = tuple(Column(*pair, optional=optional) for pair in columns.items())
        declared += tuple(of_folders)
        return Source("raw.rows", format_of_path(name) or Format.JSON, declared, path="*", **others)

    def frame(self, columns: Mapping[str, str], **others: Any) -> DataFrame:
        """All rows, not read yet."""
        return self._counted(columns, **others)[0]

    def said(self, columns: Mapping[str, str], **others: Any) -> Mapping[int, int] | None:
        """How many rows each file says it has."""
        return self._counted(columns, **others)[1]

    def _counted(
        self, columns: Mapping[str, str], **others: Any
    ) -> tuple[DataFrame, Mapping[int, int] | None]:
        from infold.spark.reading.source_rows import read_counted

        source = self.source(columns, **others)
        project = Project("p", self.root, None, {source.name: source}, (), Target("dev"))
        return read_counted(self.spark, project, source, self.files)[:2]

    def rows(self, columns: Mapping[str, str], **others: Any) -> list[dict[str, Any]]:
        """All rows as read, in the order of their raw text within a file."""
        found = self.frame(columns, **others).toArrow().to_pylist()
        return sorted(found, key=lambda row: (row["_source_file"], row["_raw"]))

    def values(self, columns: Mapping[str, str], **others: Any) -> list[tuple[Any, ...]]:
        """The rows' values, and the problem instead where there is one."""
        return [
            (row["_problem"],) if row["_problem"] else tuple(row[name] for name in columns)
            for row in self.rows(columns, **others)
        ]

    def by_name(self, columns: Mapping[str, str], **others: Any) -> dict[str, list[Any]]:
        """Of each file the rows' values, and of those with a problem the raw text and that."""
        found: dict[str, list[Any]] = {file.path: [] for _, file in self.files}
        names = {id_: file.path for id_, file in self.files}
        for row in self.rows(columns, **others):
            problem = (row["_raw"], row["_problem"]) if row["_problem"] else None
            values = problem or tuple(row[name] for name in columns)
            found[names[row["_source_file"]]].append(values)
        return {name: sorted(rows, key=str) for name, rows in found.items()}

    def in_order(self, name: str, columns: Mapping[str, str]) -> list[dict[str, Any]]:
        """The rows as read, in the order of the lines of a file whose lines all differ."""
        found = {row["_raw"]: row for row in self.rows(columns)}
        return [found[line] for line in (self.root / name).read_text().splitlines()]


def utc(*parts: int) -> datetime:
    """A UTC instant."""
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]
