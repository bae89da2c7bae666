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

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from sqlglot.tokenizer_core import TokenType

from infold.analysis.definitions.canonical import Canon
from infold.analysis.definitions.clauses import Doubt, Range
from infold.analysis.definitions.expressions import Terms
from infold.analysis.definitions.meanings import Meaning
from infold.analysis.definitions.places import Need
from infold.analysis.definitions.row_words import FUNCTIONS, is_known_word
from infold.analysis.definitions.selects import Select
from infold.analysis.definitions.widened import cast_of, is_widened
from infold.analysis.names.relation import Block, Table
from infold.analysis.sql.functions import BUILT_IN
from infold.analysis.sql.token_calls import closing_bracket
from infold.core.definition import Derivation
from infold.core.model import Kind
from infold.core.project import Node
from infold.core.quoting import quoted

_CONDITIONS = ("where", "having")


def derivation(before: Meaning, after: Meaning, kept: Collection[str]) -> Derivation | None:
    """
    How the new rows follow from the stored ones; None where that is not proven.

    ``kept`` are the columns with a proof that they have the same values in the same rows. Both
    definitions are equal in everything but the query, and where the table starts.
    """
    old, new = before.node, after.node
    kinds = {old.model.kind, new.model.kind}
    if kinds not in ({Kind.INCREMENTAL_TABLE}, {Kind.EVENTS}) or old.landed or new.landed:
        return None
    if any(of.overrides_used or of.bounds_declared or of.downgraded for of in (old, new)):
        return None
    if any("collat" in sql.lower() for sql in (*before.queries, *after.queries)):
        return None  # a table does not store how its strings compare
    stored = {name.lower(): name for name in old.columns}
    names = [name.lower() for name in new.columns]
    if len(stored) < len(old.columns) or len(set(names)) < len(names):
        return None
    if kinds == {Kind.EVENTS}:
        return _of_events(before, after)
    if set(names) <= set(kept):
        columns = tuple((name, quoted(stored[name.lower()])) for name in new.columns)
        return Derivation(columns, stored=old.columns)
    try:
        found = over_stored_rows(before, after)
    except (Doubt, RecursionError):
        return None
    return found if _in_same_cells(new, found) else None


def _of_events(before: Meaning, after: Meaning) -> Derivation | None:
    """
    The same for events: what the stored rows do not tell is read from the files.

    A stored row is found again by its key and its time, so these have to stay. Which copy of an
    event is kept may depend on all columns; whether there were copies, the ledger says.
    """
    new = after.node
    if before.node.start != new.start:
        return None  # rows before the start are counted as they are read
    try:
        found = over_stored_rows(before, after, files=True)
    except (Doubt, RecursionError):
        return None
    series = new.model.timeseries
    identity = {name.lower() for name in new.model.unique_key}
    identity |= {series.event_time_column.lower()} if series is not None else set()
    if identity - {name.lower() for name, was in found.plain if name.lower() == was.lower()}:
        return None
    read = [
        {column.name for column in of.source.columns} if of.source is not None else set()
        for of in (before, after)
    ]
    if read[1] - read[0] and not found.from_files:
        return None  # no file was ever checked for these
    return replace(found, other_source_columns=read[0] != read[1])


def _in_same_cells(node: Node, found: Derivation) -> bool:
    """Whether each row stays in its cell, and at its time."""
    series = node.model.timeseries
    if series is None:
        return False
    places = {series.partition_column.lower(), series.event_time_column.lower()}
    same = {new.lower() for new, old in found.plain if new.lower() == old.lower()}
    return not ({name.lower() for name in (*node.columns, *found.stored)} & places) - same


def over_stored_rows(before: Meaning, after: Meaning, *, files: bool = False) -> Derivation:
    """
    What the new SELECT says about outputs of the old one; raises Doubt.

    With ``files`` a column that it does not say is one to read from the files.
    """
    letters = before.structs or after.structs
    old, new = (
        _select(meaning, Canon(meaning.prints, letters=letters, renamed=meaning.renamed))
        for meaning in (before, after)
    )
    stored = _Stored(old, new, before.node.columns)
    columns = [(name, stored.known(at, files=files)) for at, name in enumerate(after.node.columns)]
    unknown = tuple(name for name, sql in columns if not sql)
    added = {key: _added(old.conditions(key), new.conditions(key)) for key in _CONDITIONS}
    if any(added.values()) and _has_window(new):
        raise Doubt
    where = [stored.condition(key, span) for key in _CONDITIONS for span in added[key].values()]
    old_needs = {need for at in stored.used for need in old.output(at)[1]}
    new_needs: set[Need] = set()
    for at, (_, sql) in enumerate(columns):
        new_needs |= new.output(at)[1] if sql else set()
    if old.source_rows(old_needs, {}) != new.source_rows(new_needs, added):
        raise Doubt
    return Derivation(
        tuple(columns),
        tuple(where),
        frozenset(stored.grouped),
        frozenset(stored.read_by_value),
        before.node.columns,
        from_files=unknown,
    )


