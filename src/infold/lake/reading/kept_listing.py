"""
The files of a source that is a table, kept in the project's ``.infold`` folder.

Which files a table has takes most of a second to find out, and is the same as long as the table is:
what is kept is of one version of it. So to list a table that has not changed costs one look.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple
from pathlib import Path

from infold.core.files import ListedFile
from infold.core.model import Source
from infold.core.project import Project
from infold.lake.reading.source_file import SourceFile
from infold.system.kept_files import keep, kept

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
    found = json.loads(text) if text is not None else {}
    if found.get("location") != version or found["columns"] != names:
        return None
    return tuple(ListedFile(*values) for values in found["files"])


def _keep(file: Path, version: str, names: Sequence[str], files: Iterable[ListedFile]) -> None:
    text = json.dumps({"location": version, "columns": names, "files": [*map(astuple, files)]})
    keep(file, text.encode())  # not before a command makes .infold: looking makes nothing there


def table_event_times(_file: SourceFile, _source: Source, _column: str) -> None:
    """None: which rows of a data file are deleted is known to the table alone."""


def table_row_counts(_project: Project, _files: Sequence[ListedFile]) -> Mapping[str, int]:
    """None are counted: a table that is rewritten moves its rows from file to file."""
    return {}
