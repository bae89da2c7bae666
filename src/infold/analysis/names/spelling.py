"""
Columns that a declaration names, as the query spells them.

SQL does not mind the case of a name, and what reads a table by its stored names does: after
``AS Day``, a ``partition_column: day`` means the column ``Day``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from infold.core.model import Kind, Model


def with_column_spelling(model: Model, columns: Sequence[str]) -> Model:
    """The model with the names in its declaration as its table has them."""
    if model.kind in (Kind.SESSIONS, Kind.VIEW):
        return model
    known = {column.lower(): column for column in reversed(columns)}

    def own(name: str) -> str:
        return known.get(name.lower(), name)

    series, incremental = model.timeseries, model.incremental
    if series is not None:
        own_time = model.kind is Kind.EVENTS
        series = replace(
            series,
            event_time_column=own(series.event_time_column)
            if own_time
            else series.event_time_column,
            partition_column=own(series.partition_column),
        )
    if incremental is not None:
        incremental = replace(incremental, unique_key=tuple(map(own, incremental.unique_key)))
    key = tuple(map(own, model.unique_key))
    return replace(model, timeseries=series, incremental=incremental, unique_key=key)
