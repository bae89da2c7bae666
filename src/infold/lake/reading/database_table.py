"""A table in a database without a JVM: the Parquet files that runs extracted of it."""

from __future__ import annotations

from collections.abc import Sequence

from infold.core.files import FileListing, ListedFile
from infold.core.model import Source
from infold.core.project import Project
from infold.lake.databases.extracted_files import extracted_folder, file_of, read_list
from infold.lake.reading import parquet_files
from infold.lake.reading.listing import path_prefix

event_times = parquet_files.event_times
row_counts = parquet_files.row_counts


def list_files(
    project: Project, source: Source, _now: int
) -> tuple[Sequence[ListedFile], Sequence[str]]:
    """As ``FormatFiles.list_files``: the files that were extracted; the database is not asked."""
    folder = extracted_folder(project, source)
    extracted, before = read_list(folder, source), path_prefix(project.root, str(folder))
    found = {}
    for name in extracted.files if extracted is not None else ():
        file = file_of(folder, name)
        try:
            there = file.stat()
        except FileNotFoundError:  # it went: the next run reads everything again
            continue
        found[before + file.name] = f"{there.st_size}:{there.st_mtime_ns}"
    return FileListing(found), ()
