"""
The registry of source formats with Spark: what reads which.

To add a format is to add a module with the functions of :class:`FormatReader` and a line here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession

from infold.core.formats import Format, complete
from infold.core.model import Column, Source
from infold.core.project import Project
from infold.spark.reading import (
    avro_files,
    csv_files,
    delta_table,
    iceberg_table,
    json_lines,
    orc_files,
    parquet_files,
)
from infold.spark.reading.drift import FileShape, PresentFile


class FormatReader(Protocol):
    """The functions that a format's module has."""

    def check_readable(self, source: Source, file: PresentFile, /) -> None:
        """
        Look into a file that Spark might read otherwise, or not at all, without a word of it.

        Raises ``errors.unreadable_file``. It is asked only where a source sets such files aside
        (``on_unreadable``). Spark then reads those of formats with types, and says the rest.
        """

    def inspect(
        self, spark: SparkSession, project: Project, source: Source, files: Sequence[PresentFile], /
    ) -> Mapping[int, FileShape]:
        """
        How each file is to be read, and how it drifts; by the file's id.

        A file that is not in the result has no rows. Raises ``errors.unreadable_file``.
        """

    def rows(
        self,
        spark: SparkSession,
        source: Source,
        # Any: a module takes the shapes that its own ``inspect`` returns, and no others.
        shape: Any,
        files: Sequence[PresentFile],
        /,
    ) -> DataFrame:
        """The rows of files of one shape: a frame as ``reading`` describes it."""

    def columns(self, spark: SparkSession, project: Project, source: Source, /) -> Sequence[Column]:
        """The columns of a source: the declared ones, or those that it has of its own."""


READERS: Mapping[Format, FormatReader] = complete(
    {
        Format.CSV: csv_files,
        Format.JSON: json_lines,
        Format.PARQUET: parquet_files,
        Format.AVRO: avro_files,
        Format.ORC: orc_files,
        Format.ICEBERG: iceberg_table,
        Format.DELTA: delta_table,
        Format.JDBC: parquet_files,  # as it was extracted
    }
)
