"""
How the rows of a changed definition follow from the rows that the old one gave.

Both queries are one SELECT over the same rows: equal forms of FROM and of all conditions that both
have prove that. An output of the old query is then a value of such a row (or group), and it is
stored. What the new query says about these values alone can be evaluated over the stored rows: an
output that is computed row by row, a condition that is added. Every piece of its words has to be a
stored value with an equal form, or an operator, a literal or a function that are known to compute
one value of one row. Everything else raises Doubt, and the table is built again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot.tokenizer_core import Token, TokenType

from infold.analysis.definitions.canonical import Canon
from infold.analysis.definitions.clauses import Doubt, Range
from infold.analysis.definitions.expressions import Terms
from infold.analysis.definitions.meanings import Meaning
from infold.analysis.definitions.places import Need
from infold.analysis.definitions.selects import Select
from infold.analysis.names.relation import Block, Table
from infold.analysis.sql.functions import BUILT_IN
from infold.analysis.sql.token_calls import closing_bracket, split_arguments
from infold.core.definition import Derivation
from infold.core.model import Kind
from infold.core.project import Node
from infold.core.queries import quoted
from infold.core.type_changes import holds_all_values, is_exact_number

_CONDITIONS = ("where", "having")


def derivation(before: Meaning, after: Meaning, proven: Collection[str]) -> Derivation:
    """
    How the new rows of events, or of a table built cell by cell, follow; raises Doubt.

    ``proven`` are the columns with a proof that they have the same values in the same rows. Both
    definitions are equal in everything but the query, and where the table starts.
    """
    old, new = before.node, after.node
    if any(node.landed or node.model.python is not None for node in (old, new)):
        raise Doubt
    stored = {name.lower(): name for name in old.columns}
    names = [name.lower() for name in new.columns]
    if len(stored) < len(old.columns) or len(set(names)) < len(names):
        raise Doubt
    if new.model.kind is Kind.EVENTS:
        return _derivation_of_events(before, after)
    if set(names) <= set(proven):
        columns = tuple((name, quoted(stored[name.lower()])) for name in new.columns)
        return Derivation(columns, stored=old.columns)
    derived = over_stored_rows(before, after)
    if not _stays_in_cells(new, derived):
        raise Doubt
    return derived


def _derivation_of_events(before: Meaning, after: Meaning) -> Derivation:
    """
    The same for events: what the stored rows do not tell is read from the files.

    A stored row is found again by its key and its time, so these have to stay. Which copy of an
    event is kept may depend on all columns; whether there were copies, the ledger says.
    """
    new = after.node
    if before.node.start != new.start:
        raise Doubt  # rows before the start are counted as they are read
    derived = over_stored_rows(before, after, files=True)
    series = new.model.timeseries
    identity = {name.lower() for name in new.model.unique_key}
    identity |= {series.event_time_column.lower()} if series is not None else set()
    if identity - {name.lower() for name, was in derived.plain if name.lower() == was.lower()}:
        raise Doubt
    read = [
        {column.name for column in meaning.source.columns} if meaning.source is not None else set()
        for meaning in (before, after)
    ]
    if read[1] - read[0] and not derived.from_files:
        raise Doubt  # no file was ever checked for these
    return replace(derived, other_source_columns=read[0] != read[1])


def _stays_in_cells(node: Node, derived: Derivation) -> bool:
    """Whether each row stays in its cell, and at its time."""
    series = node.model.timeseries
    if series is None:
        return False
    places = {series.partition_column.lower(), series.event_time_column.lower()}
    same = {new.lower() for new, old in derived.plain if new.lower() == old.lower()}
    return not ({name.lower() for name in (*node.columns, *derived.stored)} & places) - same


def over_stored_rows(before: Meaning, after: Meaning, *, files: bool = False) -> Derivation:
    """
    What the new SELECT says about outputs of the old one; raises Doubt.

    With ``files`` a column that it does not say is one to read from the files.
    """
    letters = before.structs or after.structs
    old, new = (
        _only_select(meaning, Canon(meaning.prints, letters=letters, renamed=meaning.renamed))
        for meaning in (before, after)
    )
    stored = StoredValues(old, new, before.node.columns)
    columns = [(name, stored.known(at, files=files)) for at, name in enumerate(after.node.columns)]
    unknown = tuple(name for name, sql in columns if not sql)
    added = {key: added_conditions(old.conditions(key), new.conditions(key)) for key in _CONDITIONS}
    if any(added.values()) and _has_window(new):
        raise Doubt
    where = [stored.condition(key, span) for key in _CONDITIONS for span in added[key].values()]
    new_needs: set[Need] = set()
    for at, (_, sql) in enumerate(columns):
        new_needs |= new.output(at)[1] if sql else set()
    if old.source_rows(set(stored.needs), {}) != new.source_rows(new_needs, added):
        raise Doubt
    return Derivation(
        tuple(columns),
        tuple(where),
        frozenset(stored.grouped),
        frozenset(stored.read_by_value),
        before.node.columns,
        from_files=unknown,
    )


def added_conditions(before: Terms, after: Terms) -> dict[str, Range]:
    """The conditions that only the new query has, by their forms."""
    known = dict(before)
    return {form: span for form, span in after if form not in known}


def _only_select(meaning: Meaning, canon: Canon) -> Select:
    """The definition as one SELECT with its model's columns. Raises Doubt if it is none."""
    block, columns = meaning.relation, meaning.node.columns
    if not isinstance(block, Block) or block.columns is None:
        raise Doubt
    if [name.lower() for name in block.columns] != [name.lower() for name in columns]:
        raise Doubt
    return canon.select(block)


