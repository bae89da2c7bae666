"""
Definitions as values, their differences, and their texts, which lose nothing.

``analysis/definitions`` compares two; this module knows no SQL. ``KEYS`` has every field of a
declaration, and whether another value of it may change rows.
"""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from functools import cache, lru_cache
from hashlib import sha256
from math import isfinite
from typing import Any, Union, get_args, get_origin, get_type_hints

from infold.core.interval import Ranges
from infold.core.model import Kind, Model, OnLoss, Source
from infold.core.project import Node
from infold.core.queries import SessionsQuery, quoted
from infold.core.sessions import DECLARED_CUTS, DeclaredCut
from infold.core.type_changes import Retyping
from infold.messages.errors import InfoldError, Spot


class Category(StrEnum):
    """The effect of a changed definition on the rows of its table. In doubt it is breaking."""

    NONE = "none"
    """
    The same definition, written in another way: no row changes. The states of stored sessions may
    have another order, and are rebuilt then.
    """
    METADATA = "metadata"
    """Only when and how the table is built changes."""
    ADDITIVE = "additive"
    """Columns are added; all others have the same values in the same rows."""
    BREAKING = "breaking"
    """Rows may change."""
    FORWARD_ONLY = "forward-only"
    """Rows may change from some time on."""
    NEW = "new"
    REMOVED = "removed"
    UNKNOWN = "unknown"
    """The definition that built the table was not kept."""


class How(StrEnum):
    """How a changed definition is carried out: what is about stored rows is a step of that name."""

    NOTHING = "nothing"
    RESTAMP = "restamp"
    """The ledger records the new definition; no row is written."""
    DERIVE = "derive"
    """The new rows follow from the stored rows; no input is read."""
    REFOLD = "refold"
    """Only the sessions that end elsewhere now are made again."""
    REBUCKET = "rebucket"
    """The same rows in other cells; no row is written."""
    EVOLVE = "evolve"
    """Only the names of stored columns change, or their types to wider ones; no row is written."""
    REBUILD = "rebuild"


@dataclass(frozen=True, slots=True)
class Definition:
    """
    Everything that defines a table, so that the table can be built from it again.

    ``source`` is the source of an events model. ``start`` and ``backfill_limit`` are those in
    force: the project's, if the model has none. ``views`` are the digests of the views that the
    query reads, directly or through others. ``form`` is the version of this record, ``state`` that
    of the states of stored sessions.
    """

    name: str
    sql: str
    file: str
    sql_line: int
    model: Model
    source: Source | None
    start: int | None
    backfill_limit: int | None
    columns: tuple[str, ...]
    views: Mapping[str, str]
    fingerprint: str
    form: int = 1
    state: int = 1


@dataclass(frozen=True, slots=True)
class Difference:
    """
    One difference of two definitions: ``part`` is a clause, or a key of the declaration.

    ``name`` is the column or the subquery, if there is one. ``before`` and ``after`` are as
    written, empty where there is none. ``at`` is the place in the new file.
    """

    part: str
    name: str
    before: str
    after: str
    at: Spot | None = None


class Lost(StrEnum):
    """What a change takes from a stored table."""

    COLUMN = "column"
    TYPE = "type"
    """A column's type: the new one has not all values of the old one, or is of another kind."""
    KEY = "key"
    """What identifies a row, or places it in a partition."""
    TABLE = "table"
    """The table is no longer kept up to date."""


@dataclass(frozen=True, slots=True)
class Loss:
    """
    One thing that a change destroys. ``name`` is a column (``a.b`` for a field), or a key of the
    declaration; ``before`` and ``after`` are types, or values of the key. ``at`` is in the new
    file.
    """

    part: Lost
    name: str
    before: str = ""
    after: str = ""
    at: Spot | None = None


