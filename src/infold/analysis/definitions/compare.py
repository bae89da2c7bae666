"""
Two definitions of a model → the category of the change, and the differences.

Equal canonical forms prove that rows stay the same. A change is additive if the forms relative to
the old columns are equal. Every change without a proof is breaking.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from types import MappingProxyType
from typing import Any

from sqlglot import exp

from infold.analysis.definitions.canonical import Canon
from infold.analysis.definitions.clauses import Doubt
from infold.analysis.definitions.derive import derivation
from infold.analysis.definitions.derived_sessions import sessions_derivation
from infold.analysis.definitions.keys import key_differences, query_differences, sql_words
from infold.analysis.definitions.meanings import Meaning, Meanings, given, input_form
from infold.analysis.definitions.places import position
from infold.analysis.names.relation import Block, Origin, Relation, Table
from infold.core.definition import (
    KEYS,
    Category,
    Decides,
    Derivation,
    Difference,
    How,
    Loss,
    Lost,
    Redefinition,
    SameEvents,
)
from infold.core.formats import FORMATS
from infold.core.model import Deduplicate, Kind, Source
from infold.core.project import Node
from infold.core.queries import quoted
from infold.core.sessions import DECLARED_CUTS
from infold.core.type_changes import (
    Retyping,
    holds_all_values,
    is_exact_number,
    is_simple,
    type_of_text,
    widenings,
)
from infold.messages.errors import Spot


def compare_projects(
    before: Iterable[Node],
    sources_before: Mapping[str, Source],
    after: Iterable[Node],
    sources_after: Mapping[str, Source],
) -> tuple[Redefinition, ...]:
    """Every model with a changed definition, in the order of the new ones; then removed models."""
    old, new = Meanings.of(before, sources_before), Meanings.of(after, sources_after)
    redefinitions = [
        redefinition(old[name] if name in old.nodes else None, new[name]) for name in new.nodes
    ]
    gone = [removal_of(node) for name, node in old.nodes.items() if name not in new.nodes]
    return (*(changed for changed in redefinitions if changed is not None), *gone)


def removal_of(node: Node) -> Redefinition:
    """A model that is no longer there."""
    stored = node.model.kind.is_stored
    return Redefinition(
        node.name,
        Category.REMOVED,
        (),
        How.NOTHING,
        node,
        None,
        losses=(node.name,),
        destroys=(Loss(Lost.TABLE, node.name),) if stored else (),
        on_loss=node.model.on_destructive_change,
    )


def redefinition(before: Meaning | None, after: Meaning) -> Redefinition | None:
    """The change of a model; None if its definition is the same to the letter."""
    node = after.node
    stored = node.model.kind.is_stored
    if before is None:
        how = How.REBUILD if stored else How.NOTHING
        return Redefinition(node.name, Category.NEW, (), how, None, node)
    keys = key_differences(before, after)
    if before.node.fingerprint == node.fingerprint and _same_fields(before, after):
        return _same(before, after, keys.metadata)
    parts = {difference.part for difference in keys.content}
    proven = frozenset[str]()
    if parts <= {"start"} or parts == {"granularity"}:
        proven = _kept(before, after)
    equal = frozenset[str]() if keys.content else proven
    differences = (
        *keys.content,
        *_function_differences(before, after),
        *query_differences(before, after),
        *keys.metadata,
    )
    category = _category(before, after, equal, same=not keys.content, also=bool(keys.metadata))
    destroys = find_losses(before, after, differences)
    lost = _column_names(before) - _column_names(after)
    losses = tuple(c for c in before.node.columns if c.lower() in lost)
    how, derived = How.REBUILD, None
    if category in (Category.NONE, Category.METADATA):
        states = _states_differ(before, after)
        how = How.RESTAMP if _same_order(before, after) and not states else How.REBUILD
        differences = (*_rewritten(before, after), *states, *keys.metadata)
    if how is How.REBUILD:
        how, derived = _from_stored_rows(before, after, keys.content, proven)
    if derived is not None and how in (How.REBUCKET, How.EVOLVE):
        category = Category.METADATA
        names = [Difference("column", new, old, new) for old, new in derived.renamed]
        differences = (*keys.content, *(names or _rewritten(before, after)), *keys.metadata)
        equal = frozenset() if derived.retyped else _column_names(before) & _column_names(after)
        gone = {old for old, _ in derived.renamed}
        losses = tuple(name for name in losses if name not in gone)
        destroys = tuple(difference for difference in destroys if difference.name not in gone)
    how = how if stored else How.NOTHING
    nodes = before.node, node
    return Redefinition(
        *(node.name, category, differences, how, *nodes, equal, losses, derived, destroys),
        events=same_events(before, after),
    )


def _from_stored_rows(
    before: Meaning, after: Meaning, content: Sequence[Difference], proven: frozenset[str]
) -> tuple[How, Derivation | None]:
    """
    How the rows of a changed definition come about: of the stored ones, if that is proven.

    What writes least is tried first: the ledger, the columns of the table, then its rows.
    """
    parts = {difference.part for difference in content}
    if parts == {"granularity"} and not after.node.downgraded:
        if _same_rows(before, after, proven):
            return How.REBUCKET, _column_by_column(before, after)
    elif not content and are_renamed(before, after) and not _states_differ(before, after):
        return How.EVOLVE, _column_by_column(before, after)
    widened = retyped_columns(before, after, content)
    if widened and _same_rows(before, after, _kept(before, after)) and _same_fields(before, after):
        return How.EVOLVE, _column_by_column(before, after, retyped=widened)
    derived = _derivation(before, after, content, proven)
    if derived is not None:
        return How.DERIVE, derived
    if ends_differ(content) and _refolds(before, after):
        return How.REFOLD, _column_by_column(before, after, sessions=before.node.query)
    return How.REBUILD, None


def _function_differences(before: Meaning, after: Meaning) -> Iterator[Difference]:
    """The functions of the project that both call, and that say something else now."""
    known = {function.name: function.digest for function in before.node.model.functions}
    for function in after.node.model.functions:
        if known.get(function.name, function.digest) != function.digest:
            yield Difference("function", function.name, "", "", Spot(function.file))


def _derivation(
    before: Meaning, after: Meaning, content: Sequence[Difference], proven: frozenset[str]
) -> Derivation | None:
    """How the new rows are computed of stored ones; None where that is not proven."""
    nodes = before.node, after.node
    kinds = {node.model.kind for node in nodes}
    events = kinds == {Kind.EVENTS}
    if not all(entry.part == "start" or (events and _comes_or_goes(entry)) for entry in content):
        return None
    if any(node.overrides_used or node.bounds_declared or node.downgraded for node in nodes):
        return None
    if any("collat" in sql.lower() for sql in (*before.queries, *after.queries)):
        return None  # a table does not store how its strings compare
    try:
        if kinds == {Kind.SESSIONS}:
            return None if content else sessions_derivation(before, after)
        if kinds in ({Kind.INCREMENTAL_TABLE}, {Kind.EVENTS}):
            return derivation(before, after, proven)
    except (Doubt, RecursionError):
        pass
    return None


def _column_by_column(before: Meaning, after: Meaning, **more: Any) -> Derivation:
    """Each column is the stored one in its place, which may have another name."""
    stored = before.node.columns
    pairs = zip(after.node.columns, map(quoted, stored), strict=True)
    return Derivation(tuple(pairs), stored=stored, **more)


def _comes_or_goes(difference: Difference) -> bool:
    """Whether a difference is that a source has a column more, or one less."""
    return difference.part == "source column" and "" in (difference.before, difference.after)


def _refolds(before: Meaning, after: Meaning) -> bool:
    """Whether two definitions make sessions of the same events, in the same columns and states."""
    one, two = before.node, after.node
    if not stored_sessions_tell(one, two) or not _same_order(before, after):
        return False
    same = _column_names(before) == _column_names(after) == _kept(before, after)
    return same and _same_fields(before, after) and not _states_differ(before, after)


def _same_fields(before: Meaning, after: Meaning) -> bool:
    """Whether the names behind dots are the same to the letter; fingerprints ignore their case."""
    return before.queries == after.queries or before.fields == after.fields


def _same_order(before: Meaning, after: Meaning) -> bool:
    """
    Whether columns are in the same order.

    In another order rows hash to other values, and another of two copies of an event may win.
    """
    names = ([column.lower() for column in one.node.columns] for one in (before, after))
    return next(names) == next(names)


def _same_rows(before: Meaning, after: Meaning, proven: frozenset[str]) -> bool:
    """Whether both give the same rows, with their columns in the same order."""
    return (
        proven == _column_names(before) == _column_names(after)
        and _same_order(before, after)
        and not _states_differ(before, after)
    )


def _column_names(meaning: Meaning) -> frozenset[str]:
    return frozenset(column.lower() for column in meaning.node.columns)


def _same(before: Meaning, after: Meaning, metadata: tuple[Difference, ...]) -> Redefinition | None:
    """The change of a model with an equal fingerprint."""
    rewritten = _written_rows(before) != _written_rows(after)
    if not metadata and not rewritten:
        return None
    differences = (*(_rewritten(before, after) if rewritten else ()), *metadata)
    category, how = Category.NONE, How.NOTHING
    if metadata:
        category, how = Category.METADATA, How.RESTAMP
    if after.node.model.kind.is_view:
        how = How.NOTHING
    nodes = before.node, after.node
    return Redefinition(after.node.name, category, differences, how, *nodes, _column_names(after))


def _category(
    before: Meaning, after: Meaning, proven: frozenset[str], *, same: bool, also: bool
) -> Category:
    old, new = _column_names(before), _column_names(after)
    if not same or proven != old or not old <= new:
        return Category.BREAKING
    if old == new:
        return Category.METADATA if also else Category.NONE
    return Category.ADDITIVE


def _kept(
    before: Meaning, after: Meaning, called: Mapping[str, str] = MappingProxyType({})
) -> frozenset[str]:
    """
    The columns that are proven to have the same values in the same rows, by their names before.

    New columns had the names in ``called``, if any.
    """
    doubtful = any(m.node.overrides_used or m.node.bounds_declared for m in (before, after))
    if doubtful or before.relation is None or after.relation is None:
        return frozenset()
    one, two = _canons(before, after)
    try:
        old, new = one.columns(before.relation), two.columns(after.relation)
        names = {called.get(name, name): name for name in new}
        equal = frozenset(was for was in old.keys() & names.keys() if old[was] == new[names[was]])
        rows = two.rows(after.relation, [names[was] for was in equal], called)
        if one.rows(before.relation, equal) != rows:
            return frozenset()
        if after.node.model.kind is Kind.SESSIONS and not _same_input(before, after, one, two):
            return frozenset()
    except (Doubt, RecursionError):
        return frozenset()
    stored = _column_names(before)
    declared = frozenset(called.get(name, name) for name in _column_names(after))
    proven = equal | (stored & declared) - old.keys() - names.keys()
    kind = after.node.model.kind
    chosen = kind is Kind.SCD_TYPE_2 or (kind is Kind.EVENTS and bool(after.node.model.unique_key))
    if chosen and not proven == stored == declared:
        return frozenset()  # all columns decide which copy of an event, or of a version, is kept
    return proven


def _canons(before: Meaning, after: Meaning) -> tuple[Canon, Canon]:
    """What gives the canonical forms of two definitions, so that they can be compared."""
    letters = before.structs or after.structs
    one, two = (
        Canon(meaning.prints, given(meaning.node.model), letters, meaning.renamed)
        for meaning in (before, after)
    )
    return one, two


def _same_input(before: Meaning, after: Meaning, earlier: Canon, later: Canon) -> bool:
    """Whether two sessions models read the same events, in the same order."""
    queries = before.node.query, after.node.query
    unique = all(query is not None and query.unique for query in queries)
    old, new = input_form(before, earlier, unique=unique), input_form(after, later, unique=unique)
    return old == new


def _states_differ(before: Meaning, after: Meaning) -> tuple[Difference, ...]:
    """
    Whether states of stored sessions are no states of the new definition.

    They are named by the order of the aggregates in the query.
    """
    old, new = (_session_states(meaning) for meaning in (before, after))
    if old == new:
        return ()
    old_states, new_states = (", ".join(call for call, _ in states) for states in (old, new))
    return (Difference("stored states", "", old_states, new_states),)


def _session_states(meaning: Meaning) -> list[tuple[str, object]]:
    """What the states of sessions are of, in their order; columns as they were called before."""
    query = meaning.node.query
    if query is None:
        return []
    called = meaning.renamed.get(query.input.lower(), {})
    return [
        (
            " ".join(called.get(word, word) for word in sql_words(one.sql)),
            (one.name, one.call, one.ignore_nulls, one.distinct),
        )
        for one in query.aggregates
    ]


def _written_rows(meaning: Meaning) -> tuple[object, ...]:
    """All that is written of what a model's rows are."""
    model = meaning.node.model
    return model.sql, model.python.modules if model.python is not None else ()


