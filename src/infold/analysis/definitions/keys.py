"""What differs in the declarations of two models, by the table of what each key decides about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from infold.analysis.definitions.canonical import Canon
from infold.analysis.definitions.clauses import Doubt, Range
from infold.analysis.definitions.meanings import Meaning, given
from infold.analysis.definitions.places import all_positions
from infold.analysis.definitions.selects import Select
from infold.analysis.names.relation import (
    Block,
    Relation,
    RenamedColumns,
    SetOperation,
    Table,
    without_renaming,
)
from infold.core.definition import KEYS, Decides, Difference
from infold.core.functions import FunctionCode, PythonCode
from infold.core.interval import Granularity, show_duration, show_instant
from infold.core.model import FOREVER, Column, Drift, Incremental, Kind, Place, Timeseries
from infold.core.project import Node
from infold.core.queries import VersionRules
from infold.core.sessions import DECLARED_CUTS, DeclaredCut, Sessions
from infold.core.storages import Catalog
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
        differences = [Difference(name, "", _shown(key, old), _shown(key, new), at)]
        if key == "Source.columns":
            differences = list(_column_changes(old, new, at)) or differences
        kinds = _ONLY_OF.get(key, tuple(Kind))
        matters = {before.node.model.kind, after.node.model.kind} & set(kinds)
        counts = decides is Decides.CONTENT and matters and not _only_stops(key, old, new)
        (content if counts else metadata).extend(differences)
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


def _column_changes(
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
    rows = sorted((bound.input, bound.before, bound.after) for bound in bounds)
    return ", ".join(f"{name} {before} {after}" for name, before, after in rows)


_NAME_KEYS = frozenset(
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
_SQL_KEYS = frozenset(
    {
        *("Sessions.user", "Sessions.identifier"),
        *(f"{cut.__name__}.{name}" for cut in DECLARED_CUTS for name in cut.sql_fields),
    }
)
_DURATION_KEYS = frozenset(
    {
        "Incremental.backfill_limit",
        "Sessions.gap",
        "Sessions.fallback_gap",
        *(f"{cut.__name__}.{name}" for cut in DECLARED_CUTS for name in cut.duration_fields),
        "Sessions.quarantine_after",
        *("Model.retain", "Source.retain"),
        "Source.future_tolerance",
        "Source.settle",
        "Source.listing_window",
    }
)


def _same(key: str, before: Any, after: Any) -> bool:
    if key in _NAME_KEYS:
        return bool(_each(before, str.lower) == _each(after, str.lower))
    if key in _SQL_KEYS:
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
    if key in _DURATION_KEYS:
        return "forever" if value == FOREVER else show_duration(value)
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


_CONDITIONS = ("where", "having", "qualify")
_OTHERS = ("windows", "order", "sort", "cluster", "distribute", "limit", "offset")


def query_differences(before: Meaning, after: Meaning) -> tuple[Difference, ...]:
    """
    What differs in the queries of two definitions.

    Words that are the same are left out, though what they mean is another: that has a cause.
    """
    if before.node.model.python is not None and after.node.model.python is not None:
        return tuple(_code_differences(before.node.model.python, after.node.model.python))
    if before.relation is None or after.relation is None:
        return _text_differences(before, after)
    if _is_seed(before) and _is_seed(after) and before.node.columns == after.node.columns:
        return () if before.node.model.sql == after.node.model.sql else (_SEED_ROWS,)
    letters = before.structs or after.structs
    one, two = (
        _Side(m, Canon(m.prints, given(m.node.model), letters, m.renamed)) for m in (before, after)
    )
    try:
        every = _relation_differences(one, two, before.relation, after.relation, "")
        differences = tuple(one for one in every if one.before != one.after)
    except (Doubt, RecursionError):
        differences = ()
    return differences or _text_differences(before, after)


def _code_differences(before: PythonCode, after: PythonCode) -> Iterator[Difference]:
    """The files with another text, and the columns that came, went or got another type."""
    old, new = ({module.file: module.source for module in code.modules} for code in (before, after))
    for file in dict.fromkeys((*old, *new)):
        if old.get(file) != new.get(file) and before.digest != after.digest:
            yield Difference("code", file, "", "", Spot(file) if file in new else None)
    columns = dict(before.columns), dict(after.columns)
    for name in dict.fromkeys((*columns[0], *columns[1])):
        old_type, new_type = (types.get(name, "") for types in columns)
        if old_type != new_type:
            yield Difference("column", name, old_type, new_type, Spot(after.files[0]))


_SEED_ROWS = Difference("rows of the file", "", "", "")
"""Of a seed, whose query has them as one long text."""


def _is_seed(meaning: Meaning) -> bool:
    return meaning.node.model.place.file.endswith(".csv")


def _text_differences(before: Meaning, after: Meaning) -> tuple[Difference, ...]:
    """The queries as a whole."""
    old, new = before.node.model.sql, after.node.model.sql
    if old == new:
        return ()
    return (Difference("query", "", old, new, after.spot(0, 1)),)


@dataclass(frozen=True, slots=True)
class _Side:
    meaning: Meaning
    canon: Canon

    def text(self, select: Select, span: Range | None) -> str:
        """Some tokens as they are written, in one line."""
        if span is None or span[0] >= span[1]:
            return ""
        tokens, sql = select.block.text.tokens, select.block.text.sql
        return " ".join(sql[tokens[span[0]].start : tokens[span[1] - 1].end + 1].split())

    def spot(self, select: Select, span: Range | None) -> Spot | None:
        """The place of some tokens, if they are in the model's own file."""
        own = self.meaning.text
        if span is None or own is None or select.block.text is not own or span[0] >= span[1]:
            return None
        tokens = own.tokens
        return self.meaning.spot(tokens[span[0]].start, tokens[span[1] - 1].end + 1)


