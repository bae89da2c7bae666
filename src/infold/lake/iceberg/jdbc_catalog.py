"""
The catalog in a PostgreSQL database: that of Iceberg's JDBC catalog, by infold's own connection.

A connection is kept for as long as the process lives, and made again where it was lost. What is
asked for in one transaction is asked again by the caller or not at all: nothing here is repeated.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from infold.lake.iceberg.sql_catalog import OWN, SqlCatalog, Statements, TakenError
from infold.messages import catalog_errors
from infold.messages.errors import InfoldError
from infold.system import postgresql_server
from infold.system.postgresql_server import (
    BUSY_SECONDS,
    FROZEN_SECONDS,
    Fault,
    KeptConnection,
    Server,
)

if TYPE_CHECKING:
    import psycopg


_ERRORS: Mapping[Fault, Callable[[str, str, str], InfoldError]] = {
    Fault.DRIVER_MISSING: lambda key, _at, _why: catalog_errors.driver_missing(key=key),
    Fault.BAD_URL: lambda key, _at, why: catalog_errors.bad_url(key=key, why=why),
    Fault.UNREACHABLE: lambda key, at, why: catalog_errors.unreachable(key=key, at=at, why=why),
    Fault.LOGIN_REFUSED: lambda key, at, why: catalog_errors.login_refused(key=key, at=at, why=why),
    Fault.DATABASE_MISSING: (
        lambda key, at, why: catalog_errors.database_missing(key=key, at=at, why=why)
    ),
    Fault.NOT_PERMITTED: lambda key, at, why: catalog_errors.not_permitted(key=key, at=at, why=why),
    Fault.READ_ONLY: lambda key, at, why: catalog_errors.not_permitted(key=key, at=at, why=why),
    Fault.TOO_OLD: (
        lambda key, at, found: catalog_errors.server_too_old(
            key=key, at=at, found=found, oldest=postgresql_server.OLDEST
        )
    ),
    Fault.OTHER_ENCODING: (
        lambda key, at, found: catalog_errors.other_encoding(key=key, at=at, found=found)
    ),
    Fault.CONNECTION_LOST: (
        lambda key, at, why: catalog_errors.answer_lost(key=key, at=at, why=why)
    ),
    Fault.FAILED: lambda key, at, why: catalog_errors.failed(key=key, at=at, why=why),
}
"""The message of each: by the key, where the server is, and why."""


class CatalogServer(Server):
    """The server that a target's catalog is on."""

    __slots__ = ()

    def error(self, fault: Fault, place: str = "", why: str = "") -> InfoldError:
        """See ``Server``: an error of ``catalog_errors``."""
        return _ERRORS[fault](self.key, place, why)


def jdbc_catalog(uri: str, root: Path, key: str) -> SqlCatalog:
    """The catalog at a URL, with the tables that Spark finds there."""
    server = CatalogServer(uri, root, key)
    if server not in _databases:
        _databases[server] = PostgresqlCatalog(server)
    return SqlCatalog(_databases[server], OWN)


@dataclass(slots=True)
class _Connection:
    """``Statements`` over psycopg, whose marks are ``%s`` and not ``?``."""

    connection: psycopg.Connection[Any]
    undone: bool = False

    def rows(self, text: str, values: Sequence[Any] = ()) -> Sequence[tuple[Any, ...]]:
        """All rows, fetched at once."""
        return self._execute(text, values).fetchall()

    def change(self, text: str, values: Sequence[Any] = ()) -> int:
        """How many rows changed. Raises ``TakenError`` for a key that is there."""
        import psycopg

        try:
            return self._execute(text, values).rowcount
        except psycopg.errors.UniqueViolation as error:
            raise TakenError(", ".join(map(str, values))) from error

    def _execute(self, text: str, values: Sequence[Any]) -> psycopg.Cursor[Any]:
        return self.connection.execute(text.replace("?", "%s"), values)