def _has_window(select: Select) -> bool:
    """Whether an output depends on other rows, so that a condition changes it."""
    return any(
        select.kind(at) is TokenType.OVER
        for start, stop in select.parts.items
        for at in range(start, stop)
    )


# A value is stored as a column, or as a field of a struct that the old query made: that is never
# NULL itself, so its field is the value. A struct that was made of each element of an array, or of
# each value of a map, has the values of that element. What is written in such values, in literals,
# and in known operators and functions is evaluated over the table. Everything else raises Doubt.


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
class Within:
    """What surrounds an expression: its clause, what it may be about, variables of lambdas."""

    clause: str = ""
    keys: Collection[str] | None = None
    """Of a condition before GROUP BY: the forms of the keys, which alone may be in it."""
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
    """Where the old table stores a value, by the value's form."""
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
        if cast := cast_of(self.old, span):
            form = self.old.expression(cast[0], set())
            self._casts.setdefault(form, []).append((cast[1], spot))
        try:
            fields, looped = struct_fields(self.old, span), loop(self.old, span)
            inner = [] if looped is None else struct_fields(self.old, looped.body)
        except Doubt:
            return
        for member in fields or ():
            needs = set[Need]()
            form = self.old.expression(member.value, needs)
            within = _Spot(spot.column, (*spot.fields, member.name), frozenset(needs))
            self._spots.setdefault(form, within)
            self._look_into(member.value, within)
        if looped is not None and inner:
            forms = {self.old.expression(member.value, set()): (member.name,) for member in inner}
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
        return self._whole(span, Within())

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
        return self.rewritten(span, Within(clause, keys))

    def _stored(self, form: str) -> _Spot | None:
        spot = self._spots.get(form)
        if spot is not None:
            self.needs |= spot.needs
        return spot

    def _whole(self, span: Range, within: Within) -> str:
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
        return self._widened(span) or self._made(span, within) or self.rewritten(span, within)

    def _widened(self, span: Range) -> str:
        """A CAST of a stored value to a wider type than it was cast to; empty if it is none."""
        cast = cast_of(self.new, span)
        if cast is None:
            return ""
        for type_, spot in self._casts.get(self.new.expression(cast[0], set()), ()):
            if is_widened(type_, cast[1]):
                self.needs |= spot.needs
                return f"cast({spot.sql} AS {cast[1]})"
        return ""

    def _made(self, span: Range, within: Within) -> str:
        """A struct that is made of stored values, of each element too; empty if it is none."""
        looped = loop(self.new, span)
        if looped is not None:
            return self._looped(looped, within)
        fields = struct_fields(self.new, span)
        if fields is None:
            return ""
        values = (f"'{member.name}', {self._whole(member.value, within)}" for member in fields)
        return f"named_struct({', '.join(values)})"

    def _looped(self, looped: Loop, within: Within) -> str:
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

    def _loop_sql(self, looped: Loop, over: str, inside: Within) -> str:
        names = ", ".join(looped.variables)
        names = f"({names})" if len(looped.variables) > 1 else names
        return f"{looped.function}({over}, {names} -> {self._whole(looped.body, inside)})"

    def rewritten(self, span: Range, within: Within) -> str:
        """The text of an expression with stored values in place of what they are values of."""
        start, stop = span
        tokens, sql = self.new.block.text.tokens, self.new.block.text.sql
        parts, behind, at = list[str](), tokens[start].start, start
        while at < stop:
            replacement = self.value(at, stop, within) or self._variable(at, stop, within)
            if replacement is not None:
                parts += [sql[behind : tokens[at].start], replacement[1]]
                at = replacement[0]
                behind = tokens[at - 1].end + 1
            elif self.new.column_at(at) is not None or not self._is_known(at):
                raise Doubt
            else:
                at += 1
        return "".join([*parts, sql[behind : tokens[stop - 1].end + 1]])

    def value(self, at: int, stop: int, within: Within) -> tuple[int, str] | None:
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

    def _variable(self, at: int, stop: int, within: Within) -> tuple[int, str] | None:
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


