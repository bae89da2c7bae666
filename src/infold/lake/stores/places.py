"""
Folders and files of tables, wherever they are: on a disk, or in an object store.

A *location* is what Iceberg calls a place: a path, ``file:`` and a path, or a URL. A store has no
folders; what is called one here is all objects whose keys begin with its name and a slash.

A process reaches a bucket in one way, as Hadoop does, which keeps one connection for each. Another
project that would have to reach it in another way is refused.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from infold.core.object_store import (
    Stores,
    bucket_url,
    is_url,
    joined,
    scheme_of,
    split,
)
from infold.core.project import Project
from infold.messages import store_errors
from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    from infold.lake.stores.bucket import Bucket, Listed
    from infold.lake.stores.settings import Access


@dataclass(frozen=True, slots=True)
class _Way:
    owner: str
    """The project and the target that declare it, as errors name them."""
    stores: Stores
    root: Path


_ways: dict[str, _Way] = {}
"""By bucket; that of the target that was opened last, for buckets that none declares, by none."""

_OTHER_BUCKETS = ""


def use(project: Project, *urls: str) -> None:
    """
    Reach stores as the project's target declares it: its buckets, and those of ``urls``.

    Raises ``store_errors.two_ways`` where another one reaches one of them in another way.
    """
    owner = f"target {project.target.name} of {project.root}"
    way = _Way(owner, project.target.stores, project.root)
    buckets = {*project.buckets, *map(bucket_url, urls)}
    for bucket in sorted(buckets):
        other = _ways.get(bucket, way)
        if other.owner != way.owner and not _is_same(other, way, bucket):
            raise store_errors.two_ways(bucket=split(bucket)[0], one=other.owner, other=way.owner)
    _ways.update(dict.fromkeys((*buckets, _OTHER_BUCKETS), way))


def forget_ways() -> None:
    """Let buckets be reached in other ways from now on; until then, as by the last target."""
    for bucket in [name for name in _ways if name != _OTHER_BUCKETS]:
        del _ways[bucket]


def _is_same(first: _Way, second: _Way, bucket: str) -> bool:
    """Whether two ways lead to the same server by the same key."""
    if first.root == second.root and first.stores.of(bucket) == second.stores.of(bucket):
        return True
    try:
        return _access(first, bucket) == _access(second, bucket)
    except InfoldError:  # a secret is not there
        return False


def _access(way: _Way, bucket: str) -> Access:
    from infold.lake.stores.settings import access_of

    return access_of(way.stores, bucket, way.root)


def _way(location: str) -> _Way:
    way = _ways.get(bucket_url(location)) or _ways.get(_OTHER_BUCKETS)
    return way or _Way("", Stores(), Path.cwd())


def bucket_at(location: str) -> Bucket:
    """The bucket of a URL, as the project that named it reaches it; else as the last one does."""
    from infold.lake.stores.buckets import bucket_of

    way = _way(location)
    return bucket_of(location, way.stores, way.root)


def properties(location: str) -> Mapping[str, str]:
    """What pyiceberg needs to read a file there."""
    if not in_store(location):
        return {}
    return _access(_way(location), location).pyiceberg_properties() or _OWN_IO


_OWN_IO = {"py-io-impl": "infold.lake.stores.file_io.StoreFileIO"}


def delta_options(location: str) -> Mapping[str, str]:
    """What deltalake needs to open a table there."""
    if not in_store(location):
        return {}
    return _access(_way(location), location).deltalake_options()


def failure(location: str, error: Exception) -> InfoldError | None:
    """What a store refused, if another library's error about a place in one says so."""
    from infold.lake.stores.bucket import no_object, refused

    text = str(error)
    if not in_store(location) or no_object(text) or not _OF_A_STORE.search(text):
        return None
    return refused(error, key=_way(location).stores.key(location), at=location)


_OF_A_STORE = re.compile(
    "<Code>|Generic (?:S3|GCS|MicrosoftAzure) error|error sending request|status code: [345]"
)


def in_store(location: str) -> bool:
    """Whether a location is in an object store."""
    return is_url(location) and scheme_of(location) != "file"


def local_path(location: str) -> Path:
    """The file behind a location: a path, or ``file:`` and a path (Hadoop escapes nothing)."""
    if location.startswith("file:"):
        return Path("/" + location.removeprefix("file:").lstrip("/"))
    return Path(location)


def shown(location: str) -> str:
    """A location as errors show it."""
    return location if in_store(location) else str(local_path(location))


def folder_of(location: str) -> str:
    """The folder of the table whose metadata file is there."""
    if in_store(location):
        return location.rsplit("/", 2)[0]
    return str(local_path(location).parent.parent)


def below(folder: str, *names: str) -> str:
    """A place in a folder."""
    return joined(folder, *names) if in_store(folder) else str(Path(folder, *names))


def absolute(folder: str) -> str:
    """A folder by a name that holds wherever it is read."""
    return folder if in_store(folder) else str(local_path(folder).resolve())


def is_inside(location: str, folder: str) -> bool:
    """Whether a place is below a folder, links followed; one is not below itself."""
    if in_store(location) != in_store(folder):
        return False
    if not in_store(location):
        return local_path(folder).resolve() in local_path(location).resolve().parents
    key, above = split(location)[1], split(folder)[1]
    return (
        bucket_url(location) == bucket_url(folder)
        and key != above
        and (not above or key.startswith(f"{above}/"))
    )


def is_folder(folder: str) -> bool:
    """Whether there is such a folder."""
    if in_store(folder):
        return bucket_at(folder).has_folder(split(folder)[1])
    return local_path(folder).is_dir()


