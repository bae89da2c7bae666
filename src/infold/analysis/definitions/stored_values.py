"""
Expressions of a new query over the columns that the old one stored.

A value is stored as a column, or as a field of a struct that the old query made: that is never
NULL itself, so its field is the value. A struct that was made of each element of an array, or of
each value of a map, has the values of that element. What is written in such values, in literals,
and in known operators and functions is evaluated over the table. Everything else raises Doubt.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from sqlglot.tokenizer_core import TokenType

from infold.analysis.definitions.clauses import Doubt, Range
from infold.analysis.definitions.places import Need
from infold.analysis.definitions.row_words import FUNCTIONS, is_known_word
from infold.analysis.definitions.selects import Select
from infold.analysis.definitions.struct_calls import (
    Loop,
    loop,
    makes_struct_or_loop,
    struct_fields,
)
from infold.analysis.definitions.widened import cast_of, is_widened
from infold.analysis.names.relation import Table
from infold.analysis.sql.functions import BUILT_IN
from infold.analysis.sql.token_calls import closing_bracket
from infold.core.quoting import quoted


@dataclass(frozen=True, slots=True)
class _Spot:
    """Where a value is stored: as a column, or a field of it; what the value needs of inputs."""

    column: str
    fields: tuple[str, ...]
    needs: frozenset[Need]

    @property
    def path(self) -> tuple[str, ...]:
        return (self.column, *self.fields)

    @property
    def sql(self) -> str:
        return ".".join(map(quoted, self.path))


@dataclass(frozen=True, slots=True)
class _StoredLoop:
    """A loop of the old query: where it is stored, and its values by their forms."""

    spot: _Spot
    fields: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class _Within:
    """What surrounds an expression: its clause, what it may be about, variables of lambdas."""

    clause: str = ""
    keys: Collection[str] | None = None
    """Where a condition chooses rows before they are grouped: what they are grouped by."""
    variables: frozenset[str] = frozenset()
    elements: Mapping[str, str] = field(default_factory=dict)
    """The values of an element of a stored loop, by their forms."""
    alone: bool = True
    """Whether nothing is computed from the value, so that its type tells whether it is right."""


@dataclass(slots=True)
class StoredValues:
    """The outputs of the ``old`` SELECT as columns of its table, for what the ``new`` one says."""

    old: Select
    new: Select
    names: tuple[str, ...]
    needs: set[Need] = field(default_factory=set)
    """What the values need of inputs that the new rows are made of."""
    grouped: set[str] = field(default_factory=set)
    read_by_value: set[tuple[str, ...]] = field(default_factory=set)
    _spots: dict[str, _Spot] = field(default_factory=dict)
    """By the forms of values."""
    _casts: dict[str, list[tuple[str, _Spot]]] = field(default_factory=dict)
    """The values that are a CAST, with its type, by the forms of what they cast."""
    _loops: dict[tuple[object, ...], list[_StoredLoop]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        written = []
        for at, name in enumerate(self.names):
            form, needs = self.old.output(at)
            spot = _Spot(name, (), needs)
            self._spots.setdefault(form, spot)
            if span := self.old.written(at):
                written.append((span, spot))
        for span, spot in written:
            self._look_into(span, spot)

    def _look_into(self, span: Range, spot: _Spot) -> None:
        """Take down what a stored value is made of."""
        if found := cast_of(self.old, span):
            form = self.old.expression(found[0], set())
            self._casts.setdefault(form, []).append((found[1], spot))
        try:
            fields, looped = struct_fields(self.old, span), loop(self.old, span)
            inner = [] if looped is None else struct_fields(self.old, looped.body)
        except Doubt:
            return
        for one in fields or ():
            needs = set[Need]()
            form = self.old.expression(one.value, needs)
            within = _Spot(spot.column, (*spot.fields, one.name), frozenset(needs))
            self._spots.setdefault(form, within)
            self._look_into(one.value, within)
        if looped is not None and inner:
            forms = {self.old.expression(one.value, set()): (one.name,) for one in inner}
            self._loops.setdefault(self._key(self.old, looped), []).append(_StoredLoop(spot, forms))

    def _key(self, select: Select, looped: Loop) -> tuple[object, ...]:
        return looped.function, looped.variables, select.expression(looped.over, set())

    def output(self, at: int) -> str:
        """An output of the new SELECT over stored columns."""
        same = self._stored(self.new.output(at)[0])
        if same is not None:
            return same.sql
        span = self.new.written(at)
        if span is None:
            raise Doubt
        return self._whole(span, _Within())

    def known(self, at: int, *, files: bool) -> str:
        """The same; empty for one that is read from ``files``."""
        before = set(self.needs), set(self.read_by_value)
        try:
            return self.output(at)
        except Doubt:
            if not files:
                raise
            self.needs, self.read_by_value = before
            return ""

    def condition(self, clause: str, span: Range) -> str:
        """
        A condition over stored columns.

        One that chooses rows before they are grouped has to be about what they are grouped by: then
        it chooses whole groups.
        """
        keys = self.new.grouped() if clause == "where" else None
        if keys is not None and not isinstance(keys, list):
            raise Doubt
        return self._rewritten(span, _Within(clause, keys))

    def _stored(self, form: str) -> _Spot | None:
        spot = self._spots.get(form)
        if spot is not None:
            self.needs |= spot.needs
        return spot

    def _whole(self, span: Range, within: _Within) -> str:
        """An expression that is an output, a field of a struct, or what a loop is over or makes."""
        form = self.new.expression(span, set(), within.clause)
        if form in within.elements:
            return within.elements[form]
        same = self._stored(form)
        if same is not None:
            if not within.alone and not self._is_plain_column(span[0]):
                self.read_by_value.add(same.path)
            return same.sql
        span = self.new.unbracketed(span)
        return self._widened(span) or self._made(span, within) or self._rewritten(span, within)

    def _widened(self, span: Range) -> str:
        """A CAST of a stored value to a wider type than it was cast to; empty if it is none."""
        found = cast_of(self.new, span)
        if found is None:
            return ""
        for type_, spot in self._casts.get(self.new.expression(found[0], set()), ()):
            if is_widened(type_, found[1]):
                self.needs |= spot.needs
                return f"cast({spot.sql} AS {found[1]})"
        return ""

    def _made(self, span: Range, within: _Within) -> str:
        """A struct that is made of stored values, of each element too; empty if it is none."""
        looped = loop(self.new, span)
        if looped is not None:
            return self._looped(looped, within)
        fields = struct_fields(self.new, span)
        if fields is None:
            return ""
        made = (f"'{one.name}', {self._whole(one.value, within)}" for one in fields)
        return f"named_struct({', '.join(made)})"

    def _looped(self, looped: Loop, within: _Within) -> str:
        alike = [] if within.variables else self._loops.get(self._key(self.new, looped), [])
        for stored in alike:
            before = set(self.needs), set(self.read_by_value)
            one = looped.variables[-1]
            values = {
                form: ".".join([one, *map(quoted, path)]) for form, path in stored.fields.items()
            }
            self.needs |= stored.spot.needs
            try:
                return self._loop_sql(looped, stored.spot.sql, replace(within, elements=values))
            except Doubt:  # it lacks a value, which others may have
                self.needs, self.read_by_value = before
        over = self._whole(looped.over, replace(within, alone=False))
        variables = within.variables | {*looped.variables}
        return self._loop_sql(looped, over, replace(within, variables=variables, elements={}))

    def _loop_sql(self, looped: Loop, over: str, inside: _Within) -> str:
        names = ", ".join(looped.variables)
        names = f"({names})" if len(looped.variables) > 1 else names
        return f"{looped.function}({over}, {names} -> {self._whole(looped.body, inside)})"

    def _rewritten(self, span: Range, within: _Within) -> str:
        """The text of an expression with stored values in place of what they are values of."""
        start, stop = span
        tokens, sql = self.new.block.text.tokens, self.new.block.text.sql
        parts, behind, at = list[str](), tokens[start].start, start
        while at < stop:
            found = self._value(at, stop, within) or self._variable(at, stop, within)
            if found is not None:
                parts += [sql[behind : tokens[at].start], found[1]]
                at = found[0]
                behind = tokens[at - 1].end + 1
            elif self.new.column_at(at) is not None or not self._is_known(at):
                raise Doubt
            else:
                at += 1
        return "".join([*parts, sql[behind : tokens[stop - 1].end + 1]])

    def _value(self, at: int, stop: int, within: _Within) -> tuple[int, str] | None:
        """A stored value that begins at a token: the index behind it, and its SQL."""
        end = self._end(at, stop)
        if end is None:
            return None
        form = self.new.expression((at, end), set(), within.clause)
        spot, beyond = self._stored(form), ""
        if spot is None and self.new.column_at(at) is not None:
            spot, form, beyond = self._field(at, within.clause)
        if spot is not None:
            if within.keys is not None:
                if form not in within.keys:
                    raise Doubt
                self.grouped.add(spot.column)
            if not self._is_plain_column(at):
                self.read_by_value.add(spot.path)
            return end, spot.sql + beyond
        if within.clause or not makes_struct_or_loop(self.new, at):
            return None
        return end, self._made((at, end), replace(within, alone=False))

    def _field(self, at: int, clause: str) -> tuple[_Spot | None, str, str]:
        """Where the column is stored that a field at a token is of, its form, and the fields."""
        form = self.new.column_of_field(at, clause)
        if form is None:
            return None, "", ""
        return self._stored(form[0]), form[0], "".join(f".{quoted(one)}" for one in form[1])

    def _variable(self, at: int, stop: int, within: _Within) -> tuple[int, str] | None:
        """A variable of a lambda, or a field of it: the index behind it, and its words."""
        tokens = self.new.block.text.tokens
        token, before = tokens[at], tokens[at - 1].token_type
        if before is TokenType.DOT or self.new.column_at(at) is not None or self.new.calls(at):
            return None
        if token.token_type is not TokenType.VAR or token.text.lower() not in within.variables:
            return None
        end = at + 1
        while end + 1 < stop and tokens[end].token_type is TokenType.DOT:
            end += 2
        return end, self.new.block.text.sql[token.start : tokens[end - 1].end + 1]

    def _end(self, at: int, stop: int) -> int | None:
        """The index behind a column or a call that begins at a token."""
        tokens = self.new.block.text.tokens
        column = self.new.column_at(at)
        if column is not None:
            return self.new.behind(column, at, stop)
        if self.new.calls(at) not in BUILT_IN or is_known_word(tokens, at):
            return None
        if tokens[at - 1].token_type is TokenType.DOT:
            return None
        end = closing_bracket(tokens, at + 1) + 1
        return end if end <= stop else None

    def _is_known(self, at: int) -> bool:
        """Whether a token computes one value of one row."""
        function = self.new.calls(at)
        if function and not is_known_word(self.new.block.text.tokens, at):
            return function in FUNCTIONS and self.new.kind(at - 1) is not TokenType.DOT
        return is_known_word(self.new.block.text.tokens, at)

    def _is_plain_column(self, at: int) -> bool:
        """
        Whether a column, or the one that a field is of, is one of a stored table.

        Then it has the type that is stored.
        """
        column = self.new.column_at(at)
        origin = None if column is None else self.new.block.origins.get(column)
        if origin is None:
            return False
        relation = origin.entry.relation
        return isinstance(relation, Table) and relation.view is None
