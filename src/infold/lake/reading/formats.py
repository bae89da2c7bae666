"""
The registry of source formats without a JVM: what reads which.

To add a format is to add a module with the functions of :class:`FormatFiles` and a line here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from infold.core.files import ListedFile
from infold.core.formats import Format, complete
from infold.core.model import Source
from infold.core.project import Project

if TYPE_CHECKING:
    import pyarrow as pa

    from infold.lake.reading.source_file import SourceFile


class FormatFiles(Protocol):
    """The functions that a format's module has."""

    def list_files(
        self, project: Project, source: Source, now: int, /
    ) -> tuple[Sequence[ListedFile], Sequence[str]]:
        """The files of a source now, and the paths of those that are too young to be read."""

    def event_times(
        self, file: SourceFile, source: Source, column: str, /
    ) -> Iterator[pa.Array] | None:
        """
        The values of one column of a file, as they are stored, a part at a time.

        Values that the file does not have as the format asks for are left out: this is for an
        estimate. None for a format that cannot be estimated without Spark.
        """

    def row_counts(self, project: Project, files: Sequence[ListedFile], /) -> Mapping[str, int]:
        """How many rows files have, by path; only those where it is known without reading rows."""


MODULES: Mapping[Format, str] = complete(
    {
        Format.CSV: "csv_files",
        Format.JSON: "json_lines",
        Format.PARQUET: "parquet_files",
        Format.AVRO: "avro_files",
        Format.ORC: "orc_files",
        Format.ICEBERG: "iceberg_table",
        Format.JDBC: "database_table",
        Format.DELTA: "delta_table",
    }
)
"""The module of each format in this folder; a command imports those of its project's sources."""


def files_of(format_: Format) -> FormatFiles:
    """What reads the files of a format."""
    return cast("FormatFiles", import_module(f"infold.lake.reading.{MODULES[format_]}"))
