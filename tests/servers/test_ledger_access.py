"""Each thing that keeps a ledger on a server from being used has its own message."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.ledger.conftest import Place
from tests.servers.postgresql import Postgresql

from infold.core.session_rules import ManualEntry
from infold.ledger import SqlLedger, open_ledger
from infold.ledger.postgresql import LedgerServer
from infold.messages.errors import InfoldError
from infold.system import postgresql_server

pytestmark = pytest.mark.servers

KEY = "ledger of target prod"


def opened(url: str, schema: str = "nothing") -> SqlLedger:
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
        error = refusal(opened(url(postgresql)).runs)
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

        error = refusal(opened(url.replace("/postgres", "/closed")).runs)

        assert error.slug == "ledger-not-permitted"
        assert dict(error.facts)["server"].endswith('permission denied for database "closed"')

    def test_a_server_that_is_too_old(
        self, postgresql: Postgresql, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its version is named, and the oldest that works."""
        monkeypatch.setattr(postgresql_server, "OLDEST", 99)
        error = refusal(opened(postgresql.url()).runs)

        assert error.slug == "ledger-server-too-old"
        assert "99 is the oldest" in error.what
        assert_hidden(postgresql, error)

    def test_a_database_of_another_encoding(self, postgresql: Postgresql) -> None:
        """Not every text fits into it."""
        postgresql.run(
            "DROP DATABASE IF EXISTS latin",
            "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'",
        )
        error = refusal(opened(postgresql.url(rest="latin")).runs)

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
        error = refusal(lambda: opened("${env:LEDGER}").runs())

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
        ledger = opened(url)

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

        error = refusal(lambda: opened(url, "guests").acquire("r1"))
        assert error.slug == "ledger-not-permitted"
        assert "permission denied for database ${env:DB}" in dict(error.facts)["server"]
        assert not opened(postgresql.url(), "guests").exists()

    def test_user_and_password_in_one(
        self, postgresql: Postgresql, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """All of it would be the user, which servers repeat."""
        monkeypatch.setenv("BOTH", "infold:zqx")
        error = refusal(opened(f"postgresql://${{env:BOTH}}@127.0.0.1:{postgresql.port}/x").runs)

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
        ledger = opened(url, "rented")
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

        assert [run.id for run in opened(url, "readable").runs()] == ["r1"]
        for write in (
            lambda: opened(url, "readable").acquire("r2"),
            lambda: opened(url, "readable").add_entries("m", [self.ENTRY]),
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
            lambda: opened(url, "fenced").exists(),
            lambda: opened(url, "fenced").runs(),
            lambda: opened(url, "fenced").acquire("r2"),
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

        assert opened(url, "standing").runs() == ()
        assert refusal(lambda: opened(url, "standing").acquire("r2")).slug == "ledger-read-only"
        assert refusal(lambda: opened(url, "standing_too").acquire("r2")).slug == "ledger-read-only"


def assert_hidden(server: Postgresql, error: InfoldError, *more: str) -> None:
    """No password is in an error, in what it came from, or in its record for programs."""
    chain = [error, error.__cause__, None if error.__suppress_context__ else error.__context__]
    text = f"{[str(each) for each in chain]} {error.record}"
    for secret in (server.password, quote(server.password, safe=""), *more):
        assert secret not in text