def _rewritten(before: Meaning, after: Meaning) -> tuple[Difference, ...]:
    """The differences of two definitions with the same meaning."""
    differences = []
    old_sql, new_sql = before.node.model.sql, after.node.model.sql
    if _written_rows(before) != _written_rows(after):
        part = "layout" if sql_words(old_sql) == sql_words(new_sql) else "wording"
        differences.append(Difference(part, "", "", ""))
    old, new = before.node.columns, after.node.columns
    if not _same_order(before, after):
        differences.append(Difference("order of columns", "", ", ".join(old), ", ".join(new)))
    return tuple(differences)


# Both definitions have to make sessions of the same events, with the same columns and states, and
# to end them by rules that differ only in what the stored sessions tell: a gap (each keeps how long
# the silences in it are), midnights, the greatest length, start events that no longer count, the
# limit of the quarantine. A campaign or a start event that is new can be anywhere, and another rule
# may end any session, so all events are read.

ENDS = frozenset(
    {
        *("gap", "fallback_gap", "quarantine_after", "keep"),
        *(cut.key for cut in DECLARED_CUTS if cut.told_when_gone),
        *(
            value.name
            for cut in DECLARED_CUTS
            if cut.told_when_new and cut.told_when_gone
            for value in fields(cut)
        ),
    }
)
"""The keys of sessions, as differences name them, that say only where one ends and if it counts."""


