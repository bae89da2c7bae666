"""Requests to erase, what would go, what a purge left, and the proof, as people read them."""

from __future__ import annotations

from infold.core.erasure import ErasureRequest, LandingFile, ProvenRequest
from infold.core.interval import EVER, Granularity, Ranges, parse_instant_text
from infold.core.report import ErasureProof, Purged
from infold.render.erasures import (
    proof_screen,
    purged_screen,
    recorded_screen,
    requests_json,
    requests_screen,
    stored_screen,
)
from infold.running.erasures import AskedErasure, RewrittenFiles, StoredRows

AT = parse_instant_text("2024-03-09T10:00:00")
ALL = ErasureRequest(3, "2024-117", "person", ("1f",), reason="by letter", made_at=AT)
SOME = ErasureRequest(2, "b", "device", ("2f",), source="raw.clicks", before=AT, made_at=AT)
FILES = (
    LandingFile("raw.clicks", "l/a.json", 1),
    LandingFile("raw.old", "", None, "rows of avro are not looked at"),
)
AGAIN = ErasureRequest(1, "a", "person", made_at=AT)


def test_requests() -> None:
    """The newest first, with what restricts each, and how far it is."""
    asked = [AskedErasure(ALL, ("clicks",)), AskedErasure(SOME, ()), AskedErasure(AGAIN, (), True)]
    [_, due] = requests_screen([AskedErasure(AGAIN, (), purge_by=AT)]).splitlines()
    assert "  erased, purged by 2024-03-09 10:00:00  " in due
    part = "in raw.clicks, before 2024-03-09 10:00:00"
    again = "all earlier requests, by columns declared since"
    assert requests_screen(asked).splitlines() == [
        "request   erased  asked                state",
        "2024-117  person  2024-03-09 10:00:00  waits for a run of clicks  by letter",
        f"b         device  2024-03-09 10:00:00  erased                     {part}",
        f"a         person  2024-03-09 10:00:00  purged                     {again}",
    ]
    assert requests_screen([]) == "Nobody was asked to be erased."
    assert recorded_screen(ALL, "infold") == (
        "Request 2024-117 is kept, with hashes in place of keys."
        " The next `infold run` erases the rows."
    )
    [shape] = requests_json(asked[:1])["requests"]
    assert "1f" not in str(shape)


def test_stored_rows() -> None:
    """By table, with the tables that follow; of some only files tell. Then what a purge costs."""
    day = Ranges((Granularity.DAY.cell(AT),))
    stored = [
        StoredRows("clicks", 1, day, ("sessions", "daily")),
        StoredRows("owners", 3, Ranges((EVER,)), ()),
        StoredRows("orders", None, Ranges(), ()),
    ]
    files = [RewrittenFiles("clicks", 1, 3_500), RewrittenFiles("sessions", 12, 34_567_890)]
    assert stored_screen(stored, files, ()).splitlines()[1:] == [
        "  clicks  1  row   in 1 stretch of time                            then sessions, daily",
        "  owners  3  rows",
        "  orders  ?  rows  has no such key as it is: files are read again",
        "A purge would write again, about",
        "  clicks     1  file    0.0 MB",
        "  sessions  12  files  34.6 MB",
    ]
    assert stored_screen([], [], ()) == "No table of events that was built has such keys."


def test_a_purge() -> None:
    """What is done, what cannot be rolled back to any more, and what has to be done first."""
    files = (*FILES, LandingFile("raw.clicks", "l/b.json", 2, "it is in an object store"))
    left = (("daily__1f", "no run has erased them from it"),)
    done = Purged(("clicks",), left, ("old__2f",), files)
    assert purged_screen(done).splitlines() == [
        "No file has an erased row any more of 1 table.",
        "Dropped 1 table that others had replaced: there is no rollback to them.",
        "Left: daily__1f, as no run has erased them from it.",
        "Written again: l/a.json without 1 row.",
        "Not looked at: the files of raw.old, as rows of avro are not looked at.",
        "Left: l/b.json with 2 rows, as it is in an object store.",
        "Bring them up to date, or drop them, and purge again.",
    ]


def test_the_proof() -> None:
    """Whom it is about, what was looked at and not, and each place where something is left."""
    requests = (
        ProvenRequest(AGAIN, waits=False, gone=True, erased_at=AT, gone_at=AT),
        ProvenRequest(ALL, waits=True, gone=False),
    )
    some = (ProvenRequest(SOME, waits=False, gone=True),)
    proof = ErasureProof(AT, requests, some, (("file with rows", 2),), (), False, FILES)
    at, part = "2024-03-09 10:00:00", "of some rows alone: not looked for"
    assert proof_screen(proof, "shop", "dev", "1f2e").splitlines() == [
        f"Proof of erasure, {at} UTC, project shop, target dev",
        "",
        "  request   erased  asked                erased from tables   gone from files",
        f"  a         person  {at}  {at}  {at}",
        f"  2024-117  person  {at}  not yet              not purged",
        f"  b         device  {at}  yes                  yes                  {part}",
        "",
        "Looked at 2 files with rows.",
        "Keys were compared by their hashes, as whole values; --value KEY finds parts.",
        "Found: nothing.",
        "",
        "Rows of erased persons in files that are yours to delete:",
        "  l/a.json  1 row",
        "",
        "Not looked at:",
        "  the files of raw.old, as rows of avro are not looked at",
        "  backups, exports, and versions that an object store keeps",
        "",
        "Signed as JSON (--json), by the key with this SHA-256:",
        "  1f2e",
    ]
