"""Tables that are held back: what readers see, what infold sees, and when both are the same."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from tests.lake.conftest import Put, snapshot

from infold.core import write_points
from infold.core.swap import Renaming
from infold.lake.iceberg import publishing
from infold.lake.iceberg.sql_catalog import sqlite_catalog
from infold.lake.iceberg.tables import IcebergLake
from infold.messages.errors import InfoldError


@pytest.fixture
def readers(catalog_db: Path) -> IcebergLake:
    """The same tables as readers see them."""
    return IcebergLake(sqlite_catalog(catalog_db), "shop", catalog_db.parent, published=True)


@pytest.fixture
def lake(catalog_db: Path) -> IcebergLake:
    """Tables that are published together."""
    return IcebergLake(sqlite_catalog(catalog_db), "shop", catalog_db.parent, together=True)


def heads(lake: IcebergLake, *tables: str) -> list[int | None]:
    """The current snapshots; None of a table that is not there."""
    found = map(lake.metadata, tables)
    return [None if head is None else head.snapshot for head in found]


def commit(put: Put, lake: IcebergLake, table: str, id_: int) -> None:
    """A commit of infold's to the table as it is stored."""
    put(lake.stored_name(table), [snapshot(id_, None, step=f"s{id_}")], id_)


def held(put: Put, lake: IcebergLake, table: str = "events") -> str:
    """A table that is held back after a commit; where its metadata was."""
    found = put(table, [snapshot(1, None, step="s1")], 1)
    lake.hold_back([table])
    return found


class TestHeldBack:
    """Readers see a table as it was until it is published; infold sees its own commits at once."""

    def test_readers_see_all_commits_at_once(
        self, lake: IcebergLake, readers: IcebergLake, put: Put
    ) -> None:
        """A new table and a changed one appear together; one that did not change is not named."""
        for table in ("events", "other"):
            put(table, [snapshot(1, None, step="s1")], 1)
        lake.hold_back(["events", "other", "never built"])
        commit(put, lake, "events", 2)
        commit(put, lake, "daily", 3)

        assert heads(lake, "events", "daily", "other") == [2, 3, 1]
        assert heads(readers, "events", "daily", "other") == [1, None, 1]
        assert lake.publish(hold_back=True) == ("daily", "events")
        assert heads(readers, "events", "daily", "other") == [2, 3, 1]
        assert lake.publish(hold_back=True) == ()

    def test_the_metadata_of_readers_is_their_own(
        self, lake: IcebergLake, readers: IcebergLake, put: Put
    ) -> None:
        """
        The engine deletes old metadata files as it commits; readers have a copy beside it, and of
        copies that no row points to only the last one is kept.
        """
        file = Path(held(put, lake))
        file.unlink()
        assert heads(readers, "events") == [1]
        for id_ in (2, 3, 4):
            commit(put, lake, "events", id_)
            lake.publish(hold_back=True)

        assert heads(readers, "events") == [4]
        assert len(list(file.parent.glob("*-published.*"))) == 2
        assert publishing.published_location("file:/w/t/metadata/00007-ab.gz.metadata.json") == (
            "file:/w/t/metadata/00007-ab-published.gz.metadata.json"
        )

    def test_tables_that_are_not_held_back_any_more(
        self, lake: IcebergLake, readers: IcebergLake, put: Put, catalog_db: Path
    ) -> None:
        """The last publication shows what infold has, and leaves one row a table; of one that was
        dropped there is none, and none comes back.
        """
        held(put, lake)
        commit(put, lake, "events", 2)
        held(put, lake, "gone")
        plain = IcebergLake(sqlite_catalog(catalog_db), "shop", catalog_db.parent)
        assert lake.drop("gone")
        assert heads(lake, "gone") == heads(readers, "gone") == [None]

        assert (plain.stored_name("events"), heads(plain, "events")) == ("events__unpublished", [2])
        plain.publish(hold_back=False)

        assert (plain.stored_name("events"), heads(readers, "events")) == ("events", [2])
        with closing(sqlite3.connect(catalog_db)) as connection:
            rows = connection.execute("SELECT table_name FROM iceberg_tables").fetchall()
        assert rows == [("events",)]

    def test_a_table_that_takes_the_place_of_another(
        self, lake: IcebergLake, readers: IcebergLake, put: Put
    ) -> None:
        """Readers see the new table under the name, and the old one under its own, at once; where
        something else is unpublished, they see that with the next publication.
        """
        held(put, lake, "daily")
        commit(put, lake, "daily__new", 2)
        lake.publish(hold_back=True)

        def swap(new: str, old: str) -> bool:
            pairs = (("daily", old), (new, "daily"))
            return lake.rename([Renaming(one, to, lake.location(one) or "") for one, to in pairs])

        assert swap("daily__new", "daily__old")
        assert heads(lake, "daily", "daily__old", "daily__new") == [2, 1, None]
        assert heads(readers, "daily", "daily__old", "daily__new") == [2, 1, None]
        commit(put, lake, "events", 3)
        assert swap("daily__old", "daily__new")
        assert heads(readers, "daily", "events") == [2, None]
        lake.publish(hold_back=True)
        assert heads(readers, "daily", "daily__new", "daily__old", "events") == [1, 2, None, 3]

    def test_without_a_catalog_nothing_is_published(self, tmp_path: Path) -> None:
        """Without a catalog, or without a table in it, nothing happens and no file is made."""
        lake = IcebergLake(sqlite_catalog(tmp_path / "catalog.db"), "shop", tmp_path, together=True)
        lake.hold_back(["events"])
        assert (lake.publish(hold_back=True), list(tmp_path.iterdir())) == ((), [])
        (tmp_path / "catalog.db").touch()
        lake.hold_back(["events"])
        assert lake.publish(hold_back=False) == ()