def _added(before: Terms, after: Terms) -> dict[str, Range]:
    """The conditions that only the new query has, by their forms."""
    known = dict(before)
    return {form: span for form, span in after if form not in known}


def _select(meaning: Meaning, canon: Canon) -> Select:
    """The one SELECT that a definition is."""
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


@dataclass(slots=True)
class _Stored:
    """The outputs of the ``old`` SELECT as columns of its table, for what the ``new`` one says."""

    old: Select
    new: Select
    names: tuple[str, ...]
    used: set[int] = field(default_factory=set)
    """The outputs that the new rows are made of."""
    grouped: set[str] = field(default_factory=set)
    read_by_value: set[str] = field(default_factory=set)
    _places: dict[str, int] = field(init=False)
    """The outputs by their forms."""
    _casts: dict[str, list[tuple[str, int]]] = field(init=False)
    """The outputs that are a CAST, with its type, by the forms of what they cast."""

    def __post_init__(self) -> None:
        every = range(len(self.names))
        self._places = {self.old.output(at)[0]: at for at in reversed(every)}
        self._casts = {}
        for at in every:
            if (span := self.old.written(at)) and (found := cast_of(self.old, span)):
                form = self.old.expression(found[0], set())
                self._casts.setdefault(form, []).append((found[1], at))

    def output(self, at: int) -> str:
        """An output of the new SELECT over stored columns."""
        same = self._stored(self.new.output(at)[0])
        if same is not None:
            return quoted(same)
        span = self.new.written(at)
        if span is None:
            raise Doubt
        return self._widened(span) or self._rewritten(span, "", None)

    def known(self, at: int, *, files: bool) -> str:
        """The same; empty for one that is read from ``files``."""
        before = set(self.used), set(self.read_by_value)
        try:
            return self.output(at)
        except Doubt:
            if not files:
                raise
            self.used, self.read_by_value = before
            return ""

    def _widened(self, span: Range) -> str:
        """A CAST of a stored value to a wider type than it was cast to; empty if it is none."""
        found = cast_of(self.new, span)
        if found is None:
            return ""
        for type_, at in self._casts.get(self.new.expression(found[0], set()), ()):
            if is_widened(type_, found[1]):
                self.used.add(at)
                return f"cast({quoted(self.names[at])} AS {found[1]})"
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
        return self._rewritten(span, clause, keys)

    def _stored(self, form: str) -> str | None:
        at = self._places.get(form)
        if at is None:
            return None
        self.used.add(at)
        return self.names[at]

    def _rewritten(self, span: Range, clause: str, keys: Collection[str] | None) -> str:
        """The text of an expression with stored columns in place of their values."""
        start, stop = span
        tokens, sql = self.new.block.text.tokens, self.new.block.text.sql
        parts, behind, at = list[str](), tokens[start].start, start
        while at < stop:
            end = self._value(at, stop)
            form = None if end is None else self.new.expression((at, end), set(), clause)
            name = None if form is None else self._stored(form)
            if end is not None and form is not None and name is not None:
                if keys is not None:
                    if form not in keys:
                        raise Doubt
                    self.grouped.add(name)
                if not self._is_plain_column(at):
                    self.read_by_value.add(name)
                parts += [sql[behind : tokens[at].start], quoted(name)]
                behind, at = tokens[end - 1].end + 1, end
            elif self.new.column_at(at) is not None or not self._is_known(at):
                raise Doubt
            else:
                at += 1
        return "".join([*parts, sql[behind : tokens[stop - 1].end + 1]])

    def _value(self, at: int, stop: int) -> int | None:
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
        """Whether a column is one of a stored table: then it has the type that is stored."""
        column = self.new.column_at(at)
        origin = None if column is None else self.new.block.origins.get(column)
        if origin is None or origin.fields:
            return False
        relation = origin.entry.relation
        return isinstance(relation, Table) and relation.view is None