@dataclass(frozen=True, slots=True)
class Derivation:
    """
    How the rows of a new definition follow from the stored rows: a SELECT over these.

    A row that fulfils all conditions of ``where`` gives one row with ``columns``. Everything is
    Spark SQL over the stored columns. Where each column is a stored one in its place, metadata may
    be all that is written: names, wider types, other cells. No value of ``grouped`` may be a
    floating-point number: a group has several representations of one, and a condition might tell
    them apart. The stored type of those in ``read_by_value`` must be the one that the query gave
    them.
    """

    columns: tuple[tuple[str, str], ...]
    """The names and expressions of the new columns, in their order."""
    where: tuple[str, ...] = ()
    grouped: frozenset[str] = frozenset()
    read_by_value: frozenset[tuple[str, ...]] = frozenset()
    """Columns, and fields of structs by the names of the column and of the fields."""
    stored: tuple[str, ...] = ()
    """All columns of the old definition."""
    added: frozenset[str] = frozenset()
    """New columns that are NULL in the stored rows, as these are of an earlier definition."""
    sessions: SessionsQuery | None = None
    """
    Of sessions: the old definition, which the stored ones follow. Where they are derived, with the
    aggregates alone that are over arguments of the new one, in the new one's words; ``columns``
    that are not stored are SQL over aggregates then.
    """
    from_files: tuple[str, ...] = ()
    """Of events: new columns that the files have to be read for; they have no expression."""
    other_source_columns: bool = False
    """
    Of events: whether the source has other columns than it had, so that other rows may be unusable.
    """
    contested: Ranges = Ranges()
    """
    Of events: the cells where copies were left out, so that another one may be kept now. Their rows
    are read again, from the files to be ingested again.
    """
    retyped: tuple[Retyping, ...] = ()
    """Stored columns, and parts of them, that get wider types; then nothing else is different."""

    @property
    def renamed(self) -> tuple[tuple[str, str], ...]:
        """Stored columns that are other columns as they are, and the names of these."""
        return tuple((old, new) for new, old in self.plain if new.lower() != old.lower())

    @property
    def plain(self) -> tuple[tuple[str, str], ...]:
        """The new columns that are stored columns as they are, and these."""
        stored = {quoted(name): name for name in self.stored}
        return tuple((name, stored[sql]) for name, sql in self.columns if sql in stored)

    @property
    def changes_nothing(self) -> bool:
        """Whether every row stays as it is, and the table has no other column."""
        if self.where or self.retyped or self.sessions is not None:
            return False
        unchanged = tuple((name, name) for name in self.stored)
        return len(self.columns) == len(unchanged) and self.plain == unchanged


@dataclass(frozen=True, slots=True)
class SameEvents:
    """
    What two definitions of an events model are proven to have in common.

    ``other`` is why an event of one may be none of the other, or be at another time; empty where
    each row of a file has the same key and event time by both. With ``rows`` both also keep the
    same rows.
    """

    other: str = ""
    rows: bool = False


@dataclass(frozen=True, slots=True)
class Redefinition:
    """
    A changed definition of a model.

    ``columns_kept`` are the columns, in lower case, with a proof that their values are the same in
    the same rows. ``losses`` are the columns, or the table, that the change removes; ``destroys``
    has them with everything else that readers of the stored table miss then. ``on_loss`` is what a
    removed model said of that.
    """

    model: str
    category: Category
    differences: tuple[Difference, ...]
    how: How
    before: Node | None
    after: Node | None
    columns_kept: frozenset[str] = frozenset()
    losses: tuple[str, ...] = ()
    derivation: Derivation | None = None
    destroys: tuple[Loss, ...] = ()
    on_loss: OnLoss | None = None
    effective_from: int | None = None
    """Of a change that is forward-only: cells before this instant keep their rows."""
    rewrites_until: int | None = None
    """
    Of a change that builds all of a table with rows of earlier definitions: cells before this
    instant get the rows of the new one.
    """
    refused: InfoldError | None = None
    """Why it cannot be forward-only, though that is asked for."""
    events: SameEvents | None = None
    """Of an events model that was one before."""

    @property
    def kept_if_followed(self) -> frozenset[str]:
        """Of events: the columns with the same values and types, if the stored rows stay."""
        derivation = self.derivation
        if derivation is None or derivation.where or self.after is None:
            return frozenset()
        if self.after.model.kind is not Kind.EVENTS:
            return frozenset()
        same = {new.lower() for new, old in derivation.plain if new.lower() == old.lower()}
        return frozenset(same - {part.path[0].lower() for part in derivation.retyped})


