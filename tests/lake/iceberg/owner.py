"""An Iceberg table that others write with pyiceberg, the rows that it should have, and a reader."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import yaml
from pyarrow import parquet
from pyiceberg.types import IntegerType
from tests.spark.events.clicks_project import ClicksProject

if TYPE_CHECKING:
    from pyiceberg.table import Table

ROWS = pa.schema([("id", pa.string()), ("at", pa.timestamp("us", "UTC")), ("v", pa.int32())])
DAY = "2024-03-01"


class Owner:
    """Who writes the table, into a catalog of their own; ``rows`` are those that it should have."""

    def __init__(self, root: Path, warehouse: str, **io: str) -> None:
        from pyiceberg.catalog.sql import SqlCatalog  # a fifth of a second, for few tests

        self.catalog_file = root / "outside.db"
        uri = f"sqlite:///{self.catalog_file}"
        self._catalog = SqlCatalog("theirs", uri=uri, warehouse=warehouse, **io)
        self._catalog.create_namespace("outside")
        self._catalog.create_table("outside.clicks", ROWS)
        self.rows: dict[str, int | None] = {}

    @property
    def table(self) -> Table:
        """As it is now."""
        return self._catalog.load_table("outside.clicks")

    def is_read_by(self, shop: ClicksProject) -> None:
        """Have a project's source be the table."""
        file = shop.root / "infold.yml"
        project = yaml.safe_load(file.read_text(encoding="utf-8"))
        source = project["sources"]["raw.clicks"]
        del source["path"], source["may_be_empty"]
        source |= {"table": "outside.clicks", "catalog": str(self.catalog_file)}
        source["columns"] = {"id": "string", "at": "timestamp", "v": "int"}
        file.write_text(yaml.safe_dump(project, sort_keys=False), encoding="utf-8")

    def append(self, **rows: int) -> None:
        """New rows, in a file of their own."""
        self.rows |= rows
        self.table.append(_records(rows))

    def delete(self, id_: str) -> None:
        """A row goes, from a file that is written again without it."""
        del self.rows[id_]
        self.table.delete(f"id = '{id_}'")

    def rename(self) -> None:
        """The name of the values moves to a new column: all rows so far have none."""
        with self.table.update_schema() as update:
            update.rename_column("v", "before")
        with self.table.update_schema() as update:
            update.add_column("v", IntegerType())
        self.rows = dict.fromkeys(self.rows)

    def map_names(self, *of_v: str, **others: int) -> None:
        """Say what names in files without ids are the column ``v``, and ``others`` by their ids."""
        ids = {"id": ["id"], "at": ["at"], "v": of_v} | {name: [name] for name in others}
        fields = {one.name: one.field_id for one in self.table.schema().fields} | others
        mapping = [{"field-id": fields[name], "names": [*names]} for name, names in ids.items()]
        with self.table.transaction() as change:
            change.set_properties({"schema.name-mapping.default": json.dumps(mapping)})

    def add_file(self, path: Path, **rows: int) -> None:
        """A file of another program's, without ids: its names say which columns it has."""
        self.rows |= rows
        parquet.write_table(_records(rows), path)
        self.table.add_files([str(path)])

    def roll_back(self) -> None:
        """The table is as it was one snapshot before."""
        now = self.table.current_snapshot()
        assert now is not None
        assert now.parent_snapshot_id is not None
        self.table.manage_snapshots().rollback_to_snapshot(now.parent_snapshot_id).commit()

    def compact(self) -> None:
        """One other file has the same rows."""
        self.table.overwrite(self.table.scan().to_arrow())

    def expected(self) -> list[tuple[str, str, int | None]]:
        """The rows, as a project's table has them."""
        return sorted((id_, DAY, v) for id_, v in self.rows.items())


def _records(rows: Mapping[str, int]) -> pa.Table:
    at = datetime.fromisoformat(DAY).replace(tzinfo=UTC)
    return pa.Table.from_pylist([{"id": id_, "at": at, "v": v} for id_, v in rows.items()], ROWS)


def play(shop: ClicksProject, owner: Owner) -> None:
    """The events are the rows of the table after each kind of change; compacting changes none."""
    owner.append(a=1, b=2)
    owner.append(c=3)
    shop.run()
    assert shop.rows() == owner.expected()
    version, before = shop.version(), dict(owner.rows)
    owner.compact()
    assert shop.run().files_new == 1
    assert shop.changes(version) == []
    owner.delete("a")
    owner.append(d=4)
    shop.run()
    assert shop.rows() == owner.expected()
    owner.roll_back()
    owner.roll_back()
    owner.rows = before
    shop.run()
    assert shop.rows() == owner.expected()
    owner.rename()
    owner.append(e=5)
    shop.run()
    assert shop.rows() == owner.expected()
    assert shop.proven()
