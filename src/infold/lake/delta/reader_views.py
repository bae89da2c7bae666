"""
Views of Delta tables, for engines that look for them in a Hive metastore.

A view reads its table by the name that it has there. It says for which folder infold made it, as
the name of the table does: so two projects can have their views in one namespace.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from infold.core import write_points
from infold.core.queries import quoted
from infold.core.type_changes import Type
from infold.lake.delta.log import Log, shown_fields, without_details
from infold.lake.delta.metastore import (
    FOLDER,
    NO_COLUMNS,
    Columns,
    Metastore,
    entry_of,
    is_named_for,
    stored_as,
)
from infold.lake.hive_client import HiveClient, alter, user_name
from infold.lake.views import SUFFIX, FoundView, FoundViews, RefusedError, refresh, refuse_shared

VIEW_OF = "infold.view_of"
"""The parameter of a view that says for which folder infold made it, by the name of the view."""

_VIEW = "VIRTUAL_VIEW"
"""What kind of table a view is to a metastore."""


@dataclass(frozen=True, slots=True)
class ReaderViews:
    """The views of the tables in a folder that have their names in a metastore; see ``Views``."""

    metastore: Metastore
    above: str
    """The folder, as the metastore has it."""

    @property
    def space(self) -> str:
        """The namespace of the views."""
        return self.metastore.namespace + SUFFIX

    def check(self, tables: Collection[str] | None) -> None:
        """
        Raise where these views are wanted and somebody else has a name of one.

        Raises ``shared_namespace`` where two projects would share a namespace: one has views there,
        and one tables.
        """
        if self.metastore.namespace.endswith(SUFFIX):
            namespace = self.metastore.namespace
            self._refuse_shared(self._client.found(namespace), namespace, VIEW_OF, "views")
        if tables is not None:
            entries = self._client.found(self.space)
            self._refuse_shared(entries, self.space, FOLDER, "tables")
            names = {table.lower() for table in tables}
            foreign = [one for one in entries if one.tableName in names and not self._is_own(one)]
            Metastore(self._client, self.space).refuse([*map(entry_of, foreign)], "views")

    def _refuse_shared(self, entries: Sequence[Any], namespace: str, mark: str, what: str) -> None:
        names = sorted(str(one.tableName) for one in entries if mark in (one.parameters or {}))
        refuse_shared(self._client.place, namespace, names, what)

    def refresh(self, tables: Mapping[str, Log], *, only_new: bool) -> Sequence[str]:
        """
        Have exactly the views of some tables, by the names that these have; those that were taken.

        With ``only_new``, views that are there already are taken for right: no log is read.
        """
        names_taken, _ = refresh(
            self,
            self.space,
            lambda: tables,
            lambda names: {name: tables[name] for name in names},
            lambda name, log: view_of(self.metastore.namespace, name, log.schema().fields),
            wanted=bool(tables),
            only_new=only_new,
        )
        return names_taken

    def found(self, namespace: str) -> FoundViews:
        """See ``Views``: two requests."""
        tables = self._client.found(namespace)
        own = {
            str(one.tableName): FoundView(view_of_entry(one).digest)
            for one in tables
            if self._is_own(one)
        }
        names = [str(one.tableName) for one in tables]
        return FoundViews(own, [name for name in names if name not in own], there=bool(names))

    def change(
        self,
        namespace: str,
        views: Mapping[str, SparkView],
        gone: Collection[str],
        present: FoundViews,
    ) -> Collection[str]:
        """See ``Views``: one after the other."""
        if views and not present.there:
            self._client.have_namespace(namespace)
        left = []
        for name, view in views.items():
            write_points.point(f"view {name}: before")
            if not self._have_view((namespace, name), view, known=name in present.own):
                left.append(name)
            write_points.point(f"view {name}: after")
        for name in gone:
            write_points.point(f"drop view {name}: before")
            if not self._drop((namespace, name)):
                left.append(name)
            write_points.point(f"drop view {name}: after")
        return left

    def _have_view(self, key: tuple[str, str], view: SparkView, *, known: bool) -> bool:
        """Have a view, of which one may be ``known``; False where somebody else has its name."""

        def replaced(hive: Any) -> bool:
            entry = hive.get_table(*key)
            if not self._is_own(entry):
                return False
            write_view(entry, view)
            alter(hive, key, entry)
            return True

        if known:
            with suppress(RefusedError):  # it is gone meanwhile
                return self._client.change(replaced)
        table = self._new_entry(key, view)
        try:
            self._client.change(lambda hive: hive.create_table(table))
        except RefusedError:
            return False
        return True

    def _drop(self, key: tuple[str, str]) -> bool:
        """Take a view away; False where it is somebody else's by now, or gone."""

        def dropped(hive: Any) -> bool:
            if not self._is_own(hive.get_table(*key)):
                return False
            hive.drop_table(*key, deleteData=False)
            return True

        try:
            return self._client.change(dropped)
        except RefusedError as error:
            if self._client.found(key[0], [key[1]]):
                raise error.named from None
            return False

    def _is_own(self, table: Any) -> bool:
        made_for = (table.parameters or {}).get(VIEW_OF, "")
        return table.tableType == _VIEW and is_named_for(made_for, table.tableName, self.above)

    def _new_entry(self, key: tuple[str, str], view: SparkView) -> Any:
        """What the metastore is to have of a view, as Spark would write it."""
        from hive_metastore.ttypes import Table

        name = f"{self.metastore.namespace}.{key[1]}"
        table = Table(
            tableName=key[1],
            dbName=key[0],
            owner=user_name(),
            createTime=int(time.time()),
            partitionKeys=[],
            parameters={
                "comment": f"{name} without technical columns, by infold",
                VIEW_OF: f"{self.above}/{key[1]}",
            },
            tableType=_VIEW,
        )
        write_view(table, view)
        return table

    @property
    def _client(self) -> HiveClient:
        return self.metastore.client


