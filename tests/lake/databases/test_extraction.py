"""Tables of databases as sources: what is extracted, and columns of every type."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from tests.lake.databases.folder import COLUMNS, NOW, Database, as_extracted

from infold.core import write_points
from infold.core.model import Column, Source
from infold.lake.databases import extracted_files, extraction, sqlite
from infold.lake.databases.columns import (
    FITS,
    ColumnType,
    StoredColumn,
    UnfitError,
    WantedColumn,
    declared_type,
)
from infold.lake.databases.extracted_files import LIST, Extracted
from infold.lake.databases.extraction import extract
from infold.lake.databases.postgresql import _column
from infold.lake.iceberg.sql_catalog import table_rows
from infold.messages.errors import InfoldError

T = "CREATE TABLE t (id INTEGER, at DATETIME, v TEXT)"
INSERT = "INSERT INTO t VALUES (?, ?, ?)"
OTHER_KEY = "the database, the table, the key, or whether rows are read again"
Row = tuple[int, str, str]

_ids = st.integers(-3, 12)
_times = st.builds(
    lambda day, hour, form: f"{date(2024, 3, 1) + timedelta(days=day)}{form.format(hour)}",
    st.integers(0, 21),  # up to 22 March, which is farther ahead than a day
    st.integers(0, 23),
    st.sampled_from([" {:02}:00:00", "T{:02}:00", " {:02}:00:00.5"]),
)
_values = st.sampled_from(["a", "b", "c"])
STEPS = st.one_of(
    st.tuples(st.just("insert"), _ids, _times, _values),
    st.tuples(st.just("update"), _ids, _times, _values),
    st.tuples(st.just("delete"), _ids),
    st.tuples(st.just("extract")),
    st.tuples(st.just("die"), st.integers(1, 6)),
)


class DiedError(BaseException):
    """The process is gone."""


@contextmanager
def dying(at: int) -> Iterator[None]:
    """Die at a write point, if so many are reached."""
    left, before = [at], write_points.point

    def point(name: str) -> None:
        del name
        left[0] -= 1
        if not left[0]:
            raise DiedError

    write_points.point = point
    try:
        yield
    except DiedError:
        pass
    finally:
        write_points.point = before


def died_after_commit(database: Database, at: int) -> bool:
    """Have a reading die at a write point; whether it was extracted by then."""
    file = database.folder / LIST
    before = file.read_bytes() if file.exists() else b""
    with dying(at):
        database.extract()
    return file.exists() and file.read_bytes() != before


def promised(database: Database) -> Callable[[list[Row]], list[Row]]:
    """
    What should have been extracted after each reading, given what the table had then.

    Written from the documentation: it knows rows, and neither files nor folders.
    """
    source, have = database.source, list[Row]()
    greatest: Any = None

    def reading(now: list[Row]) -> list[Row]:
        nonlocal have, greatest
        place = 0 if source.key == "id" else 1
        if source.key is None:
            have = now
            return have
        due = [row for row in now if place == 0 or time_of(row) <= time_of(NOW_TEXT) + DAY]
        if greatest is None:
            have = due
        elif source.reread is None:
            have = have + [row for row in due if key_of(row, place) > greatest]
        else:
            since = greatest - timedelta(microseconds=source.reread)
            have = [row for row in have if time_of(row).date() < since.date()]
            have += [row for row in due if time_of(row).date() >= since.date()]
        keys = [key_of(row, place) for row in have]
        greatest = max(keys if greatest is None else [*keys, greatest], default=None)
        return have

    return reading


DAY = timedelta(days=1)
NOW_TEXT: Row = (0, f"{NOW.replace(tzinfo=None)}", "")


def key_of(row: Row, place: int) -> Any:
    """The key of a row, which is its first or its second value."""
    return row[0] if place == 0 else time_of(row)


def time_of(row: Row) -> datetime:
    """The time of a row, as its text says."""
    return datetime.fromisoformat(row[1])


@pytest.mark.deep
@pytest.mark.parametrize(
    ("key", "reread"), [(None, None), ("id", None), ("at", None), ("at", 1), ("at", 3)]
)
@given(st.lists(STEPS, max_size=25))
def test_what_is_extracted_is_what_the_declaration_promises(
    key: str | None, reread: int | None, steps: list[tuple[Any, ...]]
) -> None:
    """
    After rows came late, changed and went, and readings died, the rows are those that were
    promised, and a second reading changes no file. One that died counts if its list is there:
    all that it read is seen at once, before any other reading, and else nothing of it.
    """
    with TemporaryDirectory() as folder:
        database = Database(Path(folder), key=key, reread=reread)
        database.run(T)
        expected, wanted = promised(database), list[Row]()
        for kind, *values in (*steps, ("extract",)):
            if kind == "insert":
                database.run(INSERT, values=values)
            elif kind == "update":
                database.run("UPDATE t SET at = ?2, v = ?3 WHERE id = ?1", values=values)
            elif kind == "delete":
                database.run("DELETE FROM t WHERE id = ?", values=values)
            else:
                rows = database.run("SELECT id, at, v FROM t")
                if kind == "die" and not died_after_commit(database, values[0]):
                    assert database.rows() == as_extracted(wanted)  # as if it had never begun
                    continue
                wanted = expected(rows)
                if kind == "die":
                    assert database.rows() == as_extracted(wanted)
                    continue
                database.extract()

                assert database.rows() == as_extracted(wanted)

                files = database.files()
                assert not database.extract().changed
                assert database.files() == files
        left = {one.name for one in database.folder.iterdir()}

        assert left == {database.extracted(name).name for name in files} | {"_extracted.json"}


def test_a_list_that_is_replaced_while_its_files_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a plan sees is the later extraction then, and not what it left of the earlier one."""
    database = Database(tmp_path, key="at", reread=3)
    database.run(T, "INSERT INTO t VALUES (1, '2024-03-01', 'a'), (2, '2024-03-02', 'a')")
    database.extract()
    reads = [0]

    def read_list(folder: Path, source: Source) -> Extracted | None:
        found = extracted_files.read_list(folder, source)
        reads[0] += 1
        if reads[0] <= 2:  # two runs, one after the other
            database.run("UPDATE t SET v = v || 'b' WHERE id = 2")
            database.run(INSERT, values=(2 + reads[0], f"2024-03-0{2 + reads[0]}", "new"))
            database.extract()
        return found

    monkeypatch.setattr("infold.lake.reading.database_table.read_list", read_list)

    assert [*database.files()] == [f"2024-03-0{day}" for day in range(1, 5)]
    assert [row[2] for row in database.rows()] == ["a", "abb", "new", "new"]


