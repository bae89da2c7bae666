"""
The listings of one run: which folders are listed, and what differs from the ingested files.

A source with ``{date}`` in its path may be listed in part. What that rests on:

- A full listing is recorded when it has exactly the files that a model has ingested.
- A folder is left out only if that listing came later than its day by more than the source's
  window, and no file of it was taken in since. All others are listed, those that are new of any
  date. So what is found and not ingested, for whatever reason, is found again.
- The files of a folder that is left out count as they were taken in. None of them is read: a look
  that would make a run read one is made again, of everything.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import blake2b, sha256
from typing import TYPE_CHECKING

from infold.core.definition import Redefinition
from infold.core.files import (
    DatedPath,
    FullListing,
    IngestedFile,
    Listed,
    ListedFile,
    lasting_path,
    paths_and_fingerprints,
    with_file_policy,
)
from infold.core.interval import MAX, Granularity
from infold.core.model import Drift, Source
from infold.core.plan import FileDiff
from infold.core.record import FULL_LISTING, LISTED
from infold.core.trace import CellState, Trace
from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    from infold.core.ports import Ledger


Files = tuple[Sequence[ListedFile], Sequence[str]]
Listing = Callable[[Source], Files]
"""The files of a source that are there now, and the paths of those that have yet to settle."""


@dataclass(frozen=True, slots=True)
class DatedLook:
    """Looks at sources with dated folders."""

    path: Callable[[Source], DatedPath]
    listing: Callable[[Source, Collection[str]], Listed]
    """Lists a source, as far as they are there without the folders that may be left out."""


EstimateCells = Callable[
    [Source, Sequence[ListedFile], Granularity, int], "tuple[tuple[CellState, ...], int] | None"
]
"""
The rows by cell of new files, from their event times alone, and how many are dated in the future.

