"""
The names of Delta tables in a Hive metastore, for engines that look for tables there.

A table is a folder, and its log is the truth about it. The metastore has an entry for it in the
form that Spark's ``CREATE TABLE … USING delta LOCATION`` and Trino's ``register_table`` write: an
external table with the path of the folder, and without columns. Nothing in it follows the rows or
the columns of the table. So a swap of tables leaves all entries right: the folder that has the
name of a table is the table.

An entry that infold made says for which folder. So two projects can have their tables in one
namespace, and neither changes an entry of the other, or one that somebody made by hand.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infold.core import write_points
from infold.lake.hive_client import NO_STATISTICS, HiveClient, alter, user_name
from infold.lake.stores import places
from infold.lake.views import RefusedError
from infold.messages import catalog_errors
from infold.messages.errors import InfoldError

FOLDER = "infold.folder"
"""The parameter of an entry that says for which folder infold made it."""

PATH, PROVIDER = "path", "spark.sql.sources.provider"

_PARAMETERS = {
    "EXTERNAL": "TRUE",
    PROVIDER: "delta",
    "spark.sql.partitionProvider": "catalog",
    # As Delta has it by default: who reads the table takes its columns from the log.
    "spark.sql.sources.schema": '{"type":"struct","fields":[]}',
}
NO_COLUMNS = (("col", "array<string>", "from deserializer"),)
"""What an entry has for columns where only Spark knows them, as Spark writes it."""

Columns = Sequence[tuple[str, ...]]
"""The columns of an entry: names, types of Hive's, and maybe comments."""

_IN_S3 = ("s3://", "s3n://", "s3a://")


def location_of(folder: str) -> str:
    """A folder as Spark and Trino find it: Hadoop escapes nothing, and has S3 as ``s3a``."""
    if not places.in_store(folder):
        return f"file:{Path(folder).absolute()}"
    return _comparable(folder)


def _comparable(location: str) -> str:
    """A location by the one of its names that :func:`location_of` gives."""
    for scheme in _IN_S3:
        if location.startswith(scheme):
            location = f"s3a://{location.removeprefix(scheme)}"
    if location.startswith("file:"):
        location = f"file:/{location.removeprefix('file:').lstrip('/')}"
    return location.rstrip("/")


@dataclass(frozen=True, slots=True)
class Entry:
    """What the metastore has under a name."""

    name: str
    location: str
    """Where its table is, or what kind of table it is that has no such place."""
    made_for: str
    """The folder that infold made it for; empty for an entry of somebody else's."""
    is_delta: bool

    def is_right(self, location: str) -> bool:
        """Whether whoever reads the name finds the table in a folder, whoever made the entry."""
        return self.is_delta and self.location == location

    def is_free_for(self, location: str) -> bool:
        """Whether infold may have the name lead to a folder."""
        return self.is_right(location) or self.made_for == location

    def is_of(self, parent: str) -> bool:
        """Whether infold made it for the folder of its name in another one."""
        return is_named_for(self.made_for, self.name, parent)


