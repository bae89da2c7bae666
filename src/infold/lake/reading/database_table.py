"""A table in a database without a JVM: the Parquet files that runs extracted of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from infold.core.files import FileListing, ListedFile, stat_fingerprint
from infold.core.model import Source
from infold.core.project import Project
from infold.lake.databases.extracted_files import (
    Extracted,
    extracted_folder,
    listed_files,
    read_list,
)
from infold.lake.reading import parquet_files
from infold.lake.reading.listing import path_prefix

event_times = parquet_files.event_times
row_counts = parquet_files.row_counts


def list_files(
    project: Project, source: Source, _now: int
) -> tuple[Sequence[ListedFile], Sequence[str]]:
    """
    As ``FormatFiles.list_files``: the files that were extracted; the database is not asked.

    A run may replace the list meanwhile, and delete what only the old one names. Then the new one
    counts, so that what is found is always one whole extraction.
    """
    folder = extracted_folder(project, source)
    before, extracted = path_prefix(project.root, str(folder)), read_list(folder, source)
    while True:
        prints = _fingerprints(folder, extracted)
        if (newer := read_list(folder, source)) == extracted:
            return FileListing({before + name: one for name, one in prints.items()}), ()
        extracted = newer


def _fingerprints(folder: Path, extracted: Extracted | None) -> Mapping[str, str]:
    """The fingerprint of each file that a list names, by its name."""
    prints = {}
    for file in listed_files(folder, extracted):
        try:
            status = file.stat()
        except FileNotFoundError:  # it went: the next run reads everything again
            continue
        prints[file.name] = stat_fingerprint(status)
    return prints
