"""
The files of a source that are there now: a glob over folders, one ``scandir`` for each.

A pattern is relative to the project. ``*``, ``?`` and ``[…]`` match inside one name, ``**`` any
number of folders. ``*.csv`` also matches ``*.csv.gz``; a folder without a pattern means
everything below it. Below the part of the path that has no pattern, names that start with ``_``
or ``.`` are left out: files still being written, and what engines leave beside their data. A
pattern that begins so itself matches them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path

from infold.core.files import ListedFile
from infold.core.model import Source
from infold.core.object_store import is_url
from infold.core.project import Project
from infold.lake.reading.patterns import HIDDEN, WILD, matcher
from infold.messages import run_errors

Stat = tuple[int, int]
"""A size, and when it was written, in nanoseconds; all that the system says takes ten times it."""


def list_files(
    project: Project, source: Source, now: int
) -> tuple[tuple[ListedFile, ...], tuple[str, ...]]:
    """As ``FormatFiles.list_files``: the files that match the source's ``path``."""
    if is_url(source.path or ""):
        from infold.lake.reading.object_listing import matching_objects

        return matching_objects(project, source, now)
    return matching_files(project.root, source, now)


def uncounted(_project: Project, _files: Sequence[ListedFile]) -> Mapping[str, int]:
    """As ``FormatFiles.row_counts``, of a format that has to be read to be counted."""
    return {}


def matching_files(
    root: Path, source: Source, now: int
) -> tuple[tuple[ListedFile, ...], tuple[str, ...]]:
    """The files below ``root`` that match, by path; and the paths of those yet to settle."""
    try:
        base, parts = _split(root, source)
        shown = _path_prefix(root, base)
        found = dict(_walk(base, parts))  # two `**` may lead to one file
    except OSError as error:
        raise run_errors.unreadable_folder(
            source=source.name,
            path=str(error.filename or source.path),
            why=error.strerror or str(error),
        ) from error
    seen: list[ListedFile] = []
    young: list[str] = []
    latest = now - source.settle if source.settle else None
    for relative, (size, changed) in found.items():
        path = f"{shown}{relative}"
        if not path.isascii() and path.encode(errors="replace").decode() != path:
            raise run_errors.bad_file_name(source=source.name, path=ascii(path))
        modified_at = changed // 1000
        if latest is not None and modified_at > latest:
            young.append(path)
            continue
        seen.append(ListedFile(path, size, modified_at, f"{size}:{changed}"))
    seen.sort(key=attrgetter("path"))
    return tuple(seen), tuple(sorted(young))


def _split(root: Path, source: Source) -> tuple[str, list[str]]:
    """The folder without a pattern, which has to be there, and the patterns below it."""
    pattern = source.path or ""
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


def _path_prefix(root: Path, base: str) -> str:
    """The prefix of paths below ``base``: relative to the project if it is in it."""
    inside = os.path.normpath(str(root.absolute()))
    if base == inside:
        return ""
    if base.startswith(inside + os.sep):
        base = base[len(inside) + 1 :]
    return base.rstrip("/") + "/"


def _walk(folder: str, parts: list[str], below: str = "") -> Iterator[tuple[str, Stat]]:
    name, rest = parts[0], parts[1:]
    if name == "**":
        # `**` is any number of folders, none too; at the end it means every file below.
        yield from _walk_any_depth(folder, rest or ["*"], below)
    else:
        yield from _matching(_entries(folder, hidden=name[0] in HIDDEN), name, rest, below)


def _walk_any_depth(folder: str, rest: list[str], below: str) -> Iterator[tuple[str, Stat]]:
    name = rest[0]
    entries = list(_entries(folder, hidden=name[0] in HIDDEN))
    yield from _matching(entries, name, rest[1:], below)
    for entry in entries:
        # A link could lead back up, and on for ever.
        if entry.name[0] not in HIDDEN and entry.is_dir(follow_symlinks=False):
            yield from _walk_any_depth(entry.path, rest, f"{below}{entry.name}/")


def _matching(
    entries: Iterable[os.DirEntry[str]], name: str, rest: list[str], below: str
) -> Iterator[tuple[str, Stat]]:
    """What is there of one folder, by the name that is next in a pattern."""
    matches = matcher(name, last=not rest)
    for entry in entries:
        if not matches(entry.name):
            continue
        if rest:
            if entry.is_dir():
                yield from _walk(entry.path, rest, f"{below}{entry.name}/")
        elif (stat := _stat(entry)) is not None:
            yield below + entry.name, stat


def _entries(folder: str, *, hidden: bool = False) -> Iterator[os.DirEntry[str]]:
    try:
        found = os.scandir(folder)
    except FileNotFoundError:  # it went away since its parent was read
        return
    with found:
        for entry in found:
            if hidden or entry.name[0] not in HIDDEN:
                yield entry


def _stat(entry: os.DirEntry[str]) -> Stat | None:
    try:
        if not entry.is_file():
            return None
        found = entry.stat()
    except FileNotFoundError:
        return None
    return found.st_size, found.st_mtime_ns
