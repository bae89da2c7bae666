"""Rows that could not be used, with their reasons and some of them; sessions in quarantine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from infold import api
from infold.core.arrow_values import rows_of
from infold.core.model import Kind
from infold.core.ports import Lake
from infold.core.project import Node, Project
from infold.core.queries import left_out_reason
from infold.inspecting.left_out import rows_left_out
from infold.ledger import SqlLedger
from infold.messages import errors
from infold.page.shapes import JsonObject, file_shape, plain
from infold.render.quarantine import quarantine_json

if TYPE_CHECKING:
    import pyarrow as pa

COUNTED = 200_000
"""Of how many set-aside rows the reasons are counted."""

SAMPLES = 5
"""How many rows of each reason are shown."""

ASIDE_FILES = 50
SESSIONS = 500


def aside_document(project: Project, ledger: SqlLedger, lake: Lake) -> JsonObject:
    """Set-aside rows by reason with samples, files that have some, and the quarantine."""
    reasons = _set_aside(project, lake)
    return {
        "reasons": reasons,
        "counted": COUNTED if sum(one["rows"] for one in reasons) >= COUNTED else None,
        "files": _files(project, ledger),
        "left_out": _left_out(project, ledger, lake),
        "quarantine": _quarantine(project),
    }


def _set_aside(project: Project, lake: Lake) -> list[JsonObject]:
    """The rows of the table, by model and reason."""
    try:
        found = lake.rows(project.set_aside, limit=COUNTED)
    except errors.InfoldError as error:
        if error.slug != "not-built":
            raise
        return []  # the table is made with its first row
    counts: Counter[tuple[str, str]] = Counter()
    samples: dict[tuple[str, str], list[int]] = {}
    pairs = zip(found["model"].to_pylist(), found["reason"].to_pylist(), strict=True)
    for at, pair in enumerate(pairs):
        counts[pair] += 1
        if counts[pair] <= SAMPLES:
            samples.setdefault(pair, []).append(at)
    return [
        {
            "model": model,
            "reason": reason,
            "rows": rows,
            "samples": [plain(row) for row in rows_of(found.take(samples[model, reason]))],
        }
        for (model, reason), rows in counts.most_common()
    ]


def _files(project: Project, ledger: SqlLedger) -> list[JsonObject]:
    """The files with set-aside rows, those with most first."""
    found = [
        (file, node.name)
        for node in project
        if node.source is not None
        for file in ledger.files_set_aside(node.name)
    ]
    found.sort(key=lambda pair: (-pair[0].set_aside, pair[0].path))
    return [file_shape(file) | {"model": model} for file, model in found[:ASIDE_FILES]]


class _SparkNeededError(Exception):
    """Only Spark can tell which rows these are."""


def _left_out(project: Project, ledger: SqlLedger, lake: Lake) -> JsonObject:
    """Events in no session: how many of each model, and some of them where no Spark is needed."""
    counts = ledger.left_out()

    def refuse(table: str, nodes: Sequence[Node], most: int | None) -> pa.Table:
        raise _SparkNeededError(table, nodes, most)

    samples: list[JsonObject] = []
    if any(counts.values()):
        try:
            found = rows_left_out(project, ledger, lake, SAMPLES, refuse)
        except _SparkNeededError:
            found = None
        samples = [] if found is None else [plain(row) for row in rows_of(found)]
    return {
        "models": [
            {
                "model": node.name,
                "rows": counts[node.name],
                "reason": left_out_reason(node.query) if node.query is not None else "",
            }
            for node in project
            if node.model.kind is Kind.SESSIONS and counts.get(node.name)
        ],
        "samples": samples,
    }


def _quarantine(project: Project) -> JsonObject:
    """The sessions in quarantine, the longest first, and the manual entries."""
    rows = api.manifest(project, "quarantined_sessions").to_pylist()
    rows.sort(key=lambda row: row["start_tstamp"] - row["end_tstamp"])
    shape = quarantine_json(rows[:SESSIONS], api.list_quarantine_entries(project))
    return shape | {"sessions": len(rows)}
