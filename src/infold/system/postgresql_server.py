"""
A PostgreSQL server as a ledger, a catalog or a source reaches it: from a URL to a connection.

Whatever the server says is shown in its own words, with references in place of the secrets that it
repeats. A password is in none of them. A URL is shown as infold.yml has it; of one that is a secret
as a whole, user, host, port and database.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import finalize

from infold.messages.errors import InfoldError
from infold.system.secrets import REFERENCE, hide_passwords, resolve_url

if TYPE_CHECKING:
    import psycopg

BUSY_SECONDS = 30
"""Seconds that a write waits for others."""

FROZEN_SECONDS = 60
"""A process that stops in a transaction, as its machine sleeps, loses it: others wait for it."""

REMOVED = "somebody removed it meanwhile"

OLDEST = 12
"""The oldest version of PostgreSQL that is still in use; no newer feature is needed."""

SCHEMES = ("postgresql+psycopg://", "postgresql://")

_DEFAULTS = {
    "connect_timeout": "10",
    # A machine that is gone is noticed within half a minute, and no firewall forgets a connection.
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
    "fallback_application_name": "infold",
}


_NEVER_IDLE = (
    "SELECT set_config('idle_session_timeout', '0', false)"
    " WHERE current_setting('idle_session_timeout', true) <> '0'"
)
"""
A step may take hours, and the run's connection waits for its end. PostgreSQL knows this since 14.

