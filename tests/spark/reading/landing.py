"""A project of events whose files land as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet
from tests.spark.project import SparkProject, events, new_name

from infold.core.model import SET_ASIDE
from infold.core.record import Receipt

COLUMNS = "{id: string, at: timestamp}"
MODEL = events("SELECT id, at FROM raw.c")


class LandingProject(SparkProject):
    """A project with one source of files and one model of events."""

    now = "2024-03-10"

    def __init__(self, root: Path, warehouse: Path, path: str, keys: str = "") -> None:
        self.warehouse, self.path, self.name = warehouse, path, new_name("files")
        super().__init__(root, "")
        self.declare(keys)
        self.model("c", MODEL)

    def declare(self, keys: str = "", columns: str = COLUMNS) -> None:
        """Declare the source again."""
        self.declare_all(
            f"  raw.c:\n    path: {self.path}\n    {keys}\n"
            f"    event_time_column: at\n    columns: {columns}\n"
        )

    def declare_all(self, sources: str) -> None:
        """Declare all sources again."""
        target = f"targets:\n  dev: {{storage: iceberg, warehouse: '{self.warehouse}'}}\n"
        self.write("infold.yml", f"name: {self.name}\nsources:\n{sources}{target}")

    def put(self, name: str, content: str | bytes | pa.Table, **how: Any) -> Path:
        """A file below the landing folder."""
        at = self.root / "landing" / name
        at.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, pa.Table):
            parquet.write_table(content, at, **how)
        else:
            at.write_bytes(content.encode() if isinstance(content, str) else content)
        return at

    def row(self, name: str, id_: str, **more: Any) -> None:
        """A file of one JSON row."""
        self.put(name, json.dumps({"id": id_, "at": "2024-03-01T10:00:00Z", **more}) + "\n")

    def run(self) -> Receipt:
        """One run; the receipt of the model."""
        return self.receipts(allow_removals=False).get("c", Receipt())

    def values(self, table: str = "c", *columns: str) -> list[Any]:
        """The values of the table's first column, or of some, in order."""
        rows = self.rows(table, *columns)
        return sorted(rows if columns else [row[0] for row in rows], key=str)

    def whole_aside(self) -> list[tuple[str, str]]:
        """The files of rows set aside, with their folder, and why."""
        return sorted(self.rows(SET_ASIDE, "file", "reason"))