@pytest.mark.parametrize(("day", "left"), [(8, [8, 9, 10]), (9, [8, 10]), (10, [8, 9])])
def test_a_day_without_rows_goes_if_it_is_read_again(
    tmp_path: Path, day: int, left: list[int]
) -> None:
    """The first of the days that are read again, and the last one; the day before them stays."""
    database = Database(tmp_path, key="at", reread=1)
    database.run(T)
    for one in (8, 9, 10):
        database.run(INSERT, values=(one, f"2024-03-{one:02} 10:00", "a"))
    database.extract()
    database.run("DELETE FROM t WHERE id = ?", values=[day])
    database.extract()

    assert {row[0] for row in database.rows()} == {*left}


def test_the_greatest_key_never_gets_smaller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the newest row was deleted, or came before others: what was not seen stays so."""
    monkeypatch.setattr(sqlite, "BATCH", 1)
    database = Database(tmp_path, key="at", reread=1)
    database.run(T, "INSERT INTO t VALUES (10, '2024-03-10', 'a')")
    database.extract()
    database.run(
        "DELETE FROM t", "INSERT INTO t VALUES (9, '2024-03-09', 'a'), (8, '2024-03-08', '')"
    )
    database.extract()
    database.extract()

    assert [row[0] for row in database.rows()] == [9]

    by_id = Database(tmp_path, key="id")
    by_id.run("DELETE FROM t", "INSERT INTO t VALUES (7, NULL, ''), (3, NULL, '')")
    by_id.extract()
    by_id.run("INSERT INTO t VALUES (5, NULL, '')")
    by_id.extract()

    assert [row[0] for row in by_id.rows()] == [3, 7]


def test_a_key_far_ahead_hides_no_row(tmp_path: Path) -> None:
    """A row dated in 2099 waits until then, and others are read on."""
    database = Database(tmp_path, key="at")
    database.run(T, "INSERT INTO t VALUES (1, '2099-01-01', 'far')")
    database.extract()
    database.run(
        "INSERT INTO t VALUES (2, '2024-03-19', 'now'), (3, '2024-03-21 12:00:00', 'soon')"
    )
    database.extract()

    assert [row[0] for row in database.rows()] == [2, 3]

    database.extract(datetime.fromisoformat("2099-01-01T00:00+00:00"))

    assert [row[0] for row in database.rows()] == [1, 2, 3]


def test_a_new_required_column_has_all_rows_read_again(tmp_path: Path) -> None:
    """What was extracted before lacks the column. An optional one is in the files that come."""
    two = Database(tmp_path, columns={"id": "bigint", "v": "string"}, key="id")
    two.run(T, "INSERT INTO t VALUES (1, NULL, 'a')")
    two.extract()
    optional = Database(tmp_path, key="id", optional=["at"])
    optional.run("INSERT INTO t VALUES (2, '2024-03-09', 'b')")

    assert not optional.extract().whole
    assert times(optional) == ["None", "2024-03-09 00:00:00"]

    three = Database(tmp_path, key="id")
    three.run("UPDATE t SET at = '2024-03-01' WHERE id = 1")

    assert three.extract().whole
    assert times(three) == ["2024-03-01 00:00:00", "2024-03-09 00:00:00"]
    assert not two.extract().whole, "a column less is no reason"


def times(database: Database) -> list[str]:
    """The times that were extracted, file by file."""
    return [str(row["at"]) for row in database.table().to_pylist()]


def test_a_lost_file_has_everything_read_again(tmp_path: Path) -> None:
    """
    What is missing is noticed by the listing, and mended by the next reading. A table is compared
    with its columns; only optional ones can change places unnoticed.
    """
    database = Database(tmp_path, key="id")
    database.run(T)
    for id_ in (1, 2):
        database.run(INSERT, values=(id_, "2024-03-09", "a"))
        database.extract()
    database.extracted("00000001").unlink()
    assert [*database.files()] == ["00000002"]
    assert database.extract().whole
    assert [row[0] for row in database.rows()] == [1, 2]

    columns = {"id": "bigint", "v": "string", "w": "string"}
    database = Database(tmp_path, columns=columns, optional=["v", "w"], file="b.db")
    database.run("CREATE TABLE t (id INTEGER, v TEXT)", "INSERT INTO t VALUES (1, 'a')")
    database.extract()
    database.run("ALTER TABLE t RENAME COLUMN v TO w")
    assert database.extract().changed == 1
    assert database.table().to_pylist() == [{"id": 1, "w": "a"}]


@pytest.mark.parametrize(
    "other", [{"key": "at"}, {"key": "at", "reread": 2}, {}, {"key": "id", "file": "other.db"}]
)
def test_another_declaration_reads_everything(tmp_path: Path, other: dict[str, Any]) -> None:
    """
    Another key, way to read or database begins anew, and leaves no file of the one before: keys of
    one database say nothing of the other's.
    """
    first = Database(tmp_path, key="id")
    first.run(T, "INSERT INTO t VALUES (1, '2024-03-09', 'a'), (7, '2024-03-08', 'b')")
    first.extract()
    second = Database(tmp_path, **other)
    second.run(
        T.replace("TABLE", "TABLE IF NOT EXISTS"),
        "DELETE FROM t",
        "INSERT INTO t VALUES (1, '2024-03-09', 'new'), (2, '2024-03-08', 'new')",
    )

    assert second.extract().whole
    assert [(row[0], row[2]) for row in second.rows()] == [(1, "new"), (2, "new")]
    assert not second.extract().changed


class TestBesideProduction:
    """An environment adds to the files what production would, or is refused."""

    @pytest.fixture
    def production(self, tmp_path: Path) -> Database:
        """A table of which production has one row, of two of its columns and an optional one."""
        columns = {"id": "bigint", "at": "timestamp", "more": "string"}
        found = Database(tmp_path, key="id", columns=columns, optional=["more"])
        found.run(
            "CREATE TABLE t (id INTEGER, at DATETIME, v TEXT, more TEXT)",
            "INSERT INTO t VALUES (1, '2024-03-01', 'a', 'x'), (2, '2024-03-02', 'b', 'y')",
        )
        found.extract()
        found.run("DELETE FROM t WHERE id = 1", "INSERT INTO t VALUES (3, '2024-03-03', 'c', 'z')")
        return found

    @pytest.mark.parametrize(
        ("other", "needed", "differs"),
        [
            ({"key": "id"}, ["v"], "columns that it does not read so: v string"),
            ({"key": "id", "optional": ["v"]}, ["v"], "columns that it does not read so: v string"),
            ({"key": "at"}, ["id"], OTHER_KEY),
            ({"key": "at", "reread": 1}, ["id"], OTHER_KEY),
            ({}, ["id"], OTHER_KEY),
        ],
    )
    def test_what_would_change_its_files(
        self,
        production: Database,
        tmp_path: Path,
        other: dict[str, Any],
        needed: list[str],
        differs: str,
    ) -> None:
        """It leaves every file, so production goes on as if it had not been tried."""
        before, rows = production.files(), production.rows()
        with pytest.raises(InfoldError) as raised:
            Database(tmp_path, **other).extract(needed=needed)

        assert raised.value.slug == "source-declared-otherwise"
        assert dict(raised.value.facts)["differs"] == differs
        assert production.files() == before
        production.extract()
        assert [row[0] for row in production.rows()] == [*(row[0] for row in rows), 3]

    @pytest.mark.parametrize("columns", [COLUMNS, {"id": "bigint"}])
    def test_what_adds_to_them(
        self, production: Database, tmp_path: Path, columns: dict[str, str]
    ) -> None:
        """Columns that it declares and no model reads are not in them; those of production are."""
        assert not Database(tmp_path, key="id", columns=columns).extract(needed=["id"]).whole
        assert [row["more"] for row in production.table().to_pylist()] == ["x", "y", "z"]
        assert "v" not in production.table().column_names
        assert not production.extract().changed

    @pytest.mark.parametrize("optional", [True, False])
    def test_a_column_that_some_files_lack(self, tmp_path: Path, optional: bool) -> None:
        """Production has it as an optional one, so it has to be optional here too."""
        columns = {"id": "bigint", "v": "string"}
        one = Database(tmp_path, key="id", columns={"id": "bigint"})
        two = Database(tmp_path, key="id", columns=columns, optional=["v"])
        one.run(T)
        for id_, database in ((1, one), (2, two)):
            database.run(INSERT, values=(id_, None, "a"))
            database.extract()
        other = Database(tmp_path, key="id", columns=columns, optional=["v"] if optional else [])
        other.run(INSERT, values=(3, None, "c"))
        refused = pytest.raises(InfoldError, match="not declared as production")
        tried: AbstractContextManager[object] = nullcontext() if optional else refused
        with tried:
            other.extract(needed=["v"])

        added = [3] if optional else []
        assert [row["id"] for row in two.table().to_pylist()] == [1, 2, *added]

    def test_a_decimal_of_other_digits(self, tmp_path: Path) -> None:
        """Its values have another type in files, and production could not read them."""
        table = Prices()
        source = Database(tmp_path, columns={"p": "decimal(12, 2)"}).source
        wider = replace(source, columns=(Column("p", "decimal(18,2)"),))
        same = replace(source, columns=(Column("p", "DECIMAL(12,2)"),))
        extract(source, tmp_path, table, NOW)
        with pytest.raises(InfoldError, match="not declared as production"):
            extract(wider, tmp_path, table, NOW, ["p"])

        assert not extract(same, tmp_path, table, NOW, ["p"]).changed
        assert extract(wider, tmp_path, table, NOW).changed
        assert not extract(wider, tmp_path, table, NOW, ["p"]).changed


class Prices:
    """A table of one decimal."""

    def columns(self) -> Mapping[str, StoredColumn]:
        """See ``OpenTable``."""
        return {"p": StoredColumn("p", "numeric(12,2)", ColumnType.DECIMAL, digits=(12, 2))}

    def has_null(self, _column: StoredColumn) -> bool:
        """See ``OpenTable``."""
        return False

    def rows(self, _wanted: object, _within: object) -> Iterator[Sequence[tuple[Decimal]]]:
        """See ``OpenTable``."""
        yield [(Decimal("1.50"),)]


def test_an_empty_table_has_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Read whole, it is a file without rows; by a key there is no file yet. Later rows are written out
    group by group, and all arrive.
    """
    monkeypatch.setattr(sqlite, "BATCH", 10)
    monkeypatch.setattr(extraction, "GROUP_ROWS", 25)
    database, by_key = Database(tmp_path), Database(tmp_path, key="id")
    database.run(T)
    database.extract()
    assert database.table().column_names == [*COLUMNS]
    by_key.extract()
    assert by_key.files() == {}
    with sqlite3.connect(database.file) as connection:
        connection.executemany(INSERT, [(i, "2024-03-09", str(i)) for i in range(101)])
    connection.close()
    by_key.extract()

    assert sorted(row[0] for row in by_key.rows()) == [*range(101)]
    footer = parquet.read_metadata(by_key.extracted("00000001"))
    assert [footer.row_group(i).num_rows for i in range(footer.num_row_groups)] == [30, 30, 30, 11]


