"""The distinct values of a string column, read from files that pyiceberg writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count

import pyarrow as pa
import pytest
from tests.lake.iceberg.conftest import Warehouse

from infold.lake.iceberg.tables import IcebergLake


@dataclass(frozen=True)
class Pages:
    """A table with one column, ``Url``, and a snapshot for each of its files."""

    lake: IcebergLake
    name: str
    snapshots: Sequence[int]

    def values(self, at: int = -1, limit: int = 100, column: str = "url") -> Sequence[str] | None:
        """The values at one of the snapshots, in order."""
        found = self.lake.string_values(self.name, column, self.snapshots[at], limit)
        return None if found is None else sorted(found.to_pylist())


Stored = Callable[..., Pages]


@pytest.fixture(scope="module")
def stored(warehouse: Warehouse) -> Stored:
    """Makes a table of so many files."""
    numbers = count()

    def make(*files: Iterable[object], type_: str = "string", renamed: str = "") -> Pages:
        parts = [pa.table({"Url": pa.array(values).cast(type_)}) for values in files]
        name = f"pages{next(numbers)}"
        table = warehouse.write(name, *parts)
        if renamed:
            with table.update_schema() as change:
                change.rename_column("Url", renamed)
            table.append(parts[0].rename_columns([renamed]))
        return Pages(warehouse.lake, name, warehouse.snapshots(name))

    return make


class TestValues:
    """Every value is found, each once."""

    def test_each_once_and_null_not_at_all(self, stored: Stored) -> None:
        """Over all rows and files of the snapshot asked for; NULL is no value."""
        made = stored(["/", "/a", None, "/"], [None, None], ["é", "/a", ""])
        assert made.values() == ["", "/", "/a", "é"]
        assert made.values(at=0) == ["/", "/a"]
        assert stored([None]).values() == []

    def test_values_that_do_not_repeat(self, stored: Stored) -> None:
        """Also where a file drops its dictionary because it becomes too large. More values than the
        limit are reported as too many.
        """
        many = [f"/{number:030}" for number in range(60_000)]
        made = stored([*many, *many])
        assert made.values(limit=60_000) == many
        found = made.values(limit=99)
        assert found is not None
        assert len(found) > 99

    def test_columns_that_give_no_answer(self, stored: Stored) -> None:
        """Bytes, numbers, missing columns and tables, and files with an older name."""
        assert stored([b"/"], type_="binary").values() is None
        numbers = stored([1, 2], type_="int64")
        [snapshot] = numbers.snapshots
        assert numbers.values() is None
        assert numbers.lake.string_values(numbers.name, "nothing", snapshot, 9) is None
        assert numbers.lake.string_values("no_table", "url", snapshot, 9) is None
        renamed = stored(["/"], renamed="page")
        assert renamed.values(at=0) == ["/"]
        assert renamed.values(at=1) is None
        assert renamed.values(at=1, column="page") is None
