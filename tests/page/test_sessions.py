"""Sessions that are looked up, and what is read for them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from tests.cli import sample
from tests.page.history import FIRST, history

from infold import api
from infold.core.interval import DAY, Interval
from infold.core.ports import Lake
from infold.core.trace import CellState, Trace
from infold.ledger import SqlLedger
from infold.page.documents import Documents
from infold.page.session_documents import sessions_document
from infold.render.session_history import session_history_shape


@dataclass
class Stored:
    """A ledger and a lake with one table of sessions."""

    asked: list[dict[str, Any]] = field(default_factory=list)

    def traces(self) -> dict[str, Trace]:
        """It was built."""
        return {"sessions": Trace("sessions", "f")}

    def cells(self, _: str) -> Sequence[CellState]:
        """Two days of it."""
        return [CellState(Interval(at, at + DAY), 2, 7) for at in (FIRST, FIRST + DAY)]

    def rows(self, table: str, **asked: Any) -> pa.Table:
        """Two sessions, not in order."""
        self.asked.append({"table": table, **asked})
        start = datetime(2024, 3, 2, 12, tzinfo=UTC)
        starts = [start + timedelta(hours=1), start]
        return pa.table(
            {
                "session_id": ["b", "a"],
                "session_start": pa.array(starts, pa.timestamp("us", "UTC")),
                "amount": pa.array([None, 1], pa.decimal128(5, 2)),
            }
        )


def test_some_of_the_newest_are_listed() -> None:
    """Of the newest cell alone, by their start; nothing of a table that was never built."""
    stored = Stored()
    found, none = (
        sessions_document(cast("SqlLedger", stored), cast("Lake", stored), name)
        for name in ("sessions", "others")
    )

    where = "session_start >= '2024-03-02'"
    assert stored.asked == [{"table": "sessions", "where": where, "limit": 20}]
    shown = [(one["session_id"], one["amount"]) for one in found["sessions"]]
    assert shown == [("a", "1.00"), ("b", None)]
    assert none["sessions"] == []


def test_a_session_is_what_explain_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The document of a session is that of `infold explain session`; its id may be anything."""
    asked: list[str] = []

    def known(_: object, id_: str) -> object:
        asked.append(id_)
        return sample.histories()

    monkeypatch.setattr(api, "session_history", known)

    found = Documents(history(tmp_path / "shop"))("session/a/../b")

    assert asked == ["a/../b"]
    assert found is not None
    assert found["sessions"][0]["runs"]
    assert {*found} == {*session_history_shape(sample.histories())}
    json.dumps(found)


def test_a_session_that_is_none_says_so(tmp_path: Path) -> None:
    """An id that no session has is a message, as of the command."""
    found = Documents(history(tmp_path / "shop"))("session/nobody")

    assert found is not None
    assert found["error"]["slug"] in ("unknown-session", "no-sessions")