class Decides(StrEnum):
    """What a field of a declaration affects."""

    CONTENT = "content"
    """Another value may change rows."""
    METADATA = "metadata"
    """When and how a table is built, or from which future files; no row of ingested files."""
    ELSEWHERE = "elsewhere"
    """Compared by what follows from it, not by its value."""
    NOTHING = "nothing"
    """The place of a declaration, and values that are not declared."""


KEYS: Mapping[str, Decides] = {
    "Model.name": Decides.ELSEWHERE,  # by it the two definitions are found
    "Model.materialization": Decides.CONTENT,
    "Model.sql": Decides.ELSEWHERE,  # by its canonical form
    "Model.timeseries": Decides.ELSEWHERE,  # field by field
    "Model.incremental": Decides.ELSEWHERE,
    "Model.sessions": Decides.ELSEWHERE,
    "Model.versions": Decides.ELSEWHERE,
    "Model.unique_key": Decides.CONTENT,
    "Model.prefer": Decides.CONTENT,
    "Model.deduplicate": Decides.CONTENT,
    "Model.start": Decides.ELSEWHERE,  # Node.start has the one in force
    "Model.retain": Decides.METADATA,  # Trace.retention has what was applied
    "Model.overrides": Decides.ELSEWHERE,  # Node.overrides_used has those that count
    "Model.on_destructive_change": Decides.METADATA,
    "Model.forward_only": Decides.METADATA,  # of the change that comes next
    "Model.renamed_from": Decides.METADATA,
    "Model.tags": Decides.METADATA,
    "Model.description": Decides.METADATA,
    "Model.audits": Decides.METADATA,  # they judge rows, and change none
    "Model.functions": Decides.ELSEWHERE,  # they are expanded in the SQL that calls them
    "Model.sql_line": Decides.NOTHING,
    "Model.place": Decides.NOTHING,
    "Model.python": Decides.ELSEWHERE,  # by its digest, which is in Model.sql
    "Timeseries.event_time_column": Decides.CONTENT,
    "Timeseries.partition_column": Decides.CONTENT,
    "Timeseries.granularity": Decides.CONTENT,
    "Incremental.unique_key": Decides.METADATA,  # verify counts its duplicates
    "Incremental.overrides": Decides.ELSEWHERE,
    "Incremental.bounds": Decides.ELSEWHERE,  # Node.bounds_declared has those that count
    "Incremental.batch_size": Decides.METADATA,
    "Incremental.batch_concurrency": Decides.METADATA,
    "Incremental.start": Decides.ELSEWHERE,
    "Incremental.exact_start": Decides.ELSEWHERE,
    "Incremental.cron": Decides.METADATA,
    "Incremental.cron_tz": Decides.METADATA,
    "Incremental.allow_partials": Decides.METADATA,
    "Incremental.strategy": Decides.METADATA,
    "Incremental.backfill_limit": Decides.METADATA,
    "Incremental.on_definition_change": Decides.METADATA,
    "Incremental.forward_only": Decides.METADATA,  # of the change that comes next
    "Incremental.late": Decides.METADATA,
    "Sessions.user": Decides.CONTENT,
    "Sessions.gap": Decides.CONTENT,
    "Sessions.identifier": Decides.CONTENT,
    "Sessions.choose": Decides.CONTENT,
    "Sessions.fallback_gap": Decides.CONTENT,
    "Sessions.cuts": Decides.ELSEWHERE,
    "Sessions.quarantine_after": Decides.CONTENT,
    "Sessions.keep": Decides.CONTENT,
    "Sessions.numbered": Decides.CONTENT,
    **{
        f"{cut.__name__}.{value.name}": Decides.CONTENT
        for cut in DECLARED_CUTS
        for value in fields(cut)
    },
    "VersionRules.updated_at": Decides.CONTENT,
    "VersionRules.columns": Decides.CONTENT,
    "VersionRules.invalidate_hard_deletes": Decides.CONTENT,
    "Source.name": Decides.CONTENT,
    "Source.format": Decides.CONTENT,
    "Source.columns": Decides.CONTENT,  # those that are read; whether they are optional is not
    "Source.path": Decides.METADATA,
    "Source.table": Decides.METADATA,
    "Source.catalog": Decides.METADATA,
    "Source.event_time_column": Decides.CONTENT,
    "Source.received_column": Decides.CONTENT,
    "Source.file_time_column": Decides.CONTENT,
    "Source.partition_columns": Decides.CONTENT,
    "Source.future_tolerance": Decides.CONTENT,
    "Source.timestamp_format": Decides.CONTENT,
    "Source.settle": Decides.METADATA,
    "Source.on_drift": Decides.CONTENT,
    "Source.removal_limit": Decides.METADATA,
    "Source.delimiter": Decides.CONTENT,
    "Source.multiline": Decides.CONTENT,
    "Source.positions": Decides.CONTENT,  # those of the columns that are read
    "Source.quoted": Decides.CONTENT,
    "Source.place": Decides.NOTHING,
    "Source.on_new_columns": Decides.METADATA,
    "Source.on_unreadable": Decides.METADATA,
    "Source.may_be_empty": Decides.METADATA,
    "Source.full_listing": Decides.METADATA,
    "Source.listing_window": Decides.METADATA,
    "Source.url": Decides.METADATA,  # and so are what rows of it are read, as paths are
    "Source.key": Decides.METADATA,
    "Source.reread": Decides.METADATA,
    "Source.retain": Decides.METADATA,
    "Source.unread_columns": Decides.NOTHING,
}
"""What each field of a declaration affects. A field that is missing here counts as content."""


