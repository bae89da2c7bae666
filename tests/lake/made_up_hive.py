"""A Hive metastore that is made up: it has what it was given, and answers as a real one does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from hive_metastore.ttypes import (
    AlreadyExistsException,
    InvalidObjectException,
    NoSuchObjectException,
    SerDeInfo,
    StorageDescriptor,
    Table,
)

from infold.lake.hive_client import HiveClient

Key = tuple[str, str]


@dataclass
class MadeUpHive:
    """The tables that it has, and what was asked of it that changes something."""

    databases: set[str] = field(default_factory=set)
    tables: dict[Key, Any] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    down: bool = False
    """Whether it cannot be reached."""
    before_change: Callable[[], None] = lambda: None
    """What happens between a look and the change that follows."""

    def paths(self, namespace: str) -> dict[str, str]:
        """Where each name of a namespace leads to."""
        return {
            name: table.sd.serdeInfo.parameters.get("path", "")
            for (space, name), table in sorted(self.tables.items())
            if space == namespace
        }

    def put(self, namespace: str, name: str, path: str = "", **parameters: str) -> None:
        """Somebody makes an entry; without a path a view."""
        self.databases.add(namespace)
        serde = SerDeInfo(parameters={"path": path} if path else {})
        kind = "EXTERNAL_TABLE" if path else "VIRTUAL_VIEW"
        self.tables[namespace, name] = Table(
            tableName=name,
            dbName=namespace,
            sd=StorageDescriptor(serdeInfo=serde),
            parameters={"spark.sql.sources.provider": "delta"} | parameters,
            tableType=kind,
        )

    # -- what a client asks for

    def get_all_databases(self) -> list[str]:
        """Its namespaces."""
        return sorted(self.databases)

    def create_database(self, made: Any) -> None:
        """A namespace more."""
        self.asked.append(f"create {made.name}")
        if made.name in self.databases:
            raise AlreadyExistsException(made.name)
        self.databases.add(made.name)

    def get_all_tables(self, namespace: str) -> list[str]:
        """Names of a namespace."""
        return [name for space, name in self.tables if space == namespace]

    def get_table(self, *key: str) -> Any:
        """A table."""
        if key not in self.tables:
            raise NoSuchObjectException(".".join(key))
        return deepcopy(self.tables[key])

    def get_table_objects_by_name(self, namespace: str, names: Sequence[str]) -> list[Any]:
        """Those of some tables that are there."""
        if namespace not in self.databases:
            raise NoSuchObjectException(namespace)
        return [self.get_table(namespace, one) for one in names if (namespace, one) in self.tables]

    def create_table(self, made: Any) -> None:
        """A table more; the mark of one that is made goes where its metastore takes it out."""
        self.before_change()
        key = (made.dbName, made.tableName)
        self.asked.append(f"create {'.'.join(key)}")
        if made.dbName not in self.databases:
            raise InvalidObjectException(made.dbName)
        if key in self.tables:
            raise AlreadyExistsException(made.tableName)
        kept = deepcopy(made)
        if made.tableType != "VIRTUAL_VIEW":  # of which a real one makes no statistics
            assert kept.parameters.pop("DO_NOT_UPDATE_STATS") == "true"
        self.tables[key] = kept

    def alter_table_with_environment_context(
        self, namespace: str, name: str, new: Any, how: Any
    ) -> None:
        """Another table under a name."""
        assert how.properties == {"DO_NOT_UPDATE_STATS": "true"}
        self.asked.append(f"alter {namespace}.{name}")
        self.get_table(namespace, name)
        self.tables[namespace, name] = deepcopy(new)

    def drop_table(self, namespace: str, name: str, deleteData: bool) -> None:  # noqa: N803
        """A table less; no file goes with it."""
        assert not deleteData
        self.asked.append(f"drop {namespace}.{name}")
        self.get_table(namespace, name)
        del self.tables[namespace, name]


def connected(monkeypatch: pytest.MonkeyPatch) -> MadeUpHive:
    """A metastore to which every client is connected."""
    found = MadeUpHive()
    closed = SimpleNamespace(close=lambda: None)

    def opened(client: HiveClient) -> tuple[Any, MadeUpHive]:
        if found.down:
            raise client._unreachable("connection refused")
        return closed, found

    monkeypatch.setattr(HiveClient, "_open", opened)
    return found
