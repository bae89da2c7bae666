"""Start events: an event for which a condition is true begins a session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from infold.core.session_cuts import StartEvents
from infold.spark.sessions.aggregate_state import StateColumn
from infold.spark.sessions.cuts.base import InnerCut
from infold.spark.sessions.frames import BEGINS_SESSION

_ANY_NEW = "__any_new_begins_session"
"""Whether any of the new events begins a session."""


@dataclass(frozen=True, slots=True)
class StartEventsCut(InnerCut):
    """A session begins at an instant if any event of it is a start event."""

    declared: StartEvents
    merges = False

    def event_columns(self) -> Sequence[Column]:
        """Whether the event is a start event."""
        return [F.coalesce(F.expr(self.declared.sql), F.lit(False)).alias(BEGINS_SESSION)]

    def begins_session(
        self,
        rows: DataFrame,
        island: Sequence[str],  # noqa: ARG002
        order: Sequence[str],  # noqa: ARG002
    ) -> tuple[DataFrame, Column | None]:
        """Whether the event is a start event."""
        return rows, F.col(BEGINS_SESSION)

    def may_have_parted(
        self,
        later: Self | None,
        distance: Column,  # noqa: ARG002
    ) -> Column | None:
        """Any neighbours: which events were start events is not stored."""
        return None if self == later else F.lit(True)

    def new_event_state(self) -> Sequence[StateColumn]:
        """Whether any of them begins a session."""
        return [StateColumn.of_new_events(_ANY_NEW, "bool_or", BEGINS_SESSION)]

    def leaves_whole(self) -> Column | None:
        """No new event begins a session."""
        return ~F.coalesce(_ANY_NEW, F.lit(False))
