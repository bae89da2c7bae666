"""Set-aside rows on the page: counted by reason, a few of each shown."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pyarrow as pa
from tests.page.history import EVIL, history

from infold import api
from infold.core.ports import Lake
from infold.core.project import Project
from infold.inspecting.left_out import set_aside_schema
from infold.page.aside import aside_document

REASONS = [("clicks", f"unparsable {EVIL}")] * 7 + [("clicks", "null key")] * 2


@dataclass
class StoredRows:
    """A lake in which only the table of set-aside rows is read."""

    project: Project

    def rows(self, table: str, *, limit: int) -> pa.Table:
        """Some rows with two reasons."""
        assert (table, limit > len(REASONS)) == (self.project.set_aside, True)
        rows: list[dict[str, object]] = [
            {
                "model": model,
                "source": "raw.clicks",
                "file": f"{EVIL}.json",
                "file_id": 1,
                "reason": reason,
                "raw": f"{EVIL}{number}",
                "event_time": None,
            }
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
