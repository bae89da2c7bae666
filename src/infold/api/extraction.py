"""
What a run does about sources in databases: it reads them, once, before it observes anything.

A source that cannot be read fails the models that take it in, as a folder that cannot be listed
does. All others are built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from infold.core.model import Source
from infold.core.ports import Progress
from infold.core.project import Project
from infold.messages.errors import InfoldError
from infold.planning.plan_notes import extracted_note, extracted_sources
from infold.running.source_listings import Files, Listing

if TYPE_CHECKING:
    from infold.lake.databases.columns import OpenTable


@dataclass
class Extraction:
    """
    The sources that a command has read; it reads none twice.

    A command that is not production's (``beside``) adds to the files what production would.
    """

    progress: Progress
    beside: bool = False
    _failures: dict[str, InfoldError] = field(default_factory=dict)
    _read: set[str] = field(default_factory=set)

    def extract(self, project: Project, selected: frozenset[str] | None) -> Iterator[str]:
        """Read what the chosen models take in; yields a note on each source with another row."""
        for source in extracted_sources(project, selected):
            if source.name in self._read:
                continue
            self._read.add(source.name)
            try:
                if note := self._extract(project, source):
                    yield note
            except Exception as error:
                from infold.system.failures import known_failure

                known = known_failure(error)
                if known is None:
                    raise
                self._failures[source.name] = known

    def _extract(self, project: Project, source: Source) -> str:
        from infold.lake.databases.extracted_files import extracted_folder
        from infold.lake.databases.extraction import extract

        self.progress.note(f"{source.name}: {source.table} is read")
        needed = _needed_columns(project, source) if self.beside else None
        with open_table(source, project.root) as table:
            folder = extracted_folder(project, source)
            result = extract(source, folder, table, datetime.now(UTC), needed)
        return extracted_note(source, rows=result.rows, whole=result.whole, changed=result.changed)

    def checked(self, listing: Listing) -> Listing:
        """A listing that raises what kept a source from being read."""

        def listed(source: Source) -> Files:
            if (error := self._failures.get(source.name)) is not None:
                raise error
            return listing(source)

        return listed


def _needed_columns(project: Project, source: Source) -> frozenset[str]:
    """The columns of a source that own models of an environment take in."""
    readers = [
        node for node in project if node.source == source.name and node.name not in project.shared
    ]
    names = (column.name for column in source.columns)
    return frozenset(n for n in names if any(n not in node.unread_columns for node in readers))


def try_table(project: Project, source: Source) -> str:
    """Open the table of a source, compare its columns, and read none of its rows."""
    from infold.lake.databases.extraction import wanted_columns

    with open_table(source, project.root) as table:
        columns = wanted_columns(source, table)
    return f"{source.table} has the {len(columns)} columns"


def open_table(source: Source, root: Path) -> AbstractContextManager[OpenTable]:
    """The table of a source, in whichever database."""
    from infold.lake.databases import postgresql, sqlite

    in_file = (source.url or "").startswith(sqlite.SQLITE)
    opened: Callable[[Source, Path], AbstractContextManager[OpenTable]] = (
        sqlite.opened if in_file else postgresql.opened
    )
    return opened(source, root)
