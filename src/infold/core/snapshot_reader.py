"""What the outside must supply to look at stored tables as they were; a port like ``ports``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """
    Rows that share an instant with a range of time, both ends included.

    A row reaches from its column ``first`` to its column ``last`` (the same one for an event).
    """

    first: str
    last: str
    start: int
    end: int


class SnapshotReader(Protocol):
    """Stored tables as they are and as they were, read in-process and narrowly."""

    def kept_snapshots(self, table: str) -> frozenset[int]:
        """The snapshots that a table still has."""

    def rows_equal_to(
        self,
        table: str,
        any_of: Sequence[Mapping[str, Any]],
        *,
        columns: Sequence[str] | None = None,
        near: TimeSpan | None = None,
        where: str | None = None,
        snapshot: int | None = None,
    ) -> pa.Table | None:
        """
        The rows of a snapshot (None: the current one) that equal one of ``any_of``.

        ``where`` is a predicate as :meth:`Lake.rows` takes it; ValueError when it needs Spark.
        ``columns`` that are not there are left out (None: all but technical ones). None where the
        snapshot, or a column to compare, is not there.
        """