The last argument is the clock. None when that costs too much.
"""

Count = Callable[[Source, Sequence[ListedFile]], Mapping[str, int]]
"""How many rows files of a source have, by path, where counting costs little."""

Redefinitions = Callable[[Mapping[str, Trace]], Mapping[str, Redefinition]]
"""The changes of models with a table that another definition built, given all traces."""


class UnlistedError(Exception):
    """A source could not be listed."""

    def __init__(self, known_as: InfoldError) -> None:
        super().__init__(known_as.what)
        self.known_as = known_as


@contextmanager
def _named_failures() -> Iterator[None]:
    """Failures to list as :class:`UnlistedError`, if they have a name."""
    try:
        yield
    except (InfoldError, OSError) as error:
        from infold.system import failures

        known_as = failures.known_failure(error)
        if known_as is None:
            raise
        raise UnlistedError(known_as) from error


@dataclass
class SourceListings:
    """
    Lists each source once, or again if more of it is needed.

    ``compared`` are entries for the ledger's locations, once a run has done what it had to do.
    """

    ledger: Ledger
    listing: Listing
    dated: DatedLook | None
    as_of: int
    compared: dict[str, str]
    full: bool = False
    """Whether everything is listed."""
    _listed: dict[str, Listed] = field(default_factory=dict)
    _digests: dict[str, str] = field(default_factory=dict)
    _paths: dict[str, DatedPath] = field(default_factory=dict)

    def changes(
        self, model: str, source: Source, locations: Mapping[str, str], *, everything: bool
    ) -> tuple[Listed, ListedChanges]:
        """
        The files of a source, and what differs from those that a model has ingested.

        With ``everything``, files that were ingested before may be read again. Raises
        :class:`UnlistedError`.
        """
        skip = frozenset[str]()
        if not (everything or self.full):
            skip = self._quiet_folders(model, source, locations)
        listed = self._list(source, skip)
        changes = self._compare(model, source, listed, locations)
        if listed.left_out and self._reads_left_out(model, source, listed, changes):
            listed = self._list(source, ())
            changes = self._compare(model, source, listed, locations)
        return listed, changes

    def _quiet_folders(
        self, model: str, source: Source, locations: Mapping[str, str]
    ) -> frozenset[str]:
        """The folders that may be left out."""
        path = self._dated_path(source)
        last = FullListing.of_text(locations.get(FULL_LISTING.format(model), ""))
        if path is None or source.full_listing is None or last is None:
            return frozenset()
        if last.of != _listing_declaration(source) or last.is_over(source.full_listing, self.as_of):
            return frozenset()
        newest: dict[str, int] = {}
        for name, (_, id_) in self.ledger.file_versions(model).items():
            folder = path.folder(name)
            if folder is not None:
                newest[folder] = max(id_, newest.get(folder, 0))
        return frozenset(
            folder
            for folder, id_ in newest.items()
            if id_ <= last.newest and _is_old(path, folder, source, last.at)
        )

    def _list(self, source: Source, skip: Collection[str]) -> Listed:
        known = self._listed.get(source.name)
        if known is not None and known.left_out <= frozenset(skip):
            return known
        path, look = self._dated_path(source), self.dated
        with _named_failures(), paused_collector():
            if skip and look is not None:
                listed = look.listing(source, skip)
            else:
                listed = Listed(*self.listing(source))
        if path is not None and not listed.left_out:
            names, _ = paths_and_fingerprints(listed.files)
            listed = replace(listed, folders=len({path.folder(name) for name in names}))
        self._digests.pop(source.name, None)
        self._listed[source.name] = listed
        return listed

    def _compare(
        self, model: str, source: Source, listed: Listed, locations: Mapping[str, str]
    ) -> ListedChanges:
        """Compare a listing with the ingested files, unless that was done with the same listing."""
        name, files = LISTED.format(model), listed.files
        digest = "" if listed.settling or listed.left_out else self._digest_once(source, listed)
        if digest and digest == locations.get(name):
            changes = ListedChanges(self.ledger.files_due(model, self.as_of), len(files))
        else:
            with paused_collector():
                changes = listed_changes(
                    *(self.ledger, model, source, files, listed.settling, self.as_of),
                    left_out=self._is_left_out(source, listed) if listed.left_out else None,
                )
            if digest and changes.none:
                self.compared[name] = digest
            else:
                self.compared.pop(name, None)  # an earlier look in this run may have found none
        self._note_full(model, source, listed, changes)
        return changes

    def _note_full(
        self, model: str, source: Source, listed: Listed, changes: ListedChanges
    ) -> None:
        """Note a full listing for the ledger, if a later one may leave out what it has."""
        name, path = FULL_LISTING.format(model), self._dated_path(source)
        self.compared.pop(name, None)
        if path is None or listed.left_out or not changes.none:
            return
        if any(
            folder is None or _is_old(path, folder, source, self.as_of)
            for folder in map(path.folder, listed.settling)
        ):
            return
        newest = max((id_ for _, id_ in self.ledger.file_versions(model).values()), default=0)
        self.compared[name] = str(FullListing(self.as_of, newest, _listing_declaration(source)))

    def _reads_left_out(
        self, model: str, source: Source, listed: Listed, changes: ListedChanges
    ) -> bool:
        """
        Whether files of folders that were left out would be read.

        Rows come due, or copies come back: they lost to rows of files that are gone.
        """
        is_out = self._is_left_out(source, listed)
        if any(is_out(file.path) for file in changes.due):
            return True
        return bool(changes.removed) and any(
            file.dropped and is_out(file.path) for file in self.ledger.files(model)
        )

    def _is_left_out(self, source: Source, listed: Listed) -> Callable[[str], bool]:
        path, out = self._dated_path(source), listed.left_out
        return lambda name: path is not None and path.folder(name) in out

    def _dated_path(self, source: Source) -> DatedPath | None:
        """Where its dated folders are; None for a source that is always listed whole."""
        look = self.dated
        if look is None or source.full_listing is None:
            return None
        if source.name not in self._paths:
            with _named_failures():
                self._paths[source.name] = look.path(source)
        return self._paths[source.name]

    def _digest_once(self, source: Source, listed: Listed) -> str:
        if source.name not in self._digests:
            self._digests[source.name] = listing_digest(source, listed.files)
        return self._digests[source.name]


def _is_old(path: DatedPath, folder: str, source: Source, at: int) -> bool:
    end = path.end(folder)
    return end is not None and end + source.listing_window <= at


def _listing_declaration(source: Source) -> str:
    """Tells what makes other files be listed, or taken in, from what made the recorded ones."""
    says = repr((source.path, source.settle, source.listing_window))
    says += file_policy_fingerprint(source)
    return blake2b(says.encode(errors="surrogatepass"), digest_size=8).hexdigest()


# A source may have a million files, and all but a few are as they were. So paths and fingerprints
# alone are compared; what else the ledger knows of a file is read for those that differ.


@dataclass(frozen=True)
class ListedChanges:
    """
    What differs between a listing and the ingested files.

    ``changed`` are files that were not ingested in this version, ``replaced`` those of them that
    were in another. ``removed`` are ingested versions that are no longer there, ``lost`` those of
    them without others in their place. ``due`` are ingested files with rows that have come due.
    """

    due: tuple[IngestedFile, ...]
    unchanged: int
    """How many ingested files are still there."""
    changed: tuple[ListedFile, ...] = ()
    replaced: tuple[ListedFile, ...] = ()
    removed: tuple[IngestedFile, ...] = ()
    lost: tuple[IngestedFile, ...] = ()

    @property
    def none(self) -> bool:
        """Whether the listing has exactly the ingested files."""
        return not self.changed and not self.removed


def listed_changes(
    ledger: Ledger,
    model: str,
    source: Source,
    files: Sequence[ListedFile],
    settling: Collection[str],
    as_of: int,
    left_out: Callable[[str], bool] | None = None,
) -> ListedChanges:
    """
    Compare a listing with the files that a model has ingested.

    Files that were ``left_out`` of the listing are still there.
    """
    versions, policy = ledger.file_versions(model), file_policy_fingerprint(source)
    suffix = f"|{policy}" if policy else ""
    new = ("", 0)
    other = [file for file in files if versions.get(file.path, new)[0] != file.fingerprint + suffix]
    replaced = [versions[file.path][1] for file in other if file.path in versions]
    missing: list[int] = []
    if len(files) - len(other) + len(replaced) < len(versions):
        listed = {file.path for file in files}
        missing = [
            id_
            for path, (_, id_) in versions.items()
            if path not in listed and not (left_out and left_out(path))
        ]
    ids = replaced + missing
    known = {file.path: file for file in ledger.files(model, ids)} if ids else {}
    present = [with_file_policy(file, known.get(file.path), policy) for file in other]
    changed = tuple(
        file
        for file in present
        if file.path not in known or known[file.path].fingerprint != file.fingerprint
    )
    by_path = {file.path: file for file in present}
    before = {lasting_path(path) for path in known}
    # A known file that is being written again stays as it was taken in, until it has settled.
    young = frozenset(settling)
    removed = tuple(
        file
        for path, file in known.items()
        if path not in young and is_gone(file, by_path.get(path))
    )
    out = {file.id for file in removed}
    return ListedChanges(
        due=tuple(file for file in ledger.files_due(model, as_of) if file.id not in out),
        unchanged=len(versions) - len(removed),
        changed=changed,
        replaced=tuple(file for file in changed if lasting_path(file.path) in before),
        removed=removed,
        lost=lost_files(source, known, removed, present, empty=not files and left_out is None),
    )


def listing_digest(source: Source, files: Sequence[ListedFile]) -> str:
    """Tells a listing from every other, and from the same under another policy of its source."""
    digest = blake2b(file_policy_fingerprint(source).encode(), digest_size=16)
    for texts in paths_and_fingerprints(files):
        # No name of a file has a NUL. All are sorted by path, so two listings are alike or are not.
        digest.update("\0".join(texts).encode(errors="surrogatepass"))
        digest.update(b"\0\0")
    return digest.hexdigest()


def listed_by_policy(
    files: Sequence[ListedFile], known: Collection[IngestedFile], source: Source
) -> tuple[ListedFile, ...]:
    """All files of a listing, with the fingerprints by which they are ingested."""
    policy, by_path = file_policy_fingerprint(source), {file.path: file for file in known}
    return tuple(with_file_policy(file, by_path.get(file.path), policy) for file in files)


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
    ids = {spot.file_id for spot in spots if pending.overlaps(spot.cell)}
    return tuple(file for file in files.ingested if file.id in ids or file.waiting)


@contextmanager
def paused_collector() -> Iterator[None]:
    """Make values without a look at all of them, again and again: a third of a large listing."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
