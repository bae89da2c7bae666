"""
Taking the query of a cumulative aggregate apart: its keys, its WHERE, what it reads.

Rows of one key are found again by the key alone, so each key has to be a column of the table, and
nothing in the query may look beyond the rows of one key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from infold.analysis.inputs.fold_inputs import FoldInputs, fold_inputs_of
from infold.analysis.names.column_lineage import Tracer
from infold.analysis.names.relation import Block, Origin, Table, own_nodes
from infold.analysis.names.select_parts import (
    QueryPieces,
    calls_over_rows,
    clauses_beyond_row_wise,
    first_outside,
    group_of_several_sets,
    qualifier_spans,
)
from infold.analysis.names.subject import Subject, time_column
from infold.analysis.sql.functions import is_aggregate
from infold.analysis.sql.token_calls import Call, calls, split_arguments
from infold.core.aggregates import AGGREGATES
from infold.core.queries import (
    ALL_COLUMNS,
    VALID_FROM,
    VALID_TO,
    Aggregate,
    FollowedSelect,
    GroupedQuery,
    Output,
    SnapshotFiles,
    VersionedQuery,
    quoted,
)
from infold.messages import refusals
from infold.messages.errors import InfoldError, Spot


@dataclass(frozen=True, slots=True)
class GroupedParts:
    """The parts of a grouped query, and what was wrong with it."""

    query: GroupedQuery | None
    errors: tuple[InfoldError, ...] = ()


def split_cumulative_query(subject: Subject) -> GroupedParts:
    """The parts of a cumulative aggregate's query."""
    errors = [refusals.not_by_key(at, what=what) for what, at in _refused_constructs(subject)]
    block = subject.relation
    if errors or not isinstance(block, Block):
        return GroupedParts(None, tuple(errors))
    first = subject.text.tokens[0]
    if first.token_type is not TokenType.SELECT:  # FROM … SELECT …, or parentheses around it all
        at = subject.text.spot_of_token(first)
        return GroupedParts(None, (refusals.not_by_key(at, what=f"{first.text} before SELECT"),))
    taker = CumulativeSplitter(subject, block)
    keys = taker.keys()
    name = taker.input()
    if taker.errors:
        return GroupedParts(None, tuple(taker.errors))
    having = bool(block.node.args.get("having"))
    where, followed = taker.where(), followed_select(taker.cut, block, taker.items, keys)
    query = GroupedQuery(name, tuple(keys), where, taker.columns(), having, followed)
    return GroupedParts(query)


_FINE = ("GROUP BY", "HAVING")


def _refused_constructs(subject: Subject) -> Iterator[tuple[str, Spot]]:
    """Constructs that look beyond one table and the rows of one key."""
    text, block = subject.text, subject.relation
    yield from (
        (what, at) for what, at in clauses_beyond_row_wise(text, block) if what not in _FINE
    )
    if not isinstance(block, Block):
        return
    for what, node in calls_over_rows(block):
        if what != "an aggregate":
            yield what, text.spot_of(node)
    for item in block.node.expressions:
        if item.is_star:
            yield "a star", text.spot_of_token(text.tokens[1])
    if group_of_several_sets(block) is not None:
        token = text.token_after(-1, TokenType.GROUP_BY)
        yield "GROUPING SETS, ROLLUP and CUBE", text.spot_of_token(token or text.tokens[0])


