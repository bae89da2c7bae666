"""Types of databases: what fits a declared one is extracted exactly, all else refused."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.lake.databases.folder import Database

from infold.lake.databases.columns import (
    FITS,
    ColumnType,
    StoredColumn,
    UnfitError,
    WantedColumn,
    declared_type,
)
from infold.lake.databases.postgresql import _column
from infold.messages.errors import InfoldError

EXACT = [
    ("INTEGER", "bigint", [1, -(2**63), 2**63 - 1, None]),
    ("REAL", "double", [0.1, -0.0, float("inf"), None]),
    ("VARCHAR(3)", "string", ["", "a", "Grüße", None]),
    ("JSON", "string", ['{"a":  1.50}']),
    ("BLOB", "binary", [b"\x00\xff", b"", None]),
    ("BOOLEAN", "boolean", [True, False, None]),
    ("DATE", "date", ["0001-01-01", "9999-12-31", None]),
    ("DATETIME", "timestamp", ["2024-03-09 10:00:00.123456", "2024-03-09", None]),
    ("TIMESTAMP", "timestamp_ntz", ["1582-10-10T00:00"]),
]


@pytest.mark.parametrize(("stored", "declared", "values"), EXACT)
def test_values_of_sqlite_are_extracted_as_they_are(
    tmp_path: Path, stored: str, declared: str, values: list[Any]
) -> None:
    """Each type that fits, with its ends, and NULL."""
    database = Database(tmp_path, columns={"x": declared})
    database.run(f"CREATE TABLE t (x {stored})")
    for value in values:
        database.run("INSERT INTO t VALUES (?)", values=[value])
    database.extract()
    make = {"DATE": date.fromisoformat}.get(stored, datetime.fromisoformat)
    expected = [make(v) if v and "A" in stored and "-" in str(v) else v for v in values]

    assert database.table()["x"].to_pylist() == expected


@pytest.mark.parametrize(
    ("stored", "declared"),
    [
        ("NUMERIC(10,2)", "decimal(10,2)"),
        ("INTEGER", "int"),
        ("TEXT", "varchar(3)"),
        ("", "string"),
        ("DATETIME", "date"),
        ("DATETIME", "array<timestamp>"),
    ],
)
def test_types_that_do_not_fit_are_refused(tmp_path: Path, stored: str, declared: str) -> None:
    """Before any row is read, with the database's own name of the type."""
    database = Database(tmp_path, columns={"x": declared})
    database.run(f"CREATE TABLE t (x {stored})")

    assert refused(database) == f"source-column-type x {stored or 'no type'} {declared}"


@pytest.mark.parametrize(
    ("stored", "declared", "value"),
    [
        ("INTEGER", "bigint", "abc"),
        ("INTEGER", "bigint", 1.5),
        ("TEXT", "string", b"\xff"),
        ("BOOLEAN", "boolean", 2),
        ("DATE", "date", "2024-02-31"),
        ("DATE", "date", "2024-03-01 00:00"),
        ("DATETIME", "timestamp", "2024-03-01 10:00:00+02:00"),
        ("DATETIME", "timestamp", "2024-03-01 10:00:00.1234567"),
        ("DATETIME", "timestamp", 1_700_000_000),
    ],
)
def test_values_that_do_not_fit_are_refused(
    tmp_path: Path, stored: str, declared: str, value: Any
) -> None:
    """SQLite stores anything anywhere. No file is extracted with a part of the table."""
    database = Database(tmp_path, columns={"x": declared})
    database.run(f"CREATE TABLE t (x {stored})", "INSERT INTO t VALUES (NULL)")
    database.run("INSERT INTO t VALUES (?)", values=[value])

    assert refused(database).startswith("source-value x")
    assert [*database.folder.iterdir()] == []


@pytest.mark.parametrize("value", ["x", 9.5, -7])
@pytest.mark.parametrize(("key", "reread"), [("id", None), ("at", None), ("at", 1)])
def test_a_key_of_another_kind_is_found(
    tmp_path: Path, value: Any, key: str, reread: int | None
) -> None:
    """Wherever SQLite puts such a value, it is not passed over."""
    database = Database(tmp_path, key=key, reread=reread)
    database.run("CREATE TABLE t (id INTEGER, at DATETIME, v TEXT)")
    database.run("INSERT INTO t VALUES (8, '2024-03-09', 'a')")
    database.extract()
    database.run("INSERT INTO t VALUES (9, '2024-03-09', 'b')")
    database.run(f"UPDATE t SET {key} = ? WHERE v = 'b'", values=[value])

    if key == "id" and value == -7:
        assert database.extract().rows == 0, "a smaller number is one"
    else:
        assert refused(database) == f"source-value {key} {value!r}"


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    """A file, a table, a column, a key, and what is no database. A view is a table."""
    database = Database(tmp_path, key="id")
    assert refused(database) == "source-unreachable"
    database.file.write_bytes(b"no database, but long enough to look like one" * 99)
    assert refused(database) == "source-read-failed"
    database.file.unlink()
    database.run("CREATE TABLE other (id INTEGER)")
    assert refused(database) == "source-table-missing"
    database.run("CREATE TABLE t (id INTEGER, At DATETIME, v TEXT)")
    assert refused(database) == "source-column-missing at"
    database.run("ALTER TABLE t RENAME TO n", "INSERT INTO n VALUES (NULL, NULL, 'a')")
    database.run("CREATE VIEW t AS SELECT id, At AS at, v FROM n")
    assert refused(database) == "source-key-null id"
    assert [*database.folder.iterdir()] == []
    database.run("UPDATE n SET id = 7")
    database.extract()
    assert database.rows() == [(7, None, "a")]


