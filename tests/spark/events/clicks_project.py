"""A project of one events model over files of clicks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.spark.project import NOW, AllBut, SparkProject, events, new_name

from infold import api
from infold.core.record import Receipt

__all__ = ("NOW", "AllBut", "ClicksProject", "NewShop", "having", "shop_with")

COLUMNS = '{id: string, at: timestamp, v: int, "a.b`c": string, order: int}'
SOURCE = f"    event_time_column: at\n    columns: {COLUMNS}\n"
MODEL = events("SELECT id, at, v FROM raw.clicks").rstrip()


def having(*keys: str) -> str:
    """The model with more keys."""
    return MODEL.replace("timeseries", "\n".join([*keys, "timeseries"]))


class ClicksProject(SparkProject):
    """Files of clicks, and models of them, in a warehouse that tests share."""

    now = NOW

    def __init__(self, root: Path, warehouse: Path, model: str, source: str) -> None:
        config = (
            f"name: {new_name('events')}\n"
            "sources:\n  raw.clicks:\n    path: landing/*.csv\n    may_be_empty: true\n"
            f"{source}"
            f"targets:\n  dev: {{storage: iceberg, warehouse: '{warehouse}'}}\n"
        )
        super().__init__(root, config)
        if model:
            self.model("clicks", model)

    def put(self, name: str, *rows: str, header: str = "id,at,v,a.b`c,order") -> None:
        """A file of rows, each its first fields; one of that name is replaced."""
        width = header.count(",")
        lines = [row + "," * (width - row.count(",")) for row in rows]
        self.write(f"landing/{name}", "\n".join([header, *lines]) + "\n")

    def run(self, now: str | None = None, model: str = "clicks") -> Receipt:
        """One run; the receipt of a model, empty when it had nothing to do."""
        return self.receipts(now=now).get(model, Receipt())

    def rows(self, table: str = "clicks", *columns: str) -> list[tuple[Any, ...]]:
        """The table's rows in an order, times as people write them."""
        return super().rows(table, *columns)

    def records(self, table: str = "clicks", *columns: str) -> list[dict[str, Any]]:
        """The table's rows with the names of their columns."""
        return super().records(table, *columns)

    def version(self, model: str = "clicks") -> int:
        """The table's newest version."""
        return super().version(model)

    def changes(self, since: int, model: str = "clicks") -> list[tuple[str, int, int]]:
        """Cells that changed since a version, with rows added and removed."""
        return super().changes(since, model)

    def files(self, model: str = "clicks") -> dict[str, tuple[int, int]]:
        """Rows of each file that count, and how many of them lost to copies."""
        book = api.ledger_of(self.project())
        found = {}
        for file in book.files(model):
            cells = book.file_cells(model, [file.id])
            assert sum(cell.rows for cell in cells) == file.rows
            assert sum(cell.dropped for cell in cells) == file.dropped
            found[file.path.removeprefix("landing/")] = (file.rows, file.dropped)
        return found


def shop_with(
    tmp_path: Path, warehouse: Path, model: str = MODEL, source: str = SOURCE
) -> ClicksProject:
    """A project with another model or source."""
    return ClicksProject(tmp_path, warehouse, model, source)


NewShop = Callable[..., ClicksProject]
"""Makes the project of a test; of another model or source, if these are given."""