@dataclass(slots=True)
class CumulativeSplitter:
    """Takes one SELECT over one table apart."""

    subject: Subject
    block: Block
    errors: list[InfoldError] = field(default_factory=list)
    cut: QueryPieces = field(init=False)
    items: list[tuple[int, int]] = field(init=False)
    """The items of the SELECT as ranges of tokens, without their aliases."""

    def __post_init__(self) -> None:
        text = self.subject.text
        self.cut = QueryPieces(text, qualifier_spans(self.block))
        begin = 2 if text.tokens[1].token_type is TokenType.ALL else 1
        ranges = split_arguments(text.tokens, begin, first_outside(text.tokens, TokenType.FROM))
        self.items = []
        for (start, stop), item in zip(ranges, self.block.node.expressions, strict=True):
            if isinstance(item, exp.Alias):
                aliased = text.tokens[stop - 2].token_type is TokenType.ALIAS
                stop -= 2 if aliased else 1
            self.items.append((start, stop))

    def keys(self) -> list[Output]:
        """The keys of GROUP BY, each a column of the table."""
        text, group = self.subject.text, self.block.node.args.get("group")
        if group is None:
            self.errors.append(refusals.no_group_by(text.spot_of_token(text.tokens[0])))
            return []
        if group.args.get("all"):
            chosen = [at for at, item in enumerate(self._outputs()) if not _is_aggregated(item)]
            return self._output_names(chosen)
        tokens = text.tokens
        start = first_outside(tokens, TokenType.GROUP_BY) + 1
        ranges = split_arguments(
            tokens, start, first_outside(tokens, TokenType.HAVING, start=start)
        )
        positions: dict[int, None] = {}
        for (begin, end), key in zip(ranges, group.expressions, strict=True):
            at = self._output_of(begin, end, key)
            if at is None:
                spot = text.spot(tokens[begin].start, tokens[end - 1].end + 1)
                self.errors.append(refusals.key_not_selected(spot))
            else:
                positions[at] = None
        return self._output_names(list(positions))

    def _outputs(self) -> list[exp.Expr]:
        return [item.unalias() for item in self.block.node.expressions]

    def _output_names(self, chosen: list[int]) -> list[Output]:
        outputs = []
        for at in chosen:
            start, stop = self.items[at]
            item = self.block.node.expressions[at]
            if any(part in self.block.aliases for part in item.find_all(exp.Column)):
                tokens = self.subject.text.tokens
                spot = self.subject.text.spot(tokens[start].start, tokens[stop - 1].end + 1)
                self.errors.append(refusals.not_by_key(spot, what="a key made of another output"))
            outputs.append(Output(item.alias_or_name, self.cut.sql_of(start, stop)))
        return outputs

    def _output_of(self, begin: int, end: int, key: exp.Expr) -> int | None:
        """Which item of the SELECT a key is: by its number, its alias, or the same expression."""
        tokens = self.subject.text.tokens
        if end - begin == 1 and tokens[begin].token_type is TokenType.NUMBER:
            at = int(tokens[begin].text) - 1
            return at if 0 <= at < len(self.items) else None
        while isinstance(key, exp.Paren):
            key, begin, end = key.this, begin + 1, end - 1
        if not (isinstance(key, exp.Column) and key in self.block.aliases):
            words = self.cut.words(begin, end)
            for at, (start, stop) in enumerate(self.items):
                if self.cut.words(start, stop) == words:
                    return at
        return self._output_by_alias(key)

    def _output_by_alias(self, key: exp.Expr) -> int | None:
        """The item with the alias of a key, unless the key is, or may be, a column of the input."""
        if not isinstance(key, exp.Column) or len(key.parts) != 1:
            return None
        if isinstance(self.block.origins.get(key), Origin):
            return None
        for at, item in enumerate(self.block.node.expressions):
            if item.alias_or_name.lower() == key.name.lower():
                same = (part.name.lower() == key.name.lower() for part in item.find_all(exp.Column))
                return None if any(same) else at
        return None

    def input(self) -> str:
        """The name in FROM: a stored table, or a row-wise view over one."""
        table = self.block.entries[0].relation
        assert isinstance(table, Table), "anything else is a construct that was refused"
        node = self.subject.nodes.get(table.name)
        fed = fold_inputs_of(self.subject, table) if node is not None else None
        if fed is not None and (fed.why_not or not _fold_inputs(fed)):
            at = self.subject.text.spot_of(self.block.entries[0].node)
            why = fed.why_not or "tables without times are joined, or put together, in it"
            refused, of_versions = f"a view where {why}", self.subject.model.versions is not None
            self.errors.append(
                refusals.not_versions(at, what=refused)
                if of_versions
                else refusals.not_by_key(at, what=refused)
            )
        return table.name

    def where(self) -> str | None:
        """The condition as SQL over the input, before GROUP BY; None where there is none."""
        if not self.block.node.args.get("where"):
            return None
        tokens = self.subject.text.tokens
        start = first_outside(tokens, TokenType.WHERE) + 1
        return self.cut.sql_of(start, first_outside(tokens, TokenType.GROUP_BY, start=start))

    def columns(self) -> tuple[str, ...] | None:
        """The columns of the input that the query names; None when that is not known."""
        columns: dict[str, None] = {}
        for node in self.block.expressions():
            if not isinstance(node, exp.Column) or node in self.block.aliases:
                continue
            origin = self.block.origins.get(node)
            if not isinstance(origin, Origin) or isinstance(node.this, exp.Star):
                return None
            columns[origin.column] = None
        return tuple(columns)


def _fold_inputs(fed: FoldInputs) -> bool:
    """Whether the tables' changes can be followed; each of several needs a time column."""
    alone = len(fed.inputs) == 1 and not fed.lookups
    return alone or all(time_column(feed.node) is not None for feed in fed.inputs)


def _is_aggregated(item: exp.Expr) -> bool:
    return any(is_aggregate(node) for node in own_nodes(item))


# An aggregate that has a state follows from the rows that come and go. If all of a query have one,
# its rows do. As in sessions, the text of arguments and conditions is the user's own.


