"""
A compiled model under another name, reading tables under other names: as if it were declared so.

The names are replaced in its query as well. A table without an alias gets its old name for one, so
no other word of the query changes, and neither does what it means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from infold.analysis.sql.token_calls import has_alias
from infold.core.audits import Audit
from infold.core.model import Model
from infold.core.project import Match, Node, Reference
from infold.core.queries import GroupedQuery, SessionsQuery, VersionedQuery, quoted


def renamed(node: Node, name: str, names: Mapping[str, str]) -> Node:
    """
    The model as ``name``, reading the tables in ``names`` by their new names.

    Its fingerprint stays. The source that an events model ingests is no table, and keeps its name.
    """
    names = {old: new for old, new in names.items() if old != node.source}
    sql, references = _with_names(node, names)
    return replace(
        node,
        model=_model(node.model, name, sql, names),
        references=references,
        inputs=tuple(replace(one, name=names.get(one.name, one.name)) for one in node.inputs),
        query=_sessions(node.query, names) if node.query else None,
        grouped=_grouped(node.grouped, names) if node.grouped else None,
        versions=_versions(node.versions, names) if node.versions else None,
        matches=tuple(_match(one, names) for one in node.matches),
    )


def _with_names(node: Node, names: Mapping[str, str]) -> tuple[str, tuple[Reference, ...]]:
    """The query with other names, and where they are in it."""
    sql, parts, at, length = node.model.sql, list[str](), 0, 0
    moved: dict[Reference, Reference] = {}
    for one in sorted(node.references, key=lambda entry: entry.start):
        between, written = sql[at : one.start], sql[one.start : one.end]
        new = names.get(one.name)
        name = written if new is None else ".".join(map(quoted, new.split(".")))
        plain = new is not None and not has_alias(sql, one.end)
        alias = f" AS {quoted(one.name.rpartition('.')[2])}" if plain else ""
        start = length + len(between)
        moved[one] = replace(one, name=new or one.name, start=start, end=start + len(name))
        parts += [between, name, alias]
        at, length = one.end, start + len(name) + len(alias)
    return "".join([*parts, sql[at:]]), tuple(moved[one] for one in node.references)


def _model(model: Model, name: str, sql: str, names: Mapping[str, str]) -> Model:
    incremental = model.incremental
    if incremental is not None:
        bounds = (replace(one, input=names.get(one.input, one.input)) for one in incremental.bounds)
        incremental = replace(incremental, bounds=tuple(bounds))
    own = {**names, model.name: name}
    audits = tuple(_audit(one, own) for one in model.audits)
    return replace(model, name=name, sql=sql, incremental=incremental, audits=audits)


def _audit(audit: Audit, names: Mapping[str, str]) -> Audit:
    """An audit of other tables; its text stays, as the places of names in it are known."""
    tables = (replace(one, name=names.get(one.name, one.name)) for one in audit.tables)
    return replace(audit, to=names.get(audit.to, audit.to), tables=tuple(tables))


def _sessions(query: SessionsQuery, names: Mapping[str, str]) -> SessionsQuery:
    passed = ((names.get(table, table), columns) for table, columns in query.passed_columns)
    return replace(query, input=names.get(query.input, query.input), passed_columns=tuple(passed))


def _grouped(query: GroupedQuery, names: Mapping[str, str]) -> GroupedQuery:
    return replace(query, input=names.get(query.input, query.input))


def _versions(query: VersionedQuery, names: Mapping[str, str]) -> VersionedQuery:
    files = query.snapshot_files
    if files is not None:
        files = replace(files, source=names.get(files.source, files.source))
    return replace(query, grouped=_grouped(query.grouped, names), snapshot_files=files)


def _match(match: Match, names: Mapping[str, str]) -> Match:
    lookup, by = (names.get(name, name) for name in (match.lookup, match.input))
    return replace(match, lookup=lookup, input=by)