# Of whole numbers, and of decimals with as many digits after the point. A CAST that does not fail
# gives the same number in each type that has it: it cuts, rounds and reads texts by the digits that
# are kept, not by the type's width. A number out of range is an error (ANSI mode is fixed), so no
# row with one was ever stored. `float` rounds by its width, and TRY_CAST stores NULL for a number
# out of range: neither is widened here.


def cast_of(select: Select, span: Range) -> tuple[Range, str] | None:
    """What a whole expression casts, and the type; None where it is no CAST."""
    start, stop = span
    tokens = select.block.text.tokens
    if stop - start < 6 or tokens[start].text.lower() != "cast":
        return None
    if tokens[start + 1].token_type is not TokenType.L_PAREN:
        return None
    if closing_bracket(tokens, start + 1) != stop - 1:
        return None
    at = next((at for at in range(start + 2, stop - 1) if _is_own_as(select, start + 2, at)), None)
    if at is None or at == start + 2:
        return None
    first, last = tokens[at + 1], tokens[stop - 2]
    return (start + 2, at), select.block.text.sql[first.start : last.end + 1].lower()


def is_widened(old: str, new: str) -> bool:
    """Whether a CAST to the new type gives the numbers that one to the old type gave."""
    return is_exact_number(old) and is_exact_number(new) and holds_all_values(old, new)


def _is_own_as(select: Select, start: int, at: int) -> bool:
    """Whether a token is the AS of a CAST whose argument begins at ``start``: in no brackets."""
    tokens = select.block.text.tokens
    if tokens[at].token_type is not TokenType.ALIAS:
        return False
    opened = sum(token.token_type is TokenType.L_PAREN for token in tokens[start:at])
    return opened == sum(token.token_type is TokenType.R_PAREN for token in tokens[start:at])


# `struct` names its fields by their words, `named_struct` by texts. A field with a name that does
# not follow from the words, or that has to be quoted, is not understood: it raises Doubt.

_PLAIN = re.compile(r"[A-Za-z_]\w*\Z", re.ASCII)
_MAKERS = frozenset({"struct", "named_struct"})
_LOOPS = {"transform": 1, "transform_values": 2}
"""Functions that make a value of each element, and how many variables that may have."""


@dataclass(frozen=True, slots=True)
class StructField:
    """A field that a call makes: its name, and the tokens of its value."""

    name: str
    value: Range


@dataclass(frozen=True, slots=True)
class Loop:
    """
    ``transform(over, x -> body)``, or ``transform_values(over, (k, v) -> body)``.

    ``variables`` are in lower case; the last of them is the element, or the value.
    """

    function: str
    over: Range
    variables: tuple[str, ...]
    body: Range


