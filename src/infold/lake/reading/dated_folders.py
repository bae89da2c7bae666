"""Listings of sources with ``{date}`` in their paths, without some of the dated folders."""

from __future__ import annotations

from collections.abc import Collection

from infold.core.dated_path import DatedPath, Listed, is_dated
from infold.core.model import Source
from infold.core.object_store import is_url
from infold.core.project import Project
from infold.lake.reading import listing


def dated_path(project: Project, source: Source) -> DatedPath:
    """Where the dated folders of a source are."""
    if is_url(source.path or ""):
        from infold.lake.reading.object_listing import start_and_parts

        start, parts = start_and_parts(source)
    else:
        start, parts = listing.start_and_parts(project.root, source)
    dated = next(i for i, name in enumerate(parts) if is_dated(name))
    return DatedPath(start, tuple(parts[: dated + 1]))


def list_without(project: Project, source: Source, now: int, skip: Collection[str]) -> Listed:
    """The files of a source, but those in dated folders that may be left out."""
    path = dated_path(project, source)
    if is_url(source.path or ""):
        from infold.lake.reading.object_listing import objects_without

        return objects_without(project, source, now, path, frozenset(skip))
    left_out: set[str] = set()
    listed: set[str] = set()

    def leave(folder: str) -> bool:
        if folder.count("/") != depth:
            return False
        (left_out if folder in skip else listed).add(folder)
        return folder in skip

    depth = path.start.count("/") + len(path.names) - 1
    found, settling = listing.matching_files(project.root, source, now, leave)
    return Listed(found, settling, len(listed), frozenset(left_out))