# Every field is in the text, also one with its default: a definition keeps its meaning when a
# default changes. A field that a text lacks is newer than the text, and has its default.

_CUT = "cut"
"""The key, in the object of a cut, that says which cut it is."""


def definition_text(definition: Definition) -> str:
    """A definition as JSON with sorted keys: equal definitions have equal texts."""
    return json.dumps(_plain(definition), separators=(",", ":"), sort_keys=True)


def digest_of(definition: Definition) -> str:
    """What identifies a definition, comments and tags included: the SHA-256 of its text."""
    return sha256(definition_text(definition).encode()).hexdigest()


@lru_cache(maxsize=4096)  # a command asks several times for the definitions of all models
def definition_of_text(text: str) -> Definition:
    """The definition that :func:`definition_text` wrote."""
    definition = _value(Definition, json.loads(text))
    assert isinstance(definition, Definition)
    return definition


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        by_name = {name: _plain(getattr(value, name)) for name in _names(type(value))}
        return {_CUT: value.key, **by_name} if isinstance(value, DeclaredCut) else by_name
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    return dict(value) if isinstance(value, Mapping) else value


@cache
def _names(of: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(of))


def _value(type_: Any, raw: Any) -> Any:
    """The value of a type that was written as ``raw``."""
    parts = get_args(type_)
    if get_origin(type_) in (Union, types.UnionType):
        [of] = [part for part in parts if part is not type(None)]
        return None if raw is None else _value(of, raw)
    if get_origin(type_) is tuple:
        return tuple(_value(parts[0], entry) for entry in raw)
    if type_ is DeclaredCut:
        # A class with slots is made twice, and the later one is used.
        type_ = {cut.key: cut for cut in DeclaredCut.__subclasses__()}[raw[_CUT]]
    if isinstance(type_, type) and is_dataclass(type_):
        hints = _hints(type_)
        known = {name: raw[name] for name in _names(type_) if name in raw}
        return type_(**{name: _value(hints[name], value) for name, value in known.items()})
    return type_(raw) if isinstance(type_, type) and issubclass(type_, StrEnum) else raw


@cache
def _hints(of: type) -> Mapping[str, Any]:
    return get_type_hints(of)


# JSON has no number for what is none, and for the infinite: `"NaN"`, `"Infinity"`.


def to_json_text(value: Any) -> str:
    """A value of a table's row, or a whole row, as JSON."""
    try:
        return json.dumps(value, default=_plain_value, ensure_ascii=False, allow_nan=False)
    except ValueError:  # there is one of those
        return json.dumps(_finite(value), default=_plain_value, ensure_ascii=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not isfinite(value):
        return json.dumps(value)
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return value


def _plain_value(value: Any) -> Any:
    from infold.core.arrow_values import FarTime

    if isinstance(value, datetime | FarTime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        return value.hex()
    return str(value)
