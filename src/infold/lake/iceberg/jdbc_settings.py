"""The catalog in a PostgreSQL database as Spark reaches it, by PostgreSQL's driver for Java."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from infold.lake.iceberg.jdbc_catalog import CatalogServer
from infold.system.postgresql_server import Fault

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
"""Where libpq looks for what a URL leaves out, and infold's own connection by that."""

_OF_ONE_SIDE = frozenset(
    {
        *("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count"),
        *("tcp_user_timeout", "fallback_application_name", "client_encoding"),
    }
)
"""Parameters that say nothing of where the catalog is, nor of who may listen."""

_KNOWN = {"host", "port", "dbname", "user", "password", "target_session_attrs", *_JDBC}

_PRIMARY = ("read-write", "primary")


def jdbc_settings(uri: str, root: Path, key: str) -> tuple[str, Mapping[str, str]]:
    """
    The same place for Java: a URL without a secret, and the properties of a connection.

    Raises as connecting does where the URL cannot be used; also where Java's driver cannot be told
    what it says: then Spark might find another server, or speak to it less safely.
    """
    server = CatalogServer(uri, root, key)
    found = {name: str(value) for name, value in server.settings().items()}
    for name, variable in _ENVIRONMENT.items():
        if name not in found and os.environ.get(variable):
            found[name] = os.environ[variable]
    if why := _not_carried_over(found):
        raise server.error(Fault.BAD_URL, why=why)
    hosts, ports = found["host"].split(","), found.get("port", "5432").split(",")
    if len(ports) == 1:
        ports *= len(hosts)
    places = ",".join(f"{_host(at)}:{port}" for at, port in zip(hosts, ports, strict=False))
    given = {_JDBC[name]: value for name, value in found.items() if name in _JDBC}
    properties = {**_JDBC_DEFAULTS, **given}
    if found.get("target_session_attrs") in _PRIMARY:
        properties["targetServerType"] = "primary"
    password = found.get("password") or os.environ.get("PGPASSWORD", "")
    who = {"user": found.get("user", ""), "password": password}
    properties |= {name: value for name, value in who.items() if value}
    name = found.get("dbname") or found.get("user", "")
    return f"jdbc:postgresql://{places}/{quote(name, safe='')}", properties


def _not_carried_over(found: Mapping[str, str]) -> str:
    """Why Java's driver cannot be told the same; empty where it can. No value is in it."""
    hosts = found.get("host", "").split(",")
    if not all(hosts):
        return "it names no host, which Spark needs: a socket of this machine is none for Java"
    if any(host.startswith("/") for host in hosts):
        return "its host is the folder of a socket, which Java's driver does not know"
    session = found.get("target_session_attrs", "any")
    unknown = sorted(name for name in found if name not in _KNOWN | _OF_ONE_SIDE)
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
