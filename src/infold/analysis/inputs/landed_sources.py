"""
Which sources are landed as tables: those that a model reads other than to ingest them.

An ``events`` model ingests the source that is first in its FROM, or first in that of a view that it
reads there. A view that nothing else reads is a part of these models, so its source is not landed
because of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp

from infold.analysis.names.subject import Draft
from infold.analysis.sql.parse import parse
from infold.core.model import Kind, Materialization, Model, Source, Timeseries
from infold.core.quoting import quoted


def landed_sources(drafts: Sequence[Draft], sources: Mapping[str, Source]) -> list[Source]:
    """The sources that have a table of their own."""
    by_lower = {name.lower(): source for name, source in sources.items()}
    passing = _views_of_events(drafts)
    found: dict[str, Source] = {}
    for draft in drafts:
        named = tables_beside_source(draft, passing)
        found.update((name, source) for name, source in by_lower.items() if name in named)
    return list(found.values())


def readers_of(drafts: Sequence[Draft], source: Source) -> list[Draft]:
    """The models that read a landed source."""
    passing = _views_of_events(drafts)
    return [
        draft for draft in drafts if source.name.lower() in tables_beside_source(draft, passing)
    ]


def tables_beside_source(draft: Draft, passing: frozenset[str]) -> list[str]:
    """The tables that a model names, in lower case, but for what it takes in."""
    named = _names_in(draft)
    takes_in = draft.model.kind is Kind.EVENTS or draft.model.name.lower() in passing
    first = _first_table(draft) if takes_in else None
    if first in named:
        named.remove(first)
    return named


def _views_of_events(drafts: Sequence[Draft]) -> frozenset[str]:
    """Views that nothing reads but events models and such views, and these in the first place."""
    found = {d.model.name.lower() for d in drafts if d.model.kind is Kind.VIEW}
    read = {name for draft in drafts for name in _names_in(draft)} & found
    found &= read
    while True:
        before = frozenset(found)
        for draft in drafts:
            found.difference_update(tables_beside_source(draft, before))
        if found == before:
            return before


def _names_in(draft: Draft) -> list[str]:
    return [name.lower() for name in tables_named(draft.parsed.tree)]


def _first_table(draft: Draft) -> str | None:
    """The first table in FROM, in lower case."""
    clause = draft.parsed.tree.args.get("from_")
    table = clause.this if clause is not None else None
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        return None
    return ".".join(part.name for part in table.parts).lower()


def tables_named(tree: exp.Expr) -> Iterator[str]:
    """The tables that a query names, CTEs left out."""
    yield from _tables_named(tree, frozenset())


def _tables_named(node: exp.Expr, hidden: frozenset[str]) -> Iterator[str]:
    clause = node.args.get("with_")
    if clause is not None:
        for cte in clause.expressions:
            inside = hidden | {cte.alias.lower()} if clause.args.get("recursive") else hidden
            yield from _tables_named(cte.this, inside)
            hidden |= {cte.alias.lower()}
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
        name = ".".join(part.name for part in node.parts)
        if name.lower() not in hidden:
            yield name
    for key, value in node.args.items():
        if key == "with_":
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, exp.Expr):
                yield from _tables_named(child, hidden)


def landing_model(source: Source) -> Draft:
    """The model that takes in a source as it is."""
    names = ", ".join(quoted(column.name) for column in source.columns)
    parts = ".".join(map(quoted, source.name.split(".")))
    sql = f"SELECT {names or '*'} FROM {parts}"
    time = source.event_time_column
    model = Model(
        name=source.name,
        materialization=Materialization.EVENTS,
        sql=sql,
        timeseries=Timeseries(time, time) if time else None,
        place=source.place,
    )
    return Draft(model, parse(source.place.file, sql), landed=True)
