"""A project with one table of SQLite as its source, which tests change and extract."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from infold.api.extraction import open_table
from infold.core.files import lasting_path
from infold.core.formats import Format
from infold.core.interval import DAY
from infold.core.model import Column, Source
from infold.core.project import Project
from infold.core.target import Target
from infold.lake.databases.extracted_files import extracted_folder
from infold.lake.databases.extraction import Reading, extract
from infold.lake.reading import database_table

NOW = datetime(2024, 3, 20, 12, tzinfo=UTC)
COLUMNS = {"id": "bigint", "at": "timestamp", "v": "string"}


PROJECT = """
name: bought
sources:
  raw.t:
    url: sqlite:///own.db
    table: t
    columns: {id: bigint, at: timestamp, v: string}
    event_time_column: at
"""
DAYS = "    key: at\n    corrections: reread 30 days\n"
"""Keys of the source: what changes in days is read again."""
MODEL = """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: at, granularity: day}
---
SELECT id, at, v FROM raw.t"""


def declare(root: Path, keys: str) -> None:
    """Write a project with the table as its source, with more keys, and the model `taken` of it."""
    (root / "models").mkdir()
    (root / "infold.yml").write_text(PROJECT + keys, encoding="utf-8")
    (root / "models" / "taken.sql").write_text(MODEL, encoding="utf-8")


class Database:
    """A file of SQLite, and what was extracted of a table of it."""

    def __init__(
        self,
        root: Path,
        *,
        columns: dict[str, str] | None = None,
        key: str | None = None,
        reread: int | None = None,
        optional: Sequence[str] = (),
        file: str = "own.db",
    ) -> None:
        declared = tuple(
            Column(name, type_, optional=name in optional)
            for name, type_ in (columns or COLUMNS).items()
        )
        self.project = Project("p", root, None, {}, (), Target("dev"))
        self.source = Source(
            "raw.t",
            Format.JDBC,
            declared,
            table="t",
            url=f"sqlite:///{file}",
            key=key,
            reread=None if reread is None else reread * DAY,
        )
        self.file = root / file
        self.folder = extracted_folder(self.project, self.source)

    def run(self, *statements: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Execute statements; the rows of the last one."""
        with sqlite3.connect(self.file) as connection:
            for text in statements:
                found = connection.execute(text, values).fetchall()
        connection.close()
        return found

    def extract(self, now: datetime = NOW, needed: Collection[str] | None = None) -> Reading:
        """Land it as a run does; one of an environment, which needs columns."""
        with open_table(self.source, self.project.root) as table:
            return extract(self.source, self.folder, table, now, needed)

    def files(self) -> dict[str, str]:
        """The files that a plan sees, by what they are called in any version: which, and when."""
        found, _ = database_table.list_files(self.project, self.source, 0)
        return {
            Path(lasting_path(one.path)).stem: f"{Path(one.path).name} {one.fingerprint}"
            for one in found
        }

    def extracted(self, name: str) -> Path:
        """The file of a name, as a plan sees it."""
        return self.folder / self.files()[name].partition(" ")[0]

    def table(self) -> pa.Table:
        """All rows that were extracted."""
        found, _ = database_table.list_files(self.project, self.source, 0)
        tables = [parquet.read_table(self.project.root / one.path) for one in found]
        return pa.concat_tables(tables, promote_options="default") if tables else pa.table({})

    def rows(self) -> list[tuple[Any, ...]]:
        """The same as tuples, sorted."""
        return sorted((tuple(row.values()) for row in self.table().to_pylist()), key=repr)


def as_extracted(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows of the database as :meth:`Database.rows` has them."""
    return sorted(((id_, datetime.fromisoformat(at), v) for id_, at, v in rows), key=repr)
