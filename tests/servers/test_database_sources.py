"""Tables of a real PostgreSQL as sources: types, late commits, and what cannot be read."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet
from tests.servers.gate import new_name
from tests.servers.postgresql import Postgresql

from infold.api.extraction import open_table
from infold.core.formats import Format
from infold.core.interval import DAY
from infold.core.model import Column, Source
from infold.lake.databases import postgresql as reading
from infold.lake.databases.extraction import Reading, extract
from infold.messages.errors import InfoldError
from infold.system import postgresql_server

pytestmark = pytest.mark.servers

NOW = datetime(2024, 3, 20, tzinfo=UTC)


class Table:
    """A table of a server, in a schema of its own, and the folder where it is extracted."""

    def __init__(self, server: Postgresql, root: Path, columns: str) -> None:
        self.server, self.root, self.folder = server, root, root / "extracted"
        self.schema = new_name("odd % schema ")
        self.quoted = f'"{self.schema}"."T%s"'
        server.run(f'CREATE SCHEMA "{self.schema}"', f"CREATE TABLE {self.quoted} ({columns})")

    def source(
        self, columns: dict[str, str], key: str | None = None, reread: int | None = None
    ) -> Source:
        """It as a source; the URL is a secret, as a whole."""
        return Source(
            "raw.t",
            Format.JDBC,
            tuple(Column(name, type_) for name, type_ in columns.items()),
            table=f"{self.schema}.T%s",
            url="${env:SOURCE_URL}",
            key=key,
            reread=None if reread is None else reread * DAY,
        )

    def extract(self, source: Source) -> Reading:
        """Land it as a run does."""
        with open_table(source, self.root) as table:
            return extract(source, self.folder, table, NOW)

    def rows(self) -> list[dict[str, Any]]:
        """All rows that were extracted, by file."""
        files = sorted(self.folder.glob("[!_]*.parquet"))
        return [row for file in files for row in parquet.read_table(file).to_pylist()]

    def run(self, text: str) -> list[tuple[Any, ...]]:
        """A statement; T is the table."""
        return self.server.run(text.replace(" T ", f" {self.quoted} ", 1))


@pytest.fixture
def server(postgresql: Postgresql, monkeypatch: pytest.MonkeyPatch) -> Postgresql:
    """The server, with its URL where the source looks for it."""
    monkeypatch.setenv("SOURCE_URL", postgresql.url())
    return postgresql


TYPES = {
    "b": ("boolean", "boolean", "true", True),
    "s": ("smallint", "int", "-32768", -32768),
    "i": ("integer", "bigint", "7", 7),
    "l": ("bigint", "bigint", "9223372036854775807", 2**63 - 1),
    "n": ("numeric(12,2)", "decimal(18,4)", "1234567890.12", Decimal("1234567890.1200")),
    "m": ("numeric", "decimal(38,10)", "0.1", Decimal("0.1000000000")),
    "r": ("real", "double", "0.1", 0.10000000149011612),
    "d": ("double precision", "double", "0.1", 0.1),
    "t": ("text", "string", "'Grüße \\'", "Grüße \\"),
    "v": ("varchar(3)", "string", "''", ""),
    "c": ("char(3)", "string", "'a'", "a  "),
    "y": ("bytea", "binary", "'\\x00ff'", b"\x00\xff"),
    "day": ("date", "date", "'0001-01-01'", date(1, 1, 1)),
    "at": ("timestamp", "timestamp", "'2024-03-09 10:00:00.123456'", "2024-03-09T10:00:00.123456"),
    "tz": ("timestamptz(0)", "timestamp", "'2024-03-09 10:00+05:30'", "2024-03-09T04:30:00+00:00"),
    "j": ("json", "string", """'{"b": 1.50,  "a": 1}'""", '{"b": 1.50,  "a": 1}'),
    "k": ("jsonb", "string", """'{"b": 1.50, "a": 1}'""", '{"a": 1, "b": 1.50}'),
    "u": (
        *("uuid", "string", "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"),
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    ),
    "odd % \"name'": ("text", "string", "'%s'", "%s"),
}


def test_every_type_is_exact(server: Postgresql, tmp_path: Path) -> None:
    """Each type that fits, and NULL of it, whatever the user's settings would do to their text."""
    server.run("ALTER ROLE infold SET extra_float_digits = -15")
    server.run("ALTER ROLE infold SET TimeZone = 'Asia/Tokyo'")
    server.run("ALTER ROLE infold SET DateStyle = 'German'")
    try:
        names = {name: '"' + name.replace('"', '""') + '"' for name in TYPES}
        columns = ", ".join(f"{names[name]} {of[0]}" for name, of in TYPES.items())
        table = Table(server, tmp_path, columns)
        server.run(
            f"INSERT INTO {table.quoted} VALUES ({', '.join(of[2] for of in TYPES.values())})",
            f"INSERT INTO {table.quoted} VALUES ({', '.join(['NULL'] * len(TYPES))})",
        )
        table.extract(table.source({name: of[1] for name, of in TYPES.items()}))
    finally:
        server.run("ALTER ROLE infold RESET ALL")
    first, second = table.rows()
    shown = {k: v.isoformat() if isinstance(v, datetime) else v for k, v in first.items()}

    assert shown == {name: of[3] for name, of in TYPES.items()}
    assert {*second.values()} == {None}


