"""Delta tables, and scratch ones, that get other names, are dropped, set back, lose versions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.lake.delta.made import Made

from infold.core import write_points
from infold.core.swap import Renaming
from infold.lake.delta import expiry
from infold.lake.delta.expiry import forget_before
from infold.lake.delta.files import files_of
from infold.messages.errors import InfoldError


class DeathError(Exception):
    """A process that died, for a test."""


@contextmanager
def dying(monkeypatch: pytest.MonkeyPatch, at: str) -> Iterator[None]:
    """Let the arrival at a write point be the end of what is done."""

    def point(name: str) -> None:
        if name == at:
            raise DeathError(name)

    with monkeypatch.context() as patch:
        patch.setattr(write_points, "point", point)
        with pytest.raises(DeathError):
            yield


def swapped(made: Made) -> list[Renaming]:
    """``daily`` becomes ``daily__old``, and ``daily__new`` becomes ``daily``."""
    at = {name: made.lake.location(name) or "" for name in ("daily", "daily__new")}
    return [
        Renaming("daily", "daily__old", at["daily"]),
        Renaming("daily__new", "daily", at["daily__new"]),
    ]


class TestNames:
    """A table is the folder of its name; names change one after the other."""

    def test_a_table_that_moved_is_not_renamed(self, made: Made) -> None:
        """If somebody committed to one of them, or took a name, nothing is changed. Else each has
        the rows and the history of the one that was renamed.
        """
        made.write("daily", {"n": [1]}, "s-1")
        made.write("daily__new", {"n": [2]}, "s-2")
        moves = swapped(made)
        made.write("daily__old", {"n": [3]}, "s-3")
        assert not made.lake.rename(moves)
        made.lake.drop("daily__old")
        made.write("daily", {"n": [4]}, "s-4")
        assert not made.lake.rename(moves)
        assert not made.lake.was_renamed(moves)
        assert made.numbers("daily") == [1, 4]
        moves = swapped(made)

        assert made.lake.rename(moves)

        assert (made.numbers("daily"), made.numbers("daily__old")) == ([2], [1, 4])
        assert made.lake.was_renamed(moves)
        assert made.lake.made_tables() == ["daily", "daily__old"]

    @pytest.mark.parametrize("at", ["rename daily: after", "rename daily__new: before"])
    def test_a_death_between_two_names_is_finished(
        self, made: Made, monkeypatch: pytest.MonkeyPatch, at: str
    ) -> None:
        """What a dead process had begun is done, also after a commit to one of the tables."""
        made.write("daily", {"n": [1]}, "s-1")
        made.write("daily__new", {"n": [2]}, "s-2")
        moves = swapped(made)
        with dying(monkeypatch, at):
            made.lake.rename(moves)
        assert made.lake.location("daily") is None
        made.write("daily__new", {"n": [5]}, "s-5")

        assert made.lake.was_renamed(moves)

        assert made.numbers("daily") == [2, 5]

    def test_a_death_leaves_no_half_of_a_table(
        self, made: Made, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A dropped table is gone at once, and what is left of it with the next drop."""
        made.write("daily", {"n": [1]}, "s-1")
        with dying(monkeypatch, "drop daily: after"):
            made.lake.drop("daily")
        assert made.lake.is_free("daily")
        assert made.lake.location("daily") is None

        assert not made.lake.drop("daily")

        assert not [*(made.warehouse / "shop").iterdir()]

    def test_a_name_is_free_whatever_its_case(self, made: Made) -> None:
        """A folder takes the name, if it is a table or not. Readers see each commit; to publish
        several at once is refused.
        """
        (made.warehouse / "shop" / "Daily").mkdir(parents=True)

        assert not made.lake.is_free("daily")
        assert made.lake.is_free("weekly")
        assert made.lake.publish(hold_back=False) == ()
        for ask in (lambda: made.lake.publish(hold_back=True), lambda: made.lake.hold_back(["a"])):
            with pytest.raises(InfoldError, match="catalog-not-together"):
                ask()


class TestSetBack:
    """A table gets the rows of an earlier version by a commit that infold knows again."""

    def test_the_steps_after_it_are_gone(self, made: Made) -> None:
        """Steps that were taken back are none of its history; what is written then goes on."""
        first = made.write("daily", {"n": [1]}, "s-1")
        second = made.write("daily", {"n": [2]}, "s-2")
        made.write("daily", {"n": [3]}, None)
        assert made.lake.can_set_back("daily", first)

        made.lake.set_back("daily", first)

        head = made.lake.metadata("daily")
        assert head is not None
        assert (dict(head.steps), head.foreign) == ({"s-1": first}, None)
        assert made.numbers("daily") == [1]
        assert not made.lake.can_set_back("daily", second)
        third = made.write("daily", {"n": [4]}, "s-3")
        head = made.lake.metadata("daily")
        assert head is not None
        assert dict(head.steps) == {"s-1": first, "s-3": third}

    def test_not_to_other_columns_or_lost_files(self, made: Made) -> None:
        """A version with other columns, or without its files, is none to go back to."""
        first = made.write("daily", {"n": [1]}, "s-1")
        second = made.write("daily", {"m": [1]}, "s-2", mode="overwrite", schema_mode="overwrite")
        made.write("daily", {"m": [2]}, "s-3")
        assert not made.lake.can_set_back("daily", first)
        assert made.lake.can_set_back("daily", second)
        for file in made.folder("daily").glob("*.parquet"):
            file.unlink()

        assert not made.lake.can_set_back("daily", second)
        with pytest.raises(ValueError, match="has no snapshot"):
            made.lake.set_back("daily", second)


