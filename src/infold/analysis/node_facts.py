"""
The facts that ``compile`` finds about a checked model and puts into its node.

They are its bounds, matches, keys, column types and grains. Planner and engine rely on them, and so
do the rules for the models that read it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from infold.analysis.bounds.cells import Cells, cells_of
from infold.analysis.bounds.known_columns import InputBound, Shapes
from infold.analysis.bounds.scope import common_grain
from infold.analysis.inputs.ingested import source_lookup_matches
from infold.analysis.inputs.lookup_keys import lookup_matches_of
from infold.analysis.names.column_types import Types, types_of
from infold.analysis.names.relation import Block, Columns, Key, Rows, Table
from infold.analysis.names.resolve import Resolved
from infold.analysis.names.subject import Subject
from infold.analysis.overrides import RemainingFindings
from infold.analysis.rules import RULES
from infold.analysis.times.floors import floor_of
from infold.analysis.times.shape import Grain
from infold.core.interval import Granularity
from infold.core.model import DeclaredBound, Deduplicate, Kind, Model, Source
from infold.core.project import Bound, Match, Reference
from infold.core.queries import VALID_FROM, VALID_TO
from infold.core.sessions import IDENTIFIER
from infold.messages.errors import InfoldError, Spot


def lookup_matches(subject: Subject, source: Source | None) -> tuple[Match, ...]:
    """How the lookups of a model are matched that is built cell by cell, or by folds."""
    if source is not None:
        return source_lookup_matches(subject, source.name)
    if subject.model.kind in (Kind.VIEW, Kind.TABLE):
        return ()
    return lookup_matches_of(subject.relation, subject.nodes)


def declared_bounds(model: Model, remaining: RemainingFindings) -> tuple[DeclaredBound, ...]:
    """The declared bounds that say what rows a table has."""
    return model.incremental.bounds if model.incremental and remaining.declared_bounds else ()


def keeps_unmatched(subject: Subject) -> bool:
    """Whether a model keeps rows of a lookup that no row of an input goes with."""
    cells = cells_of(subject)
    return cells is not None and cells.has_filled_cells()


def windows_of_rows(subject: Subject) -> frozenset[Spot]:
    """The places of a model's windows that count rows."""
    cells = cells_of(subject)
    return cells.windows_of_rows() if cells is not None else frozenset()


def rule_findings(subject: Subject) -> list[InfoldError]:
    """What the rules find."""
    return [error for check in RULES.values() for error in check(subject)]


def input_bounds(subject: Subject) -> list[InputBound]:
    """How far a model built cell by cell reads each input, at each place that names it."""
    cells = cells_of(subject)
    return cells.input_bounds() if cells is not None else []


def bounded_references(
    references: Sequence[Reference], bounds: Sequence[InputBound]
) -> tuple[Reference, ...]:
    """The references with the bounds of those that name an input themselves."""
    at: dict[int, Bound] = {}
    for entry in bounds:
        if entry.start is not None:
            at[entry.start] = entry.bound.widest(at.get(entry.start, entry.bound))
    return tuple(replace(one, bound=at.get(one.start)) for one in references)


def kept_columns(subject: Subject) -> Mapping[str, Grain]:
    """The columns that lie in one cell with the partition column, for models that read it."""
    cells, series = cells_of(subject), subject.model.timeseries
    if cells is not None:
        known, column = cells.known(subject.relation), cells.partition_column.lower()
        columns, nulls = known.columns, known.nulls
        own = columns.get(column, {})
        return {
            name: common_grain(shapes)
            for name, shapes in columns.items()
            if _is_in_same_cell(cells, own, shapes)
            and nulls[name] <= nulls.get(column, frozenset())
        }
    if subject.model.kind is Kind.EVENTS and series is not None:
        return {series.event_time_column.lower(): event_grain(subject)}
    return {}


def row_keys(subject: Subject, remaining: RemainingFindings) -> Rows:
    """What tells the rows of a model's table apart."""
    model = subject.model
    if model.kind is Kind.EVENTS and model.unique_key and model.timeseries:
        everywhere = model.deduplicate is Deduplicate.EVERYWHERE
        time = () if everywhere else (model.timeseries.event_time_column,)
        return Rows((_lower_key(*model.unique_key, *time),))
    if model.sessions is not None:
        sessions = model.sessions
        owner = IDENTIFIER if sessions.identifier else sessions.user_column
        plain = owner is not None and sessions.fallback_gap is None
        return Rows(
            (_lower_key("session_id"), *((_lower_key(owner, "session_start"),) if plain else ()))
        )
    if model.versions is not None:
        return Rows((_lower_key(*model.unique_key, VALID_FROM),))
    if remaining.overrides_used or remaining.uses_declared_bounds:
        return Rows()  # keys of the query over all rows need not be keys of its cells
    stored = model.kind in (Kind.TABLE, Kind.INCREMENTAL_TABLE, Kind.CUMULATIVE_AGGREGATE)
    return Rows(query=subject.relation) if stored else Rows()


def output_types(subject: Subject) -> Types:
    """What is known of the types of a model's columns."""
    types = dict(types_of(subject.relation, subject.types))
    if subject.model.sessions is not None:
        types |= {"session_start": "timestamp", "session_end": "timestamp"}
    if subject.model.versions is not None:
        time = types.get(subject.model.versions.updated_at.lower())
        types |= {VALID_FROM: time, VALID_TO: time} if time is not None else {}
    return types


def _lower_key(*columns: str | None) -> Key:
    return frozenset(column.lower() for column in columns if column is not None)


def _is_in_same_cell(cells: Cells, own: Shapes, shapes: Shapes) -> bool:
    """Whether a column with ``shapes`` is always in the cell of the partition column."""
    return own.keys() == shapes.keys() and all(
        shape.is_exact
        and own[key].is_exact
        and shape.low == own[key].low
        and shape.stays_in_cell(cells.granularity)
        and own[key].stays_in_cell(cells.granularity)
        for key, shape in shapes.items()
    )


def output_columns(model: Model, resolved: Resolved) -> Columns:
    """The output columns: those of the SELECT, with those that a kind of model always has."""
    columns = resolved.relation.columns
    if columns is not None and model.versions is not None:
        return (*columns, VALID_FROM, VALID_TO)
    if model.sessions is None or columns is None:
        return columns
    return (*model.sessions.fixed_columns, *columns)


def event_grain(subject: Subject) -> Grain:
    """How coarse the event times of an ``events`` model are: by its type or by a floor."""
    series, block = subject.model.timeseries, subject.relation
    if series is None or not isinstance(block, Block):
        return None
    column = series.event_time_column.lower()
    out = next((out for out in block.outputs or () if out.name.lower() == column), None)
    if out is None:
        return None
    node: exp.Expr = out.node
    while True:
        floor = floor_of(node)
        if floor is None:
            break
        if floor.unit is not None and not floor.inside:
            return floor.unit
        node = floor.inner
    origin = block.origins.get(node)
    if origin is None or not isinstance(origin.entry.relation, Table):
        return None
    source = subject.sources.get(origin.entry.relation.name)
    types = {c.name.lower(): c.type.lower() for c in source.columns} if source else {}
    return Granularity.DAY if types.get(origin.column) == "date" else None
