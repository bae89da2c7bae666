"""What the log of a Delta table says, and the rows that are read by it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from tests.lake.delta.made import Made
from tests.lake.delta.vectors import mark_deleted

from infold.core.ports import History, TableMetadata, TimeSpan
from infold.lake.delta.files import live_files, partition_files
from infold.lake.delta.log import DROPPED, Newest, newest
from infold.lake.delta.tables import DeltaSnapshotReader
from infold.lake.stores import places
from infold.messages.errors import InfoldError

NOW = {"commitInfo": {"timestamp": 1_700_000_000_000, "operation": "OPTIMIZE"}}
SAME = {"path": "x.parquet", "partitionValues": {}, "size": 1, "dataChange": False}


def head_of(made: Made) -> TableMetadata:
    """What is known of the table ``daily``."""
    found = made.lake.metadata("daily")
    assert found is not None
    return found


class TestCommits:
    """infold knows its own commits in a table's history, and tells those of others."""

    def test_steps_are_in_their_order(self, made: Made) -> None:
        """Each step of the history is there with its snapshot, the newest last. A commit without
        files, as VACUUM makes them, is no version.
        """
        snapshots = [made.write("daily", {"n": [n]}, f"s-{n}") for n in range(3)]
        made.commit("daily", {"commitInfo": {"timestamp": 1, "operation": "VACUUM START"}})

        head = head_of(made)
        assert [*head.steps.items()] == [(f"s-{n}", snapshots[n]) for n in range(3)]
        assert (head.snapshot, head.foreign) == (snapshots[2], None)
        assert made.lake.history("daily").main == tuple(reversed(snapshots))

    def test_rows_of_others_are_foreign(self, made: Made) -> None:
        """A commit of somebody else is told, whatever it says of itself, and also below one of
        infold's, which has its rows. One that puts rows into other files says so, and changes
        nothing.
        """
        made.write("daily", {"n": [1]}, "s-1")
        made.commit("daily", NOW, {"remove": {**SAME, "deletionTimestamp": 1}})
        history = made.lake.history("daily")
        assert head_of(made).foreign is None
        assert (history.snapshots, history.since_rewrite) == (2, 0)
        made.write("daily", {"n": [2]}, None)
        assert head_of(made).foreign == 2
        made.write("daily", {"n": [3]}, "s-2")
        assert head_of(made).foreign == 2
        for said in ("hello", "[1]", "null", '{"infold.nothing": 1}'):
            add = {"add": {**SAME, "modificationTime": 1, "dataChange": True}}
            made.commit("daily", {"commitInfo": {"timestamp": 1, "userMetadata": said}}, add)
        assert head_of(made).foreign == 7

    def test_other_columns_are_foreign(self, made: Made) -> None:
        """A column that is mapped, added or dropped without a row is a change all the same."""
        columns = {
            "id": "1", "format": {"provider": "parquet", "options": {}},
            "schemaString": '{"type": "struct", "fields": []}', "partitionColumns": [],
            "configuration": {"delta.columnMapping.mode": "name"},
        }  # fmt: skip
        made.write("daily", {"n": [1]}, "s-1")
        made.commit("daily", NOW, {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}})
        assert head_of(made).foreign == 1
        made.commit("daily", NOW, {"metaData": columns})
        assert head_of(made).foreign == 2

    @pytest.mark.parametrize(("version", "foreign"), [(0, None), ("0", None), (1, 1), (None, 2)])
    def test_restored_by_others(self, made: Made, version: object, foreign: int | None) -> None:
        """
        What others restore is as the version that they name; what was written after that is none of
        its history. By a time, nobody knows which version that was.
        """
        made.write("daily", {"n": [1]}, "s-1")
        made.write("daily", {"n": [2]}, None)
        parameters = {"version": version, "timestamp": None}
        info = {"timestamp": 1, "operation": "RESTORE", "operationParameters": parameters}
        removed = {"path": "y.parquet", "partitionValues": {}, "dataChange": True}
        made.commit("daily", {"commitInfo": info}, {"remove": removed})

        assert (list(head_of(made).steps), head_of(made).foreign) == (["s-1"], foreign)