def forget(made: Made, table: str, version: int) -> None:
    """Let a table begin at a version."""
    log = made.lake.log(table)
    assert log is not None
    forget_before(log, version)


def test_a_table_that_moved_on_is_not_set_back(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit of somebody else just before it ends going back, and stays."""
    first = made.write("daily", {"n": [1]}, "s-1")
    made.write("daily", {"n": [2]}, "s-2")

    def can_set_back(table: str, snapshot: int) -> bool:
        made.write(table, {"n": [3]}, None)
        return True

    lake = made.lake
    monkeypatch.setattr(lake, "can_set_back", can_set_back)
    with pytest.raises(InfoldError) as raised:
        lake.set_back("daily", first)

    assert raised.value.slug == "foreign-write"
    assert made.numbers("daily") == [1, 2, 3]


class TestExpiry:
    """Old versions go with the files that only they have; the others stay as they were."""

    def test_the_log_begins_at_a_version(self, made: Made) -> None:
        """The versions kept can be read, and the table goes on."""
        snapshots = [made.write("daily", {"n": [n]}, f"s-{n}", mode="overwrite") for n in range(6)]

        forget(made, "daily", 4)

        lake = made.lake
        assert lake.history("daily").main == (snapshots[5], snapshots[4])
        assert lake.column_times("daily", "n", snapshots[4]) == [4]
        assert len([*made.folder("daily").glob("*.parquet")]) == 2
        made.write("daily", {"n": [9]}, "s-9")
        assert made.numbers("daily") == [5, 9]
        head = lake.metadata("daily")
        assert head is not None
        assert [*head.steps] == ["s-4", "s-5", "s-9"]

    def test_what_comes_back_after_the_oldest_version_stays(self, made: Made) -> None:
        """The oldest version, and one after it, may need files that are older than both."""
        made.write("daily", {"n": [1]}, "s-1", mode="overwrite")
        second = made.write("daily", {"n": [2]}, "s-2", mode="overwrite")
        made.write("daily", {"n": [3]}, "s-3", mode="overwrite")
        made.lake.set_back("daily", second)

        for oldest in (2, 3):
            forget(made, "daily", oldest)

            assert made.numbers("daily") == [2]

    def test_deletion_vectors_are_files_of_their_own(self) -> None:
        """The name of such a file is found by its number, as the protocol writes it."""
        marks = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^"}
        inline = {
            "storageType": "i",
            "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
        }

        assert [*files_of({"path": "a%20b/x.parquet", "deletionVector": marks})] == [
            "a b/x.parquet",
            "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin",
        ]
        assert [*files_of({"path": "x.parquet", "deletionVector": inline})] == ["x.parquet"]
        assert [*files_of({"path": "x.parquet"})] == ["x.parquet"]

    def test_what_nobody_committed_yet_is_left(self, made: Made) -> None:
        """A file of a writer that goes on is younger than the version, and stays."""
        for n in range(3):
            made.write("daily", {"n": [n]}, f"s-{n}", mode="overwrite")
        (made.folder("daily") / "part-new.parquet").write_bytes(b"x")

        forget(made, "daily", 2)

        names = {path.name for path in made.folder("daily").glob("*.parquet")}
        assert "part-new.parquet" in names
        assert len(names) == 2


def test_later_versions_and_tables_are_gone(made: Made) -> None:
    """
    A table ends at the version it had, and what is committed next has the number after it.

    Checksums that Spark keeps of files of the log go with these: it would believe them.
    """
    parent = made.warehouse / "shop"
    assert expiry.scratch_versions(parent) == {}
    first = made.write("daily", {"n": [1]}, "s-1")
    kept = expiry.scratch_versions(parent)
    made.write("daily", {"n": [2]}, "s-2")
    made.write("weekly", {"n": [3]}, "s-3")
    log = made.lake.log("daily")
    assert log is not None
    later = Path(log.file(1))
    checksum = later.with_name(f".{later.name}.crc")
    checksum.write_bytes(b"crc")

    expiry.put_scratch_back(parent, kept)

    head = made.lake.metadata("daily")
    assert head is not None
    assert (dict(head.steps), made.numbers("daily")) == ({"s-1": first}, [1])
    assert made.lake.metadata("weekly") is None
    assert not checksum.exists()
    made.write("daily", {"n": [4]}, "s-4")
    assert made.numbers("daily") == [1, 4]


def test_no_table_is_left_of_none(made: Made) -> None:
    """With nothing kept, every table goes; also where there is none."""
    made.write("daily", {"n": [1]}, "s-1")

    for folder in ("shop", "none"):
        expiry.put_scratch_back(made.warehouse / folder, {})

    assert expiry.scratch_versions(made.warehouse / "shop") == {}