# Spark takes three things from an entry: the query, the names of the columns that it yields, and
# the schema of the view as text. The entry's own columns have types of Hive's, for other engines;
# where one has no such type, there is a placeholder for all of them.

_SAID = ("view.", "spark.sql.")
"""Prefixes of the parameters in which a view of Spark's says what it is."""

_SPARK_VERSION = "4.1.0"
"""The Spark whose form this is; Spark reads older forms by what an entry says of this."""

_LONGEST_TYPE = 4000
"""Characters of one value in a metastore; Spark, too, cuts a longer schema into parts."""

_HIVE_TYPES = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    **{
        same: same
        for same in ("float", "double", "boolean", "string", "binary", "date", "timestamp")
    },
}
"""Names of types in Hive, by those in a log."""


@dataclass(frozen=True, slots=True)
class SparkView:
    """A view as it is to be, or as an entry of a metastore has it."""

    query: str
    parameters: Mapping[str, str]
    columns: Columns = field(default=NO_COLUMNS, compare=False)
    """For engines other than Spark, which take them from here and not from the parameters."""

    @property
    def digest(self) -> str:
        """By which it is known whether a view that is there is this one."""
        content = json.dumps([self.query, dict(self.parameters)], sort_keys=True)
        return sha256(content.encode()).hexdigest()[:32]


def view_of(namespace: str, table: str, fields: Sequence[Mapping[str, Any]]) -> SparkView:
    """The view of a table that has a name in a metastore, and these columns in its log."""
    shown = shown_fields(fields)
    names = [str(one["name"]) for one in shown]
    return SparkView(
        query=f"SELECT {', '.join(map(quoted, names))} FROM {quoted(namespace)}.{quoted(table)}",
        parameters={
            "spark.sql.create.version": _SPARK_VERSION,
            **dict(_parts("spark.sql.sources.schema", _schema(shown))),
            # Where Spark looks for what a query names without a namespace: nothing is.
            "view.catalogAndNamespace.numParts": "2",
            "view.catalogAndNamespace.part.0": "spark_catalog",
            "view.catalogAndNamespace.part.1": namespace,
            "view.query.out.numCols": str(len(names)),
            **{f"view.query.out.col.{at}": name for at, name in enumerate(names)},
            "view.referredTempFunctionsNames": "[]",
            "view.referredTempVariablesNames": "[]",
            "view.referredTempViewNames": "[]",
            "view.schemaMode": "COMPENSATION",
        },
        columns=_columns(shown),
    )


def view_of_entry(table: Any) -> SparkView:
    """What an entry of a metastore says, as far as Spark reads it."""
    same = table.viewOriginalText == table.viewExpandedText
    parameters: Mapping[str, str] = table.parameters or {}
    own = {name: value for name, value in parameters.items() if name.startswith(_SAID)}
    return SparkView(str(table.viewExpandedText) if same else "", own)


def write_view(table: Any, view: SparkView) -> None:
    """Have an entry say what a view is to, and leave all else of it."""
    table.viewOriginalText = table.viewExpandedText = view.query
    table.sd = stored_as(view.columns)
    parameters: Mapping[str, str] = table.parameters or {}
    foreign = {name: value for name, value in parameters.items() if not name.startswith(_SAID)}
    table.parameters = {**foreign, **view.parameters}


def _columns(fields: Sequence[Mapping[str, Any]]) -> Columns:
    """The columns for other engines; a placeholder where a metastore would refuse one of them."""
    try:
        columns = [(str(one["name"]), _hive_type(without_details(one["type"]))) for one in fields]
    except KeyError:
        return NO_COLUMNS
    return NO_COLUMNS if any(len(type_) > _LONGEST_TYPE for _, type_ in columns) else columns


def _hive_type(type_: Type) -> str:
    """A type as Hive calls it. Raises KeyError for one that it has not."""
    if isinstance(type_, str):
        return type_ if type_.startswith("decimal(") else _HIVE_TYPES[type_]
    if type_["type"] == "array":
        return f"array<{_hive_type(type_['elementType'])}>"
    if type_["type"] == "map":
        return f"map<{_hive_type(type_['keyType'])},{_hive_type(type_['valueType'])}>"
    fields = (f"{one['name']}:{_hive_type(one['type'])}" for one in type_["fields"])
    return f"struct<{','.join(fields)}>"


def _schema(fields: Sequence[Mapping[str, Any]]) -> str:
    """The columns in Spark's JSON, without what a log says of each besides."""
    plain = [
        {key: one[key] for key in ("name", "type", "nullable")} | {"metadata": {}} for one in fields
    ]
    return json.dumps(
        {"type": "struct", "fields": plain}, separators=(",", ":"), ensure_ascii=False
    )


def _parts(name: str, value: str) -> Iterator[tuple[str, str]]:
    if len(value) <= _LONGEST_TYPE:
        yield name, value
        return
    parts = [value[at : at + _LONGEST_TYPE] for at in range(0, len(value), _LONGEST_TYPE)]
    yield f"{name}.numParts", str(len(parts))
    for at, part in enumerate(parts):
        yield f"{name}.part.{at}", part