@pytest.mark.parametrize(
    ("type_", "declared", "value", "slug"),
    [
        ("interval", "string", "'1 day'", "source-column-type"),
        ("integer[]", "array<int>", "'{1}'", "source-column-type"),
        ("money", "decimal(18,2)", "1", "source-column-type"),
        ("numeric", "decimal(9,2)", "0.001", "source-value"),
        ("numeric", "decimal(9,2)", "'NaN'", "source-value"),
        ("date", "date", "'infinity'", "source-read-failed"),
        ("timestamptz", "timestamp", "'-infinity'", "source-read-failed"),
        ("timestamp", "timestamp", "'4713-01-01 BC'", "source-read-failed"),
    ],
)
def test_what_is_not_exact_is_refused(
    server: Postgresql, tmp_path: Path, type_: str, declared: str, value: str, slug: str
) -> None:
    """By the name of the column or in the words of the driver; nothing is extracted."""
    table = Table(server, tmp_path, f"x {type_}")
    table.run(f"INSERT INTO T VALUES ({value})")
    source = table.source({"x": declared})

    assert refused(lambda: table.extract(source)).slug == slug
    assert table.rows() == []


def refused(use: Any) -> InfoldError:
    """The error of a use."""
    with pytest.raises(InfoldError) as caught:
        use()
    return caught.value


def test_a_late_commit_is_what_a_key_cannot_see(server: Postgresql, tmp_path: Path) -> None:
    """
    A row that is committed after one with a greater key is lost to `corrections: none`, as the plan
    says, and found where days are read again.
    """
    table = Table(server, tmp_path, "id serial, at timestamptz NOT NULL")
    by_id = table.source({"id": "int", "at": "timestamp"}, key="id")
    with closing(server.admin()) as slow:
        slow.execute("BEGIN")
        slow.execute(f"INSERT INTO {table.quoted} (at) VALUES ('2024-03-09 10:00Z')")
        table.run("INSERT INTO T (at) VALUES ('2024-03-09 11:00Z')")
        table.extract(by_id)
        slow.execute("COMMIT")
    table.extract(by_id)

    assert [row["id"] for row in table.rows()] == [2]

    by_time = table.source({"id": "int", "at": "timestamp"}, key="at", reread=1)
    table.extract(by_time)
    table.run("INSERT INTO T (at) VALUES ('2024-03-08 23:59:59.999999Z'), ('2024-03-12Z')")
    found = table.extract(by_time)

    assert [row["id"] for row in table.rows()] == [3, 1, 2, 4]
    assert (found.rows, found.changed) == (4, 2)

    table.run("DELETE FROM T WHERE id < 4")
    table.extract(by_time)

    assert [row["id"] for row in table.rows()] == [3, 1, 2, 4], "too long ago"