def ends_differ(differences: Sequence[Difference]) -> bool:
    """Whether the keys of two definitions differ in where sessions end, and in nothing else."""
    return bool(differences) and all(one.part in ENDS for one in differences)


def stored_sessions_tell(before: Node, after: Node) -> bool:
    """Whether the stored sessions tell which of them may end elsewhere."""
    old, new = before.query, after.query
    if {before.model.kind, after.model.kind} != {Kind.SESSIONS} or old is None or new is None:
        return False
    if (old.gap is None and old.fallback is None) != (new.gap is None and new.fallback is None):
        return False  # without a gap no silence is kept
    if old.quarantine_after is not None and new.quarantine_after is None:
        return False  # nothing is said of entries any more, and there may be some
    was, is_now = ({(cut.key, cut.definition): cut for cut in one.cuts} for one in (old, new))
    gone, fresh = was.keys() - is_now.keys(), is_now.keys() - was.keys()
    return all(was[one].told_when_gone for one in gone) and all(
        is_now[one].told_when_new for one in fresh
    )


# A model says which: `renamed_from`. It is proven as everything else is: both queries have equal
# canonical forms once the new columns are called what they were called. The hash of a row is made
# of the values of its columns in their order, so the contents of cells are the same under other
# names.


def are_renamed(before: Meaning, after: Meaning) -> bool:
    """
    Whether stored columns have other names in the new definition, and nothing else differs.

    Both definitions are equal in everything but the query. Nothing is proven where an author's word
    replaces a proof, or where the columns are in another order.
    """
    pairs = {new.lower(): old.lower() for new, old in after.node.model.renamed_from}
    old, new = ([name.lower() for name in one.node.columns] for one in (before, after))
    pairs = {
        name: was
        for name, was in pairs.items()
        if name in new and name not in old and was in old and was not in new
    }
    if not pairs or [pairs.get(name, name) for name in new] != old or len(set(old)) < len(old):
        return False
    downgraded = before.node.downgraded or after.node.downgraded
    return not downgraded and _kept(before, after, pairs) == set(old)


