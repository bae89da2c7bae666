"""ORC files without a JVM: one column of them, and footers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from infold.core.files import ListedFile
from infold.core.model import Source
from infold.core.project import Project
from infold.lake.reading import listing
from infold.lake.reading.source_file import SourceFile, source_file
from infold.lake.stores.bucket import ReplacedError

if TYPE_CHECKING:
    import pyarrow as pa

list_files = listing.list_files


def event_times(file: SourceFile, _source: Source, column: str) -> Iterator[pa.Array]:
    """Of this column alone, in the chunks that Arrow reads."""
    from pyarrow import orc

    yield from orc.ORCFile(file.arrow_file()).read(columns=[column]).column(column).chunks


def row_counts(project: Project, files: Sequence[ListedFile]) -> Mapping[str, int]:
    """By their footers; files that cannot be read are left out: the ingest reports them."""
    import pyarrow as pa
    from pyarrow import orc

    counts = {}
    for file in files:
        try:
            stored_file = source_file(project.root, file, project.target.stores)
            counts[file.path] = orc.ORCFile(stored_file.arrow_file()).nrows
        except (OSError, pa.ArrowException, ReplacedError):
            continue
    return counts