@dataclass(frozen=True, slots=True)
class Metastore:
    """The namespace of a metastore in which a target's tables have names."""

    client: HiveClient
    namespace: str
    """In small letters: a metastore has no others."""

    def entries(self, names: Collection[str] | None = None) -> Mapping[str, Entry]:
        """What is there, by names in small letters; under some names alone, if these are given."""
        entries = map(entry_of, self.client.found(self.namespace, names))
        return {entry.name: entry for entry in entries}

    def check(self, folders: Mapping[str, str]) -> Collection[str]:
        """
        Those of some tables that have their name, by tables and their folders.

        Raises ``name_taken`` where somebody else has one.
        """
        entries = self.entries(folders)
        at = {
            table: (entries[table.lower()], location_of(folder))
            for table, folder in folders.items()
            if table.lower() in entries
        }
        self.refuse([entry for entry, location in at.values() if not entry.is_free_for(location)])
        return [table for table, (entry, location) in at.items() if entry.is_right(location)]

    def refuse(self, foreign: Collection[Entry], what: str = "tables") -> None:
        """Raise ``name_taken`` for entries of somebody else's, if there are any."""
        if foreign:
            raise catalog_errors.name_taken(
                key=self.client.key,
                catalog=self.client.place,
                namespace=self.namespace,
                what=what,
                found=", ".join(f"{entry.name} ({entry.location})" for entry in foreign),
            )

    @contextmanager
    def at_the_end(self) -> Iterator[None]:
        """Raise ``not_registered`` where it fails once all tables are as they should be."""
        try:
            yield
        except InfoldError as error:
            why = f"{error.slug}: {dict(error.facts).get('why') or error.what}"
            raise catalog_errors.not_registered(
                key=self.client.key, catalog=self.client.place, why=why
            ) from error

    def change(
        self, folders: Mapping[str, str], gone: Collection[str], entries: Mapping[str, Entry]
    ) -> Sequence[str]:
        """
        Have names lead to folders, and others be gone; the tables whose name somebody else has.

        ``entries`` is what the metastore had before.
        """
        left, wrong = [], wrong_names(folders, entries)
        if wrong and not entries:
            # Not in the folder of the tables: with a namespace that is dropped its folder goes.
            self.client.have_namespace(self.namespace)
        for table, location in wrong.items():
            write_points.point(f"register {table}: before")
            if not self._lead_to(table, location, entries.get(table.lower())):
                left.append(table)
            write_points.point(f"register {table}: after")
        for name in gone:
            write_points.point(f"unregister {name}: before")
            self.client.drop(self.namespace, name)
            write_points.point(f"unregister {name}: after")
        return left

    def _lead_to(self, table: str, location: str, entry: Entry | None) -> bool:
        """Have a name lead to a folder; False where somebody else has it."""
        key = (self.namespace, table.lower())
        if entry is not None and not entry.is_free_for(location):
            return False
        try:
            if entry is None:
                new_table = _entry_to_create(key, location)
                self.client.change(lambda hive: hive.create_table(new_table))
            else:
                self.client.change(lambda hive: _correct(hive, key, location))
        except RefusedError as error:
            current = self.entries([table]).get(table.lower())
            if current is None:
                raise error.named from None
            return current.is_right(location)
        return True


def wrong_names(folders: Mapping[str, str], entries: Mapping[str, Entry]) -> Mapping[str, str]:
    """Those of some tables whose name is missing or leads elsewhere, with where it is to lead."""
    at = {table: location_of(folder) for table, folder in folders.items()}
    return {
        table: location
        for table, location in at.items()
        if (entry := entries.get(table.lower())) is None or not entry.is_right(location)
    }


def entry_of(table: Any) -> Entry:
    """What the metastore has of a table, as far as it matters."""
    parameters: Mapping[str, str] = table.parameters or {}
    stored = table.sd
    serde = None if stored is None else stored.serdeInfo
    path = ((serde and serde.parameters) or {}).get(PATH) or (stored and stored.location)
    return Entry(
        name=str(table.tableName),
        location=_comparable(path) if path else str(table.tableType).lower(),
        made_for=parameters.get(FOLDER, ""),
        is_delta=parameters.get(PROVIDER, "").lower() == "delta",
    )


def is_named_for(made_for: str, name: str, parent: str) -> bool:
    """Whether a name is that of a folder in another one."""
    above, _, own = made_for.rpartition("/")
    return above == parent and own.lower() == name


def _correct(hive: Any, key: tuple[str, str], location: str) -> None:
    """Have an entry lead to a folder that does not, and leave all else of it."""
    entry, right = hive.get_table(*key), _entry_to_create(key, location)
    entry.sd, entry.tableType = right.sd, right.tableType
    entry.parameters = {**(entry.parameters or {}), **right.parameters}
    del entry.parameters[NO_STATISTICS]  # that of an alteration is beside it
    alter(hive, key, entry)


def _entry_to_create(key: tuple[str, str], location: str) -> Any:
    """What the metastore is to have of a table, as Spark and Delta would write it."""
    from hive_metastore.ttypes import Table

    seconds = int(time.time())
    return Table(
        tableName=key[1],
        dbName=key[0],
        owner=user_name(),
        createTime=seconds,
        lastAccessTime=seconds,
        sd=stored_as(NO_COLUMNS, location, {PATH: location}),
        partitionKeys=[],
        parameters={**_PARAMETERS, FOLDER: location, NO_STATISTICS: "true"},
        tableType="EXTERNAL_TABLE",
    )


def stored_as(
    columns: Columns, location: str | None = None, parameters: Mapping[str, str] | None = None
) -> Any:
    """How an entry is stored: Spark writes the same formats for all that it reads by itself."""
    from hive_metastore.ttypes import FieldSchema, SerDeInfo, StorageDescriptor

    serde = SerDeInfo(
        serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
        parameters={"serialization.format": "1", **(parameters or {})},
    )
    return StorageDescriptor(
        cols=[FieldSchema(*column) for column in columns],
        location=location,
        inputFormat="org.apache.hadoop.mapred.SequenceFileInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.HiveSequenceFileOutputFormat",
        serdeInfo=serde,
    )
