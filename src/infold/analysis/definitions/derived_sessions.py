"""
How sessions of a changed definition follow from the stored ones and their states.

Both definitions make the same sessions of the same events: equal keys, and equal forms of the input
and of all conditions that both have. A session is stored with the states of its aggregates. If
argument and condition of an aggregate have the forms of a stored one, it is about the same values
of the same events, and its state follows. So does each output: it is computed from such values, or
has the form of a stored output. A condition that is added has to be about the owner alone, which
all events of a session share: it keeps or drops whole sessions, and all of each owner's.
Everything else raises Doubt, and the table is built again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from infold.analysis.definitions.canonical import Canon
from infold.analysis.definitions.clauses import Doubt, Range
from infold.analysis.definitions.derive import StoredValues, Within, added_conditions
from infold.analysis.definitions.expressions import Terms, digest
from infold.analysis.definitions.meanings import Meaning, given, input_form, input_of
from infold.analysis.definitions.places import Need, position
from infold.analysis.definitions.selects import Select
from infold.analysis.names.relation import Block, Origin
from infold.analysis.names.select_parts import QueryPieces, qualifier_spans
from infold.analysis.sql.token_calls import Call, calls
from infold.core.aggregates import AGGREGATES
from infold.core.definition import Derivation
from infold.core.queries import Aggregate, SessionsQuery, quoted

State = tuple[str, ...]
"""A part of a state: what is computed, and the forms of the argument and the condition."""

_STATES: Mapping[str, tuple[str, ...]] = {
    "avg": ("sum", "count"),
    "bool_and": ("min",),
    "bool_or": ("max",),
}
"""What the state of an aggregate consists of, where it is not one value of its own name."""
_OTHER_CALL = "other"
"""An aggregate without a state that can be merged: only its value may be stored."""
_EVENT_COUNT: State = ("count", "", "")
"""The number of events, which every session has."""


def sessions_derivation(before: Meaning, after: Meaning) -> Derivation:
    """
    How the new sessions follow from the stored ones; raises Doubt.

    Both definitions are equal in everything but the query.
    """
    if before.renamed or after.renamed:
        raise Doubt
    letters = before.structs or after.structs
    return _sessions_derived(
        _Sessions.of(before, letters=letters), _Sessions.of(after, letters=letters)
    )


@dataclass(frozen=True, slots=True)
class _Spelled:
    """An aggregate of the query, with the forms of its argument, its condition and all of it."""

    aggregate: Aggregate
    argument: str
    filter: str
    whole: str
    needs: frozenset[Need]

    @property
    def states(self) -> frozenset[State]:
        """What its state consists of."""
        one = self.aggregate
        if one.call == _OTHER_CALL:
            return frozenset({(_OTHER_CALL, self.whole)})
        nulls = ("ignore",) if one.ignore_nulls else ()
        kinds = _STATES.get(one.call, (one.call,))
        return frozenset((kind, self.argument, self.filter, *nulls) for kind in kinds)


@dataclass(frozen=True, slots=True)
class _Sessions:
    """One definition of sessions: its query, with the forms of its pieces."""

    meaning: Meaning
    canon: Canon
    select: Select
    query: SessionsQuery
    spelled: Mapping[str, _Spelled]
    """The aggregates of the SELECT by name, in their order."""
    outputs: tuple[str, ...]
    """The forms of its outputs."""
    where: Terms
    needs: frozenset[Need]
    """The columns of stored tables that its conditions read."""

    @staticmethod
    def of(meaning: Meaning, *, letters: bool) -> _Sessions:
        """The pieces of a definition; raises Doubt."""
        block, query = meaning.relation, meaning.node.query
        if not isinstance(block, Block) or query is None:
            raise Doubt
        canon = Canon(meaning.prints, given(meaning.node.model), letters)
        select, needs = canon.select(block), set[Need]()
        if len(block.columns or ()) != len(query.outputs):
            raise Doubt
        outputs = tuple(select.output(at)[0] for at, _ in enumerate(query.outputs))
        where = select.conditions("where", needs)
        spelled = _spelled(select, query)
        return _Sessions(meaning, canon, select, query, spelled, outputs, where, frozenset(needs))

    @property
    def own(self) -> tuple[Aggregate, ...]:
        """The aggregates that infold adds to those of the SELECT."""
        return tuple(one for one in self.query.aggregates if one.name not in self.spelled)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the table."""
        return *self.query.fixed_columns, *(output.name for output in self.query.outputs)

    def text(self, at: int) -> str:
        """An output as it is written."""
        span = self.select.written(at)
        if span is None:
            raise Doubt
        text = self.select.block.text
        return text.sql[text.tokens[span[0]].start : text.tokens[span[1] - 1].end + 1]

    def events(self, spelled: Iterable[_Spelled]) -> str:
        """The form of its events, in the columns that it and some of its aggregates read."""
        relation, unique = input_of(self.meaning), self.query.unique
        needs = {need for one in spelled for need in one.needs} | self.needs
        if any(source is not self.select.block.entries[0] for source, _ in needs):
            raise Doubt
        places = (at if isinstance(at, int) else position(relation, at) for _, at in needs)
        return input_form(self.meaning, self.canon, unique=unique, also=frozenset(places))