def followed_select(
    cut: QueryPieces, block: Block, items: Sequence[tuple[int, int]], keys: Iterable[Output]
) -> FollowedSelect | None:
    """
    The parts of a SELECT with GROUP BY, if all its aggregates have states.

    ``items`` are those of the SELECT as ranges of tokens, without their aliases. None also where a
    column stands outside the aggregates and is no key.
    """
    taker = _Taker(cut, block)
    by_key = {key.name for key in keys}
    outputs = []
    for (start, stop), item in zip(items, block.node.expressions, strict=True):
        name = item.alias_or_name
        sql = "" if name in by_key else taker.over_aggregates(start, stop, item, frozenset())
        if sql is None:
            return None
        outputs.append(Output(name, sql))
    having, node = None, block.node.args.get("having")
    if node is not None:
        tokens = cut.text.tokens
        start = first_outside(tokens, TokenType.HAVING) + 1
        shown = frozenset(output.name.lower() for output in outputs)
        having = taker.over_aggregates(start, len(tokens), node, shown)
        if having is None:
            return None
    end = cut.text.tokens[first_outside(cut.text.tokens, TokenType.FROM)].start
    return FollowedSelect(tuple(taker.aggregates.values()), tuple(outputs), end, having)


@dataclass(slots=True)
class _Taker:
    cut: QueryPieces
    block: Block
    aggregates: dict[tuple[str, ...], Aggregate] = field(default_factory=dict)

    def over_aggregates(
        self, start: int, stop: int, node: exp.Expr, outputs: frozenset[str]
    ) -> str | None:
        """
        Some tokens with the names of aggregates for their calls.

        ``outputs`` may be named outside of aggregates, in lower case. None where another column is,
        or a call has no state.
        """
        tokens, behind = self.cut.text.tokens, start
        named: list[tuple[int, int, str]] = []
        for call in calls(tokens, start, stop):
            if call.start < behind or call.name not in AGGREGATES:
                continue
            aggregate = self._aggregate(call)
            if aggregate is None:
                return None
            name = f"_a{len(self.aggregates)}"
            words = self.cut.words(call.start, call.end)
            own = self.aggregates.setdefault(words, Aggregate(name, *aggregate))
            named.append((tokens[call.start].start, tokens[call.end - 1].end + 1, own.name))
            behind = call.end
        if not all(self._may_stand(column, named, outputs) for column in node.find_all(exp.Column)):
            return None
        return self.cut.sql_of(start, stop, named)

    def _may_stand(
        self, column: exp.Column, named: Sequence[tuple[int, int, str]], outputs: frozenset[str]
    ) -> bool:
        """Whether a column is in an aggregate's call, or is an output and nothing else."""
        at = column.this.meta.get("start")
        if isinstance(column.this, exp.Star) or at is None:
            return False
        alias = column in self.block.aliases
        if any(a <= at < b for a, b, _ in named):
            return not alias
        return alias and column.name.lower() in outputs and len(column.parts) == 1

    def _aggregate(
        self, call: Call
    ) -> tuple[str, str | None, str | None, bool, str, bool, str | None] | None:
        """The fields of an aggregate behind its name; None: it has no state."""
        follows = AGGREGATES[call.name].follows
        arguments = [self.cut.sql_of(*part) for part in call.arguments]
        order = None
        if follows is None or call.within or call.over or call.nulls is not None:
            return None
        if call.distinct and follows not in ("min", "max", "bool_and", "bool_or"):
            return None
        if follows in ("min_by", "max_by") and len(arguments) == 2:
            order = arguments.pop()
        elif follows in ("min_by", "max_by") or len(arguments) != 1:
            return None
        argument: str | None = arguments[0]
        start, stop = call.arguments[0]
        one = self.cut.text.tokens[start]
        if follows == "count" and stop - start == 1 and one.token_type is TokenType.STAR:
            argument = None
        where = self.cut.sql_of(*call.filter) if call.filter else None
        sql = self.cut.sql_of(call.start, call.end)
        return follows, argument, where, False, sql, call.distinct, order


# The query gives at most one row for each row of one table, so the versions of a key follow from
# the table's rows with that key.


@dataclass(frozen=True, slots=True)
class VersionedParts:
    """The parts of a query of versions, and what was wrong with it."""

    query: VersionedQuery | None
    errors: tuple[InfoldError, ...] = ()


