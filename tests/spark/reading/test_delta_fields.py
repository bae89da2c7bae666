"""Columns of a Delta table in one file: their names there, and the fields that the table has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import types as T

from infold.lake.reading.delta_mapping import ColumnMapping, mapping_of
from infold.lake.reading.source_file import SourceFile
from infold.spark.reading.delta_table import FileFields, NoIdsError, as_in_file, fields_in
from infold.spark.reading.drift import PresentFile
from infold.spark.reading.parquet_files import read_footer

TABLE = (
    T.StructType()
    .add("id", T.LongType())
    .add(
        "deep",
        T.StructType().add("a", T.IntegerType()).add("w", T.StructType().add("x", T.StringType())),
    )
    .add("list", T.ArrayType(T.StructType().add("y", T.IntegerType())))
    .add("named", T.MapType(T.StringType(), T.StructType().add("z", T.DateType())))
)
"""The columns of the table."""


def field(name: str, type_: pa.DataType, id_: int | None = None) -> pa.Field:
    """A column of a file, or a field of a struct in one."""
    return pa.field(name, type_, metadata=None if id_ is None else {"PARQUET:field_id": f"{id_}"})


def found_in(folder: Path, mapping: ColumnMapping, *fields: pa.Field) -> FileFields:
    """The table's columns in a file with these."""
    file = folder / "some.parquet"
    parquet.write_table(pa.schema(fields).empty_table(), file)
    footer = read_footer(PresentFile(1, file.name, SourceFile(str(file), file.stat().st_size)))
    return fields_in(footer, TABLE, mapping)


def read_by(found: FileFields, name: str) -> str:
    """The type by which Spark reads a column of the file."""
    return as_in_file(TABLE[name].dataType, (name,), dict(found.at)).simpleString()


def test_a_file_older_than_fields(tmp_path: Path) -> None:
    """What it lacks has the table's type, what else it has is left out; it lacks a column, too."""
    found = found_in(
        tmp_path,
        ColumnMapping(),
        field("deep", pa.struct([pa.field("old", pa.int8()), pa.field("a", pa.int32())])),
        field("list", pa.list_(pa.struct([pa.field("y", pa.int64())]))),
        field("named", pa.map_(pa.string(), pa.struct([pa.field("other", pa.date32())]))),
    )

    assert {name: str(type_) for name, type_ in found.types.items()} == {
        "deep": "struct<a: int32, w: struct<x: string>>",
        "list": "list<item: struct<y: int64>>",
        "named": "map<string, struct<z: date32[day]>>",
    }
    assert read_by(found, "deep") == "struct<a:int,w:struct<x:string>>"


def test_by_names(tmp_path: Path) -> None:
    """At any depth; a name that is the table's and is in the file of another field is not it."""
    names = {
        ("deep",): "c1",
        ("deep", "a"): "w",
        ("deep", "w"): "c2",
        ("deep", "w", "x"): "c3",
        ("list", "element", "y"): "c4",
        ("named", "value", "z"): "c5",
    }
    inner = pa.struct([pa.field("c3", pa.string()), pa.field("x", pa.string())])
    found = found_in(
        tmp_path,
        ColumnMapping(names=names),
        field("c1", pa.struct([pa.field("w", pa.int32()), pa.field("c2", inner)])),
        field("list", pa.list_(pa.struct([pa.field("c4", pa.int32())]))),
        field("named", pa.map_(pa.string(), pa.struct([pa.field("c5", pa.date32())]))),
    )

    assert str(found.types["deep"]) == "struct<a: int32, w: struct<x: string>>"
    assert "id" not in found.types
    assert [read_by(found, name) for name in ("deep", "list", "named")] == [
        "struct<w:int,c2:struct<c3:string>>",
        "array<struct<c4:int>>",
        "map<string,struct<c5:date>>",
    ]


def numbered() -> Any:
    """The table's columns with ids in the order in which they are written down."""
    numbers = iter(range(1, 99))

    def of(type_: Any) -> Any:
        if isinstance(type_, dict):
            for one in type_.get("fields", ()):
                one["metadata"] = {"delta.columnMapping.id": next(numbers)}
                of(one["type"])
            for part in ("elementType", "keyType", "valueType"):
                of(type_.get(part))
        return type_

    return of(TABLE.jsonValue())["fields"]


BY_ID = mapping_of("id", numbered())
"""``id`` is 1, ``deep`` 2 with 3 and 4, in which is 5; ``list`` 6 with 7, ``named`` 8 with 9."""


def test_by_ids(tmp_path: Path) -> None:
    """A file may have any names: what lacks its id is not there, whatever is called so."""
    assert BY_ID.ids["named", "value", "z"] == 9
    inner = pa.struct([field("a", pa.string(), 5)])
    deep = pa.struct([field("w", pa.int32(), 77), field("x", inner, 4)])
    found = found_in(
        tmp_path,
        BY_ID,
        field("list", pa.int64(), 1),
        field("id", deep, 2),
        field("deep", pa.list_(pa.struct([field("y", pa.int32(), 7)])), 6),
    )

    assert {name: str(type_) for name, type_ in found.types.items()} == {
        "id": "int64",
        "deep": "struct<a: int32, w: struct<x: string>>",
        "list": "list<item: struct<y: int32>>",
    }
    assert read_by(found, "deep") == "struct<a:int,x:struct<a:string>>"
    assert dict(found.at)["id",] == "list"


def test_by_ids_a_name_that_the_file_has_for_another(tmp_path: Path) -> None:
    """What is not there is read by a name that no field has, in whatever letters."""
    deep = pa.struct([field("A", pa.string(), 77), field("a_", pa.int32(), 78)])

    found = found_in(tmp_path, BY_ID, field("deep", deep, 2))

    assert read_by(found, "deep") == "struct<a__:int,w:struct<x:string>>"


def test_a_name_in_other_letters(tmp_path: Path) -> None:
    """It is another field: names are compared exactly, also where Spark would not."""
    found = found_in(tmp_path, ColumnMapping(), field("deep", pa.struct([field("A", pa.int64())])))

    assert str(found.types["deep"]) == "struct<a: int32, w: struct<x: string>>"
    assert read_by(found, "deep") == "struct<a_:int,w:struct<x:string>>"


@pytest.mark.parametrize("ids", [(None, None), (4, 4)], ids=["none", "twice"])
def test_by_ids_a_struct_that_does_not_tell(tmp_path: Path, ids: tuple[int | None, ...]) -> None:
    """It has no ids, or one of them twice: nobody may guess."""
    first, second = ids
    deep = pa.struct([field("a", pa.int32(), first), field("w", pa.int32(), second)])

    with pytest.raises(NoIdsError):
        found_in(tmp_path, BY_ID, field("deep", deep, 2))


def test_another_kind_of_type(tmp_path: Path) -> None:
    """It is what the file says: that does not fit, and is drift."""
    found = found_in(
        tmp_path, ColumnMapping(), field("deep", pa.list_(pa.int32())), field("list", pa.string())
    )

    assert found.types["deep"].value_type == pa.int32()
    assert found.types["list"] == pa.string()