def make_folder(folder: str) -> None:
    """Have a folder, with those above it; a store needs none."""
    if not in_store(folder):
        local_path(folder).mkdir(parents=True, exist_ok=True)


def names(folder: str) -> Collection[str]:
    """The names right in a folder; none where there is no such folder."""
    if in_store(folder):
        return bucket_at(folder).names(split(folder)[1])
    path = local_path(folder)
    return [entry.name for entry in path.iterdir()] if path.is_dir() else ()


def marks(folder: str, after: str = "") -> Mapping[str, str]:
    """
    The files right in a folder, each with what tells it from another one of its name.

    In a store that is its ETag. On a disk it is nothing: who reads such a file looks at it first.
    With ``after``, those whose names come later: of a long folder in a store that is less to ask.
    """
    if in_store(folder):
        return {name: one.etag for name, one in _objects(folder, after) if "/" not in name}
    return {name: "" for name in names(folder) if name > after}


def written(folder: str) -> Iterator[tuple[str, float]]:
    """All files below a folder, by their names from there, with when they were written."""
    if in_store(folder):
        yield from ((name, one.seconds) for name, one in _objects(folder))
        return
    for name, entry in _local_files(str(local_path(folder))):
        yield name, entry.stat(follow_symlinks=False).st_mtime


def sizes(folder: str) -> Iterator[tuple[str, int]]:
    """All files below a folder, by their names from there, with their sizes."""
    if in_store(folder):
        yield from ((name, one.size) for name, one in _objects(folder))
        return
    for name, entry in _local_files(str(local_path(folder))):
        try:
            size = entry.stat(follow_symlinks=False).st_size
        except FileNotFoundError:  # a run beside this one has deleted it since it was listed
            continue
        yield name, size


def file_names(folder: str) -> Iterator[str]:
    """The same, names alone: on a disk, nothing more is asked of each file."""
    files = _objects(folder) if in_store(folder) else _local_files(str(local_path(folder)))
    return (name for name, _ in files)


def _objects(folder: str, after: str = "") -> Iterator[tuple[str, Listed]]:
    key = split(folder)[1]
    objects = bucket_at(folder).list(key, f"{key}/{after}".lstrip("/") if after else "")
    return ((one.key[len(key) :].lstrip("/"), one) for one in objects)


def _local_files(folder: str, above: str = "") -> Iterator[tuple[str, os.DirEntry[str]]]:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _local_files(entry.path, f"{above}{entry.name}/")
        else:
            yield f"{above}{entry.name}", entry


def delete_folder(folder: str) -> None:
    """Delete all files below a folder, and the folder."""
    if in_store(folder):
        bucket_at(folder).delete_folder(split(folder)[1])
        return
    shutil.rmtree(local_path(folder))


def delete_folders(folder: str, files: Sequence[str]) -> None:
    """Delete what a store has for the folders of files that were below one, by their names."""
    top = split(folder)[1]
    bucket_at(folder).delete_folders(top, [joined(top, file) for file in files])


def read(location: str) -> bytes:
    """The content of a file. Raises ``OSError``."""
    if in_store(location):
        return bucket_at(location).read(split(location)[1])
    return local_path(location).read_bytes()


def write(location: str, content: bytes) -> None:
    """Have a file with this content: half a file is never there."""
    if in_store(location):
        bucket_at(location).write(split(location)[1], content)
        return
    path = local_path(location)
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(content)
    part.replace(path)


def oldest_first(folder: str, mark: str) -> Sequence[str]:
    """The names of the files right in a folder that have ``mark`` in them, by when written."""
    if in_store(folder):
        objects = bucket_at(folder).list(split(folder)[1])
        times = [(one.seconds, one.key.rpartition("/")[2]) for one in objects]
        return [name for _, name in sorted(times) if mark in name]
    paths = local_path(folder).glob(f"*{mark}*")
    return [path.name for path in sorted(paths, key=lambda path: path.stat().st_mtime_ns)]


def delete(*locations: str) -> None:
    """Delete files, as far as they are there; those of a call are in one bucket, or on disks."""
    stored = [location for location in locations if in_store(location)]
    if stored:
        bucket_at(stored[0]).delete([split(location)[1] for location in stored])
    for location in locations:
        if not in_store(location):
            local_path(location).unlink(missing_ok=True)


def copy(location: str, to: str) -> None:
    """Have a copy of an object elsewhere in its bucket; its content does not pass by here."""
    bucket_at(location).copy(split(location)[1], split(to)[1])


def try_out(folder: str) -> None:
    """Write, list, read and delete an object of its own in a folder of a store."""
    bucket, key = bucket_at(folder), split(below(folder, f"_infold-doctor-{uuid4().hex}"))[1]
    bucket.write(key, b"doctor")
    try:
        list(bucket.list(key))
        bucket.read(key)
    finally:
        bucket.delete([key])


def missing(locations: Sequence[str]) -> Sequence[str]:
    """Those of some files that are not there, or have nothing in them."""
    sizes_there: dict[str, int] = {}
    folders = {location.rpartition("/")[0] for location in locations if in_store(location)}
    for folder in _highest(folders):
        sizes_there |= {below(folder, name): size for name, size in sizes(folder)}
    return tuple(
        one
        for one in locations
        if not (sizes_there.get(one, 0) if in_store(one) else _local_size(local_path(one)))
    )


def _highest(folders: Collection[str]) -> Sequence[str]:
    """The folders that are in no other one of them: each is listed once."""
    return [one for one in folders if not any(is_inside(one, other) for other in folders)]


def _local_size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