def refused(database: Database) -> str:
    """The error of a reading: its slug, the column, and what it has."""
    with pytest.raises(InfoldError) as caught:
        database.extract()
    error = caught.value
    facts = dict(error.facts)
    words = error.what.split()
    column = words[words.index("column") + 1] if "column" in words else ""
    if error.slug == "source-column-missing":
        column = words[-1]
    if error.slug == "source-key-null":
        column = words[2]
    shown = error.what.partition("has the type ")[2].replace(", which cannot be read as", "")
    return " ".join(filter(None, (error.slug, column, shown, facts.get("value", ""))))


@pytest.mark.parametrize(
    ("written", "kind", "type_", "fits", "fits_not"),
    [
        ("smallint", "b", ColumnType.INT16, ["short", "int", "bigint"], ["tinyint", "string"]),
        ("integer", "b", ColumnType.INT32, ["INT", "long"], ["smallint", "decimal(38,0)"]),
        ("numeric(12,2)", "b", ColumnType.DECIMAL, ["decimal(12,2)", "dec(14, 4)"],
         ["decimal(12,3)", "decimal(11,2)", "decimal", "double"]),
        ("numeric(3,-2)", "b", ColumnType.DECIMAL, ["decimal(5,0)", "decimal"], ["decimal(4,0)"]),
        ("numeric", "b", ColumnType.DECIMAL, ["decimal(18,2)"], ["double", "string"]),
        ("real", "b", ColumnType.FLOAT, ["float", "double"], ["decimal(9,2)"]),
        ("double precision", "b", ColumnType.DOUBLE, ["double"], ["float"]),
        ("character varying(9)", "b", ColumnType.TEXT, ["string"], ["varchar(9)"]),
        ("character(3)", "b", ColumnType.TEXT, ["string"], ["char(3)"]),
        ("jsonb", "b", ColumnType.TEXT, ["string"], ["struct<a: int>"]),
        ("shop.mood", "e", ColumnType.TEXT, ["string"], ["int"]),
        ("timestamp(3) without time zone", "b", ColumnType.LOCAL_TIME,
         ["timestamp", "timestamp_ntz", "timestamp_ltz"], ["date", "string"]),
        ("timestamp with time zone", "b", ColumnType.INSTANT, ["timestamp"], ["timestamp_ntz"]),
        ("integer[]", "b", None, [], ["array<int>", "string"]),
        ("interval", "b", None, [], ["string"]),
        ("time without time zone", "b", None, [], ["string", "timestamp"]),
        ("money", "b", None, [], ["decimal(18,2)"]),
        ("shop.price", "d", None, [], ["decimal(18,2)"]),
        ("xml", "b", None, [], ["string"]),
        ("inet", "b", None, [], ["string"]),
        ("int4range", "r", None, [], ["string"]),
    ],
)  # fmt: skip
def test_types_of_postgresql(
    written: str, kind: str, type_: ColumnType | None, fits: list[str], fits_not: list[str]
) -> None:
    """Narrower fits, wider does not; what is no type here fits nothing."""
    column = _column("x", written, not_null=False, typtype=kind)

    assert column.type is type_
    assert [one for one in (*fits, *fits_not) if column.fits(one)] == fits


def test_decimals_fit_by_their_values() -> None:
    """
    `numeric` has no digits of its own: each value has to be a declared one. And 0.1 in single
    precision is another number than in double precision.
    """
    column = WantedColumn(StoredColumn("x", "numeric", ColumnType.DECIMAL), "decimal(5,2)")

    assert column.array([Decimal("1.10"), Decimal("1E+2"), None]).type == pa.decimal128(5, 2)
    for wrong in (Decimal("0.001"), Decimal(1000), Decimal("NaN"), Decimal("Infinity"), 1.0):
        with pytest.raises(UnfitError) as caught:
            column.array([Decimal(1), wrong])
        assert caught.value.value is wrong
    single = WantedColumn(StoredColumn("x", "real", ColumnType.FLOAT), "double")
    assert single.array([0.1]).type == pa.float32()


def test_every_type_fits_one() -> None:
    """Each type of a column can be declared, and each declared name is Spark's."""
    assert {*FITS} == {*ColumnType}
    assert declared_type("Numeric(9)") == ("decimal", (9, 0))
    assert declared_type("array<decimal(9,2)>") == ("array<decimal(9,2)>", None)
    stored = StoredColumn("x", "timestamp with time zone", ColumnType.INSTANT)
    at = datetime(2024, 1, 1, tzinfo=UTC)
    assert WantedColumn(stored, "timestamp").array([at]).to_pylist() == [at]
