"""
Types of databases, and which declared types they fit: exactly, or not at all.

A :class:`ColumnType` is what a database's type is here; its value is Arrow's name of it. Narrower
than declared is fine (``integer`` as ``bigint``), wider is refused, whatever the values are. Only
``numeric`` without digits is judged by its values.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pyarrow as pa


Row = tuple[Any, ...]


class ColumnType(StrEnum):
    """What a column of a database has."""

    BOOLEAN = "bool"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT = "float"
    DOUBLE = "double"
    DECIMAL = "decimal"
    TEXT = "string"
    BINARY = "binary"
    DATE = "date32"
    LOCAL_TIME = "timestamp[us]"
    INSTANT = "timestamp[us, tz=UTC]"


FITS: Mapping[ColumnType, tuple[str, ...]] = {
    ColumnType.BOOLEAN: ("boolean",),
    ColumnType.INT16: ("smallint", "int", "bigint"),
    ColumnType.INT32: ("int", "bigint"),
    ColumnType.INT64: ("bigint",),
    ColumnType.FLOAT: ("float", "double"),
    ColumnType.DOUBLE: ("double",),
    ColumnType.DECIMAL: ("decimal",),
    ColumnType.TEXT: ("string",),
    ColumnType.BINARY: ("binary",),
    ColumnType.DATE: ("date",),
    ColumnType.LOCAL_TIME: ("timestamp", "timestamp_ntz"),
    ColumnType.INSTANT: ("timestamp",),
}
"""By the type in a database, the types that infold.yml may declare for it."""

_ALIASES = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "timestamp_ltz": "timestamp",
    "dec": "decimal",
    "numeric": "decimal",
}

_PYTHON: Mapping[ColumnType, type] = {
    ColumnType.BOOLEAN: bool,
    ColumnType.INT16: int,
    ColumnType.INT32: int,
    ColumnType.INT64: int,
    ColumnType.FLOAT: float,
    ColumnType.DOUBLE: float,
    ColumnType.DECIMAL: Decimal,
    ColumnType.TEXT: str,
    ColumnType.BINARY: bytes,
    ColumnType.DATE: dt.date,
    ColumnType.LOCAL_TIME: dt.datetime,
    ColumnType.INSTANT: dt.datetime,
}


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """
    A column as its database has it; ``written`` is the database's name of its type.

    ``type`` is None where no declared type fits it. ``digits`` are precision and scale of a
    decimal, None where it has none.
    """

    name: str
    written: str
    type: ColumnType | None
    nullable: bool = True
    digits: tuple[int, int] | None = None
    as_text: bool = False
    """Whether the database is asked for it as text."""

    def fits(self, declared: str) -> bool:
        """Whether all its values are values of a declared type."""
        name, digits = declared_type(declared)
        if self.type is None or name not in FITS[self.type]:
            return False
        if digits is None or self.digits is None:
            return True
        (wide, scale), (own_wide, own_scale) = digits, self.digits
        return own_scale <= scale and own_wide - own_scale <= wide - scale


def declared_type(text: str) -> tuple[str, tuple[int, int] | None]:
    """A declared type by its own name, and the digits of a decimal."""
    name, _, details = text.strip().lower().partition("(")
    name = _ALIASES.get(name.strip(), name.strip())
    if name != "decimal":
        return text.strip().lower() if details else name, None
    digits = [int(part) for part in re.findall(r"\d+", details)] or [10]
    return name, (digits[0], digits[1] if len(digits) > 1 else 0)


@dataclass(frozen=True, slots=True)
class WantedColumn:
    """A column that is read: as its database has it, and the type that infold.yml declares."""

    stored: StoredColumn
    declared: str

    @property
    def name(self) -> str:
        """The name in the database, which is that in the files too."""
        return self.stored.name

    def arrow(self) -> pa.Array:
        """The type of its values in a file."""
        import pyarrow as pa

        assert self.stored.type is not None, "a column that fits nothing is refused before"
        if self.stored.type is ColumnType.DECIMAL:
            digits = declared_type(self.declared)[1]
            assert digits is not None
            return pa.decimal128(*digits)
        if self.stored.type is ColumnType.INSTANT:
            return pa.timestamp("us", "UTC")
        if self.stored.type is ColumnType.LOCAL_TIME:
            return pa.timestamp("us")
        return pa.type_for_alias(self.stored.type.value)

    def array(self, values: Sequence[Any]) -> pa.Array:
        """Values as a file has them. Raises :class:`UnfitError` for one that is not exactly one."""
        import pyarrow as pa

        assert self.stored.type is not None
        kind, type_ = _PYTHON[self.stored.type], self.arrow()
        # Arrow takes bytes for text and whole floats for numbers, and says nothing.
        if {*map(type, values)} <= {kind, type(None)}:
            try:
                return pa.array(values, type_)
            except (pa.ArrowException, ValueError, OverflowError):
                pass
        raise UnfitError(self, next(value for value in values if not _is_one(value, kind, type_)))


class UnfitError(Exception):
    """A value that its column's declared type has no room for."""

    def __init__(self, column: WantedColumn, value: object) -> None:
        super().__init__(column.name)
        self.column, self.value = column, value


def _is_one(value: object, kind: type, type_: pa.DataType) -> bool:
    import pyarrow as pa

    if value is None:
        return True
    if type(value) is not kind:
        return False
    try:
        pa.array([value], type_)
    except (pa.ArrowException, ValueError, OverflowError):
        return False
    return True


BATCH = 2_000
"""How many rows are in memory as values of Python."""

KeyValue = int | date | datetime


@dataclass(frozen=True, slots=True)
class KeyRange:
    """
    Rows from ``start`` on by ``key``, None for all, and up to ``end``, None for no end.

    A database may give rows beyond them: whoever asks leaves these out. With ``in_order`` it gives
    them by the days of the key.
    """

    key: StoredColumn
    start: KeyValue | None = None
    end: KeyValue | None = None
    in_order: bool = False


class OpenTable(Protocol):
    """One table in one transaction, which sees one state of it."""

    def columns(self) -> Mapping[str, StoredColumn]:
        """Its columns by name, in their order."""

    def has_null(self, column: StoredColumn) -> bool:
        """Whether a column is NULL in some row."""

    def rows(
        self, columns: Sequence[WantedColumn], within: KeyRange | None
    ) -> Iterator[Sequence[Row]]:
        """The values of some columns of all rows, or of those ``within``; a batch at a time."""
