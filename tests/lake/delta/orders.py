"""A Delta table that others write, the rows that it should have, and a project that reads it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from tests.lake.delta.vectors import mark_deleted
from tests.spark.events.clicks_project import MODEL as CLICKS
from tests.spark.events.clicks_project import ClicksProject, shop_with

MODEL = CLICKS.replace("raw.clicks", "raw.orders").replace("id, at, v", "id, at, v, kind")

_SOURCE = """sources:
  raw.orders:
    PLACE
    format: delta
    event_time_column: at
    columns: {id: string, at: timestamp, v: bigint, kind: string}
"""

KINDS = ("plain", "a b", "é%41:=/#?", None)
"""Of a row, and so of its file's folder."""


class Orders:
    """The table as other programs write it, and the rows that it should have."""

    def __init__(self, folder: Path, seed: int, *, marks_in_files: bool = False) -> None:
        self.folder, self.draw = folder, Random(seed)
        self.marks_in_files = marks_in_files
        self.rows: dict[str, tuple[str, str, int, str | None]] = {}
        self._made = 0
        folder.parent.mkdir(parents=True, exist_ok=True)

    @property
    def table(self) -> DeltaTable:
        """As delta-rs changes it."""
        return DeltaTable(self.folder.as_uri())

    def append(self) -> None:
        """New rows, in a file for each kind."""
        new = [
            (f"o{self._made + i}", self._day(), self.draw.randrange(6), self.draw.choice(KINDS))
            for i in range(self.draw.randint(3, 8))
        ]
        self._made += len(new)
        self.rows.update({row[0]: row for row in new})
        names = ("id", "at", "v", "kind")
        columns = dict(zip(names, map(pa.array, zip(*new, strict=True)), strict=True))
        columns["at"] = columns["at"].cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
        columns["v"] = columns["v"].cast(pa.int32())
        columns["kind"] = columns["kind"].cast(pa.string())
        write_deltalake(
            self.folder.as_uri(), pa.table(columns), mode="append", partition_by=["kind"]
        )

    def update(self) -> None:
        """Other values in some rows, wherever they are; their files are written again."""
        v = self.draw.randrange(6)
        self.table.update(updates={"v": "v + 100"}, predicate=f"v = {v}")
        for id_, row in self.rows.items():
            if row[2] == v:
                self.rows[id_] = (*row[:2], v + 100, row[3])

    def delete(self) -> None:
        """Some rows go, from files that are written again without them."""
        self._without({self.draw.randrange(6)}, by_marks=False)

    def mark(self) -> None:
        """Some rows go, from files that stay."""
        self._without({self.draw.randrange(6), self.draw.randrange(6)}, by_marks=True)

    def compact(self) -> None:
        """Other files with the same rows."""
        self.table.optimize.compact()

    def vacuum(self) -> None:
        """Only the files of the newest version are left."""
        self.table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)

    def _without(self, values: set[int], *, by_marks: bool) -> None:
        if by_marks:
            mark_deleted(self.folder, "v", values, in_file=self.marks_in_files)
        else:
            self.table.delete(f"v IN ({', '.join(map(str, values))})")
        self.rows = {id_: row for id_, row in self.rows.items() if row[2] not in values}

    def _day(self) -> str:
        return f"2024-03-0{self.draw.randint(1, 5)}"

    def expected(self) -> list[tuple[Any, ...]]:
        """The rows in an order."""
        return sorted(self.rows.values(), key=repr)


def shop_over_delta(
    folder: Path, warehouse: Path, place: str = "path: lake/a b/orders"
) -> ClicksProject:
    """A project whose one source is a Delta table, at a place as infold.yml says it."""
    shop = shop_with(folder, warehouse, MODEL)
    project = folder / "infold.yml"
    before, _, after = project.read_text().partition("sources:")
    source = _SOURCE.replace("PLACE", place)
    project.write_text(before + source + after[after.index("targets:") :])
    return shop


def play(
    shop: ClicksProject, orders: Orders, rounds: int = 4, landed: Callable[[], None] = lambda: None
) -> None:
    """
    After random appends, updates, deletes, compactions and vacuums the events are the table's rows.

    What only rewrites files changes no cell. What was written is read once it has ``landed``.
    """
    orders.append()
    orders.append()
    landed()
    shop.run()
    changes = [orders.append, orders.update, orders.delete, orders.mark] * 2
    orders.draw.shuffle(changes)
    for round_ in range(rounds):
        for change in changes[2 * round_ : 2 * round_ + 2]:
            change()
        landed()
        shop.run()
        assert shop.rows() == orders.expected(), changes[: 2 * round_ + 2]
        if round_ % 2:
            version = shop.version()
            orders.compact()
            orders.vacuum()
            landed()
            receipt = shop.run()
            assert receipt.files_new
            assert (shop.changes(version), receipt.cells_built) == ([], 0)
    assert shop.rows() == orders.expected()
    assert shop.proven()
