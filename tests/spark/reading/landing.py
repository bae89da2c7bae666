"""A project of events whose files land as they are."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from infold import api
from infold.core import interval
from infold.core.model import table_name
from infold.core.record import Receipt

_numbers = itertools.count()
COLUMNS = "{id: string, at: timestamp}"
MODEL = """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: at}
---
SELECT id, at FROM raw.c"""


class LandingProject:
    """A project with one source of files and one model of events."""

    def __init__(self, root: Path, warehouse: Path, path: str, keys: str = "") -> None:
        self.root, self.warehouse, self.path = root, warehouse, path
        self.name = f"files{next(_numbers)}"
        (root / "models").mkdir(parents=True)
        (root / "landing").mkdir()
        self.declare(keys)
        self.model(MODEL)

    def declare(self, keys: str = "", columns: str = COLUMNS) -> None:
        """Declare the source again."""
        (self.root / "infold.yml").write_text(
            f"name: {self.name}\nsources:\n  raw.c:\n    path: {self.path}\n    {keys}\n"
            f"    event_time_column: at\n    columns: {columns}\n"
            f"targets:\n  dev: {{storage: iceberg, warehouse: '{self.warehouse}'}}\n"
        )

    def model(self, text: str, name: str = "c") -> None:
        """A model."""
        (self.root / "models" / f"{name}.sql").write_text(text)

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
        return self.receipts().get("c", Receipt())

    def receipts(self) -> dict[str, Receipt]:
        """One run; what it did to each model."""
        result = api.run(
            api.open_project(self.root), as_of=interval.parse_instant_text("2024-03-10")
        )
        found: dict[str, Receipt] = {}
        for step, receipt in result.steps:
            found[step.model] = found.get(step.model, Receipt()) + receipt
        return found

    def rows(self, table: str = "c", *columns: str) -> list[Any]:
        """The values of the table's first column, or of some, in order."""
        lake = api.lake(api.open_project(self.root))
        found = lake.rows(table_name(table), columns=list(columns) or None).to_pylist()
        values = [tuple(row.values()) if columns else next(iter(row.values())) for row in found]
        return sorted(values, key=str)

    def aside(self) -> list[tuple[str, str]]:
        """The files of rows set aside, and why."""
        return self.rows("infold__set_aside", "file", "reason")

    def proven(self) -> bool:
        """Whether the table equals its definition."""
        return api.verify(api.open_project(self.root)).equal
