"""
The stored rows behind a plain view, read from its text: tables, and columns under other names.

Plain is SELECT of columns and constants FROM one table or plain view, with a WHERE, and UNION ALL
of such. Any other view needs Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from infold.analysis.names.query_pieces import first_outside
from infold.analysis.sql.parse import parse
from infold.core.model import Kind
from infold.core.project import Node, Project
from infold.core.quoting import quoted
from infold.messages.errors import InfoldError


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
        found = name if self.columns is None else self.columns.get(name)
        if found is None:
            raise NotPlainError(column)
        return found

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
    if node.model.kind is not Kind.VIEW:
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
    found: dict[str, str | None] = {}
    for item in select.expressions:
        if isinstance(item, exp.Star):
            _nothing_but(item, ())
            if part.columns is None:
                raise NotPlainError(part.table)
            more = dict(part.columns)
        else:
            value = item.this if isinstance(item, exp.Alias) else item
            own = _own_column(value, part, alias) if isinstance(value, exp.Column) else None
            more = {item.alias_or_name.lower(): own}
        if more.keys() & found.keys():
            raise NotPlainError("two columns of one name")
        found |= more
    return found


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
        own = _own_column(column, part, alias)
        if own is None:
            raise NotPlainError(column.name)
        pieces += [sql[at:first], quoted(own)]
        at = last
    return "".join([*pieces, sql[at:end]])
