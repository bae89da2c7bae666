"""Keys of a source that contradict another one, or that its columns leave without an effect."""

from __future__ import annotations

from collections.abc import Iterator

from infold.core.model import Drift, NewColumns, Source
from infold.declare.keys import Keys
from infold.declare.types import has_timestamps

ISO = "iso"
"""The format in which dates are written, too."""


def refuse_contradictions(keys: Keys, source: Source) -> None:
    """Note the keys of a source without other mistakes that have no effect beside its others."""
    for key, where, todo in _without_effect(source):
        keys.needless((key,), f"{keys.where}, {where}", todo)


def _without_effect(source: Source) -> Iterator[tuple[str, str, str]]:
    """Such keys, with what leaves them without an effect, and what to do."""
    if source.on_drift is Drift.EVOLVE and source.on_new_columns not in (None, NewColumns.IGNORE):
        where = f"whose `on_new_columns` is {source.on_new_columns}"
        todo = "`evolve` lets new columns wait in the files. Leave one of both out."
        yield "on_drift", where, todo
    received = source.received_column
    if received is not None and received == source.event_time_column:
        todo = (
            "A row is dated in the future if its event time is later than that. Name the column "
            "with the time of receipt, or leave it out: then such rows wait."
        )
        yield "received_column", "whose event time is the same column", todo
    timestamps = any(
        has_timestamps(one.type) for one in source.columns if one.name != source.file_time_column
    )
    if source.timestamp_format != ISO and not timestamps:
        todo = (
            "Dates are written as 2024-03-01. A column whose values are written otherwise is "
            "declared as timestamp."
        )
        yield "timestamp_format", "which declares no column of type timestamp", todo
