"""
Taking a sessions query apart: its aggregates, and its outputs as expressions over them.

The text of arguments and conditions is the user's own, so that Spark evaluates what was written;
only table names before columns are taken off (``c.amount`` becomes ``amount``), because the
engine evaluates the pieces over frames of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from infold.analysis.inputs.fold_inputs import FoldInputs, fold_inputs_of
from infold.analysis.names.relation import Block, Columns, Origin, Table
from infold.analysis.names.resolve import resolve, visible_columns
from infold.analysis.names.select_parts import (
    QueryPieces,
    calls_over_rows,
    clauses_beyond_row_wise,
    first_outside,
    qualifier_spans,
)
from infold.analysis.names.subject import Draft, Subject
from infold.analysis.rules import clock, random
from infold.analysis.sql.parse import parse
from infold.analysis.sql.text import Text
from infold.analysis.sql.token_calls import Call, calls, split_arguments
from infold.core.aggregates import AGGREGATES
from infold.core.model import Kind, Materialization, Model
from infold.core.project import Node
from infold.core.queries import Aggregate, Fallback, Output, SessionsQuery
from infold.core.sessions import IDENTIFIER, EventSql, Sessions
from infold.messages import findings, refusals
from infold.messages.errors import InfoldError, Spot


@dataclass(frozen=True, slots=True)
class SessionsParts:
    """The parts of a sessions query, and what was wrong with it."""

    query: SessionsQuery | None
    errors: tuple[InfoldError, ...]


@dataclass(slots=True)
class _SessionsSplitter:
    subject: Subject
    block: Block
    fixed: tuple[str, ...]
    """The columns that the model has besides those of the SELECT, lower-case."""
    visible: tuple[str, ...]
    """Those of them that outputs may use."""
    aggregates: dict[tuple[str, ...], Aggregate] = field(default_factory=dict)
    outputs: list[Output] = field(default_factory=list)
    errors: list[InfoldError] = field(default_factory=list)
    cut: QueryPieces = field(init=False)

    def __post_init__(self) -> None:
        self.cut = QueryPieces(self.subject.text, qualifier_spans(self.block))

    @property
    def text(self) -> Text:
        return self.subject.text

    @property
    def tokens(self) -> tuple[Token, ...]:
        return self.subject.text.tokens


def split_sessions_query(
    subject: Subject,
    time_column: str,
    key: tuple[str, ...],
    input_name: str,
    *,
    unique: bool = True,
) -> SessionsParts:
    """The parts of a sessions query over one input with a time column and a unique key."""
    block, sessions = subject.relation, subject.model.sessions
    if not isinstance(block, Block) or sessions is None:
        return SessionsParts(None, ())
    fixed, visible = (
        tuple(name.lower() for name in names)
        for names in (sessions.fixed_columns, sessions.visible_columns)
    )
    taker = _SessionsSplitter(subject, block, fixed, visible)
    taker.errors.extend(
        refusals.not_one_row_per_session(at, what=construct)
        for construct, at in clauses_beyond_row_wise(subject.text, block)
    )
    if taker.errors:
        return SessionsParts(None, tuple(taker.errors))
    first = subject.text.tokens[0]
    if first.token_type is not TokenType.SELECT:  # FROM … SELECT …, or parentheses around it all
        at = subject.text.spot_of_token(first)
        return SessionsParts(
            None, (refusals.not_one_row_per_session(at, what=f"{first.text} before SELECT"),)
        )
    _take_items(taker)
    if taker.errors:
        return SessionsParts(None, tuple(taker.errors))
    query = SessionsQuery(
        input=input_name,
        time_column=time_column,
        user=IDENTIFIER if sessions.identifier else str(sessions.user_column),
        gap=sessions.gap,
        key=key,
        unique=unique,
        where=_where(taker),
        aggregates=(*taker.aggregates.values(), *_own_aggregates(sessions)),
        outputs=tuple(taker.outputs),
        owner_sql=_owner_sql(sessions),
        chosen_user=_chosen_user(sessions),
        fallback=_fallback(sessions),
        cuts=sessions.cuts,
        quarantine_after=sessions.quarantine_after,
        keep=sessions.keep,
        numbered=sessions.numbered,
    )
    return SessionsParts(query, ())


def _owner_sql(sessions: Sessions) -> str | None:
    """SQL over an event for what sessions are of; None where a column says it."""
    if len(sessions.identifier) > 1:  # as strings: Spark would cast text to numbers otherwise
        return f"coalesce({', '.join(f'cast(({sql}) AS string)' for sql in sessions.identifier)})"
    if sessions.identifier:
        return sessions.identifier[0]
    return None if sessions.user_is_column else sessions.user


_USER, _EVENTS = "_user", "_events"


def _chosen_user(sessions: Sessions) -> Output | None:
    user = sessions.user_column if sessions.identifier else None
    return Output(user, _USER) if user else None


def _fallback(sessions: Sessions) -> Fallback | None:
    if sessions.fallback_gap is None or sessions.user is None:
        return None
    return Fallback(sessions.user, sessions.fallback_gap)


def _own_aggregates(sessions: Sessions) -> Iterator[Aggregate]:
    """Aggregates that the front matter asks for."""
    if sessions.identifier and sessions.user:
        call, user = sessions.choose.value, sessions.user
        yield Aggregate(_USER, call, user, None, True, f"{call}({user}, true)")
    # Known of every session, so that any can be put into quarantine by hand and go on there.
    yield Aggregate(_EVENTS, "count", None, None, False, "count(*)")


def _take_items(taker: _SessionsSplitter) -> None:
    tokens = taker.tokens
    end = first_outside(tokens, TokenType.FROM)
    begin = 2 if tokens[1].token_type is TokenType.ALL else 1
    ranges = split_arguments(tokens, begin, end)
    names_taken = set(taker.fixed)
    for (start, stop), item in zip(ranges, taker.block.node.expressions, strict=True):
        at = taker.text.spot(tokens[start].start, tokens[stop - 1].end + 1)
        if item.is_star:
            taker.errors.append(refusals.column_outside_aggregate(at, column="*"))
            continue
        if isinstance(item, exp.Alias):
            stop -= 2 if tokens[stop - 2].token_type is TokenType.ALIAS else 1
        name = item.alias_or_name if isinstance(item, (exp.Alias, exp.Column)) else ""
        if not name:
            taker.errors.append(refusals.unnamed_column(at))
        elif name.lower() in names_taken:
            taker.errors.append(refusals.session_column_given(at, column=name))
        sql = _take_item(taker, start, stop, item)
        taker.outputs.append(Output(name, sql))


def _take_item(taker: _SessionsSplitter, start: int, stop: int, item: exp.Expr) -> str:
    """One item of the SELECT as an expression over aggregates, which are noted on the way."""
    tokens, behind = taker.tokens, start
    inside: list[tuple[int, int]] = []
    named: list[tuple[int, int, str]] = []
    for call in calls(tokens, start, stop):
        if call.start < behind:
            if call.name in AGGREGATES and tokens[call.start - 1].text.upper() != "WITHIN":
                spot = taker.text.spot_of_token(tokens[call.start])
                taker.errors.append(refusals.nested_aggregate(spot, call=call.name))
            continue
        if call.name not in AGGREGATES:
            continue
        span = (tokens[call.start].start, tokens[call.end - 1].end + 1)
        inside.append(span)
        named.append((*span, _aggregate(taker, call)))
        behind = call.end
    for column in item.find_all(exp.Column):
        _check_column(taker, column, inside)
    return taker.cut.sql_of(start, stop, named)


def _check_column(
    taker: _SessionsSplitter, column: exp.Column, inside: list[tuple[int, int]]
) -> None:
    """Columns that every session has may be used beside aggregates, never inside them."""
    if isinstance(column.this, exp.Star):
        at = taker.text.spot_of(column)
        taker.errors.append(findings.unsupported_sql(at, what="a table's star in a call"))
        return
    start = column.this.meta["start"]
    name = column.name.lower()
    within = any(a <= start < b for a, b in inside)
    known = isinstance(taker.block.origins.get(column), Origin)
    at = taker.text.spot_of(column)
    if column in taker.block.aliases:
        names = visible_columns(taker.block.entries)
        taker.errors.append(findings.unknown_column(at, column.name, names, ()))
    elif within and not known and name in taker.visible:
        taker.errors.append(refusals.session_column_inside(at, column=column.name))
    elif not within and name not in taker.visible:
        taker.errors.append(refusals.column_outside_aggregate(at, column=column.name))


def _aggregate(taker: _SessionsSplitter, call: Call) -> str:
    """The name of an aggregate call: one for each distinct call."""
    tokens = taker.tokens
    words = taker.cut.words(call.start, call.end)
    if words in taker.aggregates:
        return taker.aggregates[words].name
    spot = taker.text.spot(tokens[call.start].start, tokens[call.end - 1].end + 1)
    if call.over:
        taker.errors.append(refusals.not_one_row_per_session(spot, what="a window function"))
    name = f"_a{len(taker.aggregates)}"
    kind, argument, ignore = _kind_of_call(taker, call)
    taker.aggregates[words] = Aggregate(
        name=name,
        call=kind,
        argument=argument,
        filter=taker.cut.sql_of(*call.filter) if call.filter else None,
        ignore_nulls=ignore,
        sql=taker.cut.sql_of(call.start, call.end),
        distinct=call.distinct,
    )
    return name


def _kind_of_call(taker: _SessionsSplitter, call: Call) -> tuple[str, str | None, bool]:
    """How a call is merged, over which argument, and whether NULLs are passed over."""
    merge = AGGREGATES[call.name].merge or "other"
    arguments = [taker.cut.sql_of(*part) for part in call.arguments]
    ignore = call.nulls == "ignore"
    if merge in ("first", "last") and len(arguments) == 2:
        flag = arguments.pop().lower()
        if flag not in ("true", "false"):
            return "other", None, False
        ignore = ignore or flag == "true"
    if merge == "count" and not call.distinct and len(call.arguments) == 1:
        first, behind = call.arguments[0]
        one = taker.tokens[first]
        if behind - first == 1 and one.token_type in (TokenType.STAR, TokenType.NUMBER):
            return "count", None, False
    if merge == "other" or len(arguments) != 1 or call.within:
        return "other", arguments[0] if arguments else None, ignore
    if call.distinct and merge not in ("min", "max", "bool_and", "bool_or"):
        return "other", arguments[0], ignore
    return merge, arguments[0], ignore


def _where(taker: _SessionsSplitter) -> str | None:
    if not taker.block.node.args.get("where"):
        return None
    start = first_outside(taker.tokens, TokenType.WHERE)
    return taker.cut.sql_of(start + 1, len(taker.tokens))


@dataclass(frozen=True, slots=True)
class SessionInput:
    """The name in FROM, its event time column and unique key, and what was wrong with it."""

    name: str
    time_column: str
    key: tuple[str, ...]
    errors: tuple[InfoldError, ...] = ()
    unique: bool = True
    """Whether the key tells all events of one instant apart."""
    passed_columns: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    """As ``SessionsQuery.passed``."""


def session_input(subject: Subject) -> SessionInput:
    """The input of a sessions query; its shape is checked elsewhere."""
    nothing = SessionInput("", "", ())
    if not isinstance(subject.relation, Block) or not subject.relation.entries:
        return nothing
    entry = subject.relation.entries[0]
    if not isinstance(entry.relation, Table):
        return nothing
    table, at = entry.relation, subject.text.spot_of(entry.node)
    node = subject.nodes.get(table.name)
    if node is None:  # it has errors of its own
        return nothing
    errors = tuple(_wrong_event_sql(subject, table))
    if errors:
        return SessionInput(table.name, "", (), errors)
    fed = fold_inputs_of(subject, table)
    for feed in fed.inputs or (None,):
        if feed is None or _event_time(subject, feed.node) is None:
            why = fed.why_not or _why_not(feed.node if feed else None)
            return SessionInput(
                table.name, "", (), (refusals.no_event_time(at, name=table.name, why=why),)
            )
    return _with_order_checked(subject, table, at, fed)


def _with_order_checked(subject: Subject, table: Table, at: Spot, fed: FoldInputs) -> SessionInput:
    """The columns of the input that put events in order."""
    if table.view is None:
        [feed] = fed.inputs
        return SessionInput(
            table.name, str(_event_time(subject, feed.node)), feed.node.model.unique_key
        )
    times: list[tuple[str, ...]] = []
    keys: dict[str, None] = {}
    for feed in fed.inputs:
        time = str(_event_time(subject, feed.node))
        for column in (time, *feed.node.model.unique_key):
            if not feed.names_of(column):
                error = refusals.view_hides(
                    at, view=table.name, column=column, table=feed.node.name
                )
                return SessionInput(table.name, time, (), (error,))
        times.append(feed.names_of(time))
        keys |= {feed.names_of(column)[0]: None for column in feed.node.model.unique_key}
    both = [name for name in times[0] if all(name in shown for shown in times)]
    if not both:
        error = refusals.view_mixes_times(
            at, view=table.name, times=sorted({shown[0] for shown in times})
        )
        return SessionInput(table.name, "", (), (error,))
    written = {name.lower(): name for name in table.columns or ()}
    named = tuple(written.get(name, name) for name in (both[0], *keys))
    return SessionInput(
        table.name, named[0], named[1:], unique=fed.unique, passed_columns=_passed_columns(fed)
    )


def _passed_columns(fed: FoldInputs) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    """The columns that a view shows as they are, of each table (wherever it reads the table)."""
    passed: dict[str, frozenset[tuple[str, str]]] = {}
    for feed in fed.inputs:
        pairs = frozenset(feed.passed_columns.items())
        passed[feed.node.name] = passed.get(feed.node.name, pairs) & pairs
    return tuple((name, tuple(sorted(pairs))) for name, pairs in passed.items())


def _wrong_event_sql(subject: Subject, table: Table) -> Iterator[InfoldError]:
    """What is wrong with the SQL over one event in the front matter."""
    sessions = subject.model.sessions
    if sessions is None:
        return
    declared = [EventSql(("user",), sessions.user)] if sessions.user else []
    declared += [EventSql((f"identifier.{at}",), sql) for at, sql in enumerate(sessions.identifier)]
    declared += [event_sql for cut in sessions.cuts for event_sql in cut.event_sql]
    for event_sql in declared:
        key = _written_key(subject, event_sql)
        at = subject.draft.places.get(key) or subject.draft.place(_list_key(key))
        yield from check_event_sql(at, _ITEM.sub("", key), event_sql.sql, table.columns)


_ITEM = re.compile(r"\.\d+\Z")
"""The number of an item at the end of a key."""


def _written_key(subject: Subject, sql: EventSql) -> str:
    """The key under which SQL is written in the model's file: of a list, with the item's number."""
    keys = [f"sessions.{key}" for key in sql.keys]
    places = subject.draft.places
    return next((key for key in keys if _list_key(key) in places), keys[-1])


def _list_key(key: str) -> str:
    """The key of the list or the mapping around a key."""
    return key.rpartition(".")[0]


def _event_time(subject: Subject, node: Node) -> str | None:
    series = node.model.timeseries
    if node.model.kind is Kind.SESSIONS:
        return "session_start"
    if series is None or node.model.granularity is None:
        return None
    if node.model.kind is Kind.EVENTS:
        return series.event_time_column
    proven = subject.kept_columns.get(node.name, {})
    return series.event_time_column if series.event_time_column.lower() in proven else None


def _why_not(node: Node | None) -> str:
    if node is None:
        return "nothing of a table can be followed through it"
    if node.model.kind is Kind.TABLE:
        return "a whole table has no cells; add timeseries and incremental"
    if node.model.kind is Kind.CUMULATIVE_AGGREGATE:
        return "a cumulative aggregate has no cells"
    if node.model.kind is Kind.SCD_TYPE_2:
        return "an scd_type_2 table has no cells"
    if node.landed:
        return "the source declares no event_time_column"
    return "its event_time_column is not among its own columns, or not a time of its cells"


_TABLE = "infold_events"


def check_event_sql(at: Spot, key: str, sql: str, columns: Columns) -> Iterator[InfoldError]:
    """Why the SQL under a key of front matter is no function of one event of a table."""
    if re.fullmatch(r"\s*(\w+|`[^`]+`)\s*", sql) and columns is not None:
        name = sql.strip().strip("`")
        if name.lower() not in {column.lower() for column in columns}:
            yield findings.no_such_column(at, key=key, column=name, known=columns)
        return
    try:
        parsed = parse(at.file, f"SELECT ({sql}) AS value FROM {_TABLE}")
    except InfoldError as error:
        yield findings.not_of_one_event(at, key=key, sql=sql, why=error.what)
        return
    known = {_TABLE: Table(_TABLE, columns)}
    resolved = resolve(parsed.text, parsed.tree, known)
    if resolved.errors:
        yield resolved.errors[0].moved_to(at)
        return
    block = resolved.relation
    if not isinstance(block, Block) or block.nested_queries or len(block.node.expressions) != 1:
        yield findings.not_of_one_event(at, key=key, sql=sql, why="it has a query of its own")
        return
    for construct, _ in calls_over_rows(block):
        yield findings.not_of_one_event(at, key=key, sql=sql, why=f"it has {construct}")
        return
    draft = Draft(Model("", Materialization.VIEW, parsed.text.sql), parsed)
    subject = Subject(draft, block, {}, {})
    for check in (clock.check, random.check, random.check_collations):
        for error_found in check(subject):
            yield findings.not_of_one_event(at, key=key, sql=sql, why=error_found.what)
            return