def split_versioned_query(subject: Subject) -> VersionedParts:
    """The parts of the query of an ``scd_type_2`` model."""
    rules, block, text = subject.model.versions, subject.relation, subject.text
    assert rules is not None, "such a model declares what a version is"
    refused = [
        refusals.not_versions(at, what=what) for what, at in clauses_beyond_row_wise(text, block)
    ]
    if refused or not isinstance(block, Block):
        return VersionedParts(None, tuple(refused))
    refused += [
        refusals.not_versions(text.spot_of(node), what=what)
        for what, node in calls_over_rows(block)
    ]
    if text.tokens[0].text.upper() != "SELECT":
        what = f"{text.tokens[0].text} before SELECT"
        refused.append(refusals.not_versions(text.spot_of_token(text.tokens[0]), what=what))
    refused += _wrong_names(subject, block)
    if refused:
        return VersionedParts(None, tuple(refused))
    splitter = CumulativeSplitter(subject, block)
    for key in (*subject.model.unique_key, rules.updated_at):
        item = _item_of(block, key)
        if item and any(part in block.aliases for part in item.find_all(exp.Column)):
            what = "a key or a time made of another output"
            start, stop = _span(splitter, block, item)
            at = text.spot(text.tokens[start].start, text.tokens[stop - 1].end + 1)
            refused.append(refusals.not_versions(at, what=what))
    if refused:
        return VersionedParts(None, tuple(refused))
    name = splitter.input()
    if splitter.errors:
        return VersionedParts(None, tuple(splitter.errors))
    names = {column.lower(): column for column in block.columns or ()}
    declared = (*subject.model.unique_key, rules.updated_at, *rules.columns)
    if not {name.lower() for name in declared} <= names.keys() | {ALL_COLUMNS}:
        return VersionedParts(None)  # which the rule on columns says
    keys = tuple(
        Output(names[key.lower()], _sql_of(splitter, block, key))
        for key in subject.model.unique_key
    )
    time = _sql_of(splitter, block, rules.updated_at)
    # A row without its instant is a version at no time.
    where = " AND ".join(
        f"({part})" for part in (splitter.where(), f"({time}) IS NOT NULL") if part is not None
    )
    stars = any(map(_is_star, block.node.expressions))
    grouped = GroupedQuery(name, keys, where, None if stars else splitter.columns())
    compared = None
    if rules.columns:
        uncompared = {key.lower() for key in subject.model.unique_key} | {rules.updated_at.lower()}
        chosen = names if rules.columns == (ALL_COLUMNS,) else map(str.lower, rules.columns)
        compared = tuple(names[one] for one in chosen if one not in uncompared)
    deletes = rules.invalidate_hard_deletes
    files = _snapshot_files(subject, block, rules.updated_at) if deletes else None
    query = VersionedQuery(grouped, names[rules.updated_at.lower()], compared, deletes, files)
    return VersionedParts(query)


def _snapshot_files(subject: Subject, block: Block, time: str) -> SnapshotFiles | None:
    """The files behind the rows of a query, where its ``time`` is made of the time of the file."""
    tracer, [entry], item = Tracer(subject.nodes), block.entries, _item_of(block, time)
    assert isinstance(entry.relation, Table), "anything else is a construct that was refused"
    if item is None:
        values = tracer.traced_column(entry.relation, time.lower(), (entry,))
    else:
        _, values = tracer.traced_value(block, item.unalias(), (entry,)) or (entry, ())
    fed = [one.node for one in fold_inputs_of(subject, entry.relation).inputs]
    if len(values) != 1 or [node.name for node in fed if node.landed] != [values[0].table]:
        return None
    column = subject.sources[values[0].table].file_time_column
    named = {one.name.lower() for one in values[0].value.find_all(exp.Column)}
    if column is None or named != {column.lower()}:
        return None
    return SnapshotFiles(values[0].table, column, values[0].sql)


def _wrong_names(subject: Subject, block: Block) -> Iterator[InfoldError]:
    """Columns that the query must not give, or that are not known."""
    at = subject.text.spot_of_token(subject.text.tokens[0])
    if block.columns is None:
        yield refusals.not_versions(at, what="unknown columns")
    for name in block.columns or ():
        if name.lower() in (VALID_FROM, VALID_TO):
            yield refusals.column_of_versions(at, column=name)


def _item_of(block: Block, name: str) -> exp.Expr | None:
    """The item of the SELECT with a name; None where a star passes it on."""
    items = (item for item in block.node.expressions if not _is_star(item))
    return next((item for item in items if item.alias_or_name.lower() == name.lower()), None)


def _sql_of(splitter: CumulativeSplitter, block: Block, name: str) -> str:
    """An output column as SQL over a row of the input."""
    item = _item_of(block, name)
    if item is None:
        return quoted(name)
    return splitter.cut.sql_of(*_span(splitter, block, item))


def _span(splitter: CumulativeSplitter, block: Block, item: exp.Expr) -> tuple[int, int]:
    """The tokens of an item, without its alias."""
    at = next(at for at, one in enumerate(block.node.expressions) if one is item)
    return splitter.items[at]


def _is_star(item: exp.Expr) -> bool:
    return isinstance(item, exp.Star) or item.is_star