class TestSnapshots:
    """A snapshot means one state of one table, for good."""

    def test_another_table_of_the_name_has_others(self, made: Made) -> None:
        """A table that was dropped and made again has no snapshot of the one before. A commit, a
        drop and a table made anew each give another location.
        """
        first = made.write("daily", {"n": [1]}, "s-1")
        known = {"daily": made.lake.location("daily") or ""}
        assert made.lake.moved_tables(known) == {}
        made.lake.drop("daily")
        assert made.lake.moved_tables(known) == {"daily": None}
        second = made.write("daily", {"n": [2]}, "s-2")
        assert [*made.lake.moved_tables(known)] == ["daily"]

        log = made.lake.log("daily")

        assert log is not None
        assert (log.version(first), log.version(second)) == (None, 0)
        assert made.lake.columns("daily", first) == {}

    def test_columns_of_an_earlier_snapshot(self, made: Made) -> None:
        """Columns are those of the snapshot that is asked for, with Spark's names of types."""
        first = made.write("daily", {"n": [1]}, "s-1")
        rows = pa.table({"t": pa.array([[1]], pa.list_(pa.int32())), "_version": [1]})
        made.write("daily", rows, "s-2", mode="overwrite", schema_mode="overwrite")

        assert made.lake.columns("daily", first) == {"n": "long"}
        assert made.lake.columns("daily") == {"t": {"type": "array", "elementType": "integer"}}

    def test_no_table(self, made: Made) -> None:
        """What is not there has no metadata, and nothing fails."""
        lake = made.lake
        assert lake.metadata("daily") is None
        assert lake.history("daily") == History()
        assert (lake.layout("daily"), lake.columns("daily"), lake.size("daily")) == (None, {}, 0)
        assert (lake.file_list_id("daily"), lake.lost_files("daily")) == ("", ())
        assert not lake.drop("daily")
        assert not lake.made_tables()