def _spelled(select: Select, query: SessionsQuery) -> dict[str, _Spelled]:
    """The aggregates of a SELECT by the names that the query gives them."""
    pieces = QueryPieces(select.block.text, qualifier_spans(select.block))
    named = {one.sql: one for one in query.aggregates if re.fullmatch(r"_a\d+", one.name)}
    spelled: dict[str, _Spelled] = {}
    for at, _ in enumerate(query.outputs):
        for call in _aggregates(select, select.written(at)):
            one = named.get(pieces.sql_of(call.start, call.end))
            if one is not None and one.name not in spelled:
                spelled[one.name] = _forms_of_call(select, call, one)
    if len(spelled) != len(named):
        raise Doubt
    return spelled


def _aggregates(select: Select, span: Range | None) -> Iterator[Call]:
    """The calls of aggregates in an output."""
    if span is None:
        raise Doubt
    behind = span[0]
    for call in calls(select.block.text.tokens, *span):
        if call.start >= behind and call.name in AGGREGATES:
            yield call
            behind = call.end


def _forms_of_call(select: Select, call: Call, aggregate: Aggregate) -> _Spelled:
    needs = set[Need]()
    argument = ""
    if aggregate.argument is not None:
        argument = select.expression(call.arguments[0], needs)
    condition = ""
    if call.filter is not None:
        terms = select.all_of(call.filter, needs, "filter")
        condition = digest(("filter", sorted({form for form, _ in terms})))
    call_form = select.expression((call.start, call.end), needs)
    return _Spelled(aggregate, argument, condition, call_form, frozenset(needs))


def _sessions_derived(old: _Sessions, new: _Sessions) -> Derivation:
    """What the new definition says about sessions of the old one; raises Doubt."""
    if _session_rules(old.query) != _session_rules(new.query) or old.own != new.own:
        raise Doubt
    where = _conditions_on_owner(old, new)
    known = _in_words_of(old, new)
    events = old.events(old.spelled[aggregate.name] for aggregate in known)
    if events != new.events(new.spelled.values()):
        raise Doubt
    same = {form: out.name for form, out in zip(old.outputs, old.query.outputs, strict=True)}
    columns = [(name, quoted(name)) for name in new.query.fixed_columns]
    computed = set[str]()
    for at, (form, output) in enumerate(zip(new.outputs, new.query.outputs, strict=True)):
        if form not in same:
            computed |= set(re.findall(r"\w+", output.sql))
        columns.append((output.name, quoted(same[form]) if form in same else new.text(at)))
    shown = {output.sql.strip().strip("`") for output in old.query.outputs}
    stored_states = {_EVENT_COUNT}
    for aggregate in known:
        if aggregate.call != _OTHER_CALL or aggregate.name in shown:
            stored_states |= old.spelled[aggregate.name].states
    for name, spelled in new.spelled.items():
        needed = spelled.aggregate.call != _OTHER_CALL or name in computed
        if needed and not spelled.states <= stored_states:
            raise Doubt
    stored = replace(old.query, aggregates=(*known, *old.own))
    return Derivation(tuple(columns), where, stored=old.names, sessions=stored)


def _session_rules(query: SessionsQuery) -> SessionsQuery:
    """All of a query but what is computed of sessions, and which events there are."""
    return replace(
        query, where=None, before_start=None, aggregates=(), outputs=(), passed_columns=()
    )


def _in_words_of(old: _Sessions, new: _Sessions) -> tuple[Aggregate, ...]:
    """
    The old aggregates over arguments and conditions of the new query, written as there.

    So equal words in both mean equal values, and no others are left.
    """
    arguments = {one.argument: one.aggregate.argument for one in new.spelled.values()} | {"": None}
    filters = {one.filter: one.aggregate.filter for one in new.spelled.values()} | {"": None}
    wholes = {one.whole: one.aggregate for one in new.spelled.values()}
    reworded = []
    for one in old.spelled.values():
        if one.aggregate.call == _OTHER_CALL:
            if one.whole in wholes:
                reworded.append(replace(wholes[one.whole], name=one.aggregate.name))
        elif one.argument in arguments and one.filter in filters:
            argument, condition = arguments[one.argument], filters[one.filter]
            reworded.append(replace(one.aggregate, argument=argument, filter=condition))
    return tuple(reworded)


def _conditions_on_owner(old: _Sessions, new: _Sessions) -> tuple[str, ...]:
    """What the new definition says of owners beside; raises Doubt if it says less, or more."""
    if not dict(old.where).keys() <= dict(new.where).keys():
        raise Doubt
    added = added_conditions(old.where, new.where)
    if not added:
        return ()
    column = _owner_column(new.query)
    stored = _StoredOwner(old.select, new.select, (), owner=column, column=new.query.user)
    return tuple(stored.rewritten(span, Within("where")) for span in added.values())


@dataclass(slots=True)
class _StoredOwner(StoredValues):
    """The owner of sessions alone, as their table has it, for a condition that is about no more."""

    owner: str = ""
    """The column of events that says it, in lower case."""
    column: str = ""
    """The one of sessions."""

    def value(self, at: int, stop: int, within: Within) -> tuple[int, str] | None:
        """The owner, if a column begins at a token; raises Doubt if it is another one."""
        del within
        column = self.new.column_at(at)
        if column is None:
            return None
        origin = self.new.block.origins.get(column)
        if not isinstance(origin, Origin) or origin.fields or origin.column.lower() != self.owner:
            raise Doubt
        return self.new.behind(column, at, stop), quoted(self.column)


def _owner_column(query: SessionsQuery) -> str:
    """The lower-case name of the one column that says what an event's session is of."""
    name = (query.owner_sql or query.user).strip().strip("`")
    if query.fallback is not None or not re.fullmatch(r"\w+", name):
        raise Doubt
    return name.lower()
