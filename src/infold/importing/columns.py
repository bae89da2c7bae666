"""
The columns of sources, as the queries name them: other tools know them from the warehouse.

A query asks its tables for the columns that it names. What it takes by ``*`` it asks for as far as
its own readers ask it, through CTEs, subqueries and models. No type follows from that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

from infold.declare.types import TIMES
from infold.importing.draft import Draft, DraftModel, DraftSource
from infold.importing.texts import SourceColumns

_PASSES = 50
"""Models are asked again until no new column is asked for; a chain of ``*`` is no longer."""


def source_columns(draft: Draft) -> dict[str, SourceColumns]:
    """The columns of each source: those that are declared, then those that queries name."""
    sources = {source.name.lower(): source for source in draft.sources}
    asked = _Asked({name: set(map(str.lower, one.columns)) for name, one in sources.items()})
    scopes = {model.name.lower(): list(_scopes(model)) for model in draft.models}
    for _ in range(_PASSES):
        before = asked.size
        for name, found in scopes.items():
            asked.by_model(name, found)
        if asked.size == before:
            break
    for file in draft.files:
        for table, names in file.gives.items():
            if table.lower() in sources:
                asked.name(table.lower(), names)
    times = dict(_event_times(draft.models, scopes, sources))
    return {
        source.name: _merged(source, asked.of(source.name.lower()), times.get(source.name.lower()))
        for source in draft.sources
    }


def is_reserved(name: str) -> bool:
    """Whether a table of infold's cannot have a column of this name."""
    return name.startswith("_")


def _merged(source: DraftSource, names: list[str], time: str | None) -> SourceColumns:
    """Declared columns, then named ones; a column of event times is a timestamp."""
    types = dict(source.columns)
    known = {name.lower() for name in types}
    declared_time = str(source.keys.get("event_time_column", "") or time or "")
    supposed = {name for name in names if name not in known and not is_reserved(name)}
    types = {name: type_ for name, type_ in types.items() if not is_reserved(name)}
    if declared_time and declared_time.lower() not in known | {n.lower() for n in supposed}:
        supposed.add(declared_time)
    for name in sorted(supposed):
        types[name] = "timestamp" if name.lower() == declared_time.lower() else "string"
    dropped = {n for n in (*source.columns, *names) if is_reserved(n)}
    return SourceColumns(types, frozenset(supposed), time or "", frozenset(dropped))


def _scopes(model: DraftModel) -> Iterator[Scope]:
    """The SELECTs of a query, the outermost first; none if it cannot be read."""
    try:
        found = traverse_scope(parse_one(model.query, dialect="spark"))
        for scope in found:
            assert isinstance(scope.selected_sources, dict)  # two of one name raise here
    except (SqlglotError, RecursionError):
        return
    yield from reversed(found)


def table_name(table: exp.Table) -> str:
    """A table as models name it, in lower case."""
    return ".".join(part.name for part in table.parts).lower()