# A file's value that fits the earlier type is the same number in the wider one, whatever the file
# has. So rows stay the same if the widened columns are passed on as they are, and nothing else is
# made of them: no condition, no join, no other output. Text that is read as `float` is rounded to
# it, so that type is widened for typed files alone.
#
# What the texts do not tell is left to the planner: a value that did not fit was set aside, and may
# fit now.


def retyped_columns(
    before: Meaning, after: Meaning, content: Sequence[Difference]
) -> tuple[Retyping, ...]:
    """
    What gets a wider type in the stored table, if nothing else differs.

    ``content`` are the differences of keys that may change rows. Both queries are proven to be the
    same.
    """
    if {before.node.model.kind, after.node.model.kind} != {Kind.EVENTS}:
        return ()
    if before.source is None or after.source is None:
        return ()
    if not content or any(one.part != "source column" for one in content):
        return ()
    widened = _widened_columns(before.source, after.source)
    if not widened:
        return ()
    try:
        outputs = _passed_on(after, widened.keys())
    except (Doubt, RecursionError):
        return ()
    return tuple(
        Retyping((output, *one.path[1:]), one.before, one.after)
        for output, column in outputs
        for one in widened[column]
    )


def _widened_columns(before: Source, after: Source) -> Mapping[str, list[Retyping]]:
    """What is wider in each column, by lower-case name; nothing if anything else differs."""
    old, new = ({one.name: one for one in side.columns} for side in (before, after))
    widened: dict[str, list[Retyping]] = {}
    if old.keys() != new.keys():
        return {}
    for name, column in new.items():
        if column.default != old[name].default:
            return {}
        one, two = type_of_text(old[name].type), type_of_text(column.type)
        for part in widenings(one, two, (name,)):
            if part is None or part.is_in_a_key:
                return {}
            exact = is_exact_number(part.before) or FORMATS[after.format].has_types
            if not exact:
                return {}
            widened.setdefault(name.lower(), []).append(part)
    return widened


