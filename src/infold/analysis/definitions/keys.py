"""What differs in the declarations of two models, by the table of what each key decides about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from infold.analysis.definitions.meanings import Meaning
from infold.core.catalogs import Catalog
from infold.core.definition import KEYS, Decides, Difference
from infold.core.functions import FunctionCode
from infold.core.interval import Granularity, show_duration, show_instant
from infold.core.model import Column, Drift, Incremental, Kind, Place, Timeseries
from infold.core.project import Node
from infold.core.session_cuts import DeclaredCut
from infold.core.session_rules import Sessions
from infold.core.version_rules import VersionRules
from infold.messages.errors import Spot


@dataclass(frozen=True, slots=True)
class KeyDifferences:
    """Differences of keys: those that may give other rows, and those that cannot."""

    content: tuple[Difference, ...]
    metadata: tuple[Difference, ...]


_DATED = (Kind.EVENTS, Kind.SESSIONS, Kind.INCREMENTAL_TABLE)
_ONLY_OF: dict[str, tuple[Kind, ...]] = {
    "Timeseries.event_time_column": _DATED,
    "Timeseries.partition_column": _DATED,
    "Timeseries.granularity": _DATED,
    "Model.unique_key": (Kind.EVENTS, Kind.SCD_TYPE_2),
    "Model.prefer": (Kind.EVENTS,),
    "Model.deduplicate": (Kind.EVENTS,),
}
"""Keys that mean something to some kinds only."""


def key_differences(before: Meaning, after: Meaning) -> KeyDifferences:
    """What differs in two declarations, queries left out."""
    own = _spot(after.node.model.place)
    content: list[Difference] = []
    metadata: list[Difference] = []
    for key, old, new in _pairs(before, after):
        decides = KEYS.get(key, Decides.CONTENT)
        if decides in (Decides.ELSEWHERE, Decides.NOTHING) or _same(key, old, new):
            continue
        section, _, name = key.partition(".")
        at = _spot(after.source.place) if section == "Source" and after.source else own
        found = [Difference(name, "", _shown(key, old), _shown(key, new), at)]
        if key == "Source.columns":
            found = list(_of_columns(old, new, at)) or found
        kinds = _ONLY_OF.get(key, tuple(Kind))
        matters = {before.node.model.kind, after.node.model.kind} & set(kinds)
        counts = decides is Decides.CONTENT and matters and not _only_stops(key, old, new)
        (content if counts else metadata).extend(found)
    for name, old, new in _in_force(before, after):
        if old != new:
            content.append(Difference(name, "", old, new, own))
    limits = before.node.backfill_limit, after.node.backfill_limit
    if limits[0] != limits[1] and not any(one.part == "backfill_limit" for one in metadata):
        old, new = ("" if one is None else show_duration(one) for one in limits)
        metadata.append(Difference("backfill_limit", "", old, new, own))
    return KeyDifferences(tuple(content), tuple(metadata))


def _only_stops(key: str, before: Any, after: Any) -> bool:
    """Whether a key only says which future files stop a run."""
    return key == "Source.on_drift" and Drift.SET_ASIDE not in (before, after)


def _spot(place: Place) -> Spot:
    return Spot(place.file, place.line, place.column)


def _of_columns(
    before: tuple[Column, ...], after: tuple[Column, ...], at: Spot
) -> Iterator[Difference]:
    """The columns of a source that differ; nothing if only their order does."""
    old, new = ({column.name: _declared(column) for column in side} for side in (before, after))
    for name in dict.fromkeys((*old, *new)):
        if old.get(name) != new.get(name):
            yield Difference("source column", name, old.get(name, ""), new.get(name, ""), at)


def _declared(column: Column) -> str:
    return column.type if column.default is None else f"{column.type} DEFAULT {column.default}"


def _pairs(before: Meaning, after: Meaning) -> Iterator[tuple[str, Any, Any]]:
    """Every field of both declarations, those of sections too."""
    one, two = before.node.model, after.node.model
    yield from _fields("Model", one, two)
    none = Timeseries("", "")
    yield from _fields("Timeseries", one.timeseries or none, two.timeseries or none)
    default = Incremental()
    yield from _fields("Incremental", one.incremental or default, two.incremental or default)
    plain = Sessions(None, None)
    old, new = one.sessions or plain, two.sessions or plain
    yield from _fields("Sessions", old, new)
    rules = VersionRules("")
    yield from _fields("VersionRules", one.versions or rules, two.versions or rules)
    for one_cut, other in _cuts(old, new):
        yield from _fields(type(other).__name__, one_cut, other)
    if before.source is not None and after.source is not None:
        yield from _fields("Source", before.source, after.source)


def _cuts(before: Sessions, after: Sessions) -> Iterator[tuple[DeclaredCut, DeclaredCut]]:
    """The cuts that both have."""
    cuts = {cut.key: cut for cut in before.cuts}
    return ((cuts[cut.key], cut) for cut in after.cuts if cut.key in cuts)


def _fields(section: str, before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    for entry in fields(after):
        yield f"{section}.{entry.name}", getattr(before, entry.name), getattr(after, entry.name)


def _in_force(before: Meaning, after: Meaning) -> Iterator[tuple[str, str, str]]:
    """What follows from several keys: what is taken in, the start, what its author vouches for."""
    shown: dict[str, Callable[[Node], str]] = {
        "source": lambda node: node.source or "",
        "kind": lambda node: node.model.kind.value,
        "start": lambda node: "" if node.start is None else show_instant(node.start),
        "overrides": lambda node: ", ".join(sorted(node.overrides_used)),
        "bounds": lambda node: _bounds(node.model.incremental) if node.bounds_declared else "",
        "downgraded": lambda node: "yes" if node.downgraded else "",
    }
    for name, of in shown.items():
        yield name, of(before.node), of(after.node)
    cuts = [
        {cut.key: cut.in_words for cut in of.node.model.sessions.cuts}
        if of.node.model.sessions
        else {}
        for of in (before, after)
    ]
    for key in dict.fromkeys((*cuts[0], *cuts[1])):
        if key not in cuts[0] or key not in cuts[1]:
            yield key, cuts[0].get(key, ""), cuts[1].get(key, "")


def _bounds(incremental: Incremental | None) -> str:
    bounds = incremental.bounds if incremental else ()
    found = sorted((bound.input, bound.before, bound.after) for bound in bounds)
    return ", ".join(f"{name} {before} {after}" for name, before, after in found)


_NAMES = frozenset(
    {
        "Model.unique_key",
        "Model.prefer",
        "Timeseries.event_time_column",
        "Timeseries.partition_column",
        "Source.name",
        "Source.event_time_column",
        "Source.received_column",
    }
)
_SQL = frozenset(
    {"Sessions.user", "Sessions.identifier", "StartEvents.sql", "Campaign.columns", "Rule.sql"}
)
_DURATIONS = frozenset(
    {
        "Incremental.backfill_limit",
        "Sessions.gap",
        "Sessions.fallback_gap",
        "MaxLength.length",
        "Sessions.quarantine_after",
        "Source.future_tolerance",
        "Source.settle",
        "Source.listing_window",
    }
)


def _same(key: str, before: Any, after: Any) -> bool:
    if key in _NAMES:
        return bool(_each(before, str.lower) == _each(after, str.lower))
    if key in _SQL:
        return bool(_each(before, sql_words) == _each(after, sql_words))
    if key == "Source.columns":
        return _columns(before) == _columns(after)
    if key == "Source.positions":  # columns at the end move no other
        both = min(len(before), len(after))
        return bool(before) == bool(after) and before[:both] == after[:both]
    if isinstance(before, FunctionCode) and isinstance(after, FunctionCode):
        return before.registered == after.registered  # comments in its files do not count
    return bool(before == after)


def _each(value: Any, change: Callable[[str], Any]) -> Any:
    if value is None:
        return None
    return change(value) if isinstance(value, str) else [change(one) for one in value]


def _columns(columns: tuple[Column, ...]) -> list[tuple[str, str, str | None]]:
    return [(column.name, column.type, column.default) for column in columns]


def sql_words(sql: str) -> tuple[str, ...]:
    """The words of a piece of SQL, with literals and quoted names as written."""
    try:
        tokens = Spark().tokenize(sql)
    except TokenError:
        return (sql,)
    plain = (TokenType.STRING, TokenType.RAW_STRING, TokenType.IDENTIFIER)
    return tuple(
        sql[token.start : token.end + 1] if token.token_type in plain else token.text.lower()
        for token in tokens
    )


def _shown(key: str, value: Any) -> str:
    if value is None or value == ():
        return ""
    if key in _DURATIONS:
        return show_duration(value)
    if key == "Source.columns":
        return ", ".join(f"{column.name} {column.type}" for column in value)
    if key == "Model.renamed_from":
        return ", ".join(f"{new}: {old}" for new, old in value)
    if isinstance(value, FunctionCode):
        return value.function
    if isinstance(value, Catalog):  # secrets are named in it, and not there
        return value.uri
    if isinstance(value, Granularity | Enum):
        return str(getattr(value, "value", value))
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return str(value)
