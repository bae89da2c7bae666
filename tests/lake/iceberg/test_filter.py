"""``show --where`` gives the same rows as DuckDB, which knows SQL's three-valued logic."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pytest
from tests.lake.iceberg import filters
from tests.lake.iceberg.conftest import Warehouse

from infold.lake.iceberg.metadata_file import open_table
from infold.lake.iceberg.tables import IcebergLake
from infold.messages import errors


@pytest.fixture(scope="module")
def lake(warehouse: Warehouse) -> IcebergLake:
    """The rows in two commits, and again in a table that is partitioned by a column with NULLs."""
    from pyiceberg.transforms import IdentityTransform

    rows = filters.rows()
    warehouse.write("rows", rows.slice(0, 4), rows.slice(4))
    parts = warehouse.write("parts", schema=filters.SCHEMA)
    with parts.update_spec() as change:
        change.add_field("day", IdentityTransform(), "part")
    parts.append(rows.slice(0, 4))
    parts.append(rows.slice(4))
    return warehouse.lake


def by_duckdb(wheres: Sequence[str]) -> Mapping[str, list[int]]:
    """The ids of the rows for which each predicate is true."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    # Spark compares numbers of four bytes as doubles; so it is written for DuckDB.
    wide = [
        field.with_type(pa.float64()) if field.name == "f" else field for field in filters.SCHEMA
    ]
    connection.register("t", filters.rows().cast(pa.schema(wide)))

    found: dict[str, list[int]] = {where: [] for where in wheres}
    for at in range(0, len(wheres), 200):
        part = wheres[at : at + 200]
        columns = ", ".join(_for_duckdb(where) for where in part)
        for id_, *true in connection.sql(f"select id, {columns} from t order by id").fetchall():
            for where, holds in zip(part, true, strict=True):
                if holds:
                    found[where].append(id_)
    return found


def _for_duckdb(where: str) -> str:
    """Two of Spark's words in DuckDB's: equality of NULLs, and the sign that escapes in LIKE."""
    where = where.replace("<=>", "is not distinct from")
    return re.sub(r"(like '[^']*\\[^']*')", r"\1 escape '\\'", where)


@pytest.mark.deep
def test_every_part_of_the_language(lake: IcebergLake) -> None:
    """Some 1,800 predicates select the same rows as in
    DuckDB; NULL is neither true nor false under NOT.
    """
    location = lake.location("rows")
    assert location is not None
    schema, wheres = open_table(location).schema(), filters.every()

    expected = by_duckdb(wheres)

    assert {where: filters.ids(where, schema) for where in wheres} == expected


@pytest.mark.deep
@pytest.mark.parametrize("table", ["rows", "parts"])
def test_rows_in_files(lake: IcebergLake, table: str) -> None:
    """Pruning by file statistics and NULL partitions loses no row and adds none."""
    wheres = list(filters.nested(seed=2, count=40))

    def ids(where: str) -> list[int]:
        return sorted(lake.rows(table, columns=["id"], where=where)["id"].to_pylist())

    assert {where: ids(where) for where in wheres} == by_duckdb(wheres)


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("s = i", "a column is compared with values, not with the column i"),
        ("upper(s) = 'G'", "only columns compared with values are understood, not UPPER(s)"),
        ("i + 1 = 2", "only columns compared with values are understood, not i + 1"),
        ("i in (select 1)",
         "only columns compared with values are understood, not i IN (SELECT 1)"),
        ("s like 'g_h'", "of LIKE only a % at the end is understood; \\% and \\_ are the signs"),
        ("s like '%h'", "of LIKE only a % at the end is understood; \\% and \\_ are the signs"),
        ("s", "s is string and no condition: compare it"),
        ("i = 'one'", "i is a whole number, 'one' is not"),
        ("s = 7", "s is text, 7 is not"),
        ("ts > 'noon'", "'noon' is no date or time: write 2024-03-09 12:00"),
        ("b = 1", "b is true or false, 1 is not"),
        ("day = '2024-03-09 12:00'", "day is a date, '2024-03-09 12:00' is not"),
        ("o = 1", "o is of type struct, which can only be asked for NULL"),
        ("o.y = 1", "there is no column o.y; there are id, s, b, i, n, f, d, m, day, ts, o"),
        ("", "it is empty"),
        ("s = 'g", "a quote or a comment is never closed"),
        ("i = 1 i = 2", "not understood from here: i = 2"),
        ("not " * 5000 + "b", "it is nested too deeply"),
    ],
)  # fmt: skip
def test_unsupported_filters_are_refused(lake: IcebergLake, where: str, why: str) -> None:
    """A filter that is not understood is refused by name."""
    with pytest.raises(errors.InfoldError) as raised:
        lake.rows("rows", where=where)

    assert (raised.value.slug, dict(raised.value.facts)["why"]) == ("bad-filter", why)


@pytest.mark.deep
def test_many_alternatives(lake: IcebergLake) -> None:
    """Three hundred alternatives are understood like two."""
    where = " or ".join(f"i = {number}" for number in range(300))

    found = lake.rows("rows", columns=["id"], where=where)["id"].to_pylist()
    assert sorted(found) == [1, 2, 5, 8, 10]