class PostgresqlCatalog:
    """A catalog in PostgreSQL, by one connection for all threads, which take turns."""

    def __init__(self, server: CatalogServer) -> None:
        self._server = server
        self._connection = KeptConnection(server)
        self._lock = RLock()

    @property
    def place(self) -> str:
        """The server as messages name it, without secrets."""
        return self._connection.shown or self._server.shown()

    @contextmanager
    def read(self) -> Iterator[Statements | None]:
        """A transaction that sees one state and changes nothing."""
        with self._transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY") as statements:
            yield statements

    @contextmanager
    def write(self, namespace: str) -> Iterator[Statements | None]:
        """See ``CatalogDatabase``: the rows are locked, always in one order."""
        with self._transaction("BEGIN") as statements:
            if statements is not None:
                statements.rows(
                    f"SELECT 1 FROM iceberg_tables WHERE {OWN} AND table_namespace = ?"
                    " ORDER BY table_name FOR UPDATE",
                    (namespace,),
                )
            yield statements

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[_Connection | None]:
        import psycopg

        with self._lock:
            connection, lost = self._open(), Fault.UNREACHABLE
            try:
                statements = self._begin(connection, begin)
                yield statements
                if statements is None or statements.undone or "READ ONLY" in begin:
                    connection.execute("ROLLBACK")
                else:
                    lost = Fault.CONNECTION_LOST  # from here on nobody knows what was done
                    connection.execute("COMMIT")
            except psycopg.Error as error:
                broken = connection.broken
                known = self._server.failed(error, self._connection.shown, broken=broken, lost=lost)
                self._end(connection)
                if known is None:
                    raise
                raise known from error
            except BaseException:
                self._end(connection)
                raise

    def _begin(self, connection: psycopg.Connection[Any], begin: str) -> _Connection | None:
        """Begin a transaction, in one exchange; None where there are no tables of a catalog."""
        cursor = connection.execute(
            f"{begin}; SET LOCAL lock_timeout TO '{BUSY_SECONDS}s';"
            f" SET LOCAL statement_timeout TO '{2 * BUSY_SECONDS}s';"
            f" SET LOCAL idle_in_transaction_session_timeout TO '{FROZEN_SECONDS}s';"
            " SELECT to_regclass('iceberg_tables') IS NOT NULL"
        )
        while cursor.nextset():
            pass
        row = cursor.fetchone()
        if row is not None and row[0]:
            return _Connection(connection)
        self._refuse_hidden(connection)
        return None

    def _refuse_hidden(self, connection: psycopg.Connection[Any]) -> None:
        """
        Raise ``not_permitted`` where there is a catalog that this user does not see.

        Without that all tables would count as dropped once a right or the search_path is lost.
        """
        for schema, usable in connection.execute(_HIDDEN):
            why = f"permission denied for schema {schema}"
            if usable:
                why = f"iceberg_tables is in schema {schema}, which is not in the search_path"
            raise self._server.error(Fault.NOT_PERMITTED, self._connection.shown, why)

    def _open(self) -> psycopg.Connection[Any]:
        """The connection of this process; another one where it is lost."""
        connection = self._connection.current
        if connection is not None and (connection.closed or not _answers(connection)):
            self._connection.close()
        return self._connection.open()[0]

    def _end(self, connection: psycopg.Connection[Any]) -> None:
        """End a transaction that must change nothing."""
        with suppress(Exception):  # whatever was wrong before is what matters
            connection.execute("ROLLBACK")
        if connection.info.transaction_status.name != "IDLE":
            with suppress(Exception):
                connection.close()


_HIDDEN = r"""
SELECT space.nspname, has_schema_privilege(space.oid, 'USAGE')
FROM pg_class AS found JOIN pg_namespace AS space ON space.oid = found.relnamespace
WHERE found.relname = 'iceberg_tables' AND found.relkind IN ('r', 'p', 'v', 'f') AND (
    has_table_privilege(found.oid, 'SELECT')
    OR space.nspname::text = ANY (regexp_split_to_array(
        replace(replace(current_setting('search_path'), '"', ''), '$user', current_user),
        '\s*,\s*'
    ))
)
ORDER BY 1
"""
"""
The schemas with tables of a catalog that the user's search_path does not lead to.

Those count that this user may read, or that the search_path names: others are somebody else's.
"""

_databases: dict[CatalogServer, PostgresqlCatalog] = {}
"""The connections of this process."""


def _answers(connection: psycopg.Connection[Any]) -> bool:
    """Whether a connection that was idle is still one: a server that restarted has closed it."""
    import psycopg

    try:
        connection.execute("SELECT 1")
    except psycopg.Error:
        return False
    return True


_JDBC = {
    "sslmode": "sslmode",
    "sslrootcert": "sslrootcert",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "sslpassword": "sslpassword",
    "sslnegotiation": "sslNegotiation",
    "channel_binding": "channelBinding",
    "gssencmode": "gssEncMode",
    "require_auth": "requireAuth",
    "connect_timeout": "connectTimeout",
    "application_name": "ApplicationName",
    "options": "options",
}
"""The parameters of a URL that PostgreSQL's JDBC driver has too, and what it calls them."""

