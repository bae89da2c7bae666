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

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from infold.core.dated_path import DatedPath, FullListing, Listed
from infold.core.files import paths_and_fingerprints
from infold.core.model import Source
from infold.core.ports import Ledger
from infold.core.record import FULL_LISTING, LISTED
from infold.messages.errors import InfoldError
from infold.running.file_changes import file_policy_fingerprint
from infold.running.file_diff import ListedChanges, listed_changes, listing_digest
from infold.running.looks import DatedLook, Listing
from infold.system import collector, failures


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
        seen = self._compare(model, source, listed, locations)
        if listed.left_out and self._reads_left_out(model, source, listed, seen):
            listed = self._list(source, ())
            seen = self._compare(model, source, listed, locations)
        return listed, seen

    def _quiet_folders(
        self, model: str, source: Source, locations: Mapping[str, str]
    ) -> frozenset[str]:
        """The folders that may be left out."""
        path = self._path(source)
        last = FullListing.of_text(locations.get(FULL_LISTING.format(model), ""))
        if path is None or source.full_listing is None or last is None:
            return frozenset()
        if last.of != _declared(source) or last.is_over(source.full_listing, self.as_of):
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
        path, look = self._path(source), self.dated
        with _named_failures(), collector.paused_collector():
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
        name, found = LISTED.format(model), listed.files
        digest = "" if listed.settling or listed.left_out else self._digest_once(source, listed)
        if digest and digest == locations.get(name):
            seen = ListedChanges(self.ledger.files_due(model, self.as_of), len(found))
        else:
            with collector.paused_collector():
                seen = listed_changes(
                    *(self.ledger, model, source, found, listed.settling, self.as_of),
                    left_out=self._is_left_out(source, listed) if listed.left_out else None,
                )
            if digest and seen.none:
                self.compared[name] = digest
            else:
                self.compared.pop(name, None)  # an earlier look in this run may have found none
        self._note_full(model, source, listed, seen)
        return seen

    def _note_full(self, model: str, source: Source, listed: Listed, seen: ListedChanges) -> None:
        """Note a full listing for the ledger, if a later one may leave out what it has."""
        name, path = FULL_LISTING.format(model), self._path(source)
        self.compared.pop(name, None)
        if path is None or listed.left_out or not seen.none:
            return
        if any(
            folder is None or _is_old(path, folder, source, self.as_of)
            for folder in map(path.folder, listed.settling)
        ):
            return
        newest = max((id_ for _, id_ in self.ledger.file_versions(model).values()), default=0)
        self.compared[name] = str(FullListing(self.as_of, newest, _declared(source)))

    def _reads_left_out(
        self, model: str, source: Source, listed: Listed, seen: ListedChanges
    ) -> bool:
        """
        Whether files of folders that were left out would be read.

        Rows come due, or copies come back: they lost to rows of files that are gone.
        """
        is_out = self._is_left_out(source, listed)
        if any(is_out(file.path) for file in seen.due):
            return True
        return bool(seen.removed) and any(
            file.dropped and is_out(file.path) for file in self.ledger.files(model)
        )

    def _is_left_out(self, source: Source, listed: Listed) -> Callable[[str], bool]:
        path, out = self._path(source), listed.left_out
        return lambda name: path is not None and path.folder(name) in out

    def _path(self, source: Source) -> DatedPath | None:
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


def _declared(source: Source) -> str:
    """Tells what makes other files be listed, or taken in, from what made the recorded ones."""
    says = repr((source.path, source.settle, source.listing_window))
    says += file_policy_fingerprint(source)
    return blake2b(says.encode(errors="surrogatepass"), digest_size=8).hexdigest()
