"""
A PostgreSQL server as the ledger reaches it: from a URL to a connection, and its errors by name.

Whatever the server says is shown in its own words, with references in place of the secrets that it
repeats. A password is in none of them. A URL is shown as infold.yml has it; of one that is a secret
as a whole, user, host, port and database.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infold.ledger.stored_text import escaped, unescaped
from infold.messages import ledger_errors
from infold.messages.errors import InfoldError
from infold.system.secrets import REFERENCE, hide_passwords, resolve_url

if TYPE_CHECKING:
    import psycopg

BUSY_SECONDS = 30
"""For how long a write waits for others."""

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


@dataclass(frozen=True, slots=True)
class Server:
    """
    The server that a target's ledger is on, as infold.yml names it.

    ``key`` is what errors call the place in infold.yml. A secret is read for each connection.
    """

    url: str
    root: Path
    key: str

    def connect(self) -> tuple[psycopg.Connection[Any], str]:
        """A connection in autocommit, and what to call it. Raises ``ledger_errors``."""
        try:
            import psycopg
        except ImportError:
            raise ledger_errors.driver_missing(key=self.key) from None

        settings = self._settings()
        shown = self._shown(settings)
        try:
            found = psycopg.connect(
                **{**_DEFAULTS, **settings, "client_encoding": "UTF8"},
                autocommit=True,
                prepare_threshold=None,  # poolers hand each transaction another connection
            )
        except psycopg.Error as error:
            raise refused(self.words(error), key=self.key, shown=shown) from None
        try:
            self._check(found, shown)
            found.execute(_NEVER_IDLE)
        except psycopg.Error as error:
            found.close()
            raise refused(self.words(error), key=self.key, shown=shown) from None
        except BaseException:
            found.close()
            raise
        _store_any_text(found)
        return found, shown

    def _settings(self) -> dict[str, Any]:
        """The settings of libpq that the URL means."""
        import psycopg
        from psycopg.conninfo import conninfo_to_dict

        url = resolve_url(self.url, self.root, self.key).strip()
        scheme = next((each for each in SCHEMES if url.startswith(each)), None)
        if scheme is None:
            raise ledger_errors.bad_url(key=self.key, why="it does not begin with one of these")
        try:
            found = conninfo_to_dict("postgresql://" + url.removeprefix(scheme))
        except psycopg.Error:
            # Its words may quote the URL.
            why = "it cannot be taken apart, or has a parameter that PostgreSQL does not know"
            raise ledger_errors.bad_url(key=self.key, why=why) from None
        if any("@" in str(found.get(part, "")) for part in ("host", "port", "dbname")):
            why = "a part of it has an @, as if a password were not percent-encoded"
            raise ledger_errors.bad_url(key=self.key, why=why)
        if not re.fullmatch(r"[\d,]*", str(found.get("port", ""))):
            raise ledger_errors.bad_url(key=self.key, why="its port is no number")
        if self._has_parts() and ":" in str(found.get("user", "")):
            why = "its user has a colon, as if a password were in the same secret"
            raise ledger_errors.bad_url(key=self.key, why=why)
        return found

    def _has_parts(self) -> bool:
        """Whether parts of the URL are secrets, and not all of it."""
        return bool(REFERENCE.search(self.url)) and not REFERENCE.fullmatch(self.url.strip())

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
            settings = self._settings()
            names = [settings.get(part) for part in ("user", "host", "dbname")]
            for found in REFERENCE.finditer(self.url):
                secret = resolve_url(found[0], self.root, self.key)
                if secret in names:  # no server repeats a password, and one may be any word
                    name = rf"(?<!\w){re.escape(secret)}(?!\w)"
                    words = re.sub(name, found[0].replace("\\", r"\\"), words)
        return words

    def _check(self, connection: psycopg.Connection[Any], shown: str) -> None:
        version = connection.info.server_version // 10_000
        if version < OLDEST:
            raise ledger_errors.server_too_old(
                key=self.key, ledger=shown, found=version, oldest=OLDEST
            )
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise ledger_errors.other_encoding(key=self.key, ledger=shown, found=encoding)


def refused(why: str, *, key: str, shown: str) -> InfoldError:
    """
    The named error of a connection that was not made.

    Servers give no code for these, so those that speak another language than English are
    ``unreachable``, in their own words.
    """
    if re.search(r"database .* does not exist", why):
        return ledger_errors.database_missing(key=key, ledger=shown, why=why)
    if "permission denied for database" in why:
        return ledger_errors.not_permitted(key=key, ledger=shown, why=why)
    if re.search(_NOT_LET_IN, why):
        return ledger_errors.login_refused(key=key, ledger=shown, why=why)
    return ledger_errors.unreachable(key=key, ledger=shown, why=why)


_NOT_LET_IN = r"password|authentication|role .* (does not exist|is not permitted)|pg_hba\.conf"


def failed(code: str, why: str, *, broken: bool, key: str, shown: str) -> InfoldError | None:
    """
    The named error of a statement that failed; None where it is a mistake of the program's own.

    ``broken``: the connection is gone.
    """
    if broken or code.startswith(("08", "57P")):
        return ledger_errors.connection_lost(key=key, ledger=shown, why=why)
    if code == "25006":
        return ledger_errors.read_only(key=key, ledger=shown, why=why)
    if code == "42501":
        return ledger_errors.not_permitted(key=key, ledger=shown, why=why)
    if code == "55P03":
        why = f"others have been using it for {BUSY_SECONDS} seconds"
    elif code in ("42P01", "3F000"):
        why = REMOVED
    elif code.startswith(("22", "23", "42")):
        return None
    return ledger_errors.server_failed(key=key, ledger=shown, why=why)


def _words(error: Any) -> str:
    """What the server said, or why there is none, in one line."""
    said = error.diag.message_primary or str(error)
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    # Of several addresses that were tried the last one is as good as any.
    text = next((line for line in reversed(lines) if "FATAL" in line), lines[0] if lines else "")
    return re.sub(r"^connection (failed|is bad): ", "", text) or "no reason given"


def _store_any_text(connection: psycopg.Connection[Any]) -> None:
    """Have texts stored that PostgreSQL has no way to store: see ``stored_text``."""
    from psycopg.adapt import Buffer
    from psycopg.types.string import StrDumper, TextLoader

    class Dump(StrDumper):
        def dump(self, obj: str) -> Buffer | None:
            return super().dump(escaped(obj))

    class Load(TextLoader):
        def load(self, data: Buffer) -> str | bytes:
            found = super().load(data)
            return unescaped(found) if isinstance(found, str) else found

    connection.adapters.register_dumper(str, Dump)
    connection.adapters.register_loader("text", Load)
