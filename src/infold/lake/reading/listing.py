"""
The files of a source that are there now: a glob over folders, one ``scandir`` for each.

A pattern is relative to the project. ``*``, ``?`` and ``[…]`` match inside one name, ``**`` any
number of folders. ``*.csv`` also matches ``*.csv.gz`` and other packed files; a folder without a
pattern means everything below it. Below the part of the path that has no pattern, names that start
with ``_`` or ``.`` are left out: files still being written, and what engines leave beside their
data. A pattern that begins so itself matches them. Links are followed, to files and to folders; one
to a folder that it is in leads to nothing new, and is passed over.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from errno import ELOOP
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from infold.core.files import (
    WILD,
    DatedPath,
    FileListing,
    Listed,
    ListedFile,
    glob_of,
    is_dated,
    stat_fingerprint,
    written_at,
)
from infold.core.model import Source
from infold.core.object_store import is_url, split
from infold.core.project import Project
from infold.lake.reading.table_folders import (
    HIDDEN,
    MARKS,
    marks_above,
    matcher,
    may_be_of_tables,
    refuse_tables,
)
from infold.messages import run_errors
from infold.system.kept_files import keep, kept

if TYPE_CHECKING:
    from infold.lake.reading.source_file import SourceFile


def list_files(
    project: Project, source: Source, now: int
) -> tuple[Sequence[ListedFile], tuple[str, ...]]:
    """As ``FormatFiles.list_files``: the files that match the source's ``path``."""
    if is_url(source.path or ""):
        from infold.lake.reading.object_listing import matching_objects

        return matching_objects(project, source, now)
    return matching_files(project.root, source, now)


def uncounted(_project: Project, _files: Sequence[ListedFile]) -> Mapping[str, int]:
    """As ``FormatFiles.row_counts``, of a format that has to be read to be counted."""
    return {}


Leaves = Callable[[str], bool]
"""Whether a folder that is on the way to files is left out."""


def matching_files(
    root: Path, source: Source, now: int, leaves: Leaves = lambda _: False
) -> tuple[FileListing, tuple[str, ...]]:
    """The files below ``root`` that match, by path; and the paths of those yet to settle."""
    try:
        base, parts = _split(root, source)
        shown = path_prefix(root, base)
        prints: dict[str, str] = {}  # two `**` may lead to one file
        marks = [*marks_above(shown)]
        _walk(base, parts, shown, _Listing(prints, marks), leaves)
    except OSError as error:
        raise run_errors.unreadable_folder(
            source=source.name,
            path=str(error.filename or source.path),
            why=error.strerror or str(error),
        ) from error
    if marks and may_be_of_tables(source):
        refuse_tables(source, prints, marks, partial(_names_in, root))
    for path in prints:
        if not path.isascii() and path.encode(errors="replace").decode() != path:
            raise run_errors.bad_file_name(source=source.name, path=ascii(path))
    young = []
    if source.settle:
        latest = now - source.settle
        young = [path for path, says in prints.items() if written_at(says) > latest]
    for path in young:
        del prints[path]
    return FileListing(prints), tuple(sorted(young))


def start_and_parts(root: Path, source: Source) -> tuple[str, list[str]]:
    """What the paths of all files begin with, and the patterns of the names after it."""
    base, parts = _split(root, source)
    return path_prefix(root, base), parts


def _split(root: Path, source: Source) -> tuple[str, list[str]]:
    """The folder without a pattern, which has to be there, and the patterns below it."""
    pattern = glob_of(source.path or "")
    names = [name for name in pattern.split("/") if name not in ("", ".")]
    fixed = next((i for i, name in enumerate(names) if WILD.search(name)), len(names))
    start = "/" if pattern.startswith("/") else str(root.absolute())
    base = os.path.normpath(os.path.join(start, *names[:fixed]))  # noqa: PTH118 - `..` stays text
    parts = [
        name for i, name in enumerate(names) if i >= fixed and names[i - 1 : i + 1] != ["**"] * 2
    ]
    if not parts:
        if Path(base).is_dir():
            return base, ["**", "*"]
        base, parts = str(Path(base).parent), [_literal_pattern(Path(base).name)]
    if not Path(base).is_dir():
        raise run_errors.no_such_folder(source=source.name, pattern=pattern, folder=base)
    return base, parts


def _literal_pattern(name: str) -> str:
    """A pattern that matches ``name`` alone."""
    return re.sub(r"([*?\[])", r"[\1]", name)


def path_prefix(root: Path, base: str) -> str:
    """The prefix of paths below ``base``: relative to the project if it is in it."""
    inside = os.path.normpath(str(root.absolute()))
    if base == inside:
        return ""
    if base.startswith(inside + os.sep):
        base = base[len(inside) + 1 :]
    return base.rstrip("/") + "/"


class _Listing(NamedTuple):
    """What a walk finds: files with their fingerprints, and what may be a table's metadata."""

    files: dict[str, str]
    marks: list[str]


_Folder = tuple[int, int]
"""What a folder is, whatever leads to it: its file system, and its number there."""


