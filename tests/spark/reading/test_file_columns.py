"""What files of a source have, beside what is declared: names, types, ids; without a session."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import ANY

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import types as T

from infold.core.files import ListedFile
from infold.core.formats import Format
from infold.core.model import Column, Drift, NewColumns, Source
from infold.core.project import Project
from infold.core.target import Target
from infold.lake.reading.delta_table import ColumnMapping, mapping_of
from infold.lake.reading.source_file import SourceFile
from infold.messages import run_errors
from infold.messages.errors import InfoldError
from infold.spark.reading import source_rows
from infold.spark.reading.arrow_types import readable_type, type_fit
from infold.spark.reading.delta_table import FileFields, NoIdsError, as_in_file, fields_in
from infold.spark.reading.drift import PresentFile, differences, refuse_moved
from infold.spark.reading.failures import naming_files, unread_file
from infold.spark.reading.parquet_files import names_by_id, read_footer

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


INT, LONG, DOUBLE, TEXT = T.IntegerType(), T.LongType(), T.DoubleType(), T.StringType()


def struct(**types: T.DataType) -> T.StructType:
    """An object of these fields."""
    return T.StructType([T.StructField(*one) for one in types.items()])


FITS = {
    "a list": (pa.list_(pa.int32()), T.ArrayType(LONG), T.ArrayType(INT)),
    "a map": (pa.map_(pa.string(), pa.int32()), T.MapType(TEXT, LONG), T.MapType(TEXT, INT)),
    "its keys": (pa.map_(pa.int32(), pa.string()), T.MapType(LONG, TEXT), T.MapType(INT, TEXT)),
    "an object": (
        pa.struct([("a", pa.float32()), ("b", pa.string())]),
        struct(a=DOUBLE, b=TEXT),
        struct(a=T.FloatType(), b=TEXT),
    ),
    "objects in lists in maps": (
        pa.map_(pa.string(), pa.list_(pa.struct([("a", pa.decimal128(9, 2))]))),
        T.MapType(TEXT, T.ArrayType(struct(a=T.DecimalType(18, 2)))),
        T.MapType(TEXT, T.ArrayType(struct(a=T.DecimalType(9, 2)))),
    ),
    "no sign": (pa.list_(pa.uint16()), T.ArrayType(LONG), T.ArrayType(INT)),
}  # fmt: skip


@pytest.mark.parametrize("name", FITS)
def test_narrower_parts_are_read_as_they_are_stored(name: str) -> None:
    """A cast from the stored type makes the declared one."""
    found, wanted, stored = FITS[name]
    entry = type_fit(found, wanted, "iso")
    assert entry is not None
    assert (entry.stored, entry.checked) == (stored, False)


DRIFTS = {
    "a wider part": (pa.list_(pa.int64()), T.ArrayType(INT)),
    "another kind": (pa.list_(pa.string()), T.ArrayType(LONG)),
    "another order of fields": (
        pa.struct([("b", pa.int64()), ("a", pa.int64())]),
        struct(a=LONG, b=LONG),
    ),
    "a field more": (pa.struct([("a", pa.int64()), ("b", pa.int64())]), struct(a=LONG)),
    "no field": (pa.struct([]), struct()),
    "a time that would be checked": (pa.list_(pa.timestamp("ns")), T.ArrayType(T.TimestampType())),
    "text that would be parsed": (pa.list_(pa.string()), T.ArrayType(T.TimestampType())),
    "a map as a list": (pa.map_(pa.string(), pa.int64()), T.ArrayType(LONG)),
}


@pytest.mark.parametrize("name", DRIFTS)
def test_parts_that_do_not_fit_are_drift(name: str) -> None:
    """Narrower, other, or only fitting value by value."""
    assert type_fit(*DRIFTS[name], "iso") is None


@pytest.mark.parametrize("type_", [pa.time64("us"), pa.time32("ms"), pa.decimal256(39, 0)], ids=str)
def test_types_that_spark_does_not_read(type_: pa.DataType) -> None:
    """The text of a row that is set aside leaves them out, in lists, maps and objects too."""
    nests = (type_, pa.list_(type_), pa.map_(pa.string(), type_), pa.struct([("a", type_)]))

    assert [*map(readable_type, nests)] == [None] * 4
    assert readable_type(pa.list_(pa.decimal128(38, 2))) == T.ArrayType(T.DecimalType(38, 2))


SIMPLE: dict[T.DataType, pa.DataType] = {
    T.ByteType(): pa.int8(),
    T.ShortType(): pa.int32(),
    T.IntegerType(): pa.int32(),
    LONG: pa.int64(),
    T.FloatType(): pa.float32(),
    DOUBLE: pa.float64(),
    T.DecimalType(9, 2): pa.decimal128(9, 2),
    T.DecimalType(18, 2): pa.decimal128(18, 2),
    T.DecimalType(20, 0): pa.decimal128(20, 0),
    T.BooleanType(): pa.bool_(),
    T.DateType(): pa.date32(),
    T.TimestampType(): pa.timestamp("us", "UTC"),
    T.TimestampNTZType(): pa.timestamp("us"),
    T.BinaryType(): pa.binary(),
}


@pytest.mark.parametrize(
    "nest",
    [
        (pa.list_, T.ArrayType),
        (lambda of: pa.map_(pa.string(), of), lambda of: T.MapType(TEXT, of)),
        (lambda of: pa.struct([("a", of)]), lambda of: struct(a=of)),
    ],
    ids=["list", "map", "object"],
)
def test_what_fits_as_a_column_fits_as_a_part(
    nest: tuple[Callable[[pa.DataType], pa.DataType], Callable[[T.DataType], T.DataType]],
) -> None:
    """Of each pair of types, unless its values are checked one by one."""
    for old, new in itertools.product(SIMPLE, repeat=2):
        alone = type_fit(SIMPLE[old], new, "iso")
        within = type_fit(nest[0](SIMPLE[old]), nest[1](new), "iso")
        assert (within is None) == (alone is None or alone.checked), (old, new)


FILE = PresentFile(1, "a.json", SourceFile("a.json", 0))
COLUMNS = (Column("id", "string"), Column("userId", "string", optional=True))


@pytest.mark.parametrize("new_columns", [NewColumns.IGNORE, NewColumns.SET_ASIDE])
@pytest.mark.parametrize("on_drift", Drift)
def test_another_case_is_never_ignored(new_columns: NewColumns, on_drift: Drift) -> None:
    """A declared column that a file spells otherwise would be NULL, as one that is optional."""
    source = Source(
        "raw.a", Format.JSON, COLUMNS, path="*", on_new_columns=new_columns, on_drift=on_drift
    )

    found = differences(source, FILE, ["id", "userid"])

    assert found is not None
    assert "column userid in place of userId" in found.how
    assert found.error is (on_drift is not Drift.SET_ASIDE)


def test_both_spellings_are_two_columns() -> None:
    """Beside the declared one another spelling is a column like any other."""
    source = Source("raw.a", Format.JSON, COLUMNS, path="*", on_new_columns=NewColumns.IGNORE)

    assert differences(source, FILE, ["id", "userid", "userId"]) is None


SOURCE = Source("raw.rows", Format.PARQUET, (), path="landing/*.parquet")
MESSAGE = (
    "Job aborted: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file {}.  "
    "SQLSTATE: KD001\n\tat org.apache\nCaused by: java.io.IOException: it is cut off\n"
)


@pytest.mark.parametrize(
    ("named", "location"),
    [
        ("file:///landing/a%20b%25.parquet", "/landing/a b%.parquet"),
        ("file:/landing/a.parquet", "/landing/a.parquet"),
        ("s3a://bucket/a%20b.parquet", "s3a://bucket/a b.parquet"),
    ],
)
def test_the_file_that_a_message_names(named: str, location: str) -> None:
    """With the reason that is deepest."""
    assert unread_file(MESSAGE.format(named)) == (location, "it is cut off")
    assert unread_file("[DIVIDE_BY_ZERO] Division by zero.") is None


class Attempt:
    """A frame whose write fails by the first of some files that is bad, as Spark's does."""

    def __init__(self, files: Sequence[PresentFile], read: list[int]) -> None:
        self.files, self.read = files, read
        self.write = self

        self.format = self.mode = lambda _: self

    def save(self) -> None:
        """Each tenth file is bad."""
        self.read.append(len(self.files))
        for file in self.files:
            if file.id % 10 == 0:
                raise OSError(MESSAGE.format(f"file:{file.file.location}"))


