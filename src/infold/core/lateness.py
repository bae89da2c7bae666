"""How late rows of a table came, as values: what `infold lateness` and the page show."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from infold.core.interval import Granularity


class How(StrEnum):
    """By what it is known when a row was received."""

    RECEIVED = "received"
    """A column of the row says it."""
    NOTHING = "nothing"
    """No column says it, or no row has both times."""


@dataclass(frozen=True, slots=True)
class Missed:
    """What a job that processes the last ``days`` again each day would have left wrong."""

    days: int
    rows: int
    event_days: int


@dataclass(frozen=True, slots=True)
class Heat:
    """
    Rows by when they happened and when they were received: ``(event, received, rows)``.

    Both are starts of cells, of ``event_unit`` and ``received_unit``. The oldest rows, before
    ``since``, are left out: one wrong clock would make all others a single dot.
    """

    event_unit: Granularity
    received_unit: Granularity
    cells: tuple[tuple[int, int, int], ...]
    left_out: int
    since: int


@dataclass(frozen=True, slots=True)
class Measures:
    """What the two times of all measured rows say."""

    rows: int
    ages: tuple[tuple[str, int], ...]
    """Names of ages at receipt, from the youngest on, each with its rows."""
    lookbacks: tuple[Missed, ...]
    longest_days: int
    worst: tuple[tuple[int, int], ...]
    """The event days with most rows that came over a day late: ``(day, rows)``."""
    heat: Heat


@dataclass(frozen=True, slots=True)
class Lateness:
    """The lateness of the rows of one table of events."""

    model: str
    source: str | None
    how: How
    column: str | None = None
    """The column of the table with the received time, if there is one."""
    since: int | None = None
    """Rows that happened before this were not read."""
    measures: Measures | None = None
    """None if nothing is known."""