Where nothing has to be changed nothing is: behind a pooler it is a setting of others too.
"""


class Fault(Enum):
    """What can be wrong with a server, or with what was asked of it."""

    DRIVER_MISSING = auto()
    BAD_URL = auto()
    UNREACHABLE = auto()
    LOGIN_REFUSED = auto()
    DATABASE_MISSING = auto()
    NOT_PERMITTED = auto()
    READ_ONLY = auto()
    TOO_OLD = auto()
    OTHER_ENCODING = auto()
    CONNECTION_LOST = auto()
    FAILED = auto()


@dataclass(frozen=True, slots=True)
class Server(ABC):
    """
    A server as infold.yml names it.

    ``key`` is what errors call the place in infold.yml. A secret is read for each connection.
    """

    url: str
    root: Path
    key: str

    @abstractmethod
    def error(self, fault: Fault, place: str = "", why: str = "") -> InfoldError:
        """The named error of what is wrong; ``why`` may be the version or the encoding found."""

    def connect(self) -> tuple[psycopg.Connection[Any], str]:
        """A connection in autocommit, and what to call it. Raises what :meth:`error` names."""
        try:
            import psycopg
        except ImportError:
            raise self.error(Fault.DRIVER_MISSING) from None

        settings = self.settings()
        shown = self._shown(settings)
        try:
            connection = psycopg.connect(
                **{**_DEFAULTS, **settings, "client_encoding": "UTF8"},
                autocommit=True,
                prepare_threshold=None,  # poolers hand each transaction another connection
            )
        except psycopg.Error as error:
            raise self._refused(self.words(error), shown) from None
        try:
            self._check(connection, shown)
            connection.execute(_NEVER_IDLE)
        except psycopg.Error as error:
            connection.close()
            raise self._refused(self.words(error), shown) from None
        except BaseException:
            connection.close()
            raise
        return connection, shown

    def settings(self) -> dict[str, Any]:
        """The settings of libpq that the URL means."""
        import psycopg
        from psycopg.conninfo import conninfo_to_dict

        url = resolve_url(self.url, self.root, self.key).strip()
        scheme = next((each for each in SCHEMES if url.startswith(each)), None)
        if scheme is None:
            raise self.error(Fault.BAD_URL, why="it does not begin with one of these")
        try:
            settings = conninfo_to_dict("postgresql://" + url.removeprefix(scheme))
        except psycopg.Error:
            # Its words may quote the URL.
            why = "it cannot be taken apart, or has a parameter that PostgreSQL does not know"
            raise self.error(Fault.BAD_URL, why=why) from None
        if any("@" in str(settings.get(part, "")) for part in ("host", "port", "dbname")):
            why = "a part of it has an @, as if a password were not percent-encoded"
            raise self.error(Fault.BAD_URL, why=why)
        if not re.fullmatch(r"[\d,]*", str(settings.get("port", ""))):
            raise self.error(Fault.BAD_URL, why="its port is no number")
        if self._has_parts() and ":" in str(settings.get("user", "")):
            why = "its user has a colon, as if a password were in the same secret"
            raise self.error(Fault.BAD_URL, why=why)
        return settings

    def _has_parts(self) -> bool:
        """Whether parts of the URL are secrets, and not all of it."""
        return bool(REFERENCE.search(self.url)) and not REFERENCE.fullmatch(self.url.strip())

    def shown(self) -> str:
        """Where the server is, as infold.yml has it, without anything that is secret."""
        return hide_passwords(self.url.strip())

    def _shown(self, settings: dict[str, Any]) -> str:
        """Where the server is, without anything that is secret."""
        if self._has_parts():
            return hide_passwords(self.url.strip())
        user, host, port, name = (settings.get(part) for part in ("user", "host", "port", "dbname"))
        by, at = f"{user}@" if user else "", f":{port}" if port else ""
        return f"postgresql+psycopg://{by}{host or ''}{at}/{name or ''}"

    def words(self, error: Any) -> str:
        """What the server said, with references in place of names that are secrets."""
        words = _words(error)
        if not self._has_parts():
            return words
        with suppress(InfoldError):  # what cannot be read any more cannot be found in it
            settings = self.settings()
            names = [settings.get(part) for part in ("user", "host", "dbname")]
            for reference in REFERENCE.finditer(self.url):
                secret = resolve_url(reference[0], self.root, self.key)
                if secret in names:  # no server repeats a password, and one may be any word
                    name = rf"(?<!\w){re.escape(secret)}(?!\w)"
                    words = re.sub(name, reference[0].replace("\\", r"\\"), words)
        return words

    def _check(self, connection: psycopg.Connection[Any], shown: str) -> None:
        """Raise where the server is none that can store what it is for."""
        self._check_version(connection, shown)
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise self.error(Fault.OTHER_ENCODING, shown, str(encoding))

    def _check_version(self, connection: psycopg.Connection[Any], shown: str) -> None:
        version = connection.info.server_version // 10_000
        if version < OLDEST:
            raise self.error(Fault.TOO_OLD, shown, str(version))

    def _refused(self, why: str, shown: str) -> InfoldError:
        """
        The named error of a connection that was not made.

        Servers give no code for these, so those that speak another language than English are
        ``unreachable``, in their own words.
        """
        if re.search(r"database .* does not exist", why):
            return self.error(Fault.DATABASE_MISSING, shown, why)
        if "permission denied for database" in why:
            return self.error(Fault.NOT_PERMITTED, shown, why)
        if re.search(_NOT_LET_IN, why):
            return self.error(Fault.LOGIN_REFUSED, shown, why)
        return self.error(Fault.UNREACHABLE, shown, why)

    def failed(
        self,
        error: psycopg.Error,
        shown: str,
        *,
        broken: bool,
        lost: Fault = Fault.CONNECTION_LOST,
    ) -> InfoldError | None:
        """
        The named error of a statement that failed; None where it is a mistake of the program's own.

        ``broken``: the connection is gone, and that is ``lost``.
        """
        code, why = error.sqlstate or "", self.words(error)
        if broken or code.startswith(("08", "57P")):
            return self.error(lost, shown, why)
        if code == "25006":
            return self.error(Fault.READ_ONLY, shown, why)
        if code == "42501":
            return self.error(Fault.NOT_PERMITTED, shown, why)
        if code == "55P03":
            why = f"others have been using it for {BUSY_SECONDS} seconds"
        elif code in ("42P01", "3F000"):
            why = REMOVED
        elif code.startswith(("22", "23", "42")):
            return None
        return self.error(Fault.FAILED, shown, why)


class KeptConnection:
    """
    The connection of this process to a server: made when first needed, closed at its end.

    A forked child makes its own and leaves its parent's alone: whatever it said over that one, even
    only that it closes it, the server would take for the parent's words.
    """

    def __init__(self, server: Server) -> None:
        self.shown = ""
        """What to call the place, once it was reached."""
        self._server = server
        self._connection: psycopg.Connection[Any] | None = None
        self._process = 0
        self._closing: finalize[..., KeptConnection] | None = None

    @property
    def current(self) -> psycopg.Connection[Any] | None:
        """The connection of this process, if it has one; it may be broken."""
        return self._connection if self._process == os.getpid() else None

    def open(self) -> tuple[psycopg.Connection[Any], bool]:
        """The connection of this process, and whether it is a new one."""
        if (connection := self.current) is not None:
            return connection, False
        connection, self.shown = self._server.connect()
        if self._closing is not None:
            self._closing.detach()  # a parent's, which the finalizer would keep
        self._connection, self._process = connection, os.getpid()
        self._closing = finalize(self, _close, connection, self._process)
        return connection, True

    def close(self) -> None:
        """Close it; the next :meth:`open` makes another."""
        self._connection, closing = None, self._closing
        if closing is not None:
            closing()


def _close(connection: psycopg.Connection[Any], process: int) -> None:
    """Close a connection in the process that made it."""
    if process == os.getpid():
        with suppress(Exception):  # it may be broken, and then there is nothing to close
            connection.close()


_NOT_LET_IN = r"password|authentication|role .* (does not exist|is not permitted)|pg_hba\.conf"


def _words(error: Any) -> str:
    """What the server said, or why there is none, in one line."""
    message = error.diag.message_primary or str(error)
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    # Of several addresses that were tried the last one is as good as any.
    text = next((line for line in reversed(lines) if "FATAL" in line), lines[0] if lines else "")
    return re.sub(r"^connection (failed|is bad): ", "", text) or "no reason given"