def struct_fields(select: Select, span: Range) -> list[StructField] | None:
    """The fields of a struct that a whole expression makes; None where it makes none."""
    called = _arguments(select, span)
    if called is None or called[0] not in _MAKERS:
        return None
    name, arguments = called
    if name == "struct":
        fields = [_named_by_words(select, one) for one in arguments]
    else:
        if len(arguments) % 2:
            raise Doubt
        pairs = zip(arguments[::2], arguments[1::2], strict=True)
        fields = [StructField(_string_literal(select, key), value) for key, value in pairs]
    names = [one.name.lower() for one in fields]
    if not fields or len(set(names)) < len(names) or not all(map(_PLAIN.match, names)):
        raise Doubt
    return fields


def loop(select: Select, span: Range) -> Loop | None:
    """A whole expression as a call that makes a value of each element; None if it is none."""
    called = _arguments(select, span)
    if called is None or called[0] not in _LOOPS or len(called[1]) != 2:
        return None
    function, (over, (start, stop)) = called
    tokens = select.block.text.tokens
    at = next((at for at in range(start, stop) if tokens[at].token_type is TokenType.ARROW), None)
    if at is None or at + 1 == stop:
        raise Doubt
    variables = _variables(tokens[start:at])
    if len(set(variables)) != _LOOPS[function]:
        raise Doubt
    return Loop(function, over, variables, (at + 1, stop))


def makes_struct_or_loop(select: Select, at: int) -> bool:
    """Whether a token calls one of the functions that this module knows."""
    return select.calls(at) in {*_MAKERS, *_LOOPS} and select.kind(at - 1) is not TokenType.DOT


def _arguments(select: Select, span: Range) -> tuple[str, list[Range]] | None:
    """The function that a whole expression calls, and its arguments."""
    start, stop = span
    tokens = select.block.text.tokens
    if stop - start < 3 or not makes_struct_or_loop(select, start):
        return None
    if closing_bracket(tokens, start + 1) != stop - 1:
        return None
    return select.calls(start), split_arguments(tokens, start + 2, stop - 1)


def _named_by_words(select: Select, span: Range) -> StructField:
    """A field of ``struct(…)``: it has an alias, or the name of a column or field."""
    start, stop = span
    tokens = select.block.text.tokens
    if stop - start > 2 and tokens[stop - 2].token_type is TokenType.ALIAS:
        return StructField(tokens[stop - 1].text, (start, stop - 2))
    words = tokens[start:stop]
    if len(words) % 2 == 0 or any(word.token_type is not TokenType.DOT for word in words[1::2]):
        raise Doubt
    if select.column_at(start) is None and words[0].token_type is not TokenType.VAR:
        raise Doubt  # a literal
    return StructField(words[-1].text, span)


def _string_literal(select: Select, span: Range) -> str:
    start, stop = span
    token = select.block.text.tokens[start]
    if stop - start != 1 or token.token_type is not TokenType.STRING:
        raise Doubt
    return token.text


def _variables(tokens: Sequence[Token]) -> tuple[str, ...]:
    """The variables before an arrow: ``x``, or ``(k, v)``."""
    inner = tokens[1:-1] if tokens and tokens[0].token_type is TokenType.L_PAREN else tokens
    names = tuple(token.text.lower() for token in inner[::2])
    commas = all(token.token_type is TokenType.COMMA for token in inner[1::2])
    if not commas or len(inner) % 2 == 0 or not all(map(_PLAIN.match, names)):
        raise Doubt
    return names


# Aggregates, windows, generators, subqueries, chance and clocks are none. Neither are functions
# whose last digits may differ between two processors (`sin`). `struct_calls.py` has lambdas, and
# the functions that name fields by their arguments (`struct`). What is not listed is not
# understood.