_JDBC_DEFAULTS = {
    "ApplicationName": "infold",
    "connectTimeout": "10",
    # A statement of a catalog takes milliseconds: a server that is gone is not waited for.
    "socketTimeout": "120",
    "tcpKeepAlive": "true",
}

_ENVIRONMENT = {
    "host": "PGHOST",
    "hostaddr": "PGHOSTADDR",
    "port": "PGPORT",
    "dbname": "PGDATABASE",
    "user": "PGUSER",
    "service": "PGSERVICE",
    "options": "PGOPTIONS",
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcert": "PGSSLCERT",
    "sslnegotiation": "PGSSLNEGOTIATION",
    "sslkey": "PGSSLKEY",
    "sslcrl": "PGSSLCRL",
    "ssl_min_protocol_version": "PGSSLMINPROTOCOLVERSION",
    "connect_timeout": "PGCONNECT_TIMEOUT",
    "application_name": "PGAPPNAME",
    "channel_binding": "PGCHANNELBINDING",
    "gssencmode": "PGGSSENCMODE",
    "require_auth": "PGREQUIREAUTH",
    "requirepeer": "PGREQUIREPEER",
    "target_session_attrs": "PGTARGETSESSIONATTRS",
}
"""Environment variables in which libpq, infold's client, looks for what a URL omits."""

_OF_ONE_SIDE = frozenset(
    {
        *("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count"),
        *("tcp_user_timeout", "fallback_application_name", "client_encoding"),
    }
)
"""Parameters for psycopg alone: they decide neither the server nor who may listen."""

_KNOWN = {"host", "port", "dbname", "user", "password", "target_session_attrs", *_JDBC}

_PRIMARY = ("read-write", "primary")


def jdbc_settings(uri: str, root: Path, key: str) -> tuple[str, Mapping[str, str]]:
    """
    The same place for Java: a URL without a secret, and the properties of a connection.

    Raises as connecting does where the URL cannot be used; also where Java's driver cannot be told
    what it says: then Spark might find another server, or speak to it less safely.
    """
    server = CatalogServer(uri, root, key)
    settings = {name: str(value) for name, value in server.settings().items()}
    for name, variable in _ENVIRONMENT.items():
        if name not in settings and os.environ.get(variable):
            settings[name] = os.environ[variable]
    if why := _not_carried_over(settings):
        raise server.error(Fault.BAD_URL, why=why)
    hosts, ports = settings["host"].split(","), settings.get("port", "5432").split(",")
    if len(ports) == 1:
        ports *= len(hosts)
    places = ",".join(f"{_host(at)}:{port}" for at, port in zip(hosts, ports, strict=False))
    translated = {_JDBC[name]: value for name, value in settings.items() if name in _JDBC}
    properties = {**_JDBC_DEFAULTS, **translated}
    if settings.get("target_session_attrs") in _PRIMARY:
        properties["targetServerType"] = "primary"
    password = settings.get("password") or os.environ.get("PGPASSWORD", "")
    who = {"user": settings.get("user", ""), "password": password}
    properties |= {name: value for name, value in who.items() if value}
    name = settings.get("dbname") or settings.get("user", "")
    return f"jdbc:postgresql://{places}/{quote(name, safe='')}", properties


def _not_carried_over(settings: Mapping[str, str]) -> str:
    """Why Java's driver cannot be told the same; empty where it can. No value is in it."""
    hosts = settings.get("host", "").split(",")
    if not all(hosts):
        return "it names no host, which Spark needs: a socket of this machine is none for Java"
    if any(host.startswith("/") for host in hosts):
        return "its host is the folder of a socket, which Java's driver does not know"
    session = settings.get("target_session_attrs", "any")
    unknown = sorted(name for name in settings if name not in _KNOWN | _OF_ONE_SIDE)
    if session not in ("any", *_PRIMARY):
        unknown.append("target_session_attrs")
    if not unknown:
        return ""
    names = [
        f"{name} (or {_ENVIRONMENT[name]})" if name in _ENVIRONMENT else name for name in unknown
    ]
    return f"Spark connects with Java's driver, which cannot take {', '.join(names)}"


def _host(name: str) -> str:
    return f"[{name}]" if ":" in name else name