def test_bad_files_among_good_ones_are_found_by_halves(tmp_path: Path) -> None:
    """Each bad one by its reason, and no file is read again for each of the others."""
    files, read = [], list[int]()
    for id_ in range(1, 201):
        path = tmp_path / f"{id_}.parquet"
        path.write_bytes(b"")
        files.append(PresentFile(id_, path.name, SourceFile(str(path), 0)))
    reader = SimpleNamespace(rows=lambda spark, source, shape, group: Attempt(group, read))
    project = Project("p", tmp_path, None, {}, (), Target("dev"))
    shapes: Any = {file.id: "one" for file in files}

    found = source_rows._unread_files(ANY, project, SOURCE, cast("Any", reader), shapes, files)

    assert found == dict.fromkeys(range(10, 201, 10), "it is cut off")
    assert sum(read) < 9 * len(files), "once for each bad one is twenty times"


@pytest.mark.parametrize("by", ["a look", "reading"])
@pytest.mark.parametrize("aside", [False, True])
def test_what_is_advised(tmp_path: Path, by: str, *, aside: bool) -> None:
    """To have such files set aside, unless they are: then it is one that had been ingested."""
    file = tmp_path / "landing" / "a.parquet"
    file.parent.mkdir()
    file.write_bytes(b"")
    source = replace(SOURCE, on_unreadable=Drift.SET_ASIDE) if aside else SOURCE
    project = Project("p", tmp_path, None, {source.name: source}, (), Target("dev"))
    looked = run_errors.unreadable_file(path="landing/a.parquet", why="it is cut off")
    failure = looked if by == "a look" else RuntimeError(MESSAGE.format(file.as_uri()))
    with pytest.raises(InfoldError) as raised, naming_files(project, source):
        raise failure

    assert raised.value.slug == "unreadable-file"
    assert raised.value.facts == (("file", "landing/a.parquet"), ("why", "it is cut off"))
    assert ("on_unreadable: set_aside" in raised.value.todo) is not aside