@dataclass
class _Asked:
    """What was asked of each table, and of what a SELECT takes by ``*``."""

    declared: Mapping[str, set[str]]
    columns: dict[str, dict[str, None]] = field(default_factory=dict)
    by_star: dict[int, set[str]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How much was asked for so far."""
        tables = sum(len(names) for names in self.columns.values())
        return tables + sum(len(names) for names in self.by_star.values())

    def of(self, table: str) -> list[str]:
        """The columns that were asked of a table, in the order in which that was."""
        return list(self.columns.get(table, ()))

    def name(self, table: str, columns: Iterable[str]) -> None:
        """Ask a table for columns that are not declared."""
        for column in columns:
            if column.lower() not in self.declared.get(table, ()):
                self.columns.setdefault(table, {}).setdefault(column.lower())

    def by_model(self, name: str, scopes: Sequence[Scope]) -> None:
        """Note what one query asks for, given what its readers ask it for."""
        if not scopes:
            return
        outer = scopes[0]
        for column in self.of(name):
            self._from_scope(outer, column)
        for scope in scopes:
            for asked in scope.columns:
                self._from_scope_sources(scope, asked.name.lower(), asked.table.lower())
            for asked_name in sorted(self.by_star.get(id(scope), ())):
                self._through_stars(scope, asked_name)

    def _from_scope(self, scope: Scope, column: str) -> None:
        """Ask a SELECT for a column: by its ``*``, unless it names one so."""
        for branch in scope.set_operation_scopes:
            self._from_scope(branch, column)
        if scope.set_operation_scopes or not isinstance(scope.expression, exp.Select):
            return
        if column not in {name.lower() for name in scope.expression.named_selects}:
            self.by_star.setdefault(id(scope), set()).add(column)

    def _through_stars(self, scope: Scope, column: str) -> None:
        assert isinstance(scope.expression, exp.Select)
        for select in scope.expression.selects:
            if isinstance(select, exp.Star):
                self._from_scope_sources(scope, column, "")
            elif isinstance(select, exp.Column) and isinstance(select.this, exp.Star):
                self._from_scope_sources(scope, column, select.table.lower())

    def _from_scope_sources(self, scope: Scope, column: str, table: str) -> None:
        """Ask the one table that a column of this name can be of."""
        if column == "*":
            return
        sources = {name.lower(): found for name, (_, found) in scope.selected_sources.items()}
        if table:
            found = sources.get(table)
        elif len(sources) == 1:
            (found,) = sources.values()
        else:
            if any(self._has(each, column) for each in sources.values()):
                return
            found = next((each for each in sources.values() if self._may_have(each)), None)
        if isinstance(found, exp.Table):
            self.name(table_name(found), [column])
        elif isinstance(found, Scope):
            self._from_scope(found, column)

    def _has(self, found: exp.Table | Scope, column: str) -> bool:
        if isinstance(found, exp.Table):
            name = table_name(found)
            return column in self.declared.get(name, ()) or column in self.columns.get(name, ())
        if not isinstance(found.expression, exp.Query):
            return False
        names = {name.lower() for name in found.expression.named_selects}
        return column in names or column in self.by_star.get(id(found), ())

    def _may_have(self, found: exp.Table | Scope) -> bool:
        if isinstance(found, exp.Table):
            return True
        return isinstance(found.expression, exp.Query) and found.expression.is_star


def _event_times(
    models: Sequence[DraftModel],
    scopes: Mapping[str, Sequence[Scope]],
    sources: Mapping[str, DraftSource],
) -> Iterator[tuple[str, str]]:
    """Sources, each with the column that an incremental model's time is taken from."""
    for model in models:
        found = scopes[model.name.lower()]
        if not model.time_column or not found:
            continue
        for table, column in _origins(found[0], model.time_column.lower(), scopes, 0):
            source = sources.get(table)
            if source is None or source.keys.get("event_time_column"):
                continue
            types = {name.lower(): type_ for name, type_ in source.columns.items()}
            if types.get(column, "timestamp") in TIMES:
                yield table, column


def _origins(
    scope: Scope, column: str, scopes: Mapping[str, Sequence[Scope]], depth: int
) -> Iterator[tuple[str, str]]:
    """The columns of tables that an output column is, or is made from alone."""
    if depth > _PASSES:
        return
    if scope.set_operation_scopes:
        for branch in scope.set_operation_scopes:
            yield from _origins(branch, column, scopes, depth + 1)
        return
    if not isinstance(scope.expression, exp.Select):
        return
    named = {select.alias_or_name.lower(): select for select in scope.expression.selects}
    inner = list(named[column].find_all(exp.Column)) if column in named else []
    if column not in named and scope.expression.is_star:
        inner = [exp.column(column)]
    if len(inner) != 1:
        return
    sources = {name.lower(): found for name, (_, found) in scope.selected_sources.items()}
    wanted = inner[0].table.lower()
    found = sources.get(wanted) if wanted else next(iter(sources.values()), None)
    name = inner[0].name.lower()
    if isinstance(found, Scope):
        yield from _origins(found, name, scopes, depth + 1)
    elif isinstance(found, exp.Table):
        table = table_name(found)
        if scopes.get(table):
            yield from _origins(scopes[table][0], name, scopes, depth + 1)
        else:
            yield table, name
