"""
A ledger on a server: what keeps it from being used has its own message; it is copied and repaired.

And a forked process leaves the connections of its parent alone.
"""

from __future__ import annotations

import builtins
import os
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.ledger import filled
from tests.ledger.conftest import Place
from tests.running.commands import infold
from tests.running.standing_tables import NAMES, stand_up
from tests.running.test_repair import second_run
from tests.servers.catalogs import Shelf
from tests.servers.postgresql import Postgresql

from infold import api
from infold.api.repairing import repair_ledger
from infold.core.report import Repair
from infold.core.sessions import ManualEntry
from infold.lake.iceberg.jdbc_catalog import PostgresqlCatalog
from infold.lake.iceberg.sql_catalog import SqlCatalog
from infold.ledger import SqlLedger, copying, open_ledger
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


class TestNoConnection:
    """What is shown is where it was tried and what the server said, and never a password."""

    def test_it_is_named(self, postgresql: Postgresql) -> None:
        """
        Unreachable, a wrong password, a database that is not there or may not be connected to, and
        one of an encoding into which not every text fits, are several things.
        """
        server, stranger = postgresql, role(postgresql, "stranger")
        server.run(
            "DROP DATABASE IF EXISTS closed",
            "CREATE DATABASE closed",
            "REVOKE CONNECT ON DATABASE closed FROM PUBLIC",
            "DROP DATABASE IF EXISTS latin",
            "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'",
        )
        nobody, wrong = server.url("nobody", "pw"), "password authentication"
        elsewhere, closed = server.url().replace("127.0.0.1", "no-such-host.invalid"), "/closed"
        for url, slug, said in (
            (server.url(password="wro/ng@"), "login-refused", wrong),
            (nobody, "login-refused", wrong),
            (nobody.replace(":pw", ""), "login-refused", "no password supplied"),
            (server.url(rest="nowhere"), "database-missing", 'database "nowhere" does not exist'),
            (server.url().replace(str(server.port), "1"), "unreachable", "Connection refused"),
            (elsewhere, "unreachable", "no-such-host.invalid"),
            (stranger.replace("/postgres", closed), "not-permitted", 'for database "closed"'),
            (server.url(rest="latin"), "encoding", "LATIN1"),
        ):
            error = refusal(ledger_at(url).runs)
            assert (error.slug, said in str(error)) == (f"ledger-{slug}", True), error
            assert dict(error.facts)["key"] == KEY
            user = url.partition("://")[2].partition(":")[0].partition("@")[0]
            assert f"{user}@" in dict(error.facts)["ledger"]
            assert_hidden(postgresql, error, "wro")

    def test_a_server_that_is_too_old(
        self, postgresql: Postgresql, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its version is named, and the oldest that works."""
        monkeypatch.setattr(postgresql_server, "OLDEST", 99)
        error = refusal(ledger_at(postgresql.url()).runs)

        assert error.slug == "ledger-server-too-old"
        assert "99 is the oldest" in error.what
        assert_hidden(postgresql, error)

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

    def test_who_may_read_reads(self, there: Place, postgresql: Postgresql, tmp_path: Path) -> None:
        """
        SELECT is enough for history, status and a backup; a write is refused by name, and so is a
        copy, as it closes the ledger.
        """
        schema, copy = there.schema, tmp_path / "one.db"
        filled.fill(there.open())
        url = role(
            postgresql,
            "reader",
            f"GRANT USAGE ON SCHEMA {schema} TO reader",
            f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO reader",
        )
        reader = Place(url, schema)
        assert reader.open().owner() == there.open().owner()
        done = export_ledger(
            reader.open(), tmp_path / "file", at="here", project="shop", warehouse="warehouse"
        )
        assert sum(done.rows.values()) > 200
        for write in (
            lambda: reader.open().acquire("r2"),
            lambda: reader.open().add_entries("m", [ManualEntry(0, "ann", True, 1, 2, "")]),
            lambda: copied(reader.open(), Place(f"sqlite:///{copy}", "").open()),
        ):
            assert refusal(write).slug == "ledger-not-permitted"
        assert not copy.exists()

    def test_a_schema_that_may_not_be_used_is_not_taken_for_none(
        self, there: Place, postgresql: Postgresql
    ) -> None:
        """PostgreSQL passes over it in search_path, as if it were not there."""
        there.open().acquire("r1")
        url = role(postgresql, "outsider", "GRANT CREATE ON DATABASE postgres TO outsider")
        fenced = ledger_at(url, there.schema)

        for use in (fenced.exists, fenced.runs, lambda: fenced.acquire("r2")):
            error = refusal(use)
            assert error.slug == "ledger-not-permitted"
            assert f"permission denied for schema {there.schema}" in dict(error.facts)["server"]

    def test_a_read_only_database_is_read(self, there: Place, postgresql: Postgresql) -> None:
        """A standby, say: what only reads goes on."""
        there.open().acquire("r1")
        there.close()
        url = f"{postgresql.url()}?options={quote('-c default_transaction_read_only=on')}"

        assert ledger_at(url, there.schema).runs() == ()
        for schema in (there.schema, "standing_too"):
            writes = partial(ledger_at(url, schema).acquire, "r2")
            assert refusal(writes).slug == "ledger-read-only"


def assert_hidden(server: Postgresql, error: InfoldError, *more: str) -> None:
    """No password is in an error, in what it came from, or in its record for programs."""
    chain = [error, error.__cause__, None if error.__suppress_context__ else error.__context__]
    text = f"{[str(each) for each in chain]} {error.record}"
    for secret in (server.password, quote(server.password, safe=""), *more):
        assert secret not in text


@pytest.fixture
def here(tmp_path: Path) -> Place:
    """A ledger in a file, with rows in every table."""
    found = Place(f"sqlite:///{tmp_path / 'here.db'}", "")
    filled.fill(found.open())
    return found


@pytest.fixture
def there(postgresql: Postgresql) -> Iterator[Place]:
    """A place on the server where no ledger is."""
    found = Place(postgresql.url(), postgresql.schema())
    yield found
    found.close()


def copied(original: SqlLedger, to: SqlLedger) -> None:
    """A copy, as the command makes it."""
    copy_ledger(original, to, at="here", place="there", run="copying")


def test_there_and_back(here: Place, there: Place, postgresql: Postgresql, tmp_path: Path) -> None:
    """By copies and by files, from either kind into the other, every row comes back as it was."""
    again = Place(postgresql.url(), postgresql.schema())
    places = [here, there, again, Place(f"sqlite:///{tmp_path / 'two.db'}", "")]
    before = filled.rows_of(here.open())
    assert all(before.values())
    of: dict[str, Any] = {"project": "shop", "warehouse": "warehouse"}

    for number, (one, two) in enumerate(pairwise(places)):
        file = tmp_path / f"{number}.gz"
        export_ledger(one.open(), file, at="here", **of)
        copied(one.open(), two.open())
        imported = Place(f"sqlite:///{tmp_path / f'{number}.db'}", "")
        if one is here:
            imported = Place(postgresql.url(), postgresql.schema())
        import_ledger(imported.open(), file, place="there", run="r", **of)
        for place in (two, imported):
            assert filled.rows_of(place.open()) == before
            place.close()


def test_one_server_by_two_names(there: Place) -> None:
    """A ledger is not copied onto itself, however its server is called."""
    filled.fill(there.open())
    other = Place(there.url.replace("127.0.0.1", "localhost"), there.schema)

    with pytest.raises(InfoldError, match="ledger-not-empty"):
        copied(there.open(), other.open())

    assert there.open().owner()


def test_a_table_that_changes_what_is_written(
    here: Place, there: Place, postgresql: Postgresql
) -> None:
    """What a trigger makes of a row is found out, and nothing of the copy is kept."""
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
    here: Place, there: Place, postgresql: Postgresql, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is there, and the original goes on."""
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
    there: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server ends transactions that are idle; comparing may take longer than it waits."""
    copy = Place(f"sqlite:///{tmp_path / 'one.db'}", "")
    filled.fill(there.open())
    monkeypatch.setattr(ledger_on_server, "FROZEN_SECONDS", 1)
    real = Checksum.add

    def add(self: Checksum, lines: Iterable[str]) -> None:
        time.sleep(0.05)
        real(self, lines)

    monkeypatch.setattr(Checksum, "add", add)
    copied(there.open(), copy.open())

    assert filled.rows_of(copy.open()) == filled.rows_of(there.open())


def test_a_child_process_leaves_its_parents_connection(there: Place, jdbc: Shelf) -> None:
    """
    That of a ledger, and that of a catalog: it asks over its own, and closing that at its end does
    not close its parent's.
    """
    ledger, catalog = there.open(), jdbc.catalog
    assert isinstance(ledger._database, PostgresqlDatabase)
    assert isinstance(catalog, SqlCatalog)
    assert isinstance(catalog.database, PostgresqlCatalog)
    asked: list[tuple[KeptConnection, Callable[[], object]]] = [
        (ledger._database._connection, ledger.locations),
        (catalog.database._connection, lambda: catalog.locations("shop")),
    ]
    for kept, ask in asked:
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