@pytest.mark.parametrize(
    ("ids", "found"),
    [
        ({"a": 2, "b": 1}, {2: "a", 1: "b"}),
        ({"a": 0, "b": None}, {0: "a"}),
        ({"a": None, "b": None}, None),
        ({"a": 7, "b": 7}, None),
    ],
    ids=["all", "one", "none", "twice"],
)
@pytest.mark.parametrize("store_schema", [True, False])
def test_what_columns_are_called(
    tmp_path: Path,
    ids: Mapping[str, int | None],
    found: Mapping[int, str] | None,
    store_schema: bool,
) -> None:
    """By the ids of the columns themselves; of parts they do not matter."""
    part = pa.field("c", pa.int32(), metadata={"PARQUET:field_id": "2"})
    kinds = {"a": pa.struct([part]), "b": pa.string()}
    fields = [
        pa.field(
            name, kinds[name], metadata=None if id_ is None else {"PARQUET:field_id": f"{id_}"}
        )
        for name, id_ in ids.items()
    ]
    file = tmp_path / "some.parquet"
    parquet.write_table(pa.schema(fields).empty_table(), file, store_schema=store_schema)
    size = file.stat().st_size

    footer = read_footer(PresentFile(1, file.name, SourceFile(str(file), size), size))

    assert names_by_id(footer.fields) == found


ORDERS = Source("raw.orders", Format.DELTA, (), path="orders")


@pytest.mark.parametrize(
    ("taken", "moved"),
    [("9:1", False), ("9:1|policy", False), ("9:1:2:marks", True), ("9:2|policy", True)],
)
def test_a_file_is_the_one_that_was_listed(taken: str, moved: bool) -> None:
    """By its fingerprint, without what the source decides about files as a whole."""
    file = PresentFile(1, "a.parquet", SourceFile("a.parquet", 9), fingerprint=taken)
    listed = [ListedFile("a.parquet", 9, 0, "9:1")]
    if not moved:
        refuse_moved(ORDERS, [file], listed)
    else:
        with pytest.raises(InfoldError, match="source-changed"):
            refuse_moved(ORDERS, [file], listed)
    with pytest.raises(InfoldError, match="source-changed"):
        refuse_moved(ORDERS, [file], [])
