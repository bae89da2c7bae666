"""
The files that were extracted of a table: a folder with a list, which is replaced at one instant.

A file is written once, under a name that no other reading gives, and never renamed. The list that
names new files replaces the one before, and that is when they are extracted; files that it lacks
are deleted then. So whoever reads the list finds one whole extraction, also while the next one is
written, or after one that was killed. Files that no list names :func:`delete_unlisted` deletes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path

from infold.core import write_points
from infold.core.files import version_name
from infold.core.model import Column, Source
from infold.core.project import Project
from infold.lake.databases.columns import KeyValue
from infold.messages import database_errors

LIST = "_extracted.json"
MARK = "infold_extracted"
FORM = 2
_ENDING = ".parquet"


@dataclass(frozen=True, slots=True)
class ExtractedFile:
    """One file: how many rows it has, a hash of them that no order changes, and who wrote it."""

    rows: int
    digest: str
    pull: str = field(compare=False)
    """The reading that wrote it: one that found the same rows leaves it as it is."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """
    What was extracted: files by name, from what was declared (``of``), last by reading ``pull``.

    All files have the ``columns``; the last reading was asked for those ``declared``. ``last`` is
    the greatest key that was ever read: were it that of the rows that are left, deleting the newest
    row would make a reading go farther back.
    """

    of: str
    pull: str
    columns: frozenset[str]
    declared: tuple[Column, ...] = ()
    files: Mapping[str, ExtractedFile] = field(default_factory=dict)
    last: KeyValue | None = None


def extracted_folder(project: Project, source: Source) -> Path:
    """Where the rows of a source are extracted: beside the warehouse of the target."""
    return Path(f"{project.warehouse}.extracted") / source.name


def file_of(folder: Path, name: str, pull: str) -> Path:
    """The file that a reading wrote under a name in a list."""
    return folder / version_name(f"{name}{_ENDING}", pull)


def listed_files(folder: Path, extracted: Extracted | None) -> set[Path]:
    """The files that a list names."""
    files = extracted.files if extracted is not None else {}
    return {file_of(folder, name, file.pull) for name, file in files.items()}


def read_list(folder: Path, source: Source) -> Extracted | None:
    """What was extracted; None where nothing was. Raises ``database_errors.damaged_state``."""
    file = folder / LIST
    try:
        value = json.loads(file.read_bytes())
        if value[MARK] != FORM:
            why = f"its form is {value[MARK]}, and this infold knows {FORM}"
            raise _damaged(source, file, why)
        files = {
            name: ExtractedFile(rows, digest, pull)
            for name, (rows, digest, pull) in value["files"].items()
        }
        columns, last = frozenset(value["columns"]), _key(value["last"])
        declared = tuple(
            Column(name, type_, optional) for name, type_, optional in value["declared"]
        )
        return Extracted(value["of"], value["pull"], columns, declared, files, last)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _damaged(source, file, "it is not what infold wrote") from None


def delete_unlisted(folder: Path, source: Source) -> Extracted | None:
    """
    What was extracted, once files are deleted that no list names, or none any more.

    None also where a file is gone: then nothing that was read before counts.
    """
    folder.mkdir(parents=True, exist_ok=True)
    extracted = read_list(folder, source)
    listed = listed_files(folder, extracted)
    for file in folder.iterdir():
        own = file.suffix == _ENDING or file.name.startswith("_")
        # Without a list nobody knows whose files these are; the next list makes that clear.
        if own and file not in listed and file.name != LIST and (extracted or file.name[0] == "_"):
            file.unlink()
            write_points.point(f"extract {source.name}: after a file is deleted")
    return extracted if extracted is not None and all(file.exists() for file in listed) else None


def commit(folder: Path, source: Source, extracted: Extracted) -> None:
    """Have the files count that a reading wrote, and none that the list lacks."""
    fresh = folder / f"_{extracted.pull}.json"
    with fresh.open("w", encoding="utf-8") as file:
        file.write(_text(extracted))
        file.flush()
        os.fsync(file.fileno())
    write_points.point(f"extract {source.name}: before commit")
    _sync(folder)  # the files are there, whatever the system keeps of what follows
    fresh.replace(folder / LIST)
    _sync(folder)
    write_points.point(f"extract {source.name}: after commit")
    delete_unlisted(folder, source)
    _sync(folder)


def undo(folder: Path, pull: str) -> None:
    """Delete what a reading wrote that did not come to its end."""
    for file in folder.glob(version_name(f"*{_ENDING}", pull)):
        file.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _text(extracted: Extracted) -> str:
    value = {
        MARK: FORM,
        "of": extracted.of,
        "pull": extracted.pull,
        "columns": sorted(extracted.columns),
        "declared": [[one.name, one.type, one.optional] for one in extracted.declared],
        "last": _plain(extracted.last),
        "files": {
            name: [file.rows, file.digest, file.pull] for name, file in extracted.files.items()
        },
    }
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def _plain(key: KeyValue | None) -> int | str | None:
    return key.isoformat() if isinstance(key, date) else key


def _key(plain: int | str | None) -> KeyValue | None:
    if not isinstance(plain, str):
        return plain
    return datetime.fromisoformat(plain) if "T" in plain else date.fromisoformat(plain)


def _damaged(source: Source, file: Path, why: str) -> Exception:
    return database_errors.damaged_state(key=f"source {source.name}", file=str(file), why=why)
