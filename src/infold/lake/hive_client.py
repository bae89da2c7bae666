"""
A connection to a Hive metastore, and what fails there by name.

The client is Hive's own, as pyiceberg ships it; without the rest of pyiceberg it is imported in a
tenth of a second. A connection is opened for each look and each change: one that is kept could not
be used by several threads, nor by a process that was forked.
"""

from __future__ import annotations

import getpass
import logging
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from infold.core.storages import Catalog
from infold.lake.views import RefusedError
from infold.messages import catalog_errors
from infold.messages.errors import InfoldError
from infold.system.secrets import hide_passwords, resolve_url

AT_ONCE = 500
"""The most tables that one request asks for."""

ANSWER_SECONDS = 30
"""Seconds that an answer is waited for."""

NO_STATISTICS = "DO_NOT_UPDATE_STATS"
"""Else the metastore lists all files of a table: what it finds is no statistic of the table's."""

_SERVER = re.compile(r"thrift://[^\s/,@?#]+:[0-9]+/?\Z")
_FORM = "it is no thrift://HOST:PORT, nor several of them with commas between them"

_DENIED = re.compile(r"permission|not authorized|access ?control|privilege", re.IGNORECASE)
"""A metastore has no status for that: its words, and those of what it asks, tell."""

Made = TypeVar("Made")

logging.getLogger("thrift").addHandler(logging.NullHandler())  # an error says what it logs, too


def user_name() -> str:
    """Who takes locks and owns what is made, as a metastore shows it; a user may have no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # Python 3.13 raises the latter
        return "infold"


def hive_servers(text: str, root: Path, key: str) -> Sequence[str]:
    """The servers of a catalog's URI, which are tried in turn. Raises ``bad_url``."""
    servers = [server.strip() for server in resolve_url(text, root, key).split(",")]
    if not all(_SERVER.match(server) and _port(server) for server in servers):
        raise catalog_errors.bad_url(key=key, why=_FORM)
    return servers


def _port(server: str) -> int:
    try:
        return urlsplit(server).port or 0
    except ValueError:
        return 0