def test_a_damaged_list_is_named(tmp_path: Path) -> None:
    """Nobody guesses which files count."""
    database = Database(tmp_path)
    database.run(T)
    database.extract()
    other = ('{"infold_extracted": 2}', '{"infold_extracted": 1, "files": {"a": 1}}')
    for text in ("{", "[]", *other):
        (database.folder / LIST).write_text(text, encoding="utf-8")
        for look in (database.extract, database.files):
            with pytest.raises(InfoldError, match="extracted-files-damaged"):
                look()


def copied_in_a_commit(file: Path, to: Path) -> None:
    """The file and its journal as whoever dies in the middle of a commit leaves them."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA cache_size = 1")  # so pages are written before the commit
        connection.execute("BEGIN")
        connection.execute("UPDATE t SET x = x || 'changed'")
        for suffix in ("", "-journal"):
            shutil.copy(f"{file}{suffix}", f"{to}{suffix}")
        connection.execute("ROLLBACK")


def test_who_was_killed_in_a_commit_has_changed_nothing(tmp_path: Path) -> None:
    """One who only reads undoes it, in a source as in a catalog; who may not write is told."""
    whole = tmp_path / "whole.db"
    rows = [("a" * 1000,)] * 200
    with closing(sqlite3.connect(whole)) as connection, connection:
        connection.execute("CREATE TABLE t (x TEXT)")
        connection.executemany("INSERT INTO t VALUES (?)", rows)
    database = Database(tmp_path, columns={"x": "string"})
    copied_in_a_commit(whole, database.file)
    reads_only = sqlite3.connect(f"{database.file.as_uri()}?mode=ro", uri=True)
    with closing(reads_only), pytest.raises(sqlite3.OperationalError, match="readonly"):
        reads_only.execute("SELECT * FROM t")

    database.extract()
    assert database.table()["x"].to_pylist() == [x for (x,) in rows]

    catalog = tmp_path / "catalog.db"
    copied_in_a_commit(whole, catalog)
    assert table_rows(catalog) == ()  # it has no table of a catalog
    assert not Path(f"{catalog}-journal").exists()


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


def test_types_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    """Before any row is read, with the database's own name of the type."""
    for at, (stored, declared) in enumerate((
        ("NUMERIC(10,2)", "decimal(10,2)"), ("INTEGER", "int"), ("TEXT", "varchar(3)"),
        ("", "string"), ("DATETIME", "date"), ("DATETIME", "array<timestamp>"),
    )):  # fmt: skip
        database = Database(tmp_path, columns={"x": declared}, file=f"{at}.db")
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


