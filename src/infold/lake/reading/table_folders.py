"""
Tables whose files a source of plain files would read: they are refused by name.

A table of Delta Lake, Iceberg or Hudi is what its metadata says. In its folder are also files that
it no longer has, and in its files rows that are deleted: a pattern would read them all. A folder is
a table's if it has metadata of one. Listings see it on the way to the files. Above a listing it is
looked for only where names are those of folders inside a table (``name=value``, ``data``), so that
it costs some looks for each source, and none for each file.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter

from infold.core.files import WILD
from infold.core.formats import PACKINGS, Format, packing_of
from infold.core.model import Source
from infold.messages import run_errors
from infold.messages.errors import InfoldError

DELTA, ICEBERG, HUDI = MARKS = ("_delta_log", "metadata", ".hoodie")
"""The folders in a table's folder with its metadata: of Delta Lake, of Iceberg, of Hudi."""

_METADATA = re.compile(
    r"(?P<folder>(?:.*/)?)(?:"
    r"(?P<delta>_delta_log)/\d{20}\.(?:json|checkpoint\b.*)"
    r"|(?P<iceberg>metadata)/(?:v\d+|\d{5,}-[0-9a-f-]{36})(?:\.gz)?\.metadata\.json(?:\.gz)?"
    r"|(?P<hudi>\.hoodie)/hoodie\.properties"
    r")",
    re.DOTALL,
)
_INSIDE = "data"
"""Where Iceberg has the files of a table, in its folder."""


def may_be_of_tables(source: Source) -> bool:
    """Whether a table's rows are in files of the source's format."""
    return source.format in (Format.PARQUET, Format.ORC, Format.AVRO)


@dataclass(frozen=True, slots=True)
class TableFolder:
    """
    The folder of a table, with a slash at its end; empty for that of the project.

    ``mark`` is the folder in it with its metadata, one of :data:`MARKS`.
    """

    path: str
    mark: str

    def has(self, file: str) -> bool:
        """Whether a file lies in it, but for the table's metadata."""
        return file.startswith(self.path) and not file.startswith(f"{self.path}{self.mark}/")


def table_with(path: str) -> TableFolder | None:
    """The folder of the table that has a file as its metadata; None for any other file."""
    # Twice, as the search for a text is much faster: a listing may have a million files.
    if DELTA not in path and ".metadata.json" not in path and HUDI not in path:
        return None
    match = _METADATA.fullmatch(path)
    return match and TableFolder(match["folder"], match["delta"] or match["iceberg"] or HUDI)


def marks_above(start: str) -> Iterator[str]:
    """The folders above a listing that would have a table's metadata; ``start`` ends in a slash."""
    names = start.split("/")[:-1]
    for at, name in enumerate(names):
        if name == _INSIDE or "=" in name:
            yield from ("/".join([*names[:at], mark]) for mark in MARKS)


def refuse_tables(
    source: Source,
    files: Collection[str],
    marks: Iterable[str],
    names_in: Callable[[str], Iterable[str]],
) -> None:
    """Raise if one of the folders ``marks`` has the metadata of a table that has a file."""
    if not files:
        return
    folders = (table_with(f"{mark}/{name}") for mark in marks for name in names_in(mark))
    refuse_files_of(source, files, (one for one in folders if one is not None))


def refuse_files_of(source: Source, files: Collection[str], tables: Iterable[TableFolder]) -> None:
    """Raise if a file lies in the folder of a table."""
    for table in sorted({*tables}, key=attrgetter("path")):
        file = min((one for one in files if table.has(one)), default=None)
        if file is not None:
            raise _error(source, table, file)


def _error(source: Source, table: TableFolder, file: str) -> InfoldError:
    name, path, folder = source.name, source.path or "", table.path.rstrip("/") or "."
    if table.mark == ICEBERG:
        return run_errors.files_of_iceberg_table(
            source=name, pattern=path, folder=folder, file=file
        )
    if table.mark == HUDI:
        return run_errors.files_of_hudi_table(source=name, pattern=path, folder=folder, file=file)
    return run_errors.files_of_delta_table(source=name, pattern=path, folder=folder, file=file)


HIDDEN = "_."
"""What a name begins with that is left out, unless the pattern begins so."""

Matches = Callable[[str], object]


@lru_cache  # the same for thousands of folders
def matcher(pattern: str, *, last: bool) -> Matches:
    """Whether a name matches; as the last of a path, also with an ending of ``PACKINGS``."""
    if pattern == "*":
        return lambda _: True
    endings = ("", *PACKINGS) if last and packing_of(pattern) is None else ("",)
    if last and pattern[0] == "*" and not WILD.search(pattern, 1):
        ends = tuple(pattern[1:] + ending for ending in endings)
        return lambda name: name.endswith(ends)
    return re.compile("|".join(fnmatch.translate(pattern + ending) for ending in endings)).match