@dataclass(frozen=True, slots=True)
class HiveClient:
    """The metastore that a target's catalog is, as infold.yml names it by ``key``."""

    declared: Catalog
    root: Path
    key: str

    @property
    def place(self) -> str:
        """Where it is, as infold.yml has it."""
        return hide_passwords(self.declared.uri)

    def look(self, ask: Callable[[Any], Made]) -> Made:
        """What an answer says; nothing is changed."""
        with self._connected(changing=False) as hive:
            return ask(hive)

    def names(self, namespace: str) -> Sequence[str]:
        """The names of all tables in a namespace, of whatever kind; none if there is none."""
        try:
            names = self.look(lambda hive: hive.get_all_tables(namespace.lower()))
        except RefusedError:  # there is no such namespace
            return ()
        return [str(name) for name in names]

    def tables(self, namespace: str, names: Sequence[str]) -> Sequence[Any]:
        """
        What the metastore has of those of these tables that are there.

        Raises ``RefusedError`` where there is no such namespace.
        """
        tables: list[Any] = []
        for start in range(0, len(names), AT_ONCE):
            batch = [name.lower() for name in names[start : start + AT_ONCE]]
            tables += self.look(partial(_tables, namespace=namespace.lower(), names=batch))
        return tables

    def found(self, namespace: str, names: Collection[str] | None = None) -> Sequence[Any]:
        """What is in a namespace, of whatever kind; under some names alone, if these are given."""
        names_there = self.names(namespace)
        if names is not None:
            names_there = sorted({name.lower() for name in names} & {*names_there})
        try:
            return self.tables(namespace, names_there)
        except RefusedError:  # the namespace is gone meanwhile
            return ()

    def have_namespace(self, namespace: str, location: str | None = None) -> None:
        """Make a namespace, if it is not there; without a location, where the metastore likes."""
        if self._has(namespace):
            return
        from hive_metastore.ttypes import Database

        database = Database(name=namespace, locationUri=location, parameters={})
        try:
            self.change(lambda hive: hive.create_database(database))
        except RefusedError as error:
            if not self._has(namespace):
                raise error.named from None

    def _has(self, namespace: str) -> bool:
        return self.look(lambda hive: namespace in hive.get_all_databases())

    def drop(self, namespace: str, name: str) -> None:
        """Take a table or a view out of the metastore, if it is there; its files stay."""
        key = (namespace.lower(), name.lower())
        try:
            self.change(lambda hive: hive.drop_table(*key, deleteData=False))
        except RefusedError as error:
            if self.found(namespace, [name]):
                raise error.named from None

    def change(self, ask: Callable[[Any], Made]) -> Made:
        """
        Have something changed, once. Raises ``RefusedError`` where it is not what was expected.

        An answer that does not come leaves open whether it was: ``catalog_errors.answer_lost``.
        """
        with self._connected(changing=True) as hive:
            return ask(hive)

    @contextmanager
    def _connected(self, *, changing: bool) -> Iterator[Any]:
        try:
            from hive_metastore.ttypes import (
                AlreadyExistsException,
                InvalidOperationException,
                NoSuchObjectException,
                UnknownDBException,
            )
            from thrift.Thrift import TException
            from thrift.transport.TTransport import TTransportException
        except ImportError:
            raise catalog_errors.thrift_missing(key=self.key) from None
        transport, hive = self._open()
        try:
            yield hive
        except (NoSuchObjectException, UnknownDBException) as error:
            raise RefusedError(self._failed(error)) from None
        except (AlreadyExistsException, InvalidOperationException) as error:
            raise RefusedError(self._failed(error)) from None
        except (TTransportException, OSError, EOFError) as error:
            if changing:
                why = _words(error)
                raise catalog_errors.answer_lost(key=self.key, at=self.place, why=why) from None
            raise self._unreachable(_words(error)) from None
        except TException as error:
            raise self._failed(error) from None
        finally:
            transport.close()

    def _open(self) -> tuple[Any, Any]:
        """A transport, and the client on it, of the first server that answers."""
        from hive_metastore.ThriftHiveMetastore import Client
        from thrift.protocol.TBinaryProtocol import TBinaryProtocol
        from thrift.transport.TSocket import TSocket
        from thrift.transport.TTransport import TBufferedTransport, TTransportException

        why = ""
        for server in hive_servers(self.declared.uri, self.root, self.key):
            where = urlsplit(server)
            socket = TSocket(where.hostname, where.port)
            socket.setTimeout(ANSWER_SECONDS * 1000)
            transport = TBufferedTransport(socket)
            try:
                transport.open()
            except (TTransportException, OSError) as error:
                why = _words(error)
            else:
                return transport, Client(TBinaryProtocol(transport))
        raise self._unreachable(why)

    def _unreachable(self, why: str) -> InfoldError:
        return catalog_errors.unreachable(key=self.key, at=self.place, why=why)

    def _failed(self, error: Exception) -> InfoldError:
        why = _words(error)
        if _DENIED.search(why):
            return catalog_errors.not_permitted(key=self.key, at=self.place, why=why)
        return self.refused(why)

    def refused(self, why: str) -> InfoldError:
        """What to say of something that the metastore did not do."""
        return catalog_errors.failed(key=self.key, at=self.place, why=why)


def alter(hive: Any, key: tuple[str, str], table: Any, **expected: str) -> None:
    """Have something else under a name, of which no statistics are made."""
    from hive_metastore.ttypes import EnvironmentContext

    how = EnvironmentContext({NO_STATISTICS: "true", **expected})
    hive.alter_table_with_environment_context(*key, table, how)


def _tables(hive: Any, namespace: str, names: Sequence[str]) -> Sequence[Any]:
    """
    The tables of these names that are there.

    That there is no such namespace is an answer of older metastores which the client cannot read:
    then the namespace is asked for.
    """
    from thrift.Thrift import TApplicationException

    try:
        tables: Sequence[Any] = hive.get_table_objects_by_name(namespace, names)
    except TApplicationException as error:
        if error.type == TApplicationException.MISSING_RESULT:
            hive.get_database(namespace)
        raise
    return tables


def _words(error: BaseException) -> str:
    """What an error says, in one line."""
    message = getattr(error, "message", None) or str(error) or type(error).__name__
    return " ".join(str(message).split())[:300]