def _passed_on(meaning: Meaning, widened: Collection[str]) -> list[tuple[str, str]]:
    """
    The outputs that are widened columns as they are, and these columns.

    Raises Doubt where anything else is made of one.
    """
    block = meaning.relation
    if not isinstance(block, Block) or block.outputs is None or meaning.source is None:
        raise Doubt
    source = meaning.source.name.lower()
    passed, other_positions = [], set[int]()
    for at, output in enumerate(block.outputs):
        origin = output.origin or block.origins.get(output.node)
        column = _column_of(origin, source)
        if column in widened:
            passed.append((meaning.node.columns[at], column))
        else:
            other_positions.add(at)
    canon = Canon(meaning.prints, given(meaning.node.model), meaning.structs)
    needs = canon.form(block, frozenset(other_positions), whole=True)[1]
    if any(
        isinstance(of, Table) and of.name.lower() == source and at in widened for of, at in needs
    ):
        raise Doubt
    return passed


def _column_of(origin: Origin | None, source: str) -> str:
    """The column of the source that an output is, in lower case; empty if it is anything else."""
    if origin is None or origin.fields:
        return ""
    relation = origin.entry.relation
    if not isinstance(relation, Table) or relation.view is not None:
        return ""
    return origin.column.lower() if relation.name.lower() == source else ""


# Columns, keys, and types where both are written: of a column of a source, or by CAST around an
# output. All other types are known to Spark alone; a run compares them before it writes anything.

_KEY_PARTS: Mapping[str, tuple[Kind, ...]] = {
    "unique_key": (Kind.EVENTS, Kind.SCD_TYPE_2),
    "partition_column": (Kind.EVENTS, Kind.SESSIONS, Kind.INCREMENTAL_TABLE),
    "user": (Kind.SESSIONS,),
    "group": (Kind.CUMULATIVE_AGGREGATE,),
}
"""Differences that change what identifies a row or where it is stored, and of which kinds."""


def find_losses(
    before: Meaning, after: Meaning, differences: Iterable[Difference]
) -> tuple[Loss, ...]:
    """What readers of the stored table would miss; nothing of a view, which stores no rows."""
    if before.node.model.kind.is_view:
        return ()
    if after.node.model.kind.is_view:
        return (Loss(Lost.TABLE, before.node.name, at=_query_spot(after)),)
    differences = tuple(differences)
    return (
        *_column_losses(before, after),
        *_types(before, after, differences),
        *_key_losses(after, differences),
    )


def _column_losses(before: Meaning, after: Meaning) -> Iterator[Loss]:
    left = {name.lower() for name in after.node.columns}
    for name in before.node.columns:
        if name.lower() not in left:
            yield Loss(Lost.COLUMN, name, at=_query_spot(after))


def _types(before: Meaning, after: Meaning, differences: Iterable[Difference]) -> Iterator[Loss]:
    """Narrowed or incompatible types, where both are written."""
    for entry in differences:
        stored = any(entry.name.lower() == name.lower() for name in before.node.columns)
        if entry.part == "source column" and entry.before and entry.after and stored:
            old, new = (text.split(" DEFAULT ")[0] for text in (entry.before, entry.after))
            if is_simple(old) and is_simple(new) and not holds_all_values(old, new):
                yield Loss(Lost.TYPE, entry.name, old, new, entry.at)
    old_types, new_types = _written_types(before), _written_types(after)
    for name, old in old_types.items():
        new = new_types.get(name, old)
        if is_simple(old) and is_simple(new) and not holds_all_values(old, new):
            yield Loss(Lost.TYPE, name, old, new, _query_spot(after))


def _written_types(meaning: Meaning) -> Mapping[str, str]:
    """The outputs that are a CAST, with its type."""
    block = meaning.relation
    if not isinstance(block, Block):
        return {}
    types = {}
    for output in block.outputs or ():
        node = output.node
        while isinstance(node, (exp.Alias, exp.Paren)):
            node = node.this
        if isinstance(node, exp.Cast):
            types[output.name.lower()] = node.to.sql("spark").lower()
    return types