def test_every_type_fits_one() -> None:
    """
    Each type of a column can be declared, and each declared name is Spark's. `numeric` has no
    digits of its own: each value has to be a declared one. And 0.1 in single precision is another
    number than in double precision.
    """
    assert {*FITS} == {*ColumnType}
    assert declared_type("Numeric(9)") == ("decimal", (9, 0))
    assert declared_type("array<decimal(9,2)>") == ("array<decimal(9,2)>", None)
    stored = StoredColumn("x", "timestamp with time zone", ColumnType.INSTANT)
    at = datetime(2024, 1, 1, tzinfo=UTC)
    assert WantedColumn(stored, "timestamp").array([at]).to_pylist() == [at]
    column = WantedColumn(StoredColumn("x", "numeric", ColumnType.DECIMAL), "decimal(5,2)")
    assert column.array([Decimal("1.10"), Decimal("1E+2"), None]).type == pa.decimal128(5, 2)
    for wrong in (Decimal("0.001"), Decimal(1000), Decimal("NaN"), Decimal("Infinity"), 1.0):
        with pytest.raises(UnfitError) as caught:
            column.array([Decimal(1), wrong])
        assert caught.value.value is wrong
    single = WantedColumn(StoredColumn("x", "real", ColumnType.FLOAT), "double")
    assert single.array([0.1]).type == pa.float32()
