"""Requests to erase persons, as text and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from infold.render import formatting
from infold.render.formatting import clock, count, iso

if TYPE_CHECKING:
    from infold.core.erasure import ErasureRequest, LandingFile, ProvenRequest
    from infold.core.report import ErasureProof, Purged
    from infold.running.erasures import AskedErasure, RewrittenFiles, StoredRows


def requests_screen(asked: Sequence[AskedErasure]) -> str:
    """All requests, a line each."""
    if not asked:
        return "Nobody was asked to be erased."
    rows = [("request", "erased", "asked", "state", "")]
    for one in asked:
        request = one.request
        rows.append(
            (request.id, request.erasure, clock(request.made_at), _state(one), _about(request))
        )
    return "\n".join(formatting.columns(rows, indent=0))


def _state(one: AskedErasure) -> str:
    if one.pending:
        return f"waits for a run of {formatting.names(one.pending)}"
    if one.purge_by is not None:
        return f"erased, purged by {clock(one.purge_by)}"
    return "purged" if one.purged else "erased"


def _about(request: ErasureRequest) -> str:
    """What restricts a request, and why it was made."""
    parts = [f"in {request.source}" if request.source else ""]
    parts.append(f"before {clock(request.before)}" if request.before is not None else "")
    parts.append("" if request.keys else "all earlier requests, by columns declared since")
    parts.append(request.reason)
    return ", ".join(filter(None, parts))


def recorded_screen(request: ErasureRequest, infold: str) -> str:
    """What is said of a new request; ``infold`` begins the command that carries it out."""
    then = f" The next `{infold} run` erases the rows." if infold else ""
    return f"Request {request.id} is kept, with hashes in place of keys.{then}"


def stored_screen(
    stored: Sequence[StoredRows], files: Sequence[RewrittenFiles], took: Sequence[float]
) -> str:
    """
    The stored rows that a request would erase, and the files that a purge would write again.

    ``took`` are the seconds of earlier requests, which say about how long it takes.
    """
    if not stored:
        return "No table of events that was built has such keys."
    rows = []
    for one in stored:
        if one.rows is None:
            what = "has no such key as it is: files are read again"
        elif formatting.has_ends(one.cells):
            what = f"in {count(len(one.cells.parts), 'stretch', 'stretches')} of time"
        else:
            what = ""
        number = "?" if one.rows is None else f"{one.rows:,}"
        readers = f"then {formatting.names(one.readers)}" if one.readers else ""
        rows.append((one.model, number, "row" if number == "1" else "rows", what, readers))
    head = "Would be erased (rows that wait or were set aside are not counted)"
    parts = [head, *formatting.columns(rows, right=(1,))]
    if files:
        sizes = [
            (one.model, f"{one.files:,}", "file" if one.files == 1 else "files", _size(one.bytes))
            for one in files
        ]
        parts += ["A purge would write again, about", *formatting.columns(sizes, right=(1, 3))]
    if took:
        about = f"The last took {formatting.seconds(median(took))}"
        parts.append(about if len(took) == 1 else f"{about}: the median of {len(took)}")
    return "\n".join(parts)


def _size(bytes_: int) -> str:
    return f"{bytes_ / 1e6:,.1f} MB"


def purged_screen(done: Purged) -> str:
    """What a purge did, and what it left."""
    parts = [
        f"No file has an erased row any more of {formatting.count(len(done.tables), 'table')}."
    ]
    if done.dropped:
        count_ = formatting.count(len(done.dropped), "table")
        parts.append(f"Dropped {count_} that others had replaced: there is no rollback to them.")
    for table, why in done.left:
        parts.append(f"Left: {table}, as {why}.")
    for one in done.files:
        rows = formatting.count(one.rows or 0, "row")
        if one.rows is None:
            parts.append(f"Not looked at: {_place(one)}, as {one.why}.")
        elif one.why:
            parts.append(f"Left: {one.path} with {rows}, as {one.why}.")
        else:
            parts.append(f"Written again: {one.path} without {rows}.")
    if done.left:
        parts.append("Bring them up to date, or drop them, and purge again.")
    return "\n".join(parts)


def purged_json(done: Purged) -> dict[str, Any]:
    """What ``infold erase --purge --json`` prints of it."""
    return {
        "tables": list(done.tables),
        "dropped": list(done.dropped),
        "left": [{"table": table, "why": why} for table, why in done.left],
        "files": landing_json(done.files),
    }


def proof_screen(proof: ErasureProof, project: str, target: str, fingerprint: str = "") -> str:
    """
    The certificate: what was looked for and where, what was found, what was not looked at.

    ``fingerprint`` is of the key that it is signed with as JSON; empty where that is not so.
    """
    head = f"Proof of erasure, {clock(proof.at)} UTC, project {project}, target {target}"
    rows = [("request", "erased", "asked", "erased from tables", "gone from files", "")]
    rows += [
        (
            *(one.request.id, one.request.erasure, clock(one.request.made_at)),
            "not yet" if one.waits else _since(one.erased_at),
            _since(one.gone_at) if one.gone else "not purged",
            "of some rows alone: not looked for" if one in proof.conditional else "",
        )
        for one in (*proof.requests, *proof.conditional)
    ]
    parts = [head, "", *formatting.columns(rows)]
    looked = (
        formatting.count(number, what, _PLURALS.get(what, what)) for what, number in proof.looked
    )
    parts += ["", f"Looked at {', '.join(looked)}."]
    if not proof.by_value:
        parts.append(
            "Keys were compared by their hashes, as whole values; --value KEY finds parts."
        )
    if proof.found:
        parts += ["", "Found:", *(f"  {place}: {number:,}" for place, number in proof.found)]
    else:
        parts.append("Found: nothing.")
    remain = [one for one in proof.landing if one.rows]
    if remain:
        parts += ["", "Rows of erased persons in files that are yours to delete:"]
        parts += formatting.columns(
            [(one.path, formatting.count(one.rows or 0, "row")) for one in remain]
        )
    parts += ["", "Not looked at:"]
    parts += [f"  {_place(one)}, as {one.why}" for one in proof.landing if one.rows is None]
    parts.append("  backups, exports, and versions that an object store keeps")
    if fingerprint:
        parts += ["", "Signed as JSON (--json), by the key with this SHA-256:", f"  {fingerprint}"]
    return "\n".join(parts)


def _since(at: int | None) -> str:
    return "yes" if at is None else clock(at)


def _place(file: LandingFile) -> str:
    return file.path or f"the files of {file.source}"


def landing_json(files: Sequence[LandingFile]) -> list[dict[str, Any]]:
    """Files of sources; ``rows`` null: not looked into, as ``why`` says."""
    return [
        {"source": one.source, "path": one.path or None, "rows": one.rows, "why": one.why or None}
        for one in files
    ]


_PLURALS = {
    "file with rows": "files with rows",
    "file of a source": "files of sources",
    "file of unit tests": "files of unit tests",
    "file of .infold": "files of .infold",
    "other file of tables": "other files of tables",
}


def proof_json(proof: ErasureProof, project: str, target: str) -> dict[str, Any]:
    """What ``infold erase --prove --json`` prints; no key is in it."""

    def shown(requests: Sequence[ProvenRequest]) -> list[dict[str, Any]]:
        return [
            {
                "id": one.request.id,
                "erasure": one.request.erasure,
                "made_at": iso(one.request.made_at),
                "pending": one.waits,
                "erased_at": iso(one.erased_at),
                "purged": one.gone,
                "purged_at": iso(one.gone_at),
            }
            for one in requests
        ]

    return {
        "at": iso(proof.at),
        "project": project,
        "target": target,
        "requests": shown(proof.requests),
        "conditional": shown(proof.conditional),
        "looked_at": dict(proof.looked),
        "by_value": proof.by_value,
        "found": dict(proof.found),
        "landing": landing_json(proof.landing),
    }


def requests_json(asked: Sequence[AskedErasure]) -> dict[str, Any]:
    """What ``infold erase --json`` prints; of keys only how many hashes there are."""
    return {"requests": [_request_shape(one) for one in asked]}


def waiting_requests_json(requests: Sequence[ErasureRequest]) -> list[dict[str, Any]]:
    """What ``infold status --json`` says of requests that a model has yet to apply."""
    return [{"id": one.id, "erasure": one.erasure, "made_at": iso(one.made_at)} for one in requests]


def _request_shape(one: AskedErasure) -> dict[str, Any]:
    request = one.request
    return {
        "id": request.id,
        "erasure": request.erasure,
        "number": request.number,
        "hashes": len(request.keys),
        "source": request.source,
        "before": iso(request.before),
        "reason": request.reason,
        "made_at": iso(request.made_at),
        "pending": list(one.pending),
        "purged": one.purged,
        "purge_by": iso(one.purge_by),
    }


def stored_json(
    stored: Sequence[StoredRows], files: Sequence[RewrittenFiles], took: Sequence[float]
) -> dict[str, Any]:
    """What ``infold erase NAME --dry-run --json`` prints."""
    return {
        "tables": [
            {
                "model": one.model,
                "rows": one.rows,
                "cells": [[iso(part.start), iso(part.end)] for part in one.cells],
                "readers": list(one.readers),
            }
            for one in stored
        ],
        "purge": [{"model": one.model, "files": one.files, "bytes": one.bytes} for one in files],
        "earlier_seconds": list(took),
    }
