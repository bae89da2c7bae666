"""
What a view in a metastore says, in the form of Spark's ``CREATE VIEW``.

Spark takes three things from an entry: the query, the names of the columns that it yields, and the
schema of the view as text. The entry's own columns have types of Hive's, for other engines; where
one has no such type, there is a placeholder for all of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from infold.core.type_changes import Type
from infold.lake.delta.layout import shown_fields, without_details
from infold.lake.delta.metastore import NO_COLUMNS, Columns, stored_as

_SAID = ("view.", "spark.sql.")
"""Before the names of the parameters in which a view of Spark's says what it is."""

_VERSION = "4.1.0"
"""The Spark whose form this is; Spark reads older forms by what an entry says of this."""

_LONGEST = 4000
"""Of what a metastore keeps in one value; Spark, too, cuts a longer schema into parts."""

_HIVE = {
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
    """For other engines than Spark."""

    @property
    def digest(self) -> str:
        """By which it is known whether a view that is there is this one."""
        said = json.dumps([self.query, dict(self.parameters)], sort_keys=True)
        return sha256(said.encode()).hexdigest()[:32]


def view_of(namespace: str, table: str, fields: Sequence[Mapping[str, Any]]) -> SparkView:
    """The view of a table that has a name in a metastore, and these columns in its log."""
    shown = shown_fields(fields)
    names = [str(one["name"]) for one in shown]
    return SparkView(
        query=f"SELECT {', '.join(map(_quoted, names))} FROM {_quoted(namespace)}.{_quoted(table)}",
        parameters={
            "spark.sql.create.version": _VERSION,
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


def said_by(table: Any) -> SparkView:
    """What an entry of a metastore says, as far as Spark reads it."""
    same = table.viewOriginalText == table.viewExpandedText
    found: Mapping[str, str] = table.parameters or {}
    said = {name: value for name, value in found.items() if name.startswith(_SAID)}
    return SparkView(str(table.viewExpandedText) if same else "", said)


def say(table: Any, view: SparkView) -> None:
    """Have an entry say what a view is to, and leave all else of it."""
    table.viewOriginalText = table.viewExpandedText = view.query
    table.sd = stored_as(view.columns)
    found: Mapping[str, str] = table.parameters or {}
    others = {name: value for name, value in found.items() if not name.startswith(_SAID)}
    table.parameters = {**others, **view.parameters}


def _columns(fields: Sequence[Mapping[str, Any]]) -> Columns:
    """The columns for other engines; a placeholder where a metastore would refuse one of them."""
    try:
        found = [(str(one["name"]), _hive_type(without_details(one["type"]))) for one in fields]
    except KeyError:
        return NO_COLUMNS
    return NO_COLUMNS if any(len(type_) > _LONGEST for _, type_ in found) else found


def _hive_type(type_: Type) -> str:
    """A type as Hive calls it. Raises KeyError for one that it has not."""
    if isinstance(type_, str):
        return type_ if type_.startswith("decimal(") else _HIVE[type_]
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
    if len(value) <= _LONGEST:
        yield name, value
        return
    parts = [value[at : at + _LONGEST] for at in range(0, len(value), _LONGEST)]
    yield f"{name}.numParts", str(len(parts))
    for at, part in enumerate(parts):
        yield f"{name}.part.{at}", part


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
