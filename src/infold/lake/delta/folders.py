"""
The folders of tables: which there are, dropping one, giving several other names.

A folder on a disk gets another name, or none, at one instant. A store has no folders and renames
nothing. There a table that is dropped gets an object in its log that says so, before anything of it
is deleted; one that is renamed is copied by the store, its log last, and then dropped. A death in
between leaves the whole table under its old name, or under both, and the same again finishes it.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path
from uuid import uuid4

from infold.core import write_points
from infold.lake.delta.commit import LOG
from infold.lake.delta.log import DROPPED, read_log
from infold.lake.stores import places

_DROPPED = ".dropped-"
"""Prefix of a folder that is about to be deleted: no name of a table begins so."""


def names(parent: str) -> Collection[str]:
    """The names in a folder that tables have or could not have beside it."""
    return [name for name in places.names(parent) if not name.startswith(".")]


def is_taken(folder: str) -> bool:
    """Whether a table cannot get the name of a folder; in a store, rests of one are in no way."""
    return read_log(folder) is not None if places.in_store(folder) else Path(folder).exists()


def has_files(folder: str) -> bool:
    """Whether something is in a folder; in a store, empty objects for folders are nothing."""
    return not places.in_store(folder) or any(size for _, size in places.sizes(folder))


def drop(folder: str) -> bool:
    """
    Delete a table's folder; whether there was one.

    It loses its name first, so a death leaves no half of a table. What is left then is deleted by
    the next drop beside it; in a store, by the next drop or new table of that name.
    """
    if places.in_store(folder):
        return _drop_in_store(folder)
    path = Path(folder)
    there = path.is_dir()
    if there:
        write_points.point(f"drop {path.name}: before")
        path.rename(path.with_name(f"{_DROPPED}{path.name}-{uuid4().hex[:8]}"))
        write_points.point(f"drop {path.name}: after")
    if path.parent.is_dir():
        for left in [one for one in path.parent.iterdir() if one.name.startswith(_DROPPED)]:
            shutil.rmtree(left, ignore_errors=True)
            write_points.point(f"delete {path.name}: after")
    return there


def _drop_in_store(folder: str) -> bool:
    there, name = read_log(folder) is not None, folder.rpartition("/")[2]
    if there:
        write_points.point(f"drop {name}: before")
        places.write(places.below(folder, LOG, DROPPED), b"dropped")
        write_points.point(f"drop {name}: after")
    clear(folder)
    return there


def clear(folder: str) -> None:
    """Delete the rests of a table in a folder of a store; where none was dropped, nothing."""
    mark = f"{LOG}/{DROPPED}"
    files = dict(places.sizes(folder))
    if mark in files:
        places.delete(*(places.below(folder, name) for name in files if name != mark))
        write_points.point(f"delete {folder.rpartition('/')[2]}: before")
        places.delete(places.below(folder, mark))
        places.delete_folders(folder, [*files])


def rename(folder: str, to: str) -> None:
    """Give a folder another name."""
    if places.in_store(folder):
        _copy(folder, to)
        write_points.point(f"rename {folder.rpartition('/')[2]}: copied")
        _drop_in_store(folder)
    else:
        Path(folder).rename(to)


def _copy(folder: str, to: str) -> None:
    """
    Have a copy of a table: rows first, then its log from the beginning.

    So what is there of the log at any time is a version of the table with all of its files. Empty
    objects are none of them: connectors make them for folders.
    """
    clear(to)
    files = sorted(name for name, size in places.sizes(folder) if size)
    log = [name for name in files if name.startswith(f"{LOG}/")]
    for name in (*(name for name in files if name not in log), *log):
        places.copy(places.below(folder, name), places.below(to, name))
