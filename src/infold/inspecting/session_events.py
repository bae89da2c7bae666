"""
The events of a user or identifier in a range of time, read in-process from the stored inputs.

Plain views are expanded. What only Spark could tell is not guessed: computed owners, and other
views. A simple WHERE is applied; any other is reported as not applied.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from infold.analysis.names.select_parts import first_outside
from infold.analysis.sql.parse import parse
from infold.core.interval import instants_of
from infold.core.model import table_name
from infold.core.own_columns import FILE, VERSION
from infold.core.ports import Ledger, SnapshotReader, TimeSpan
from infold.core.project import Node, Project
from infold.core.queries import SessionsQuery, quoted
from infold.inspecting.session_history import Event
from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    import pyarrow as pa


TIME, WHOSE = "at", "whose"


@dataclass(frozen=True, slots=True)
class UserEvents:
    """
    The events of one user or identifier, by time; ``why_missing`` says why there are none.

    ``unapplied_where`` is the WHERE that was not applied, and ``undated`` names the inputs with
    rows that have no version. ``spark_can_tell``: Spark could tell what is missing or not sure.
    """

    events: tuple[Event, ...] = ()
    why_missing: str = ""
    unapplied_where: str = ""
    undated: tuple[str, ...] = ()
    spark_can_tell: bool = False


BY_SPARK = "by Spark alone: `--deep` has it tell them"


def events_of(
    project: Project,
    ledger: Ledger,
    snapshots: SnapshotReader,
    node: Node,
    match: Mapping[str, Any],
    start: int,
    end: int,
) -> UserEvents:
    """
    The events from ``start`` to ``end`` of the sessions with the values of ``match``.

    The inputs are read at the versions that the sessions were made from, if these are kept.
    """
    query = node.query
    assert query is not None, "a sessions model has a compiled query"
    any_of = _any_of(node, match)
    if any_of is None:
        sql = query.owner_sql or query.user
        return UserEvents(
            why_missing=f"the owner of an event follows from {sql}, {BY_SPARK}", spark_can_tell=True
        )
    reader = _Reader(ledger, snapshots, node, query, any_of, start, end)
    try:
        return reader.read(shown_tables(project, query.input))
    except NotPlainError:
        why = f"they are seen through the view {query.input}, {BY_SPARK}"
        return UserEvents(why_missing=why, spark_can_tell=True)


@dataclass(frozen=True, slots=True)
class _Reader:
    """
    Reads the events of one user or identifier from some tables, by the names of their
    columns.
    """

    ledger: Ledger
    snapshots: SnapshotReader
    node: Node
    query: SessionsQuery
    any_of: Sequence[Mapping[str, Any]]
    start: int
    end: int

    def read(self, shown: Sequence[ShownTable]) -> UserEvents:
        """The events behind some tables; NotPlainError where that needs Spark."""
        query, unsure = self.query, False
        tables: list[pa.Table] = []
        for part in shown:
            conditions, applied = self._conditions(part, query.where)
            try:
                rows = self._rows_of(part, conditions)
            except (ValueError, TypeError) as error:  # more than columns compared with values
                if part.where or not applied:
                    raise NotPlainError(query.input) from error
                applied, rows = False, self._rows_of(part, ())
            if rows is None:
                return UserEvents(why_missing=f"{part.table} has no column with their owner")
            unsure = unsure or (query.where is not None and not applied)
            tables.append(rows)
        self._same_types(tables)
        every = [_as_events(rows, part.table) for rows, part in zip(tables, shown, strict=True)]
        undated = [
            p.table for r, p in zip(tables, shown, strict=True) if VERSION not in r.schema.names
        ]
        return UserEvents(
            events=tuple(sorted(itertools.chain(*every), key=lambda event: event.at)),
            unapplied_where=f"`WHERE {' '.join(str(query.where).split())}`" if unsure else "",
            undated=tuple(dict.fromkeys(undated)),
            spark_can_tell=unsure,
        )

    def _conditions(self, part: ShownTable, where: str | None) -> tuple[tuple[str, ...], bool]:
        """What of a table is wanted, and whether the model's own WHERE is among it."""
        if where is None:
            return part.where, True
        if part.table == self.query.input:  # no names to translate
            return (where,), True
        try:
            return (*part.where, part.own_condition(where)), True
        except (NotPlainError, InfoldError):
            return part.where, False

    def _rows_of(self, part: ShownTable, conditions: Sequence[str]) -> pa.Table | None:
        time = part.stored_name(self.query.time_column)
        any_of = [
            {part.stored_name(name): value for name, value in match.items()}
            for match in self.any_of
        ]
        names = list(dict.fromkeys(name for match in any_of for name in match))
        rows = self.snapshots.rows_equal_to(
            table_name(part.table),
            any_of,
            columns=[time, *names, VERSION, FILE],
            near=TimeSpan(time, time, self.start, self.end),
            where=_conjunction(conditions),
            snapshot=snapshot_read(self.ledger, self.snapshots, self.node, part.table),
        )
        if rows is None:
            return None
        columns = {time: TIME, **{name: f"{WHOSE}{at}" for at, name in enumerate(names)}}
        return rows.rename_columns([columns.get(name, name) for name in rows.column_names])

    def _same_types(self, tables: Sequence[pa.Table]) -> None:
        """Values of several types would have been cast to one of them, as Spark does it."""
        kinds = {
            tuple(field.type for field in rows.schema if field.name not in (VERSION, FILE))
            for rows in tables
        }
        if len(kinds) > 1:
            raise NotPlainError(self.node.name)