FUNCTIONS = frozenset(
    """
abs add_months array array_contains array_distinct array_join array_max array_min array_size
ascii base64 bigint binary bit_length boolean bround btrim cardinality cast ceil ceiling char
char_length character_length chr coalesce concat concat_ws contains crc32 date date_add date_diff
date_format date_from_unix_date date_sub date_trunc dateadd datediff day dayofmonth dayofweek
dayofyear decimal double element_at endswith equal_null find_in_set float floor format_number
from_unixtime from_utc_timestamp get get_json_object greatest hash hex hour if ifnull initcap
instr int isnan isnotnull isnull last_day lcase least left len length levenshtein locate lower
lpad ltrim make_date map_contains_key map_keys map_values md5 minute mod month months_between
nanvl negative next_day nullif nullifzero nvl nvl2 octet_length overlay pmod position positive
quarter regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like regexp_replace
regexp_substr repeat replace reverse right round rpad rtrim second sha sha1 sha2 shiftleft
shiftright sign signum size slice sort_array split split_part sqrt startswith string substr
substring substring_index timestamp timestamp_micros timestamp_millis timestamp_seconds
to_char to_date to_timestamp to_utc_timestamp translate trim trunc try_add try_cast try_divide
try_element_at try_multiply try_subtract try_to_timestamp ucase unbase64 unhex unix_date
unix_micros unix_millis unix_seconds upper url_decode url_encode weekday weekofyear xxhash64 year
zeroifnull
""".split()  # noqa: SIM905 - one word is one function
)
"""Functions with a value that follows from their arguments."""

_OPERATORS = frozenset(
    {
        TokenType.AMP,
        TokenType.AND,
        TokenType.BETWEEN,
        TokenType.CARET,
        TokenType.CASE,
        TokenType.COMMA,
        TokenType.DASH,
        TokenType.DIV,
        TokenType.DPIPE,
        TokenType.ELSE,
        TokenType.END,
        TokenType.EQ,
        TokenType.ESCAPE,
        TokenType.FALSE,
        TokenType.GT,
        TokenType.GTE,
        TokenType.HEX_STRING,
        TokenType.ILIKE,
        TokenType.IN,
        TokenType.INTERVAL,
        TokenType.IS,
        TokenType.LIKE,
        TokenType.LT,
        TokenType.LTE,
        TokenType.L_BRACKET,
        TokenType.L_PAREN,
        TokenType.MOD,
        TokenType.NEQ,
        TokenType.NOT,
        TokenType.NULL,
        TokenType.NULLSAFE_EQ,
        TokenType.NUMBER,
        TokenType.OR,
        TokenType.PIPE,
        TokenType.PLUS,
        TokenType.RAW_STRING,
        TokenType.RLIKE,
        TokenType.R_BRACKET,
        TokenType.R_PAREN,
        TokenType.SLASH,
        TokenType.STRING,
        TokenType.THEN,
        TokenType.TILDE,
        TokenType.TRUE,
        TokenType.WHEN,
    }
)
"""Operators, literals, and what holds expressions together."""

_TYPES = frozenset(
    {
        TokenType.BIGINT,
        TokenType.BINARY,
        TokenType.BOOLEAN,
        TokenType.DATE,
        TokenType.DECIMAL,
        TokenType.DOUBLE,
        TokenType.FLOAT,
        TokenType.INT,
        TokenType.TEXT,
        TokenType.TIMESTAMP,
        TokenType.TIMESTAMPTZ,
    }
)
_UNITS = frozenset(
    {f"{unit}{end}" for unit in ("day", "hour", "minute", "second", "week") for end in ("", "s")}
)


def is_known_word(tokens: Sequence[Token], at: int) -> bool:
    """Whether a token is an operator, a literal, or the name of a type or unit in its place."""
    token = tokens[at]
    kind, before = token.token_type, tokens[at - 1].token_type
    behind = tokens[at + 1].token_type if at + 1 < len(tokens) else None
    if kind is TokenType.STAR:  # a product, not all columns
        return before not in (TokenType.L_PAREN, TokenType.COMMA, TokenType.DOT)
    if kind is TokenType.ALIAS:
        return behind in _TYPES
    if kind is TokenType.DCOLON:
        return True
    if kind in _TYPES and before in (TokenType.ALIAS, TokenType.DCOLON):
        return True
    if kind in (TokenType.DATE, TokenType.TIMESTAMP, TokenType.TIMESTAMPTZ):
        return behind is TokenType.STRING
    if kind is TokenType.VAR and token.text.lower() in _UNITS:
        return at > 1 and tokens[at - 2].token_type is TokenType.INTERVAL
    return kind in _OPERATORS
