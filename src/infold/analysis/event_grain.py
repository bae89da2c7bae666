"""How coarse the event times of an ``events`` model are."""

from __future__ import annotations

from sqlglot import exp

from infold.analysis.names.relation import Block, Table
from infold.analysis.names.subject import Subject
from infold.analysis.times.floors import floor_of
from infold.analysis.times.shape import Grain
from infold.core.interval import Granularity


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