def _key_losses(after: Meaning, differences: Iterable[Difference]) -> Iterator[Loss]:
    for entry in differences:
        kinds = _KEY_PARTS.get(entry.part, ())
        if not entry.name and after.node.model.kind in kinds:
            at = entry.at or _query_spot(after)
            yield Loss(Lost.KEY, _WORDS.get(entry.part, entry.part), entry.before, entry.after, at)


_WORDS = {"group": "GROUP BY"}


def _query_spot(meaning: Meaning) -> Spot:
    model = meaning.node.model
    return Spot(model.place.file, model.sql_line)


# A forward-only change of events: a row of a file belongs to the definition in force at its event
# time. So both have to see each row at the same time and with the same key, and to read files
# alike: then no row is taken in by both, or by neither. If they also keep the same rows, none of a
# file that was ingested is missing afterwards.


def same_events(before: Meaning, after: Meaning) -> SameEvents | None:
    """What both are proven to have in common; None unless both are events models."""
    if {before.node.model.kind, after.node.model.kind} != {Kind.EVENTS}:
        return None
    other = _other_keys(before, after) or _other_source(before.source, after.source)
    if other:
        return SameEvents(other)
    if any(meaning.node.overrides_used or meaning.node.downgraded for meaning in (before, after)):
        return SameEvents("it builds upon an override")
    try:
        rows, events = _compared_rows(before, after)
    except (Doubt, RecursionError):
        rows = events = False
    if not events:
        return SameEvents("its key or its event time may have other values")
    return SameEvents(rows=rows)


def _other_keys(before: Meaning, after: Meaning) -> str:
    """What identifies an event in another way."""
    old, new = before.node.model, after.node.model
    if not new.unique_key or before.node.landed or after.node.landed:
        return "it has no key"
    if [key.lower() for key in old.unique_key] != [key.lower() for key in new.unique_key]:
        return "its unique_key changed"
    if Deduplicate.EVERYWHERE in (old.deduplicate, new.deduplicate):
        return "copies of an event may be on both sides (`deduplicate: everywhere`)"
    return ""


def _other_source(before: Source | None, after: Source | None) -> str:
    """Why a row of a file may be another one; columns that are new are not read by the earlier."""
    if before is None or after is None:
        return "its source is not known"
    for value in fields(Source):
        key = f"Source.{value.name}"
        decides = KEYS.get(key, Decides.CONTENT) is Decides.CONTENT and key != "Source.columns"
        if decides and getattr(before, value.name) != getattr(after, value.name):
            return f"its source is read in another way ({value.name})"
    declared = {column.name: (column.type, column.default) for column in after.columns}
    for column in before.columns:
        if column.name not in declared:
            return f"it reads column {column.name} of its source no longer"
        if declared[column.name] != (column.type, column.default):
            return f"column {column.name} of its source is declared otherwise"
    return ""


def _compared_rows(before: Meaning, after: Meaning) -> tuple[bool, bool]:
    """Whether both keep the same rows, and whether each row has the same key and event time."""
    series, key = after.node.model.timeseries, after.node.model.unique_key
    if before.relation is None or after.relation is None or series is None:
        raise Doubt
    names = {name.lower() for name in (series.event_time_column, *key)}
    one, two = _canons(before, after)
    if one.rows(before.relation, names) == two.rows(after.relation, names):
        return True, True
    old, new = one.columns(before.relation), two.columns(after.relation)
    same = all(old[name] == new[name] for name in names)
    plain = _of_source(one, before.relation, names) and _of_source(two, after.relation, names)
    return False, same and plain


def _of_source(canon: Canon, relation: Relation, names: set[str]) -> bool:
    """Whether columns follow from the row of a file alone: no lookup has a part in them."""
    if not isinstance(relation, Block) or not _reads_one(relation.entries[0].relation):
        return False
    select = canon.select(relation)
    needs = {need for name in names for need in select.output(position(relation, name))[1]}
    return all(entry is relation.entries[0] for entry, _ in needs)


def _reads_one(relation: Relation) -> bool:
    """Whether it is a table, or a view of one table alone."""
    while isinstance(relation, Table) and relation.view is not None:
        view = relation.view
        if not isinstance(view, Block) or len(view.entries) != 1:
            return False
        relation = view.entries[0].relation
    return isinstance(relation, Table)
