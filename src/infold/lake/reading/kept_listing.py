"""
The files of a source that is a table, kept in the project's ``.infold`` folder.

Which files a table has takes most of a second to find out, and is the same as long as the table is:
what is kept is of one version of it. So to list a table that has not changed costs one look.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple
from pathlib import Path

from infold.core.files import ListedFile
from infold.core.model import Source

Files = tuple[ListedFile, ...]


def kept_files(root: Path, source: Source, version: str, find: Callable[[], Files]) -> Files:
    """The files of a table at ``version``, a text that no other version has; else ``find``."""
    kept = root / ".infold" / "sources" / f"{source.name}.json"
    names = [column.name for column in source.columns]
    files = _load(kept, version, names)
    if files is None:
        files = find()
        _keep(kept, version, names, files)
    return files


def _load(kept: Path, version: str, names: Sequence[str]) -> Files | None:
    try:
        found = json.loads(kept.read_bytes())
        if found["location"] != version or found["columns"] != names:
            return None
        return tuple(ListedFile(*values) for values in found["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # missing, or of another version: it is only kept to save time


def _keep(kept: Path, version: str, names: Sequence[str], files: Iterable[ListedFile]) -> None:
    if not kept.parent.parent.is_dir():  # looking at a project creates nothing in it
        return
    text = json.dumps(
        {"location": version, "columns": names, "files": [astuple(file) for file in files]}
    )
    new = kept.with_name(f"{kept.name}.{os.getpid()}")
    try:
        kept.parent.mkdir(exist_ok=True)
        new.write_text(text, encoding="utf-8")
        new.replace(kept)
    except OSError:
        return  # a project that cannot be written can still be read