class TestOthersCommit:
    """A commit by somebody else to what readers see is never overwritten."""

    @pytest.fixture(autouse=True)
    def _held(self, lake: IcebergLake, put: Put) -> None:
        """A commit that readers do not see yet."""
        held(put, lake)
        commit(put, lake, "events", 2)

    def test_it_is_refused(self, lake: IcebergLake, put: Put, catalog_db: Path) -> None:
        """It is told by the earlier location that an engine records; nothing is published."""
        theirs = put("other", [snapshot(7, None)], 7)
        with closing(sqlite3.connect(catalog_db)) as connection, connection:
            connection.execute(
                "UPDATE iceberg_tables SET previous_metadata_location = metadata_location,"
                " metadata_location = ? WHERE table_name = 'events'",
                (theirs,),
            )
        for attempt in (lambda: lake.hold_back([]), lambda: lake.publish(hold_back=True)):
            with pytest.raises(InfoldError, match="somebody else committed to events") as caught:
                attempt()
            assert caught.value.slug == "published-elsewhere"

    def test_one_in_the_middle_of_it_is_refused(
        self, lake: IcebergLake, put: Put, readers: IcebergLake, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A row that changes between the look and the write ends the publication; all stays."""
        commit(put, lake, "daily", 2)
        monkeypatch.setattr(
            write_points, "point", lambda _: put("events", [snapshot(9, None)], 9) and None
        )

        with pytest.raises(InfoldError, match="published-elsewhere"):
            lake.publish(hold_back=True)

        assert heads(readers, "events", "daily") == [9, None]

    def test_one_to_a_table_that_is_not_infolds_is_let_pass(
        self, lake: IcebergLake, put: Put, readers: IcebergLake, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A namespace may have tables of others: their commits stop nothing."""
        ids, copy = iter(range(2, 100)), publishing._copy

        def others_commit(location: str) -> None:
            put("theirs", [snapshot(id_ := next(ids), None)], id_)
            put(f"theirs{id_}", [snapshot(id_, None)], id_)
            if location.endswith(".json"):
                copy(location)

        others_commit("")
        monkeypatch.setattr(publishing, "_copy", others_commit)
        monkeypatch.setattr(write_points, "point", others_commit)

        assert lake.publish(hold_back=True) == ("events",)
        assert heads(readers, "events", "theirs") == [2, next(ids) - 1]


def test_no_reader_sees_a_mixture(
    lake: IcebergLake, readers: IcebergLake, put: Put, catalog_db: Path
) -> None:
    """A reader that looks up two tables at once sees both as of the same publication, twenty times
    in a row, whatever is committed in between.
    """
    tables = ("events", "daily")
    seen: set[tuple[str, ...]] = set()
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            with closing(sqlite3.connect(catalog_db, timeout=30)) as connection:
                rows = connection.execute(
                    "SELECT metadata_location FROM iceberg_tables"
                    " WHERE table_name IN ('events', 'daily')"
                ).fetchall()
            seen.add(tuple(sorted(Path(row[0]).name.rpartition("-")[0][-3:] for row in rows)))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for id_ in range(100, 120):
            for table in tables:
                commit(put, lake, table, id_)
            lake.publish(hold_back=True)
    finally:
        over.set()
        reader.join()

    assert heads(readers, *tables) == [119, 119]
    assert all(len(pair) in (0, 2) and len(set(pair)) <= 1 for pair in seen), seen