def _walk(
    folder: str,
    parts: list[str],
    below: str,
    seen: _Listing,
    leaves: Leaves,
    above: frozenset[_Folder] = frozenset(),
) -> None:
    """
    Add the files of a folder that match; ``below`` is before their names.

    ``**`` is any number of folders, none too; at the end it means every file below. Files are asked
    for by their names in the open folder: the system would look up each part of a whole path.
    """
    any_depth = parts[0] == "**"
    name, *deeper = (parts[1:] or ["*"]) if any_depth else parts
    matches, hidden = matcher(name, last=not deeper), name[0] in HIDDEN
    folders: list[tuple[str, list[str]]] = []
    with _opened(folder) as (opened, folder_id):
        if opened is None or folder_id in above:
            return
        with os.scandir(opened) as entries:
            for entry in entries:
                own = entry.name
                if own in MARKS:
                    seen.marks.append(below + own)
                open_to_all = own[0] not in HIDDEN
                if not (open_to_all or hidden):
                    continue
                if any_depth and open_to_all and _is_folder(entry):
                    folders.append((own, parts))
                if not matches(own):
                    continue
                if deeper:
                    is_entered = _is_folder(entry) and not leaves(below + own)
                    folders += [(own, deeper)] if is_entered else []
                elif fingerprint := _fingerprint(entry):
                    seen.files[below + own] = fingerprint
    for own, more in folders:
        _walk(f"{folder}/{own}", more, f"{below}{own}/", seen, leaves, above | {folder_id})


@contextmanager
def _opened(folder: str) -> Iterator[tuple[int | None, _Folder]]:
    """A folder, and what it is; None if it went away since its parent was read."""
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        yield None, (0, 0)
        return
    try:
        status = os.fstat(opened)
        yield opened, (status.st_dev, status.st_ino)
    finally:
        os.close(opened)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether it is a folder, or a link to one; a link that only leads to itself is nothing."""
    try:
        return entry.is_dir()
    except OSError as error:
        if error.errno != ELOOP:
            raise
        return False


def _names_in(root: Path, folder: str) -> Iterable[str]:
    """The names in a folder, as far as there is one that can be read."""
    try:
        return os.listdir(root / folder)  # noqa: PTH208 - names
    except OSError:
        return ()


def _fingerprint(entry: os.DirEntry[str]) -> str:
    """The fingerprint of a file; empty for what is none, or went away meanwhile."""
    try:
        if not entry.is_file():
            return ""
        status = entry.stat()
    except FileNotFoundError:
        return ""
    except OSError as error:
        if error.errno != ELOOP:
            raise
        return ""
    return stat_fingerprint(status)


def dated_path(project: Project, source: Source) -> DatedPath:
    """Where the dated folders of a source are."""
    if is_url(source.path or ""):
        from infold.lake.reading.object_listing import start_and_parts as start_of_objects

        start, parts = start_of_objects(source)
    else:
        start, parts = start_and_parts(project.root, source)
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
    files, settling = matching_files(project.root, source, now, leave)
    return Listed(files, settling, len(listed), frozenset(left_out))


MOST = 1000
"""So many files are counted at most: there may be millions."""
SHOWN = 3


def other_files(project: Project, source: Source) -> str:
    """The folder before a source's pattern, and the files that are in it."""
    names = _objects(project, source) if is_url(source.path or "") else _files(project, source)
    folder = next(names)
    shown = sorted(islice(names, MOST))
    if not shown:
        return f"{folder} is empty"
    many = f"{MOST:,} other files or more" if len(shown) == MOST else f"{len(shown):,} other files"
    if len(shown) == 1:
        many = "1 other file"
    ending = ", …" if len(shown) > SHOWN else ""
    return f"{folder} has {many}: {', '.join(shown[:SHOWN])}{ending}"


def _files(project: Project, source: Source) -> Iterator[str]:
    """The folder, and the paths below it, whatever their names begin with."""
    start, _ = start_and_parts(project.root, source)
    yield start.rstrip("/") or "the project's folder"
    base = project.root / start
    for folder, _, names in os.walk(base):
        inside = os.path.relpath(folder, base)
        yield from (name if inside == "." else f"{inside}/{name}" for name in names)


def _objects(project: Project, source: Source) -> Iterator[str]:
    from infold.lake.reading.object_listing import start_and_parts as start_of_objects
    from infold.lake.stores.buckets import bucket_of

    start, _ = start_of_objects(source)
    yield start.rstrip("/")
    _, key = split(start)
    for listed in bucket_of(start, project.target.stores, project.root).list(key.rstrip("/")):
        yield listed.key[len(key) :]


# Which files a table has takes most of a second to find out, and is the same as long as the table
# is: what is kept is of one version of it. So to list a table that has not changed costs one look.

Files = tuple[ListedFile, ...]


def kept_files(root: Path, source: Source, version: str, find: Callable[[], Files]) -> Files:
    """The files of a table at ``version``, a text that no other version has; else ``find``."""
    file = root / ".infold" / "sources" / f"{source.name}.json"
    names = [column.name for column in source.columns]
    files = _load(file, version, names)
    if files is None:
        files = find()
        _keep(file, version, names, files)
    return files


def _load(file: Path, version: str, names: Sequence[str]) -> Files | None:
    text = kept(file)
    stored = json.loads(text) if text is not None else {}
    if stored.get("location") != version or stored["columns"] != names:
        return None
    return tuple(ListedFile(*values) for values in stored["files"])


def _keep(file: Path, version: str, names: Sequence[str], files: Iterable[ListedFile]) -> None:
    text = json.dumps({"location": version, "columns": names, "files": [*map(astuple, files)]})
    keep(file, text.encode())  # not before a command makes .infold: looking makes nothing there


def table_event_times(_file: SourceFile, _source: Source, _column: str) -> None:
    """None: which rows of a data file are deleted is known to the table alone."""