def test_a_reading_sees_one_state(
    server: Postgresql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that are committed while it goes on are those of the next one."""
    table = Table(server, tmp_path, "id int")
    table.run("INSERT INTO T SELECT * FROM generate_series(1, 5000)")
    source = table.source({"id": "int"}, key="id")
    batches = reading.PostgresqlTable.rows

    def interrupted(self: Any, *asked: Any) -> Iterator[Any]:
        for number, batch in enumerate(batches(self, *asked)):
            if not number:
                more = "INSERT INTO T SELECT * FROM generate_series(5001, 6000)"
                other = threading.Thread(target=table.run, args=[more])
                other.start()
                other.join()
            yield batch

    monkeypatch.setattr(reading.PostgresqlTable, "rows", interrupted)

    assert table.extract(source).rows == 5000
    monkeypatch.undo()
    monkeypatch.setenv("SOURCE_URL", server.url())
    assert table.extract(source).rows == 1000


class TestNotRead:
    """What is shown is what the server said, and never a password."""

    def test_no_way_in(
        self, server: Postgresql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A wrong password, no such database, nobody who listens, no URL, no secret."""
        table = Table(server, tmp_path, "id int")
        source = table.source({"id": "int"})
        for url, slug in (
            (server.url(password="wro/ng@"), "source-login-refused"),
            (server.url(rest="nowhere"), "source-database-missing"),
            (server.url().replace(str(server.port), "1"), "source-unreachable"),
            ("mysql://infold:wro%2Fng%40@localhost/x", "source-url"),
            ("", "secret-missing"),
        ):
            monkeypatch.setenv("SOURCE_URL", url)
            error = refused(lambda: table.extract(source))
            assert error.slug == slug
            assert "wro/ng" not in str(error)
            assert "wro%2Fng" not in str(error)
            assert server.password not in str(error)

    def test_no_right(
        self, server: Postgresql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A user without the right to read."""
        table = Table(server, tmp_path, "id int")
        server.run(
            "DROP ROLE IF EXISTS looker",
            "CREATE ROLE looker LOGIN PASSWORD 'x'",
            f'GRANT USAGE ON SCHEMA "{table.schema}" TO looker',
        )
        monkeypatch.setenv("SOURCE_URL", server.url("looker", "x"))

        assert (
            refused(lambda: table.extract(table.source({"id": "int"}))).slug
            == "source-not-permitted"
        )

    def test_no_table_and_no_column(self, server: Postgresql, tmp_path: Path) -> None:
        """Both are named; so is a key without a value, in words that say what to do."""
        table = Table(server, tmp_path, "id int, at date")
        source = table.source({"id": "int", "at": "date"}, key="id")
        other = replace(source, table="nothing.like_it")
        assert refused(lambda: table.extract(other)).slug == "source-table-missing"
        missing = replace(source, columns=(*source.columns, Column("idd", "int")))
        assert dict(refused(lambda: table.extract(missing)).facts)["nearest"] == "id"
        table.run("INSERT INTO T VALUES (NULL, NULL)")
        assert refused(lambda: table.extract(source)).slug == "source-key-null"

    def test_a_table_that_others_keep(
        self, server: Postgresql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A lock is waited for, and not for ever."""
        monkeypatch.setattr(reading, "BUSY_SECONDS", 1)
        table = Table(server, tmp_path, "id int")
        with closing(server.admin()) as other:
            other.execute("BEGIN")
            other.execute(f"LOCK TABLE {table.quoted}")
            error = refused(lambda: table.extract(table.source({"id": "int"})))
        assert error.slug == "source-read-failed"
        assert f"{postgresql_server.BUSY_SECONDS} seconds" in str(error)

    def test_a_view_that_fails(self, server: Postgresql, tmp_path: Path) -> None:
        """What a view's own expression says."""
        table = Table(server, tmp_path, "id int")
        table.run("INSERT INTO T VALUES (0)")
        server.run(f'CREATE VIEW "{table.schema}".v AS SELECT 1 / id AS id FROM {table.quoted}')
        source = replace(table.source({"id": "int"}), table=f"{table.schema}.v")
        error = refused(lambda: table.extract(source))

        assert (error.slug, dict(error.facts)["why"]) == ("source-read-failed", "division by zero")