class TestDamage:
    """What cannot be read is an error with the file and the reason."""

    @pytest.mark.parametrize("text", ["{", "[]", '{"commitInfo": 1, "add": 2}', '{"add": null}'])
    def test_a_damaged_log(self, made: Made, text: str) -> None:
        """A file of the log that is none is named."""
        made.write("daily", {"n": [1]}, "s-1")
        log = made.lake.log("daily")
        assert log is not None
        Path(log.file(1)).write_text(text, encoding="utf-8")

        with pytest.raises(InfoldError) as raised:
            made.lake.metadata("daily")

        assert raised.value.slug == "metadata-missing"
        assert ("file", str(log.file(1))) in raised.value.facts
        assert [*made.lake.moved_tables({"daily": "x"})] == ["daily"]

    def test_a_newer_protocol(self, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
        """A feature that the reader lacks is named; without a reader, how to install it."""
        made.write("daily", {"n": [1]}, "s-1")
        features = {one: ["fromTheFuture"] for one in ("readerFeatures", "writerFeatures")}
        newer = {"minReaderVersion": 3, "minWriterVersion": 7, **features}
        made.commit("daily", NOW, {"protocol": newer})

        with pytest.raises(InfoldError, match="delta-unreadable") as raised:
            made.lake.rows("daily")
        assert "fromTheFuture" in str(raised.value.facts)

        monkeypatch.setitem(sys.modules, "deltalake", None)
        with pytest.raises(InfoldError, match="delta-reader-missing") as raised:
            made.lake.rows("daily")
        assert "infold[delta]" in (raised.value.todo or "")

    def test_lost_files(self, made: Made) -> None:
        """
        Files that a table needs and that are gone are named, and the list of names differs. One
        that says which rows are deleted is needed like one with rows.
        """
        made.write("daily", {"n": [1, 2]}, "s-1")
        mark_deleted(made.folder("daily"), "n", {1}, in_file=True)
        before = made.lake.file_list_id("daily")
        (file,) = made.folder("daily").glob("*.parquet")
        (marks,) = made.folder("daily").glob("*.bin")
        assert made.lake.lost_files("daily") == ()
        assert made.lake.has_file("daily", str(file))
        marks.unlink()
        (lost,) = made.lake.lost_files("daily")
        assert lost.endswith(marks.name)
        file.unlink()

        assert made.lake.lost_files("daily") == (str(file),)
        assert made.lake.file_list_id("daily") != before
        with pytest.raises(InfoldError, match="delta-unreadable"):
            made.lake.rows("daily")


TEN = datetime(2024, 1, 5, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("partition", "shown"),
    [
        (pa.array([date(2024, 1, 1)]), "2024-01-01"),
        (pa.array([TEN], pa.timestamp("us", "UTC")), "2024-01-05 10:00:00"),
        (pa.array([None], pa.date32()), None),
        (None, None),
    ],
    ids=["date", "hour", "null", "none"],
)
def test_files_of_each_partition(made: Made, partition: pa.Array | None, shown: str | None) -> None:
    """Data files and their bytes, by the start of the partition; without any, all are of one."""
    for n in range(2):
        by = {} if partition is None else {"_partition": partition}
        made.write("daily", pa.table({"n": [n], **by}), f"s-{n}", partition_by=[*by])

    log = made.lake.log("daily")
    assert log is not None
    files = live_files(log, log.newest)
    assert files is not None
    ((start, data, deletes, size),) = partition_files(files.values())

    assert (start and start[:13], data, deletes) == (shown and shown[:13], 2, 0)
    assert size == sum(file.stat().st_size for file in made.folder("daily").rglob("*.parquet"))


FOLDER = "s3://lake/orders"
LOG = f"{FOLDER}/_delta_log"


def commits(*versions: int) -> list[str]:
    """The files of versions."""
    return [f"{version:020}.json" for version in versions]


def look(
    monkeypatch: pytest.MonkeyPatch, names: list[str], checkpoint: bytes | None
) -> tuple[Newest | None, list[str]]:
    """What is found in a log with these files, and after which names it was listed."""
    asked = []

    def marks(folder: str, after: str) -> Mapping[str, str]:
        assert folder == LOG
        asked.append(after)
        return {name: f"e-{name[18:20]}" for name in names if name > after}

    def read(location: str) -> bytes:
        assert location == f"{LOG}/_last_checkpoint"
        if checkpoint is None:
            raise FileNotFoundError(location)
        return checkpoint

    monkeypatch.setattr(places, "marks", marks)
    monkeypatch.setattr(places, "read", read)
    return newest(FOLDER), asked


def test_what_comes_after_the_last_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more is listed, however long the log is; the commit's ETag tells it from another one."""
    found, asked = look(monkeypatch, commits(*range(50)), b'{"version": 40}')

    assert found == Newest(FOLDER, 49, f"{LOG}/{49:020}.json:e-49")
    assert asked == [f"{40:020}"]


def test_a_checkpoint_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """None, damaged, without a number, or of no version: all of the log is listed."""
    names = [*commits(3, 5), f"{9:020}.checkpoint.parquet"]
    for said in (None, b"{", b"[]", b"{}", b'{"version": "x"}', b'{"version": 99}'):
        found, asked = look(monkeypatch, names, said)

        assert found is not None
        assert (found.version, asked[-1]) == (5, "")


def test_no_table_in_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that is a version, or a table of infold's that is being deleted."""
    for names in ([], ["x.json"], [*commits(0, 1), DROPPED]):
        assert look(monkeypatch, names, b'{"version": 1}')[0] is None


NOON = datetime(2024, 3, 9, 12, tzinfo=UTC)
TYPES = pa.schema(
    [
        ("n", pa.int64()),
        ("user", pa.string()),
        ("t.s", pa.timestamp("us", "UTC")),
        ("d", pa.date32()),
        ("m", pa.decimal128(38, 6)),
        ("x", pa.float64()),
        ("b", pa.bool_()),
        ("l", pa.list_(pa.struct([("a", pa.int32())]))),
        ("p", pa.map_(pa.string(), pa.int64())),
        ("r", pa.binary()),
        ("_version", pa.int64()),
    ]
)
ROW = {
    "n": 1,
    "user": "ann",
    "t.s": NOON,
    "d": date(2024, 3, 9),
    "m": Decimal("1.500000"),
    "x": 0.5,
    "b": True,
    "l": [{"a": 1}, None],
    "p": [("k", 2)],
    "r": b"\0",
    "_version": 7,
}
NULLS = dict.fromkeys(ROW) | {"n": 2, "l": []}


@pytest.fixture
def typed(made: Made) -> Made:
    """A table with a row of values and one of NULLs."""
    made.write("daily", pa.Table.from_pylist([ROW, NULLS], TYPES), "s-1")
    return made


def test_rows_have_the_types_that_people_know(typed: Made) -> None:
    """Every type comes as it was written, without infold's own columns; at most so many rows."""
    found = typed.lake.rows("daily")

    assert found.schema == pa.schema([field for field in TYPES if field.name != "_version"])
    assert sorted(found.to_pylist(), key=lambda row: row["n"]) == [
        {name: value for name, value in row.items() if name != "_version"} for row in (ROW, NULLS)
    ]
    for limit in (0, 1):
        assert typed.lake.rows("daily", where="n >= 1", limit=limit).num_rows == limit
        assert typed.lake.rows("daily", limit=limit).num_rows == limit


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("n >= 1 AND user = 'ann'", [1]),
        ("user IS NULL", [2]),
        ("NOT (user = 'bob')", [1]),
        ("`t.s` < '2024-03-10'", [1]),
        ("d = '2024-03-09' OR m > 2", [1]),
        ("USER IN ('ann', 'eve') AND b", [1]),
        ("x < 0.4", []),
    ],
)
def test_where_means_what_it_does_in_every_storage(
    typed: Made, where: str, rows: list[int]
) -> None:
    """A comparison chooses rows, by columns that are not shown too."""
    assert typed.lake.rows("daily", columns=["n"], where=where)["n"].to_pylist() == rows


