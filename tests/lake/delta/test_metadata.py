"""What a Delta table is, by its log: steps, other commits, versions that are gone."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pytest
from tests.lake.delta.made import Made

from infold.core.stored_table import History
from infold.messages.errors import InfoldError

NOW = {"commitInfo": {"timestamp": 1_700_000_000_000, "operation": "OPTIMIZE"}}
SAME = {"path": "x.parquet", "partitionValues": {}, "size": 1, "dataChange": False}


class TestCommits:
    """infold knows its own commits in a table's history, and tells those of others."""

    def test_steps_are_in_their_order(self, made: Made) -> None:
        """Each step of the history is there with its snapshot, the newest last."""
        snapshots = [made.write("daily", {"n": [n]}, f"s-{n}") for n in range(3)]

        head = made.lake.metadata("daily")

        assert head is not None
        assert [*head.steps.items()] == [(f"s-{n}", snapshots[n]) for n in range(3)]
        assert (head.snapshot, head.foreign) == (snapshots[2], None)

    def test_rows_of_others_are_foreign(self, made: Made) -> None:
        """A commit of somebody else is told, also below one of infold's, which has its rows."""
        made.write("daily", {"n": [1]}, "s-1")
        made.write("daily", {"n": [2]}, None)
        told = made.lake.metadata("daily")
        made.write("daily", {"n": [3]}, "s-2")
        after = made.lake.metadata("daily")

        assert told is not None
        assert told.foreign == 1
        assert after is not None
        assert after.foreign == 1

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

        head = made.lake.metadata("daily")

        assert head is not None
        assert (list(head.steps), head.foreign) == (["s-1"], foreign)

    def test_a_rewrite_is_not_foreign(self, made: Made) -> None:
        """A commit that puts rows into other files says so, and changes nothing."""
        made.write("daily", {"n": [1]}, "s-1")
        made.commit("daily", NOW, {"remove": {**SAME, "deletionTimestamp": 1}})

        head, history = made.lake.metadata("daily"), made.lake.history("daily")

        assert head is not None
        assert head.foreign is None
        assert (history.snapshots, history.since_rewrite) == (2, 0)

    def test_tidying_up_is_no_version(self, made: Made) -> None:
        """A commit without files, as VACUUM makes them, says nothing of rows."""
        snapshot = made.write("daily", {"n": [1]}, "s-1")
        made.commit("daily", {"commitInfo": {"timestamp": 1, "operation": "VACUUM START"}})

        assert made.lake.history("daily").main == (snapshot,)

    @pytest.mark.parametrize(
        "action",
        [
            {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}},
            {
                "metaData": {
                    "id": "1",
                    "format": {"provider": "parquet", "options": {}},
                    "schemaString": '{"type": "struct", "fields": []}',
                    "partitionColumns": [],
                    "configuration": {"delta.columnMapping.mode": "name"},
                }
            },
        ],
        ids=["protocol", "columns"],
    )
    def test_other_columns_are_foreign(self, made: Made, action: dict[str, object]) -> None:
        """A column that is mapped, added or dropped without a row is a change all the same."""
        made.write("daily", {"n": [1]}, "s-1")
        made.commit("daily", NOW, action)

        head = made.lake.metadata("daily")

        assert head is not None
        assert head.foreign == 1

    def test_user_metadata_of_others_may_be_anything(self, made: Made) -> None:
        """Text of others in a commit is none of infold's, whatever it is."""
        made.write("daily", {"n": [1]}, "s-1")
        for said in ("hello", "[1]", "null", '{"infold.nothing": 1}'):
            add = {"add": {**SAME, "modificationTime": 1, "dataChange": True}}
            made.commit("daily", {"commitInfo": {"timestamp": 1, "userMetadata": said}}, add)

        head = made.lake.metadata("daily")

        assert head is not None
        assert head.foreign == 4


class TestSnapshots:
    """A snapshot means one state of one table, for good."""

    def test_another_table_of_the_name_has_others(self, made: Made) -> None:
        """A table that was dropped and made again has no snapshot of the one before."""
        first = made.write("daily", {"n": [1]}, "s-1")
        made.lake.drop("daily")
        second = made.write("daily", {"n": [2]}, "s-2")

        log = made.lake.log("daily")

        assert log is not None
        assert (log.version(first), log.version(second)) == (None, 0)
        assert made.lake.columns("daily", first) == {}

    def test_a_moved_table_is_told(self, made: Made) -> None:
        """A commit, a drop and a table made anew each give another location."""
        made.write("daily", {"n": [1]}, "s-1")
        known = {"daily": made.lake.location("daily") or ""}
        assert made.lake.moved_tables(known) == {}

        made.lake.drop("daily")
        assert made.lake.moved_tables(known) == {"daily": None}
        made.write("daily", {"n": [1]}, "s-1")
        assert [*made.lake.moved_tables(known)] == ["daily"]

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

    def test_a_newer_protocol(self, made: Made) -> None:
        """A feature that the reader lacks is an error with its name."""
        made.write("daily", {"n": [1]}, "s-1")
        newer = {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["fromTheFuture"],
            "writerFeatures": ["fromTheFuture"],
        }
        made.commit("daily", NOW, {"protocol": newer})

        with pytest.raises(InfoldError) as raised:
            made.lake.rows("daily")

        assert raised.value.slug == "delta-unreadable"
        assert "fromTheFuture" in str(raised.value.facts)

    def test_the_reader_is_not_installed(self, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without deltalake the error says how to install it."""
        made.write("daily", {"n": [1]}, "s-1")
        monkeypatch.setitem(sys.modules, "deltalake", None)

        with pytest.raises(InfoldError) as raised:
            made.lake.rows("daily")

        assert raised.value.slug == "delta-reader-missing"
        assert "infold[delta]" in (raised.value.todo or "")

    def test_lost_files(self, made: Made) -> None:
        """Files that a table needs and that are gone are named, and the list of names differs."""
        made.write("daily", {"n": [1]}, "s-1")
        before = made.lake.file_list_id("daily")
        (file,) = made.folder("daily").glob("*.parquet")
        assert made.lake.lost_files("daily") == ()
        assert made.lake.has_file("daily", str(file))
        file.unlink()

        assert made.lake.lost_files("daily") == (str(file),)
        assert made.lake.file_list_id("daily") != before
        with pytest.raises(InfoldError) as raised:
            made.lake.rows("daily")
        assert raised.value.slug == "delta-unreadable"

    def test_lost_deletion_vectors(self, made: Made) -> None:
        """A file that says which rows are deleted is needed like one with rows."""
        made.write("daily", {"n": [1, 2]}, "s-1")
        (file,) = made.folder("daily").glob("*.parquet")
        features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
        old = {"path": file.name, "partitionValues": {}, "dataChange": True}
        marks = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^"}
        size = {"size": file.stat().st_size, "modificationTime": 1}
        made.commit(
            "daily",
            NOW,
            {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}},
            {"remove": {**old, "deletionTimestamp": 1}},
            {
                "add": {
                    **old,
                    **size,
                    "deletionVector": {**marks, "offset": 1, "sizeInBytes": 40, "cardinality": 1},
                }
            },
        )

        (lost,) = made.lake.lost_files("daily")

        assert lost.endswith("deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin")