def _conjunction(conditions: Sequence[str]) -> str | None:
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return " AND ".join(f"({one})" for one in conditions)


def _as_events(rows: pa.Table, table: str) -> list[Event]:
    nothing = [None] * rows.num_rows
    versions, files = (
        rows[name].to_pylist() if name in rows.column_names else nothing for name in (VERSION, FILE)
    )
    return [
        Event(at, version, file, table)
        for at, version, file in zip(instants_of(rows, TIME), versions, files, strict=True)
    ]


def snapshot_read(ledger: Ledger, reader: SnapshotReader, node: Node, name: str) -> int | None:
    """An input as the model has read it; None (as it is now) where that is no longer kept."""
    read = ledger.traces()[node.name].inputs.get(name)
    snapshots = reader.kept_snapshots(table_name(name))
    for version in ledger.versions(name):
        if version.number == read and version.snapshot in snapshots:
            return version.snapshot
    return None


def _any_of(node: Node, match: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """The column values of one owner's events; None where the owner is computed."""
    query, sessions = node.query, node.model.sessions
    assert query is not None
    assert sessions is not None
    value = match[query.user]
    if not sessions.identifier:
        return None if query.owner_sql is not None else [{query.user: value}]
    columns = [name for name in map(_plain_column, sessions.identifier) if name is not None]
    if len(columns) < len(sessions.identifier):
        return None
    if value is not None:  # the first of several that is not NULL counts
        return [{**dict.fromkeys(columns[:at]), name: value} for at, name in enumerate(columns)]
    user = _plain_column(sessions.user or "")
    owner = next(value_of_column for name, value_of_column in match.items() if name != query.user)
    return None if user is None else [{**dict.fromkeys(columns), user: owner}]


_COLUMN_NAME = re.compile(r"\s*(\w+|`[^`]+`)\s*\Z")


def _plain_column(sql: str) -> str | None:
    """The column that SQL over an event names, if it is no more than that."""
    return sql.strip().strip("`") if _COLUMN_NAME.match(sql) else None


# Plain is SELECT of columns and constants FROM one table or plain view, with a WHERE, and UNION ALL
# of such. Any other view needs Spark.


class NotPlainError(Exception):
    """Something that has to be evaluated by Spark."""


@dataclass(frozen=True, slots=True)
class ShownTable:
    """
    Rows of one stored table that are shown: those with all of ``where`` true.

    ``columns`` are the shown names, lower-case -> the table's own; None for what is computed. They
    are None altogether for a table with columns that nobody declared.
    """

    table: str
    columns: Mapping[str, str | None] | None
    where: tuple[str, ...] = ()

    def stored_name(self, column: str) -> str:
        """The table's own name of a shown column."""
        name = column.strip("`").lower()
        stored = name if self.columns is None else self.columns.get(name)
        if stored is None:
            raise NotPlainError(column)
        return stored

    def own_condition(self, sql: str) -> str:
        """A condition over what is shown, as one over the table's columns."""
        text = f"SELECT * FROM shown WHERE {sql}"
        return _translate_condition(self, text, _where_span(text), "shown")


def shown_tables(project: Project, name: str) -> tuple[ShownTable, ...]:
    """What a stored table or a plain view shows; NotPlainError for any other view."""
    try:
        return tuple(_tables_behind(project, name))
    except (InfoldError, RecursionError) as error:
        raise NotPlainError(name) from error


def _tables_behind(project: Project, name: str) -> Iterator[ShownTable]:
    node = project[name]
    if node.model.kind.is_stored:
        own = {column.lower(): column for column in node.columns}
        yield ShownTable(name, own or None)
        return
    if node.model.python is not None:
        raise NotPlainError(name)
    sql = node.model.sql
    parsed = parse("", sql)
    tokens, selects = parsed.text.tokens, list(_sides_of_union(parsed.tree))
    start = 0
    names: tuple[str, ...] | None = None
    for select in selects:
        end = first_outside(tokens, TokenType.UNION, start=start)
        at = first_outside(tokens, TokenType.WHERE, start=start)
        test = (tokens[at + 1].start, tokens[end - 1].end + 1) if at < end else None
        read, alias = _table_and_alias(node, select)
        for part in _tables_behind(project, read):
            shown = _shown_columns(select, part, alias)
            names = names or tuple(shown)
            if len(names) != len(shown):
                raise NotPlainError(name)
            columns = dict(zip(names, shown.values(), strict=True))
            where = () if test is None else (_translate_condition(part, sql, test, alias),)
            yield ShownTable(part.table, columns, (*part.where, *where))
        start = end + 2  # UNION ALL


def _sides_of_union(tree: exp.Expr) -> Iterator[exp.Select]:
    """The sides of UNION ALL, in the order of the text; nothing else around them."""
    if isinstance(tree, exp.Union):
        _nothing_but(tree, ("this", "expression", "distinct"))
        if tree.args.get("distinct"):
            raise NotPlainError("UNION")
        yield from _sides_of_union(tree.this)
        yield from _sides_of_union(tree.expression)
    elif isinstance(tree, exp.Select):
        _nothing_but(tree, ("expressions", "from_", "where"))
        yield tree
    else:
        raise NotPlainError(tree.key)


def _nothing_but(node: exp.Expr, known: Iterable[str]) -> None:
    for key, value in node.args.items():
        if value and key not in known:
            raise NotPlainError(key)


def _table_and_alias(node: Node, select: exp.Select) -> tuple[str, str]:
    """The table or view in FROM, and the qualifier that its columns may have."""
    from_ = select.args.get("from_")
    table = from_.this if from_ is not None else None
    if not isinstance(table, exp.Table):
        raise NotPlainError("FROM")
    _nothing_but(table, ("this", "db", "alias"))
    alias = table.args.get("alias")
    if alias is not None:
        _nothing_but(alias, ("this",))
    written = f"{table.db}.{table.name}" if table.db else table.name
    for name in node.reads:
        if name.lower() == written.lower():
            return name, table.alias_or_name.lower()
    raise NotPlainError(written)


def _shown_columns(select: exp.Select, part: ShownTable, alias: str) -> dict[str, str | None]:
    """The columns of a SELECT, lower-case, in order, and the table's own column for each."""
    columns: dict[str, str | None] = {}
    for item in select.expressions:
        if isinstance(item, exp.Star):
            _nothing_but(item, ())
            if part.columns is None:
                raise NotPlainError(part.table)
            more = dict(part.columns)
        else:
            value = item.this if isinstance(item, exp.Alias) else item
            column = _own_column(value, part, alias) if isinstance(value, exp.Column) else None
            more = {item.alias_or_name.lower(): column}
        if more.keys() & columns.keys():
            raise NotPlainError("two columns of one name")
        columns |= more
    return columns


def _own_column(column: exp.Column, part: ShownTable, alias: str) -> str | None:
    *before, name = [entry.name.lower() for entry in column.parts]
    if before not in ([], [alias]):  # a field of a struct, or all columns of a table
        return None
    if part.columns is None:
        return name
    if name not in part.columns:
        raise NotPlainError(name)
    return part.columns[name]


def _where_span(sql: str) -> tuple[int, int]:
    tokens = parse("", sql).text.tokens
    at = first_outside(tokens, TokenType.WHERE)
    return tokens[at + 1].start, tokens[-1].end + 1


def _translate_condition(part: ShownTable, sql: str, span: tuple[int, int], alias: str) -> str:
    """The condition at ``span`` of a text, with the names that the table's columns have."""
    at, end = span
    pieces = []
    columns = [
        (column.parts[0].meta["start"], column.parts[-1].meta["end"] + 1, column)
        for column in parse("", sql).tree.find_all(exp.Column)
        if "start" in column.parts[0].meta
    ]
    for first, last, column in sorted(columns, key=lambda entry: entry[0]):
        if not at <= first < end:
            continue
        stored = _own_column(column, part, alias)
        if stored is None:
            raise NotPlainError(column.name)
        pieces += [sql[at:first], quoted(stored)]
        at = last
    return "".join([*pieces, sql[at:end]])