def test_what_cannot_be_asked_is_said(typed: Made) -> None:
    """Columns that are not there, predicates for Spark and tables not built are named errors."""
    asked = [
        ({"columns": ["no"]}, "unknown-column"),
        ({"where": "l = 1"}, "bad-filter"),
        ({"where": "lower(user) = 'ann'"}, "bad-filter"),
    ]
    for words, slug in asked:
        with pytest.raises(InfoldError) as raised:
            typed.lake.rows("daily", **words)  # type: ignore[arg-type]
        assert raised.value.slug == slug
    with pytest.raises(InfoldError) as raised:
        typed.lake.rows("weekly")
    assert raised.value.slug == "not-built"


def test_rows_say_which_tests_they_match(typed: Made) -> None:
    """Each row has the names of the predicates that are true of it."""
    tests = {"ann": "user = 'ann'", "one": "n = 1", "null": "x IS NULL"}

    found = typed.lake.rows_matching("daily", tests, by="why", beside=["_version"])

    assert {row["n"]: (row["why"], row["_version"]) for row in found.to_pylist()} == {
        1: (["ann", "one"], 7),
        2: (["null"], None),
    }
    with pytest.raises(ValueError, match="only columns compared with values"):
        typed.lake.rows_matching("daily", {"a": "lower(user) = 'a'"}, by="why")


def test_times_and_texts_of_a_version(typed: Made) -> None:
    """Values of a column are those of the version that is asked for; NULL is none."""
    head = typed.lake.metadata("daily")
    assert head is not None
    assert head.snapshot is not None
    typed.write("daily", pa.Table.from_pylist([ROW | {"user": "bob"}], TYPES), "s-2")

    then, lake = head.snapshot, typed.lake
    assert lake.column_times("daily", "t.s", then) == [int(NOON.timestamp()) * 1_000_000]
    texts = lake.string_values("daily", "User", then, 10)
    assert texts is not None
    assert texts.to_pylist() == ["ann"]
    assert lake.string_values("daily", "n", then, 10) is None
    assert lake.string_values("daily", "no", then, 10) is None


class TestEarlier:
    """A few rows of one kept version, by the values of columns."""

    def test_rows_equal_to_values_near_a_time(self, typed: Made) -> None:
        """
        Names in any case, values of the columns' types, and a stretch of time. A version that is
        gone, a column to compare that is not there, or a table that is not, give no answer.
        """
        reader = DeltaSnapshotReader(typed.lake)
        (first,) = reader.kept_snapshots("daily")
        typed.write("daily", pa.Table.from_pylist([ROW | {"n": 3}], TYPES), "s-2")
        at = int(NOON.timestamp()) * 1_000_000
        near = TimeSpan("t.s", "t.s", at - 1, at)

        now = reader.rows_equal_to("daily", [{"USER": "ann"}], columns=["N", "no"], near=near)
        then = reader.rows_equal_to("daily", [{"user": "ann"}, {"n": 2}], snapshot=first)

        assert now is not None
        assert sorted(now["N"].to_pylist()) == [1, 3]
        assert then is not None
        assert sorted(then["n"].to_pylist()) == [1, 2]
        assert len(reader.kept_snapshots("daily")) == 2
        assert reader.rows_equal_to("daily", [{"n": 1}], snapshot=12345) is None
        assert reader.rows_equal_to("daily", [{"no": 1}]) is None
        assert reader.rows_equal_to("weekly", [{"n": 1}]) is None
        assert reader.kept_snapshots("weekly") == frozenset()
