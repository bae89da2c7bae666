"""
The source that an events model ingests, and the lookups that it joins to each row.

The source is first in FROM, or first in that of a view there. Lookups are joined to it by equality
with columns of its rows. So a change of a lookup affects only rows of files with one of the changed
keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from sqlglot import exp

from infold.analysis.inputs.fold_inputs import JOINS
from infold.analysis.inputs.lookup_keys import lookup_matches_of, unmatched_entries
from infold.analysis.names.column_lineage import lookups_in
from infold.analysis.names.relation import Block, FromEntry, Relation, Table
from infold.analysis.names.select_parts import calls_over_rows, clauses_beyond_row_wise
from infold.analysis.names.subject import Draft, Subject
from infold.analysis.sql.parse import parse
from infold.core.model import Kind, Materialization, Model, Source, Timeseries
from infold.core.project import Match, Node
from infold.core.queries import quoted


def ingested_table(relation: Relation) -> str | None:
    """The name of the first table in FROM, views expanded."""
    while not isinstance(relation, Table) or relation.view is not None:
        if isinstance(relation, Table) and relation.view is not None:
            relation = relation.view
        elif isinstance(relation, Block) and relation.entries:
            relation = relation.entries[0].relation
        else:
            return None
    return relation.name


def source_lookup_matches(subject: Subject, source: str) -> tuple[Match, ...]:
    """How the lookups are matched that an events model joins to the rows of a source."""
    return lookup_matches_of(subject.relation, _with_source(subject, source))


def wrong_joins(subject: Subject, block: Block) -> Iterator[tuple[FromEntry, str]]:
    """Entries of FROM that are no lookups, or joined otherwise than by equality, and which."""
    main = ingested_table(block)
    otherwise = unmatched_entries(block, _with_source(subject, main)) if main is not None else ()
    for entry in block.entries[1:]:
        if entry.join is None:
            continue  # it is refused for what it is
        names = lookups_in(entry.relation, subject.nodes, only=True)
        if entry.lateral or not names or main in names:
            yield entry, f"{entry.alias or 'this'} is no lookup"
        elif entry in otherwise:
            yield entry, f"{entry.alias} is joined otherwise"


def why_not_row_wise(subject: Subject, view: Relation) -> str:
    """What a view has that makes more of a row than columns, WHERE and lookups do, if so."""
    while isinstance(view, Block):
        beyond = [part for part, _ in clauses_beyond_row_wise(view.text, view) if part != JOINS]
        beyond += [part for part, _ in calls_over_rows(view)]
        beyond += [f"a join where {why}" for _, why in wrong_joins(subject, view)]
        if beyond or not view.entries:
            return beyond[0] if beyond else "rows of its own"
        first = view.entries[0].relation
        view = first.view if isinstance(first, Table) and first.view is not None else first
    return "" if isinstance(view, Table) else "a set operation or subquery"


def _with_source(subject: Subject, source: str) -> Mapping[str, Node]:
    """The models before one, and the source as if it were one, with times: its rows lead."""
    series = Timeseries("", "")
    leading = Model(source, Materialization.EVENTS, "", timeseries=series)
    return {**subject.nodes, source: Node(leading, (), (), "", ())}


# Such a column is not read: a bad value in it sets no row aside, and adding it to a source changes
# no definition. Where the words of a query do not decide, it names all of them.


def unnamed_columns(source: Source, drafts: Iterable[Draft]) -> tuple[str, ...]:
    """The optional columns of a source that none of the models names."""
    optional = [column.name for column in source.columns if column.optional]
    if not optional:
        return ()
    named: set[str] = set()
    beside: list[str] = []
    for draft in drafts:
        if _takes_all(draft):
            return ()
        named.update(name.name.lower() for name in draft.parsed.tree.find_all(exp.Identifier))
        beside += draft.model.sessions.visible_columns if draft.model.sessions else ()
    text = " ".join(beside).lower()
    return tuple(n for n in optional if n.lower() not in named and n.lower() not in text)


def _takes_all(draft: Draft) -> bool:
    """Whether a query reads all columns that there are."""
    tree = draft.parsed.tree
    if any(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star)):
        return True
    # PIVOT groups by all that is left, NATURAL joins by all that is alike.
    return bool(tree.find(exp.Pivot)) or any(join.method for join in tree.find_all(exp.Join))


# An `events` model ingests the source that is first in its FROM, or first in that of a view that it
# reads there. A view that nothing else reads is a part of these models, so its source is not landed
# because of it.


def landed_sources(drafts: Sequence[Draft], sources: Mapping[str, Source]) -> list[Source]:
    """The sources that have a table of their own."""
    by_lower = {name.lower(): source for name, source in sources.items()}
    passing = _views_of_events(drafts)
    landed: dict[str, Source] = {}
    for draft in drafts:
        named = tables_beside_source(draft, passing)
        landed.update((name, source) for name, source in by_lower.items() if name in named)
    return list(landed.values())


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
    views = {d.model.name.lower() for d in drafts if d.model.kind.is_view}
    read = {name for draft in drafts for name in _names_in(draft)} & views
    views &= read
    while True:
        before = frozenset(views)
        for draft in drafts:
            views.difference_update(tables_beside_source(draft, before))
        if views == before:
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
