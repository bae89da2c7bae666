"""Sessions that are looked up, and rows that were set aside, counted by reason."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from tests.cli import sample
from tests.page.history import EVIL, FIRST, history

from infold import api
from infold.core.interval import DAY, Interval
from infold.core.ports import Lake
from infold.core.project import Project
from infold.core.trace import CellState, Trace
from infold.inspecting.left_out import set_aside_schema
from infold.ledger import SqlLedger
from infold.page.documents import Documents, aside_document, sessions_document
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


REASONS = [("clicks", f"unparsable {EVIL}")] * 7 + [("clicks", "null key")] * 2


@dataclass
class StoredRows:
    """A lake in which only the table of set-aside rows is read."""

    project: Project

    def rows(self, table: str, *, limit: int) -> pa.Table:
        """Some rows with two reasons."""
        assert (table, limit > len(REASONS)) == (self.project.set_aside, True)
        known = {"source": "raw.clicks", "file": f"{EVIL}.json", "file_id": 1, "event_time": None}
        rows = [
            {**known, "model": model, "reason": reason, "raw": f"{EVIL}{number}"}
            for number, (model, reason) in enumerate(REASONS)
        ]
        return pa.Table.from_pylist(rows, schema=set_aside_schema())


def test_rows_are_counted_by_their_reason(tmp_path: Path) -> None:
    """The most frequent first, five of each; without sessions nothing is in quarantine."""
    project = api.open_project(history(tmp_path / "shop"))
    lake = cast("Lake", StoredRows(project))
    document = aside_document(project, api.ledger(project), lake)
    found = document["reasons"]

    assert {(one["model"], one["reason"]): one["rows"] for one in found} == Counter(REASONS)
    assert [(one["rows"], len(one["samples"])) for one in found] == [(7, 5), (2, 2)]
    assert found[0]["samples"][0]["raw"] == f"{EVIL}0"
    assert document["left_out"] == {"models": [], "samples": []}
    assert document["quarantine"] == {"quarantined_sessions": [], "entries": [], "sessions": 0}
