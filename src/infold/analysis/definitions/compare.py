"""
Two definitions of a model → the category of the change, and the differences.

Equal canonical forms prove that rows stay the same. A change is additive if the forms relative to
the old columns are equal. Every change without a proof is breaking.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields

from sqlglot import exp

from infold.analysis.definitions.canonical import Canon
from infold.analysis.definitions.clauses import Doubt
from infold.analysis.definitions.derive import derivation
from infold.analysis.definitions.derived_sessions import sessions_derivation
from infold.analysis.definitions.keys import key_differences, query_differences, sql_words
from infold.analysis.definitions.meanings import Meaning, Meanings, given, input_form
from infold.analysis.names.relation import Block, Origin, Table
from infold.core.definition import Category, Derivation, Difference, How, Loss, Lost, Redefinition
from infold.core.formats import FORMATS
from infold.core.model import Kind, Source
from infold.core.project import Node
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
    only_start, only_cells = parts <= {"start"}, parts == {"granularity"}
    proven = _kept(before, after) if only_start or only_cells else frozenset[str]()
    if only_cells and not node.downgraded and _same_rows(before, after, proven):
        differences = (*keys.content, *_rewritten(before, after), *keys.metadata)
        return Redefinition(
            node.name, Category.METADATA, differences, How.REBUCKET, before.node, node, proven
        )
    equal = frozenset[str]() if keys.content else proven
    differences = (
        *keys.content,
        *_function_differences(before, after),
        *query_differences(before, after),
        *keys.metadata,
    )
    category = _category(before, after, equal, same=not keys.content, also=bool(keys.metadata))
    destroys = find_losses(before, after, differences)
    if category in (Category.NONE, Category.METADATA):
        states = _states_differ(before, after)
        how = How.RESTAMP if _same_order(before, after) and not states else How.REBUILD
        differences = (*_rewritten(before, after), *states, *keys.metadata)
    else:
        how = How.REBUILD
    lost = _column_names(before) - _column_names(after)
    losses = tuple(c for c in before.node.columns if c.lower() in lost)
    open_ = how is How.REBUILD and only_start
    renamed = renamed_columns(before, after) if open_ and not keys.content else ()
    if renamed and not _states_differ(before, after):
        gone = {old for old, _ in renamed}
        losses = tuple(name for name in losses if name not in gone)
        destroys = tuple(difference for difference in destroys if difference.name not in gone)
        return Redefinition(
            node.name,
            Category.METADATA,
            (*(_renamed(*pair) for pair in renamed), *keys.metadata),
            How.EVOLVE,
            before.node,
            node,
            _column_names(before) & _column_names(after),
            losses,
            destroys=destroys,
            renamed=renamed,
        )
    widened = retyped_columns(before, after, keys.content)
    if widened and _same_rows(before, after, _kept(before, after)) and _same_fields(before, after):
        return Redefinition(
            node.name,
            Category.METADATA,
            (*keys.content, *_rewritten(before, after), *keys.metadata),
            How.EVOLVE,
            before.node,
            node,
            retyped=widened,
        )
    derived = _derivation(before, after, keys.content, proven) if how is How.REBUILD else None
    how = how if stored else How.NOTHING
    if derived is not None:
        how = How.DERIVE
    elif ends_differ(keys.content) and _refolds(before, after):
        how = How.REFOLD
    nodes = before.node, node
    return Redefinition(
        node.name, category, differences, how, *nodes, equal, losses, derived, destroys
    )


def _function_differences(before: Meaning, after: Meaning) -> Iterator[Difference]:
    """The functions of the project that both call, and that say something else now."""
    known = {function.name: function.digest for function in before.node.model.functions}
    for function in after.node.model.functions:
        if known.get(function.name, function.digest) != function.digest:
            yield Difference("function", function.name, "", "", Spot(function.file))


def _derivation(
    before: Meaning, after: Meaning, content: Sequence[Difference], proven: frozenset[str]
) -> Derivation | None:
    """How the new rows follow from stored ones, where no more differs in ``content`` than may."""
    events = after.node.model.kind is Kind.EVENTS
    if not all(entry.part == "start" or (events and _comes_or_goes(entry)) for entry in content):
        return None
    derived = derivation(before, after, proven)
    return sessions_derivation(before, after) if derived is None and not content else derived


def _comes_or_goes(difference: Difference) -> bool:
    """Whether a difference is that a source has a column more, or one less."""
    return difference.part == "source column" and "" in (difference.before, difference.after)


def _renamed(old: str, new: str) -> Difference:
    return Difference("column", new, old, new)


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


def _kept(before: Meaning, after: Meaning) -> frozenset[str]:
    """The columns that are proven to have the same values in the same rows."""
    doubtful = any(m.node.overrides_used or m.node.bounds_declared for m in (before, after))
    if doubtful or before.relation is None or after.relation is None:
        return frozenset()
    one, two = _canons(before, after)
    try:
        old, new = one.columns(before.relation), two.columns(after.relation)
        equal = frozenset(name for name in old.keys() & new.keys() if old[name] == new[name])
        if one.rows(before.relation, equal) != two.rows(after.relation, equal):
            return frozenset()
        if after.node.model.kind is Kind.SESSIONS and not _same_input(before, after, one, two):
            return frozenset()
    except (Doubt, RecursionError):
        return frozenset()
    unread = (_column_names(before) & _column_names(after)) - old.keys() - new.keys()
    proven = equal | unread
    kind = after.node.model.kind
    chosen = kind is Kind.SCD_TYPE_2 or (kind is Kind.EVENTS and bool(after.node.model.unique_key))
    if chosen and (proven != _column_names(before) or proven != _column_names(after)):
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


def renamed_columns(before: Meaning, after: Meaning) -> tuple[tuple[str, str], ...]:
    """
    The stored columns that have other names in the new definition, with these; if nothing else
    differs in the two queries.

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
    if not pairs or [pairs.get(name, name) for name in new] != old:
        return ()
    if len(set(old)) < len(old) or not _equal_queries(before, after, pairs):
        return ()
    stored = {name.lower(): name for name in before.node.columns}
    return tuple(
        (stored[pairs[name.lower()]], name) for name in after.node.columns if name.lower() in pairs
    )


def _equal_queries(before: Meaning, after: Meaning, pairs: dict[str, str]) -> bool:
    vouched = (
        m.node.overrides_used or m.node.bounds_declared or m.node.downgraded
        for m in (before, after)
    )
    if any(vouched) or before.relation is None or after.relation is None:
        return False
    one, two = _canons(before, after)
    try:
        old, new = one.columns(before.relation), two.columns(after.relation)
        if old != {pairs.get(name, name): form for name, form in new.items()}:
            return False
        if one.rows(before.relation, old) != two.rows(after.relation, new, pairs):
            return False
        return after.node.model.kind is not Kind.SESSIONS or _same_input(before, after, one, two)
    except (Doubt, RecursionError):
        return False


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
