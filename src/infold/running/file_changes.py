"""What changed about the files of a source: which are gone, and which are to be read again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256

from infold.core.files import IngestedFile, ListedFile, lasting_path
from infold.core.interval import MAX
from infold.core.model import Drift, Source
from infold.core.plan import FileDiff
from infold.core.ports import Ledger
from infold.core.trace import Trace


def file_policy_fingerprint(source: Source) -> str:
    """What decides which files are set aside as a whole; empty where no file is."""
    says = [source.on_drift.value, source.new_columns.value, source.on_unreadable.value]
    if Drift.SET_ASIDE.value not in says:
        return ""
    declared = [[column.name, column.type, column.optional] for column in source.columns]
    return sha256(json.dumps([says, declared]).encode()).hexdigest()[:12]


def lost_files(
    source: Source,
    known: Mapping[str, IngestedFile],
    removed: Sequence[IngestedFile],
    present: Sequence[ListedFile],
    *,
    empty: bool,
) -> tuple[IngestedFile, ...]:
    """
    The files that were removed without others in their place.

    ``known`` and ``present`` have at least the files that differ; nothing is listed at all if the
    source is ``empty``.

    New files count as replacements of removed ones, one for one: they were renamed, or are the next
    full copy. Of an Iceberg table any number counts, since compaction replaces many files with few.
    """
    sizes = {lasting_path(file.path): file.size for file in present}
    lost = tuple(
        file for file in removed if not sizes.get(lasting_path(file.path)) and (file.size or empty)
    )
    before = {lasting_path(path) for path in known}
    added = sum(1 for path, size in sizes.items() if size and path not in before)
    enough = 1 if source.is_table else len(lost)
    return () if added >= enough else lost


def is_gone(known: IngestedFile, observed: ListedFile | None) -> bool:
    """Whether a version of a file is no longer there."""
    return observed is None or observed.fingerprint != known.fingerprint


def redefined_files(
    ledger: Ledger, trace: Trace | None, files: FileDiff
) -> tuple[IngestedFile, ...]:
    """
    The ingested files that may have rows in cells which a changed definition is yet to fill.

    Only rows that are taken in have a cell in the ledger. Where other rows may be in such cells,
    these have no end, and any file may have one.
    """
    if trace is None or not trace.pending:
        return ()
    pending = trace.pending_ranges
    if any(part.end == MAX for part in pending):
        return files.ingested
    spots = ledger.file_cells(trace.model)
    some = {spot.file_id for spot in spots if pending.overlaps(spot.cell)}
    return tuple(file for file in files.ingested if file.id in some or file.waiting)
