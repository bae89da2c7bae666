"""What a plan says of a source that is a table, without an engine."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.declare.shop import write
from tests.lake.delta.vectors import mark_deleted
from tests.planning.taken_in import take_in

from infold import api
from infold.core.plan import Plan
from infold.core.project import Project
from infold.messages.errors import InfoldError

FILES = {
    "infold.yml": """name: shop
sources:
  raw.orders: {path: lake/orders, format: delta, columns: {id: bigint, at: timestamp}}
""",
    "models/orders.sql": """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: at, granularity: day}
---
SELECT id, at FROM raw.orders""",
}


class Orders:
    """A project over a Delta table that somebody else writes."""

    def __init__(self, root: Path) -> None:
        write(root, FILES)
        self.project: Project = api.open_project(root)
        self.folder = root / "lake" / "orders"
        self.folder.parent.mkdir()

    def append(self, *ids: int) -> None:
        """Rows, in one file."""
        at = pa.array(list(ids), pa.timestamp("us", "UTC"))
        write_deltalake(self.folder.as_uri(), pa.table({"id": list(ids), "at": at}), mode="append")

    @property
    def table(self) -> DeltaTable:
        """As its owner has it."""
        return DeltaTable(self.folder.as_uri())

    def plan(self) -> Plan:
        """What a run would do now."""
        return api.make_plan(self.project, api.observe(self.project))

    def reasons(self) -> list[str]:
        """Why it would do something."""
        return [reason.detail for step in self.plan().steps for reason in step.reasons]


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    """Two files, which a run took in."""
    found = Orders(tmp_path / "shop")
    found.append(1, 2)
    found.append(3, 4)
    take_in(found.project, "orders", "raw.orders")
    assert not found.plan().steps
    return found


def test_what_only_tidies_up_is_nothing_to_do(orders: Orders) -> None:
    """A checkpoint and a vacuum leave the files of the newest version; appended rows are new."""
    orders.table.create_checkpoint()
    orders.table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    (orders.folder / "_delta_log" / f"{0:020}.json").unlink()

    assert not orders.plan().steps
    orders.append(5)
    assert orders.reasons() == ["1 new file"]
    assert not orders.plan().notes


def test_a_compaction_says_what_it_costs(orders: Orders) -> None:
    """Rows are in another file: it is read and compared, and nothing is lost."""
    orders.table.optimize.compact()

    assert orders.reasons() == ["1 new file", "2 files replaced or deleted"]
    (note,) = orders.plan().notes
    assert re.search(r"rows of these \(1 file, \d\.\d MB\) are read and compared", note)


def test_a_marked_row_has_its_file_read(orders: Orders) -> None:
    """The file stays, and is another version."""
    mark_deleted(orders.folder, "id", {3})

    assert orders.reasons() == ["0 new files, 1 replaced", "1 file replaced or deleted"]


def test_a_table_that_is_gone(orders: Orders) -> None:
    """All files gone, a run asks for --allow-removals; the table gone, it is an error by name, and
    no plan that removes everything.
    """
    orders.table.delete()
    (note,) = orders.plan().notes
    assert note.startswith("raw.orders: 2 of 2 files gone")
    orders.folder.rename(orders.folder.with_name("moved"))

    with pytest.raises(InfoldError, match="no-delta-table"):
        orders.plan()
