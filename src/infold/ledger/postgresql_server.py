"""The PostgreSQL server of a ledger: what fails is named as a ledger's, and any text is stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from infold.ledger.stored_text import escaped, unescaped
from infold.messages import ledger_errors
from infold.messages.errors import InfoldError
from infold.system import postgresql_server
from infold.system.postgresql_server import Fault, Server

if TYPE_CHECKING:
    import psycopg


_ERRORS: Mapping[Fault, Callable[[str, str, str], InfoldError]] = {
    Fault.DRIVER_MISSING: lambda key, _at, _why: ledger_errors.driver_missing(key=key),
    Fault.BAD_URL: lambda key, _at, why: ledger_errors.bad_url(key=key, why=why),
    Fault.UNREACHABLE: lambda key, at, why: ledger_errors.unreachable(key=key, ledger=at, why=why),
    Fault.LOGIN_REFUSED: (
        lambda key, at, why: ledger_errors.login_refused(key=key, ledger=at, why=why)
    ),
    Fault.DATABASE_MISSING: (
        lambda key, at, why: ledger_errors.database_missing(key=key, ledger=at, why=why)
    ),
    Fault.NOT_PERMITTED: (
        lambda key, at, why: ledger_errors.not_permitted(key=key, ledger=at, why=why)
    ),
    Fault.READ_ONLY: lambda key, at, why: ledger_errors.read_only(key=key, ledger=at, why=why),
    Fault.TOO_OLD: (
        lambda key, at, found: ledger_errors.server_too_old(
            key=key, ledger=at, found=found, oldest=postgresql_server.OLDEST
        )
    ),
    Fault.OTHER_ENCODING: (
        lambda key, at, found: ledger_errors.other_encoding(key=key, ledger=at, found=found)
    ),
    Fault.CONNECTION_LOST: (
        lambda key, at, why: ledger_errors.connection_lost(key=key, ledger=at, why=why)
    ),
    Fault.FAILED: lambda key, at, why: ledger_errors.server_failed(key=key, ledger=at, why=why),
}
"""The message of each: by the key, where the server is, and why."""


class LedgerServer(Server):
    """The server that a target's ledger is on."""

    __slots__ = ()

    def error(self, fault: Fault, place: str = "", why: str = "") -> InfoldError:
        """See ``Server``: an error of ``ledger_errors``."""
        return _ERRORS[fault](self.key, place, why)


def store_any_text(connection: psycopg.Connection[Any]) -> None:
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
