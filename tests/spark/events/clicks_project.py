"""A project of one events model over files of clicks."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from infold import api
from infold.core import interval
from infold.core.model import SET_ASIDE, table_name
from infold.core.record import Receipt

NOW = "2024-03-10"
COLUMNS = '{id: string, at: timestamp, v: int, "a.b`c": string, order: int}'
MODEL = """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: at, granularity: day}
---
SELECT id, at, v FROM raw.clicks"""
_numbers = itertools.count()


class AllBut(list[tuple[str, str]]):
    """All write points but these: where a run is to die, in place of those ``met``."""

    def __contains__(self, point: object) -> bool:
        return not super().__contains__(point)


class ClicksProject:
    """A project in a folder: files come and go, runs follow."""

    def __init__(self, root: Path, warehouse: Path, model: str, source: str) -> None:
        self.root = root
        (root / "models").mkdir(parents=True)
        (root / "landing").mkdir()
        (root / "infold.yml").write_text(
            f"name: events{next(_numbers)}\n"
            "sources:\n"
            "  raw.clicks:\n"
            "    path: landing/*.csv\n"
            "    may_be_empty: true\n"
            f"{source}"
            f"targets:\n  dev: {{storage: iceberg, warehouse: '{warehouse}'}}\n"
        )
        self.model("clicks", model)

    def model(self, name: str, text: str) -> None:
        """A model, or another definition of one."""
        (self.root / "models" / f"{name}.sql").write_text(text)

    def put(self, name: str, *rows: str, header: str = "id,at,v,a.b`c,order") -> None:
        """A file of rows, each its first fields; one of that name is replaced."""
        width = header.count(",")
        lines = [row + "," * (width - row.count(",")) for row in rows]
        (self.root / "landing" / name).write_text("\n".join([header, *lines]) + "\n")

    def drop(self, name: str) -> None:
        """A file goes away."""
        (self.root / "landing" / name).unlink()

    def run(self, now: str = NOW, model: str = "clicks") -> Receipt:
        """One run; the receipt of a model, empty when it had nothing to do."""
        result = api.run(
            api.open_project(self.root), as_of=interval.parse_instant_text(now), allow_removals=True
        )
        return sum((receipt for step, receipt in result.steps if step.model == model), Receipt())

    def rows(self, table: str = "clicks") -> list[tuple[Any, ...]]:
        """The table's rows in an order, times as people write them."""
        return sorted((tuple(record.values()) for record in self.records(table)), key=repr)

    def records(self, table: str = "clicks") -> list[dict[str, Any]]:
        """The table's rows with the names of their columns, times as people write them."""
        found = api.lake(api.open_project(self.root)).rows(table_name(table)).to_pylist()
        return [
            {
                name: interval.show_instant(interval.micros_of(value))
                if hasattr(value, "tzinfo")
                else value
                for name, value in row.items()
            }
            for row in found
        ]

    def aside(self, model: str = "") -> list[tuple[str, str]]:
        """File and reason of the rows set aside, by all models or one of them."""
        lake = api.lake(api.open_project(self.root))
        if lake.metadata(SET_ASIDE) is None:
            return []
        return sorted(
            (row["file"].removeprefix("landing/"), row["reason"])
            for row in lake.rows(SET_ASIDE).to_pylist()
            if model in ("", row["model"])
        )

    def files(self, model: str = "clicks") -> dict[str, tuple[int, int]]:
        """Rows of each file that count, and how many of them lost to copies."""
        book = api.ledger(api.open_project(self.root))
        found = {}
        for file in book.files(model):
            cells = book.file_cells(model, [file.id])
            assert sum(cell.rows for cell in cells) == file.rows
            assert sum(cell.dropped for cell in cells) == file.dropped
            found[file.path.removeprefix("landing/")] = (file.rows, file.dropped)
        return found

    def version(self, model: str = "clicks") -> int:
        """The table's newest version."""
        return api.ledger(api.open_project(self.root)).newest_versions()[model].number

    def changes(self, since: int, model: str = "clicks") -> list[tuple[str, int, int]]:
        """Cells that changed since a version, with rows added and removed."""
        book = api.ledger(api.open_project(self.root))
        return [
            (interval.show_instant(change.cell.start), change.added, change.removed)
            for change in book.changes(model, since)
        ]

    def proven(self) -> bool:
        """Whether the table, and the ledger's account of it, equal a rebuild from the files."""
        return all(verdict.equal for verdict in api.verify(api.open_project(self.root)).models)


def having(*keys: str) -> str:
    """The model with more keys."""
    return MODEL.replace("timeseries", "\n".join([*keys, "timeseries"]))


SOURCE = f"    event_time_column: at\n    columns: {COLUMNS}\n"


def shop_with(
    tmp_path: Path, warehouse: Path, model: str = MODEL, source: str = SOURCE
) -> ClicksProject:
    """A project with another model or source."""
    return ClicksProject(tmp_path, warehouse, model, source)
