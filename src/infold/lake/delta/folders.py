"""The folders of tables: which there are, dropping one, giving several other names."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from uuid import uuid4

from infold.core import write_points

_DROPPED = ".dropped-"
"""Before the name of a folder that is about to be deleted: no name of a table begins so."""


def names(parent: Path) -> Collection[str]:
    """The names in a folder that tables have or could not have beside it."""
    if not parent.is_dir():
        return ()
    return [path.name for path in parent.iterdir() if not path.name.startswith(".")]


def files(folder: Path) -> Iterator[Path]:
    """All files in a folder, of its subfolders too."""
    return (path for path in folder.rglob("*") if path.is_file())


def drop(folder: Path) -> bool:
    """
    Delete a table's folder; whether there was one.

    It loses its name first, so a death leaves no half of a table. What is left then is deleted by
    the next drop beside it.
    """
    there = folder.is_dir()
    if there:
        write_points.point(f"drop {folder.name}: before")
        folder.rename(folder.with_name(f"{_DROPPED}{folder.name}-{uuid4().hex[:8]}"))
        write_points.point(f"drop {folder.name}: after")
    if folder.parent.is_dir():
        for left in [path for path in folder.parent.iterdir() if path.name.startswith(_DROPPED)]:
            shutil.rmtree(left, ignore_errors=True)
            write_points.point(f"delete {folder.name}: after")
    return there


def rename(moves: Iterable[tuple[Path, Path]]) -> None:
    """
    Give folders other names, one after the other.

    A name that another one has to leave first comes after that.
    """
    left: Sequence[tuple[Path, Path]] = list(moves)
    while left:
        taken = {folder for folder, _ in left}
        folder, to = next((one for one in left if one[1] not in taken), left[0])
        write_points.point(f"rename {folder.name}: before")
        folder.rename(to)
        write_points.point(f"rename {folder.name}: after")
        left = [one for one in left if one[0] != folder]
