"""
Requests to erase that others write: the rows of a source, a key each, taken before a run observes.

A key is recorded once, as hashes, whatever files have it and however often they are read. So files
that changed are read as a whole: what was taken from them before is known by its hashes. Whoever is
killed between two steps has recorded requests that the next run finds again. What a source no
longer has takes nothing back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING

from infold.core.erasure import ErasureRequest, RequestColumns, RequestRows
from infold.core.files import ListedFile, paths_and_fingerprints
from infold.core.formats import FORMATS
from infold.core.interval import MAX
from infold.core.model import Place
from infold.core.project import Project
from infold.core.record import REQUESTS_OF
from infold.messages.errors import InfoldError
from infold.planning.staleness import count_of
from infold.running.erasures import (
    events_with_keys,
    hasher_of,
    record_requests,
    refuse_other_erasures,
)
from infold.running.run_progress import ends_run
from infold.running.source_listings import Listing

if TYPE_CHECKING:
    from infold.core.ports import Ledger

ReadRequests = Callable[[RequestColumns, Sequence[ListedFile]], RequestRows]
"""The rows of a source: of these files, or of a database, which has none."""


@dataclass(frozen=True, slots=True)
class TakenRequests:
    """What is told of the sources, and models that wait: by one that cannot be read."""

    notes: tuple[str, ...]
    refused: Mapping[str, InfoldError]


def take_requests(
    project: Project, ledger: Ledger, listing: Listing, read: ReadRequests
) -> TakenRequests:
    """
    Record the requests that sources have and the ledger does not.

    Where a source cannot be read, no model may take in rows that its requests may be about. Raises
    :func:`refuse_other_erasures`' errors, and those after which nothing can be built.
    """
    notes: list[str] = []
    refused: dict[str, InfoldError] = {}
    if project.erasure_requests:
        refuse_other_erasures(project, ledger.known_erasures())
    for columns in project.erasure_requests:
        try:
            notes += _take(project, ledger, columns, listing, read)
        except Exception as error:
            from infold.system.failures import known_failure

            known = known_failure(error)
            if known is None or ends_run(known):
                raise
            refused |= {name: known for name, _ in events_with_keys(project, columns.erasure)}
    return TakenRequests(tuple(notes), refused)


def _take(
    project: Project,
    ledger: Ledger,
    columns: RequestColumns,
    listing: Listing,
    read: ReadRequests,
) -> Iterator[str]:
    source, name = columns.source, _name(columns)
    files = _listed(columns, listing)
    digest, known = _digest(columns, files), ledger.locations().get(name, "")
    taken, _, told = known.partition("\n")
    if digest != taken or _is_read_anew(columns):
        rows = read(columns, files) if files or _is_read_anew(columns) else RequestRows()
        if new := _record(project, ledger, columns, rows):
            yield f"{source.name}: {count_of(new, 'new request')} to erase ({columns.erasure})"
        told = _unusable(columns, rows, files)
        if (entry := f"{digest}\n{told}") != known:
            ledger.remember_locations({name: entry})
    if told:
        yield told


def _record(project: Project, ledger: Ledger, columns: RequestColumns, rows: RequestRows) -> int:
    """Record the keys that nobody asked for yet without a condition; how many these are."""
    if not rows.asked:
        return 0
    hasher, erasure = hasher_of(project, ledger.known_erasures().secret), columns.erasure
    asked = {
        key
        for one in ledger.erasures()
        if one.erasure == erasure and one.source is None and one.before is None
        for key in one.keys
    }
    new = []
    for row in rows.asked:
        hashes = hasher.hashes_of(erasure, row.key)
        if hashes[0] not in asked:
            request = ErasureRequest(
                *(0, row.id or hashes[0][:12], erasure, hashes),
                reason=f"from {columns.source.name}",
                made_at=row.requested_at or 0,
            )
            new.append((request, (row.key,)))
    new.sort(key=lambda one: (one[0].made_at or MAX, one[0].keys))
    if new:
        record_requests(project, ledger, hasher, erasure, new)
    return len(new)


def told_of_requests(project: Project, ledger: Ledger) -> Iterator[str]:
    """What is wrong with the sources of requests, as they were read last."""
    locations = ledger.locations()
    told = (locations.get(_name(one), "").partition("\n")[2] for one in project.erasure_requests)
    yield from filter(None, told)


def untaken_notes(project: Project, ledger: Ledger, listing: Listing) -> Iterator[str]:
    """What a plan does not know: requests that a run takes first."""
    locations = ledger.locations()
    for columns in project.erasure_requests:
        taken, _, told = locations.get(_name(columns), "").partition("\n")
        source = columns.source.name
        try:
            files = _listed(columns, listing)
        except InfoldError as error:
            yield f"{source}: its requests to erase cannot be taken: {error.what}"
            continue
        if _is_read_anew(columns) or (files and _digest(columns, files) != taken):
            yield f"{source}: a run first takes the requests to erase that are new there"
        if told:
            yield told


def _name(columns: RequestColumns) -> str:
    return REQUESTS_OF.format(columns.source.name, columns.erasure)


def _is_read_anew(columns: RequestColumns) -> bool:
    """Whether nothing but its rows tells what is new: a table of a database."""
    return FORMATS[columns.source.format].is_extracted


def _listed(columns: RequestColumns, listing: Listing) -> Sequence[ListedFile]:
    return () if _is_read_anew(columns) else listing(columns.source)[0]


def _digest(columns: RequestColumns, files: Sequence[ListedFile]) -> str:
    """Tells whether files, and how they are read, are as they were."""
    declared = replace(columns, source=replace(columns.source, place=Place("")))
    paths, fingerprints = paths_and_fingerprints(files)
    listed = sorted(zip(paths, fingerprints, strict=True))
    return sha256(repr((declared, listed)).encode(errors="surrogatepass")).hexdigest()[:32]


def _unusable(columns: RequestColumns, rows: RequestRows, files: Sequence[ListedFile]) -> str:
    """What is wrong with a source; empty where nothing is."""
    source = columns.source
    if not (files or source.is_table or _is_read_anew(columns) or source.may_be_empty):
        return f"{source.name}: no file matches {source.path}, so nobody asks to be erased"
    if not rows.unusable:
        return ""
    parts = [
        f"{count:,} of {file}: {why}" if file else f"{count:,}: {why}"
        for (file, why), count in sorted(rows.unusable.items())
    ]
    rest = f"; {len(parts) - _SHOWN:,} more files or reasons" if len(parts) > _SHOWN else ""
    many = count_of(sum(rows.unusable.values()), "row")
    return f"{source.name}: nobody is erased by {many} ({'; '.join(parts[:_SHOWN])}{rest})"


_SHOWN = 3
