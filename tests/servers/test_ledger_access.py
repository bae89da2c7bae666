"""
A ledger on a server: what keeps it from being used has its own message; it is copied and repaired.

And a forked process leaves the connections of its parent alone.
"""

from __future__ import annotations

import builtins
import os
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from click.testing import CliRunner
from tests.docs.pages import DOCS, code
from tests.ledger import filled
from tests.ledger.conftest import Place
from tests.running.commands import infold
from tests.running.standing_tables import NAMES, stand_up
from tests.running.test_repair import second_run
from tests.servers.catalogs import opened
from tests.servers.postgresql import Postgresql

from infold import api
from infold.api.repairing import repair_ledger
from infold.cli import cli
from infold.core.report import Repair
from infold.core.sessions import ManualEntry
from infold.lake.iceberg.jdbc_catalog import PostgresqlCatalog
from infold.lake.iceberg.sql_catalog import SqlCatalog
from infold.ledger import SqlLedger, open_ledger
from infold.ledger import postgresql as ledger_on_server
from infold.ledger.copying import copy_ledger, export_ledger, import_ledger
from infold.ledger.postgresql import LedgerServer, PostgresqlDatabase
from infold.ledger.whole_tables import Checksum
from infold.messages.errors import InfoldError
from infold.system import postgresql_server
from infold.system.postgresql_server import KeptConnection

pytestmark = pytest.mark.servers

KEY = "ledger of target prod"


def ledger_at(url: str, schema: str = "nothing") -> SqlLedger:
    """A ledger as a target has it."""
    return open_ledger(url, Path("/"), key=KEY, schema=schema)


def refusal(use: Callable[[], object]) -> InfoldError:
    """The error of using a ledger."""
    with pytest.raises(InfoldError) as raised:
        use()
    return raised.value


def role(server: Postgresql, name: str, *rights: str, with_: str = "") -> str:
    """The URL of a role with these rights, made anew."""
    password = f"{name}/@:?#%"
    server.run(
        f"DO $$ BEGIN IF EXISTS (SELECT FROM pg_roles WHERE rolname = '{name}') THEN"
        f" EXECUTE 'DROP OWNED BY {name}'; EXECUTE 'DROP ROLE {name}'; END IF; END $$",
        f"CREATE ROLE {name} LOGIN PASSWORD '{password}' {with_}",
        *rights,
    )
    return server.url(name, password)


WRONG = "password authentication"
NO_CONNECTION: Mapping[str, tuple[Callable[[Postgresql], str], str, str]] = {
    "wrong password": (lambda s: s.url(password="wro/ng@"), "login-refused", WRONG),
    "no role": (lambda s: s.url("nobody", "pw"), "login-refused", WRONG),
    "no password": (
        lambda s: f"postgresql://infold@127.0.0.1:{s.port}/postgres",
        *("login-refused", "no password supplied"),
    ),
    "no database": (
        lambda s: s.url(rest="nowhere"),
        *("database-missing", 'database "nowhere" does not exist'),
    ),
    "closed port": (
        lambda s: s.url().replace(str(s.port), "1"),
        *("unreachable", "Connection refused"),
    ),
    "no host": (
        lambda s: s.url().replace("127.0.0.1", "no-such-host.invalid"),
        *("unreachable", "no-such-host.invalid"),
    ),
}


