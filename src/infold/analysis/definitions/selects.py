"""The form of one SELECT, clause by clause."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from infold.analysis.definitions.clauses import Doubt, FromItem, Range
from infold.analysis.definitions.expressions import Expressions, Terms, Word, digest, is_star
from infold.analysis.definitions.places import (
    Need,
    Place,
    all_positions,
    columns_of,
    position,
)
from infold.analysis.names.relation import FromEntry, OtherRows, Table, without_renaming
from infold.analysis.names.select_parts import is_grouped, several_sets
from infold.analysis.sql.functions import TABLE_FUNCTIONS
from infold.analysis.sql.token_calls import split_arguments

_PHYSICAL_HINTS = frozenset(
    {
        "broadcast",
        "broadcastjoin",
        "coalesce",
        "mapjoin",
        "merge",
        "mergejoin",
        "rebalance",
        "repartition",
        "repartition_by_range",
        "shuffle_hash",
        "shuffle_merge",
        "shuffle_replicate_nl",
    }
)
"""They decide where rows are computed and how many files they fill."""
_HINT = re.compile(r"(\w+)\s*(?:\([^()]*\))?")
_ORDERS = ("order", "sort", "cluster", "distribute")


class Select(Expressions):
    """One SELECT as canonical forms, clause by clause; what has none raises Doubt."""

    __slots__ = ()

    def form(self, positions: frozenset[int], *, whole: bool) -> tuple[object, frozenset[Need]]:
        """
        The form of its rows, relative to the columns at some positions.

        Also the columns that it needs of stored tables and of SELECTs around it. The order of the
        rows of a ``whole`` query does not count.
        """
        ranges, needs = self.parts.ranges, set[Need]()
        cut = "limit" in ranges or "offset" in ranges
        group, ordered = self._group(needs)
        if ordered or cut or self.parts.distinct or self._generates():
            positions = all_positions(self.block)
        outputs: list[object] = []
        for at in sorted(positions):
            form, more = self.output(at)
            needs |= more
            outputs.append(form)
        clauses: list[object] = [
            ("where", self._conditions("where", needs)),
            ("group", group),
            ("having", "having" in ranges, self._conditions("having", needs)),
            ("qualify", self._conditions("qualify", needs)),
            ("windows", self._words_of("windows", needs)),
            ("limit", self._words_of("limit", needs), self._words_of("offset", needs)),
            ("one", is_grouped(self.block)),
            ("distinct", self.parts.distinct),
            ("hint", self._hint()),
        ]
        if cut or not whole:
            clauses += [(key, self._order(key, needs)) for key in _ORDERS if key in ranges]
        if ordered:
            names = [self.folded(name) for name in self.block.columns or ()]
            clauses.append(("columns", list(zip(names, outputs, strict=True))))
        else:
            clauses.append(("columns", sorted(set(map(str, outputs)))))
        entries = self._from(needs)
        return ("select", entries, clauses), frozenset(needs)

    def source_rows(self, needs: set[Need], left_out: Mapping[str, Collection[str]]) -> str:
        """
        The form of the rows, or groups, that the outputs are made of, seen in what they need.

        Conditions with forms in ``left_out``, by clause, do not count. Raises Doubt where the rows
        of the query are not as many: DISTINCT, LIMIT, QUALIFY, a generator.
        """
        ranges = self.parts.ranges
        group, ordered = self._group(needs)
        one = is_grouped(self.block)
        if {"limit", "offset", "qualify"} & ranges.keys() or self.parts.distinct:
            raise Doubt
        if ordered or self._generates() or (one or "having" in ranges) != ("group" in ranges):
            raise Doubt
        conditions = [
            [form for form in self._conditions(key, needs) if form not in left_out.get(key, ())]
            for key in ("where", "having")
        ]
        clauses = (group, conditions, self._words_of("windows", needs), self._hint())
        return digest((clauses, self._from(needs)))

    def column_at(self, at: int) -> exp.Column | None:
        """The column that a token begins."""
        return self._columns.get(self.block.text.tokens[at].start)

    def column_of_field(self, at: int, clause: str) -> tuple[str, tuple[str, ...]] | None:
        """The form of the column that a field at a token is of, and the fields; None if none."""
        column = self.column_at(at)
        origin = None if column is None else self.block.origins.get(column)
        if column is None or origin is None or not origin.fields or clause not in ("", "where"):
            return None
        if self.block.aliases.get(column) is not None:
            return None
        names = [part.name for part in column.parts]
        before = names[: len(names) - len(origin.fields)]
        struct = replace(origin, fields=())
        word = self._origin(struct, len(before) > 1, before, set())
        return digest((word,)), tuple(names[len(before) :])

    def _generates(self) -> bool:
        """Whether an output makes several rows of one."""
        return any(
            self.calls(at) in TABLE_FUNCTIONS
            for start, stop in self.parts.items
            for at in range(start, stop)
        )

    def _hint(self) -> str:
        inside = self.parts.hint.removeprefix("/*+").removesuffix("*/")
        names = {name.lower() for name in _HINT.findall(inside)}
        return "" if names <= _PHYSICAL_HINTS else self.parts.hint

    # -- clauses

    def _words_of(self, key: str, needs: set[Need]) -> tuple[Word, ...]:
        return self.words(self.parts.ranges[key], needs, key) if key in self.parts.ranges else ()

    def _group(self, needs: set[Need]) -> tuple[object, bool]:
        """What is grouped by, and whether the order of all outputs decides about it."""
        group, span = self.block.node.args.get("group"), self.parts.ranges.get("group")
        if group is None or span is None:
            return None, False
        start, stop = span
        tokens = self.block.text.tokens
        if tokens[start].token_type is TokenType.ALL and stop == start + 1:
            for at in all_positions(self.block):
                needs |= self.output(at)[1]
            return ("all", sorted(self.output(at)[0] for at in all_positions(self.block))), False
        if several_sets(group) or group.args.get("all"):
            return self.words(span, needs, "group"), True
        keys = set()
        for item in split_arguments(tokens, start, stop):
            keys.add(self._numbered(item, needs, "group"))
        return sorted(keys), False

    def grouped(self) -> object:
        """The form of GROUP BY, the same for any order of its keys; None without one."""
        return self._group(set())[0]

    def on(self, item: FromItem) -> Terms:
        """The conditions of a join."""
        return self.all_of(item.on, set(), "on") if item.on is not None else []

    def _numbered(self, span: Range, needs: set[Need], clause: str) -> str:
        """The form of an item of GROUP BY or ORDER BY, which may be the number of an output."""
        inside = self.unbracketed(span)
        token = self.block.text.tokens[inside[0]]
        if inside[1] - inside[0] > 1 or token.token_type is not TokenType.NUMBER:
            return self.expression(span, needs, clause)
        if not token.text.isdigit():
            return self.expression(span, needs, clause)
        at = int(token.text) - 1
        if not 0 <= at < len(self._items) or any(map(is_star, self.block.node.expressions)):
            raise Doubt
        form, more = self.output(at)
        needs |= more
        return form

    def _order(self, key: str, needs: set[Need]) -> object:
        tokens = self.block.text.tokens
        items: list[object] = []
        for start, stop in split_arguments(tokens, *self.parts.ranges[key]):
            end = stop
            if tokens[end - 2].text.upper() == "NULLS" and end - start > 2:
                end -= 2
            if tokens[end - 1].token_type in (TokenType.ASC, TokenType.DESC):
                end -= 1
            if tokens[start].token_type is TokenType.ALL and end == start + 1:
                raise Doubt
            words = self.words((end, stop), needs) if end < stop else ()
            items.append((self._numbered((start, end), needs, key), words))
        return items

    def _conditions(self, key: str, needs: set[Need]) -> list[str]:
        return sorted({form for form, _ in self.conditions(key, needs)})

    # -- FROM

    def _from(self, needs: set[Need]) -> list[object]:
        """What is read, in order; takes what it needs itself out of ``needs``."""
        pairs = list(self._entries())
        joins = [self._joined(item, entry, needs) for item, entry in pairs]
        rows: dict[FromEntry, object] = {}
        for entry in reversed(self.block.entries):  # a lateral one needs those before it
            item = next(item for item, read_from in pairs if read_from is entry)
            places = {place for read_from, place in needs if read_from is entry}
            needs -= {(entry, place) for place in places}
            rows[entry], free = self._rows(entry, item, places, needs)
            needs |= free
        if any(read_from in rows for read_from, _ in needs):
            raise Doubt
        return [
            (join, self.forms.label(entry)[1], rows[entry])
            for join, (_, entry) in zip(joins, pairs, strict=True)
        ]

    def _entries(self) -> Iterator[tuple[FromItem, FromEntry]]:
        """The entries in the order of the text; the block has LATERAL VIEWs before joins."""
        entries, items = self.block.entries, self.parts.froms
        views = sum(item.joined[:1] == ("lateral",) for item in items)
        if len(entries) != len(items):
            raise Doubt
        lateral, joined = iter(entries[1 : 1 + views]), iter(entries[1 + views :])
        for at, item in enumerate(items):
            if at == 0:
                yield item, entries[0]
            else:
                yield item, next(lateral if item.joined[0] == "lateral" else joined)

    def _joined(self, item: FromItem, entry: FromEntry, needs: set[Need]) -> object:
        """How an entry is joined to those before it."""
        on = using = columns = None
        if item.on is not None:
            on = sorted({form for form, _ in self.all_of(item.on, needs, "on")})
        if item.using is not None:
            start, stop = item.using
            words = self.block.text.tokens[start + 1 : stop - 1 : 2]
            using = [self._shared(token.text.lower(), needs) for token in words]
        if "natural" in item.joined:
            columns = self.all_columns(needs, hidden=True)
        return item.joined, entry.lateral, on, using, columns

    def _shared(self, name: str, needs: set[Need]) -> object:
        columns = []
        for at, entry in enumerate(self.block.entries):
            if name in (entry.names or ()):
                place = self.place(entry, name)
                needs.add((entry, place))
                columns.append((at, self.forms.column(entry.relation, place)))
        return name, columns

    def _rows(
        self, entry: FromEntry, item: FromItem, places: set[Place], needs: set[Need]
    ) -> tuple[object, frozenset[Need]]:
        relation = without_renaming(entry.relation)
        if isinstance(relation, OtherRows):
            return ("rows", self._generated(entry, item, needs)), frozenset()
        if isinstance(relation, Table) and relation.view is None:
            return self.forms.form(relation, frozenset())[0], columns_of(relation, places)
        relation = entry.relation
        positions = {at if isinstance(at, int) else position(relation, at) for at in places}
        return self.forms.form(relation, frozenset(positions))

    def _generated(self, entry: FromEntry, item: FromItem, needs: set[Need]) -> object:
        """VALUES, a table function or a LATERAL VIEW: rows that follow from its words."""
        start, stop = item.what
        tokens = self.block.text.tokens
        opens = stop - start > 1 and self.kind(start + 1) is TokenType.L_PAREN
        if not (opens or self.kind(start) in (TokenType.VALUES, TokenType.L_PAREN)):
            raise Doubt  # the name of a CTE
        names = self.words(item.what, needs)
        lateral = item.joined[:1] == ("lateral",)
        if not lateral and entry.node.find(exp.Column, exp.Query):
            raise Doubt
        if any(token.token_type is TokenType.SELECT for token in tokens[start:stop]) or (
            entry.relation.columns is None
        ):
            raise Doubt
        return names, len(entry.relation.columns)