def _relation_differences(
    one: _Side, two: _Side, old: Relation, new: Relation, within: str
) -> Iterator[Difference]:
    old, new = _seen_through(old), _seen_through(new)
    if isinstance(old, SetOperation) and isinstance(new, SetOperation):
        yield from _relation_differences(one, two, old.left, new.left, within)
        yield from _relation_differences(one, two, old.right, new.right, within)
    elif isinstance(old, Block) and isinstance(new, Block):
        yield from _blocks(one, two, one.canon.select(old), two.canon.select(new), within)


def _seen_through(relation: Relation) -> Relation:
    while True:
        if isinstance(relation, RenamedColumns):
            relation = relation.inner
        elif isinstance(relation, Table) and relation.view is not None:
            relation = relation.view
        else:
            return relation


def _blocks(one: _Side, two: _Side, old: Select, new: Select, within: str) -> Iterator[Difference]:
    yield from _column_differences(one, two, old, new, within)
    if old.parts.distinct != new.parts.distinct:
        old_word, new_word = ("DISTINCT" if side.parts.distinct else "" for side in (old, new))
        yield Difference("distinct", within, old_word, new_word)
    yield from _entry_differences(one, two, old, new, within)
    for key in _CONDITIONS:
        yield from _condition_differences(one, two, old, new, key, within)
    if old.grouped() != new.grouped():
        yield _clause(one, two, old, new, "group", within)
    for key in _OTHERS:
        texts = [side.text(s, s.parts.ranges.get(key)) for side, s in ((one, old), (two, new))]
        if texts[0] != texts[1]:
            yield _clause(one, two, old, new, key, within)


def _clause(one: _Side, two: _Side, old: Select, new: Select, key: str, within: str) -> Difference:
    spans = old.parts.ranges.get(key), new.parts.ranges.get(key)
    texts = one.text(old, spans[0]), two.text(new, spans[1])
    part = {"from_": "from", "windows": "window"}.get(key, key)
    return Difference(part, within, *texts, two.spot(new, spans[1]))


def _column_differences(
    one: _Side, two: _Side, old: Select, new: Select, within: str
) -> Iterator[Difference]:
    names = [
        {name.lower(): at for at, name in reversed([*enumerate(select.block.columns or ())])}
        for select in (old, new)
    ]
    before, after = names
    for name in dict.fromkeys((*before, *after)):
        spans = (
            old.written(before[name]) if name in before else None,
            new.written(after[name]) if name in after else None,
        )
        texts = one.text(old, spans[0]), two.text(new, spans[1])
        if name in before and name in after:
            if old.output(before[name])[0] == new.output(after[name])[0]:
                continue
        else:
            texts = (
                texts[0] or name if name in before else "",
                texts[1] or name if name in after else "",
            )
        shown = f"{within}.{name}" if within else name
        yield Difference("column", shown, *texts, two.spot(new, spans[1]))


def _condition_differences(
    one: _Side, two: _Side, old: Select, new: Select, key: str, within: str
) -> Iterator[Difference]:
    before, after = dict(old.conditions(key)), dict(new.conditions(key))
    for form, span in before.items():
        if form not in after:
            yield Difference(key, within, one.text(old, span), "")
    for form, span in after.items():
        if form not in before:
            yield Difference(key, within, "", two.text(new, span), two.spot(new, span))


def _entry_differences(
    one: _Side, two: _Side, old: Select, new: Select, within: str
) -> Iterator[Difference]:
    """What differs in FROM; queries in it are compared clause by clause."""
    entries = old.block.entries, new.block.entries
    words = [
        [(item.joined, tuple(f for f, _ in select.on(item))) for item in select.parts.froms]
        for select in (old, new)
    ]
    if len(entries[0]) != len(entries[1]) or words[0] != words[1]:
        yield _clause(one, two, old, new, "from_", within)
        return
    for before, after in zip(*entries, strict=True):
        if _name_read(before.relation) != _name_read(after.relation):
            yield _clause(one, two, old, new, "from_", within)
            return
    for before, after in zip(*entries, strict=True):
        forms = [_form(side, entry.relation) for side, entry in ((one, before), (two, after))]
        if forms[0] is None or forms[0] != forms[1]:
            name = after.alias or before.alias
            yield from _relation_differences(one, two, before.relation, after.relation, name)


def _form(side: _Side, relation: Relation) -> str | None:
    try:
        return side.canon.form(relation, all_positions(relation))[0]
    except Doubt:
        return None


def _name_read(relation: Relation) -> str:
    """The stored table that a relation is; nothing for a query."""
    relation = without_renaming(relation)
    return relation.name.lower() if isinstance(relation, Table) and relation.view is None else ""
