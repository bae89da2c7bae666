"""The kinds and cuts of sessions, as front matter says them and as the reference computes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import md5
from typing import Any

from tests.reference import aggregates as agg
from tests.reference.aggregates import Aggregate
from tests.reference.tables import Ends, numbered
from tests.reference.world import Row

from infold.core.interval import DAY, HOUR, MINUTE

GAP = 30 * MINUTE


@dataclass(frozen=True)
class SessionsCase:
    """A ``sessions`` mapping, and the same for the reference."""

    front: str
    ends: Ends = Ends()
    column: str = "user_id"
    """The column that shows what sessions are of."""
    gap: int | None = GAP
    more: Mapping[str, Aggregate] = field(default_factory=dict)
    """Columns that the table has besides."""
    numbered: bool = False

    def with_numbers(self, rows: list[Row]) -> list[Row]:
        """The sessions with their numbers, where they have any."""
        return numbered(rows, "user_id", self._id) if self.numbered else rows

    def _id(self, row: Row) -> str:
        return md5(f"{row[self.column]}|{row['session_start']}".encode()).hexdigest()


def _web(row: Row) -> str | None:
    """``user_id || url``."""
    return None if row["url"] is None or row["user_id"] is None else row["user_id"] + row["url"]


def campaign(row: Row) -> Any:
    """The page, where it is one of a campaign."""
    return None if row["url"] in (None, "/") else row["url"]


def _begins(row: Row) -> bool:
    return bool(row["ok"])


_USER = {"user_id": agg.first_known("user_id")}
_LATEST = {"user_id": agg.last_known("user_id")}

SESSIONS_CASES: tuple[SessionsCase, ...] = (
    SessionsCase(
        "user: user_id, gap: 30 minutes, max_length: 40 minutes, cuts: {midnight: Asia/Kolkata}, "
        "session_number: true",
        Ends(zone="Asia/Kolkata", most=40 * MINUTE),
        numbered=True,
    ),
    SessionsCase(
        "identifier: user_id || url, user: user_id, quarantine_after: 3 days, keep: head, "
        "session_number: true",
        Ends(whose=_web, limit=3 * DAY, head=True),
        "session_identifier",
        None,
        _USER,
        numbered=True,
    ),
    SessionsCase(
        "user: user_id, gap: 30 minutes, cuts: {midnight: America/New_York, start_events: ok, "
        "campaign: {columns: url, direct: [/]}}",
        Ends(zone="America/New_York", campaign=campaign, begins=_begins),
    ),
    SessionsCase(
        "user: user_id, gap: 2 hours, quarantine_after: 1 hour",
        Ends(limit=HOUR),
        gap=2 * HOUR,
    ),
    SessionsCase(
        "user: user_id, gap: 2 hours, quarantine_after: 1 hour, cuts: {start_events: ok, "
        "campaign: {columns: url, direct: [/]}}",
        Ends(campaign=campaign, begins=_begins, limit=HOUR),
        gap=2 * HOUR,
    ),
    SessionsCase(
        "identifier: [url, n], user: user_id, gap: 1 day, choose_user: last, max_length: 3 days",
        Ends(
            whose=lambda row: row["url"] or (None if row["n"] is None else str(row["n"])),
            most=3 * DAY,
        ),
        "session_identifier",
        DAY,
        _LATEST,
    ),
    SessionsCase(
        "identifier: user_id || url, user: user_id, without_identifier: {gap: 30 minutes}",
        Ends(
            whose=lambda row: None if row["user_id"] is None else (_web(row), row["user_id"]),
            shown=lambda of: of[0],  # type: ignore[index]
            gap=lambda of: GAP if of[0] is None else None,  # type: ignore[index]
            text=lambda of: f"u{of[1]}" if of[0] is None else f"i{of[0]}",
        ),
        "session_identifier",
        None,
        _USER,
    ),
)
