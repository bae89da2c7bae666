"""What is not known of rows in the files of a table before it is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from infold.core.files import ListedFile
from infold.core.model import Source
from infold.core.project import Project
from infold.lake.reading.source_file import SourceFile


def table_event_times(_file: SourceFile, _source: Source, _column: str) -> None:
    """None: which rows of a data file are deleted is known to the table alone."""


def table_row_counts(_project: Project, _files: Sequence[ListedFile]) -> Mapping[str, int]:
    """None are counted: a table that is rewritten moves its rows from file to file."""
    return {}
