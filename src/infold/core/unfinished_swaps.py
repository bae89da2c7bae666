"""Exchanges of tables that began and are not recorded as done, as steps show them."""

from __future__ import annotations

from collections.abc import Iterable

from infold.core.record import StepRecord
from infold.core.swap import SwapKind


def is_exchange(record: StepRecord) -> bool:
    """Whether a step gives tables other names."""
    return record.action in tuple(SwapKind)


def models_of_swaps(unfinished: Iterable[StepRecord]) -> frozenset[str]:
    """The models with a table that may have another name already than the ledger says."""
    return frozenset(
        table["model"]
        for record in unfinished
        if is_exchange(record)
        for table in record.detail["tables"]
    )
