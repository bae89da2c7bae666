"""
The difference between a source's listing and the files that a model has ingested.

A source may have a million files, and all but a few are as they were. So paths and fingerprints
alone are compared; what else the ledger knows of a file is read for those that differ.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from infold.core.files import (
    IngestedFile,
    ListedFile,
    lasting_path,
    paths_and_fingerprints,
    with_file_policy,
)
from infold.core.model import Source
from infold.core.ports import Ledger
from infold.running.file_changes import file_policy_fingerprint, is_gone, lost_files


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
    found: Sequence[ListedFile],
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
    other = [file for file in found if versions.get(file.path, new)[0] != file.fingerprint + suffix]
    replaced = [versions[file.path][1] for file in other if file.path in versions]
    missing: list[int] = []
    if len(found) - len(other) + len(replaced) < len(versions):
        listed = {file.path for file in found}
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
        lost=lost_files(source, known, removed, present, empty=not found and left_out is None),
    )


def listing_digest(source: Source, found: Sequence[ListedFile]) -> str:
    """Tells a listing from every other, and from the same under another policy of its source."""
    says = blake2b(file_policy_fingerprint(source).encode(), digest_size=16)
    for texts in paths_and_fingerprints(found):
        # No name of a file has a NUL. All are sorted by path, so two listings are alike or are not.
        says.update("\0".join(texts).encode(errors="surrogatepass"))
        says.update(b"\0\0")
    return says.hexdigest()


def listed_by_policy(
    found: Sequence[ListedFile], known: Collection[IngestedFile], source: Source
) -> tuple[ListedFile, ...]:
    """All files of a listing, with the fingerprints by which they are ingested."""
    policy, by_path = file_policy_fingerprint(source), {file.path: file for file in known}
    return tuple(with_file_policy(file, by_path.get(file.path), policy) for file in found)
