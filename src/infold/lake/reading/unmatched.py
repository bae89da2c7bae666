"""What is in the folder of a source though no file there matches its pattern, in words."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice

from infold.core.model import Source
from infold.core.object_store import is_url, split
from infold.core.project import Project
from infold.lake.reading import listing

MOST = 1000
"""So many files are counted at most: there may be millions."""
SHOWN = 3


def other_files(project: Project, source: Source) -> str:
    """The folder before a source's pattern, and the files that are in it."""
    names = _objects(project, source) if is_url(source.path or "") else _files(project, source)
    folder = next(names)
    found = sorted(islice(names, MOST))
    if not found:
        return f"{folder} is empty"
    many = f"{MOST:,} other files or more" if len(found) == MOST else f"{len(found):,} other files"
    if len(found) == 1:
        many = "1 other file"
    rest = ", …" if len(found) > SHOWN else ""
    return f"{folder} has {many}: {', '.join(found[:SHOWN])}{rest}"


def _files(project: Project, source: Source) -> Iterator[str]:
    """The folder, and the paths below it, whatever their names begin with."""
    start, _ = listing.start_and_parts(project.root, source)
    yield start.rstrip("/") or "the project's folder"
    base = project.root / start
    for folder, _, names in os.walk(base):
        inside = os.path.relpath(folder, base)
        yield from (name if inside == "." else f"{inside}/{name}" for name in names)


def _objects(project: Project, source: Source) -> Iterator[str]:
    from infold.lake.reading.object_listing import start_and_parts
    from infold.lake.stores.buckets import bucket_of

    start, _ = start_and_parts(source)
    yield start.rstrip("/")
    _, key = split(start)
    for one in bucket_of(start, project.target.stores, project.root).list(key.rstrip("/")):
        yield one.key[len(key) :]