class TestNoConnection:
    """What is shown is where it was tried and what the server said, and never a password."""

    @pytest.mark.parametrize(("url", "slug", "said"), NO_CONNECTION.values(), ids=NO_CONNECTION)
    def test_it_is_named(
        self, postgresql: Postgresql, url: Callable[[Postgresql], str], slug: str, said: str
    ) -> None:
        """Unreachable, a wrong password and a database that is not there are three things."""
        error = refusal(ledger_at(url(postgresql)).runs)
        facts = dict(error.facts)

        assert error.slug == f"ledger-{slug}"
        assert facts["key"] == KEY
        assert said in (facts.get("server") or facts["why"])
        assert "infold@" in facts["ledger"] or "nobody@" in facts["ledger"]
        assert_hidden(postgresql, error, "wro")

    def test_a_role_that_may_not_connect(self, postgresql: Postgresql) -> None:
        """The right to connect is a right of the database's."""
        url = role(postgresql, "stranger")
        postgresql.run("DROP DATABASE IF EXISTS closed", "CREATE DATABASE closed")
        postgresql.run("REVOKE CONNECT ON DATABASE closed FROM PUBLIC")

        error = refusal(ledger_at(url.replace("/postgres", "/closed")).runs)

        assert error.slug == "ledger-not-permitted"
        assert dict(error.facts)["server"].endswith('permission denied for database "closed"')

    def test_a_server_that_is_too_old(
        self, postgresql: Postgresql, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its version is named, and the oldest that works."""
        monkeypatch.setattr(postgresql_server, "OLDEST", 99)
        error = refusal(ledger_at(postgresql.url()).runs)

        assert error.slug == "ledger-server-too-old"
        assert "99 is the oldest" in error.what
        assert_hidden(postgresql, error)

    def test_a_database_of_another_encoding(self, postgresql: Postgresql) -> None:
        """Not every text fits into it."""
        postgresql.run(
            "DROP DATABASE IF EXISTS latin",
            "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'",
        )
        error = refusal(ledger_at(postgresql.url(rest="latin")).runs)

        assert (error.slug, "LATIN1" in error.what) == ("ledger-encoding", True)

    def test_without_psycopg(self, postgresql: Postgresql, monkeypatch: pytest.MonkeyPatch) -> None:
        """How to install it is what there is to do."""
        real = builtins.__import__

        def fail(name: str, *rest: object, **how: object) -> object:
            if name == "psycopg":
                raise ImportError(name)
            return real(name, *rest, **how)  # type: ignore[arg-type]

        monkeypatch.setattr(builtins, "__import__", fail)
        server = LedgerServer(postgresql.url(), Path("/"), KEY)

        error = refusal(server.connect)

        assert error.slug == "ledger-driver-missing"
        assert "pip install 'infold[postgresql]'" in error.todo

    @pytest.mark.parametrize(
        "url",
        [
            "postgresql://infold:zqx@vkw@{host}/postgres",
            "postgresql://infold:zqx/vkw@{host}/postgres",
            "postgresql://infold:zqx%vkw@{host}/postgres",
            "postgresql://infold:zqx?vkw@{host}/postgres",
            "postgresql://infold:zqx#vkw@{host}/postgres",
            "postgresql://infold:x@127.0.0.1:zqx/postgres",
            "postgresql://infold:x@{host}/postgres?passwort=zqx",
            "postgresql://{host}/postgres?user=infold&password=zqx",
            "postgresql://infold:zqx@[::1/postgres",
            "mysql://infold:zqx@{host}/postgres",
            "infold:zqx@{host}",
        ],
    )
    def test_no_part_of_a_url_is_shown(
        self, postgresql: Postgresql, url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Where a URL is wrong, a part of a password may be anywhere in it."""
        monkeypatch.setenv("LEDGER", url.format(host=f"127.0.0.1:{postgresql.port}"))
        error = refusal(lambda: ledger_at("${env:LEDGER}").runs())

        assert error.slug in ("ledger-url", "ledger-unsupported", "ledger-login-refused")
        for part in ("zqx", "vkw"):
            assert part not in f"{error} {error.record}"
        assert error.__cause__ is None
        assert error.__suppress_context__ or error.__context__ is None


class TestSecretsInParts:
    """A URL with references is shown with them, and so is what the server quotes of it."""

    def test_user_and_database(
        self, postgresql: Postgresql, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Neither by infold nor by the server."""
        url = f"postgresql://${{env:WHO}}:${{env:PASSWORD}}@127.0.0.1:{postgresql.port}/${{env:DB}}"
        monkeypatch.setenv("WHO", "zqx-user")
        monkeypatch.setenv("PASSWORD", "password")
        monkeypatch.setenv("DB", "zqx-name")
        ledger = ledger_at(url)

        error = refusal(ledger.runs)
        facts = dict(error.facts)
        assert (error.slug, facts["ledger"]) == ("ledger-login-refused", url)
        assert 'password authentication failed for user "${env:WHO}"' in facts["server"]

        monkeypatch.setenv("WHO", "infold")
        monkeypatch.setenv("PASSWORD", postgresql.password)
        error = refusal(ledger.runs)
        assert error.slug == "ledger-database-missing"
        assert 'database "${env:DB}" does not exist' in dict(error.facts)["server"]
        assert_hidden(postgresql, error, "zqx")

    def test_what_a_statement_was_refused(
        self, postgresql: Postgresql, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Also once there is a connection: it may not make a schema, and nothing was made."""
        monkeypatch.setenv("DB", "postgres")
        url = role(postgresql, "guest").replace("/postgres", "/${env:DB}")

        error = refusal(lambda: ledger_at(url, "guests").acquire("r1"))
        assert error.slug == "ledger-not-permitted"
        assert "permission denied for database ${env:DB}" in dict(error.facts)["server"]
        assert not ledger_at(postgresql.url(), "guests").exists()

    def test_user_and_password_in_one(
        self, postgresql: Postgresql, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """All of it would be the user, which servers repeat."""
        monkeypatch.setenv("BOTH", "infold:zqx")
        error = refusal(ledger_at(f"postgresql://${{env:BOTH}}@127.0.0.1:{postgresql.port}/x").runs)

        assert (error.slug, "colon" in dict(error.facts)["why"]) == ("ledger-url", True)
        assert_hidden(postgresql, error, "zqx")


class TestRights:
    """A role needs no more than what the page on deploying says."""

    ENTRY = ManualEntry(0, "ann", True, 1, 2, "")

    def test_a_schema_that_somebody_made_is_enough(self, postgresql: Postgresql) -> None:
        """With its tables dropped the schema stays, as it is somebody else's."""
        url = role(
            postgresql,
            "tenant",
            "DROP SCHEMA IF EXISTS rented CASCADE",
            "CREATE SCHEMA rented",
            "GRANT USAGE, CREATE ON SCHEMA rented TO tenant",
        )
        ledger = ledger_at(url, "rented")
        ledger.acquire("r1")
        ledger.begin_run("r1", "run", 0, {})
        assert [run.id for run in ledger.runs()] == ["r1"]

        ledger.destroy()

        assert postgresql.run("SELECT to_regnamespace('rented') IS NOT NULL") == [(True,)]

    def test_who_may_read_reads(self, postgresql: Postgresql) -> None:
        """SELECT is enough for history and status; a write is refused by name."""
        place = Place(postgresql.url(), "readable")
        ledger = place.open()
        ledger.acquire("r1")
        ledger.begin_run("r1", "run", 0, {})
        place.close()
        url = role(
            postgresql,
            "reader",
            "GRANT USAGE ON SCHEMA readable TO reader",
            "GRANT SELECT ON ALL TABLES IN SCHEMA readable TO reader",
        )

        assert [run.id for run in ledger_at(url, "readable").runs()] == ["r1"]
        for write in (
            lambda: ledger_at(url, "readable").acquire("r2"),
            lambda: ledger_at(url, "readable").add_entries("m", [self.ENTRY]),
        ):
            assert refusal(write).slug == "ledger-not-permitted"

    def test_a_schema_that_may_not_be_used_is_not_taken_for_none(
        self, postgresql: Postgresql
    ) -> None:
        """PostgreSQL passes over it in search_path, as if it were not there."""
        place = Place(postgresql.url(), "fenced")
        place.open().acquire("r1")
        place.close()
        url = role(postgresql, "outsider", "GRANT CREATE ON DATABASE postgres TO outsider")

        for use in (
            lambda: ledger_at(url, "fenced").exists(),
            lambda: ledger_at(url, "fenced").runs(),
            lambda: ledger_at(url, "fenced").acquire("r2"),
        ):
            error = refusal(use)
            assert error.slug == "ledger-not-permitted"
            assert "permission denied for schema fenced" in dict(error.facts)["server"]

    def test_a_read_only_database_is_read(self, postgresql: Postgresql) -> None:
        """A standby, say: what only reads goes on."""
        place = Place(postgresql.url(), "standing")
        place.open().acquire("r1")
        place.close()
        url = f"{postgresql.url()}?options={quote('-c default_transaction_read_only=on')}"

        assert ledger_at(url, "standing").runs() == ()
        assert refusal(lambda: ledger_at(url, "standing").acquire("r2")).slug == "ledger-read-only"
        assert (
            refusal(lambda: ledger_at(url, "standing_too").acquire("r2")).slug == "ledger-read-only"
        )


def assert_hidden(server: Postgresql, error: InfoldError, *more: str) -> None:
    """No password is in an error, in what it came from, or in its record for programs."""
    chain = [error, error.__cause__, None if error.__suppress_context__ else error.__context__]
    text = f"{[str(each) for each in chain]} {error.record}"
    for secret in (server.password, quote(server.password, safe=""), *more):
        assert secret not in text


YML = """
name: shop
start: 2024-01-01
targets:
  prod: {{ledger: '{url}'}}
"""


def copied(original: SqlLedger, to: SqlLedger) -> None:
    """A copy, as the command makes it."""
    copy_ledger(original, to, at="here", place="there", run="copying")


def test_there_and_back(postgresql: Postgresql, tmp_path: Path) -> None:
    """By copies and by files, from either kind into the other, every row comes back as it was."""
    places = [
        Place(f"sqlite:///{tmp_path / 'one.db'}", ""),
        Place(postgresql.url(), postgresql.schema()),
        Place(postgresql.url(), postgresql.schema()),
        Place(f"sqlite:///{tmp_path / 'two.db'}", ""),
    ]
    filled.fill(places[0].open())
    before = filled.rows_of(places[0].open())
    assert all(before.values())
    of: dict[str, Any] = {"project": "shop", "warehouse": "warehouse"}

    for number, (one, two) in enumerate(pairwise(places)):
        file = tmp_path / f"{number}.gz"
        export_ledger(one.open(), file, at="here", **of)
        copied(one.open(), two.open())
        imported = Place(f"sqlite:///{tmp_path / f'{number}.db'}", "")
        if one is places[0]:
            imported = Place(postgresql.url(), postgresql.schema())
        import_ledger(imported.open(), file, place="there", run="r", **of)
        for place in (two, imported):
            assert filled.rows_of(place.open()) == before
            place.close()


def test_one_server_by_two_names(postgresql: Postgresql) -> None:
    """A ledger is not copied onto itself, however its server is called."""
    place = Place(postgresql.url(), postgresql.schema())
    filled.fill(place.open())
    other = Place(postgresql.url().replace("127.0.0.1", "localhost"), place.schema)

    with pytest.raises(InfoldError, match="ledger-not-empty"):
        copied(place.open(), other.open())

    assert place.open().owner()


def test_a_table_that_changes_what_is_written(postgresql: Postgresql, tmp_path: Path) -> None:
    """What a trigger makes of a row is found out, and nothing of the copy is kept."""
    here = Place(f"sqlite:///{tmp_path / 'one.db'}", "")
    there = Place(postgresql.url(), postgresql.schema())
    filled.fill(here.open())
    empty = there.open()
    empty.acquire("r")
    empty.release()
    table = f"{there.schema}.cells"
    postgresql.run(
        f"CREATE FUNCTION {there.schema}.one() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN NEW.rows := 1; RETURN NEW; END $$",
        f"CREATE TRIGGER one BEFORE INSERT ON {table} FOR EACH ROW"
        f" EXECUTE FUNCTION {there.schema}.one()",
    )

    with pytest.raises(InfoldError, match="ledger-copy-differs") as raised:
        copied(here.open(), there.open())

    assert ("tables", "cells") in raised.value.facts
    assert postgresql.run(f"SELECT count(*) FROM {table}") == [(0,)]
    assert here.open().owner()


def test_a_connection_that_is_lost(
    postgresql: Postgresql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is there, and the original goes on."""
    from infold.ledger import copying

    here = Place(f"sqlite:///{tmp_path / 'one.db'}", "")
    there = Place(postgresql.url(), postgresql.schema())
    filled.fill(here.open())
    real = copying._give_back

    def lose(*words: object) -> None:
        postgresql.disconnect_all()
        real(*words)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(copying, "_give_back", lose)
        with pytest.raises(InfoldError, match="ledger-connection-lost"):
            copied(here.open(), there.open())
    assert here.open().owner()

    copied(here.open(), there.open())
    assert filled.rows_of(there.open()) == filled.rows_of(here.open())


def test_an_open_transaction_is_kept_awake(
    postgresql: Postgresql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server ends transactions that are idle; comparing may take longer than it waits."""
    here = Place(postgresql.url(), postgresql.schema())
    there = Place(f"sqlite:///{tmp_path / 'one.db'}", "")
    filled.fill(here.open())
    monkeypatch.setattr(ledger_on_server, "FROZEN_SECONDS", 1)
    real = Checksum.add

    def add(self: Checksum, lines: Iterable[str]) -> None:
        time.sleep(0.05)
        real(self, lines)

    monkeypatch.setattr(Checksum, "add", add)
    copied(here.open(), there.open())

    assert filled.rows_of(there.open()) == filled.rows_of(here.open())


def test_who_may_only_read_exports(postgresql: Postgresql, tmp_path: Path) -> None:
    """A backup needs no other right; a copy does, as it closes the ledger."""
    place = Place(postgresql.url(), postgresql.schema())
    filled.fill(place.open())
    url = role(
        postgresql,
        "saver",
        f"GRANT USAGE ON SCHEMA {place.schema} TO saver",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {place.schema} TO saver",
    )
    reader, there = Place(url, place.schema), Place(f"sqlite:///{tmp_path / 'one.db'}", "")

    done = export_ledger(
        reader.open(), tmp_path / "file", at="here", project="shop", warehouse="warehouse"
    )
    with pytest.raises(InfoldError, match="ledger-not-permitted"):
        copied(reader.open(), there.open())

    assert sum(done.rows.values()) > 200
    assert not (tmp_path / "one.db").exists()


def test_as_the_page_says(
    postgresql: Postgresql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command of the page, with a password that nothing shows and no file has."""
    monkeypatch.setenv("LEDGER_PASSWORD", postgresql.password)
    (command,) = code(DOCS / "deploying.md", "bash")
    words = shlex.split(command.replace("\\\n", ""))[1:]
    url = words[-1].replace("ledger_writer", "infold").replace("/ledgers", "/postgres")
    url = url.replace("db.example.com:5432", f"127.0.0.1:{postgresql.port}")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "one.sql").write_text("SELECT 1 AS x", encoding="utf-8")
    yml = tmp_path / "infold.yml"
    yml.write_text(YML.format(url="sqlite:///.infold/ledger.db"), encoding="utf-8")
    filled.fill(SqlLedger(tmp_path / ".infold" / "ledger.db"))
    before = filled.rows_of(SqlLedger(tmp_path / ".infold" / "ledger.db"))
    printed = []

    def infold(*some: str) -> str:
        done = CliRunner().invoke(cli, ["-C", str(tmp_path), *some])
        printed.append(done.output)
        assert done.exit_code == 0, done.output
        return done.output

    assert "compared what was written" in infold(*words[:-1], url, "--schema", "moved")
    assert f"    ledger: {url}\n    ledger_schema: moved\n" in printed[-1]
    yml.write_text(
        YML.format(url=url).replace("}\n", ", ledger_schema: moved}\n"), encoding="utf-8"
    )
    infold("--target", "prod", "ledger", "export", str(tmp_path / "saved"))
    assert "(without ledger_schema)" in infold(
        "--target", "prod", "ledger", "copy", "sqlite:///back.db"
    )

    assert filled.rows_of(SqlLedger(tmp_path / "back.db")) == before
    rows = postgresql.run("SELECT value FROM moved.meta WHERE name = 'infold.moved'")
    assert rows == [("sqlite:///back.db",)]
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 4
    texts = [*files, *(text.encode() for text in printed)]
    assert [text for text in texts if b"s3cret" in text] == []


Opened = tuple[KeptConnection, Callable[[], object]]
"""What keeps a connection, and a question that is asked over it."""


@contextmanager
def of_a_ledger(request: pytest.FixtureRequest, _folder: Path) -> Iterator[Opened]:
    """That of a ledger."""
    server: Postgresql = request.getfixturevalue("postgresql")
    place = Place(server.url(), server.schema())
    ledger = place.open()
    assert isinstance(ledger._database, PostgresqlDatabase)
    yield ledger._database._connection, ledger.locations
    place.close()


@contextmanager
def of_a_catalog(request: pytest.FixtureRequest, folder: Path) -> Iterator[Opened]:
    """That of a catalog."""
    with opened("jdbc", request, folder) as shelf:
        assert isinstance(shelf.catalog, SqlCatalog)
        database = shelf.catalog.database
        assert isinstance(database, PostgresqlCatalog)
        yield database._connection, lambda: shelf.catalog.locations("shop")


@pytest.mark.parametrize("of", [of_a_ledger, of_a_catalog])
def test_a_child_process_leaves_its_parents_connection(
    of: Callable[..., Iterator[Opened]], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """It asks over its own, and closing that at its end does not close its parent's."""
    with of(request, tmp_path) as (kept, ask):  # type: ignore[attr-defined]
        expected, before = ask(), kept.current
        read, write = os.pipe()
        child = os.fork()
        if not child:
            try:
                kept.close()  # as at the end of a process
                same = ask() == expected and kept.current is not None
                os.write(write, b"own" if same and kept.current is not before else b"not its own")
                kept.close()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        os.close(write)

        with os.fdopen(read) as told:
            assert told.read() == "own"
        assert kept.current is before
        assert before is not None
        assert before.execute("SELECT 1").fetchone() == (1,)
        kept.close()


def test_a_failover_and_a_lost_schema(
    postgresql: Postgresql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables go back to what the new primary knows; without a ledger, all are built again."""
    monkeypatch.setenv("LEDGER_OF_SHOP", postgresql.url())
    schema = postgresql.schema()
    target = f"  prod: {{ledger: '${{env:LEDGER_OF_SHOP}}', ledger_schema: {schema}}}\n"
    shop = stand_up(tmp_path / "shop", target, "prod")
    assert infold(shop, "ledger", "export", str(tmp_path / "before"))[0] == 0
    second_run(shop)
    postgresql.run(f"DROP SCHEMA {schema} CASCADE")
    assert infold(shop, "ledger", "import", str(tmp_path / "before"))[0] == 0
    assert infold(shop, "plan")[1].startswith("ledger-behind")

    done = repair_ledger(shop)

    assert [one.table for one in done.of(Repair.SET_BACK)] == ["clicks"]
    assert "there is nothing to repair" in infold(shop, "repair")[1]
    assert api.observe(shop).models["clicks"].version == 1

    postgresql.run(f"DROP SCHEMA {schema} CASCADE")
    done = repair_ledger(shop)

    assert [one.table for one in done.of(Repair.BUILD)] == [*NAMES]
    assert "there is nothing to repair" in infold(shop, "repair")[1]
