"""
The page as files: one folder that opens from disk, or from any web server.

A browser does not let a page on the disk read files, but it runs scripts beside it. So each
document is a script that hands its data over, and ``data/index.js`` says which document is where.

The folder is the user's: :data:`MARK` lists the files that an export wrote there, and only those
are ever replaced or removed.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from tempfile import mkdtemp

from infold.messages import command_errors
from infold.page.documents import Documents

MARK = "infold-export.json"
"""The list of the files that an export wrote into its folder."""

LIST = "data/index.js"
"""Which document is in which file."""

POLICY = "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src 'self' file:"
"""As the server's; what ``file:`` means is the files beside the page, once it is on the disk."""

_WRITTEN = re.compile(r"(data/)?\w[\w.-]*", re.ASCII)
"""Names that an export may have written; a list that names anything else is not an export's."""


@dataclass(frozen=True)
class Exported:
    """What was written."""

    documents: int
    errors: Mapping[str, str]
    """The documents that say only why they cannot be made, each with the first line of that."""


def export(documents: Documents, folder: Path) -> Exported:
    """
    Write all documents into ``folder``, over the files of an earlier export there.

    Raises ``export_folder_in_use`` for a folder without an earlier export that is not empty, and
    where a file would be written that is not of the earlier export.
    """
    folder = folder.resolve()  # a link stays one
    earlier = _earlier(folder)
    with _made(folder):
        fresh = Path(mkdtemp(prefix=".infold-", dir=folder))
        try:
            exported, written = _write(documents, fresh)
            _check_free(folder, written, earlier)
            _move(fresh, folder, written, earlier)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return exported


def _earlier(folder: Path) -> frozenset[str]:
    """The files of an earlier export; none where the folder is empty or not there."""
    if not folder.exists():
        return frozenset()
    if not folder.is_dir():
        raise _in_use(folder, "it is not a folder")
    found = _listed(folder / MARK)
    if found is None:
        first = min((one.name for one in folder.iterdir()), default=None)
        if first is not None:
            raise _in_use(folder, f"it has {first}, and no export wrote it")
    return found or frozenset()


def _listed(mark: Path) -> frozenset[str] | None:
    """What a mark lists; None for a file that is not there, or is no mark."""
    try:
        found = json.loads(mark.read_text(encoding="utf-8"))["files"]
        names = frozenset(name for name in found if _WRITTEN.fullmatch(name))
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return names if len(names) == len(found) else None


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """The folder is there; one that is made for an export that fails does not stay."""
    new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        if new:
            with suppress(OSError):
                folder.rmdir()
        raise


def _check_free(folder: Path, written: Iterable[str], earlier: frozenset[str]) -> None:
    """Nothing of the user's is where a file would be written."""
    data = folder / "data"
    if data.is_symlink() or (data.exists() and not data.is_dir()):
        raise _in_use(folder, "data in it is not of the earlier export")
    for name in written:
        path = folder / name
        there = path.is_symlink() or path.exists()
        if there and (name not in earlier or (path.is_dir() and not path.is_symlink())):
            raise _in_use(folder, f"{name} in it is not of the earlier export")


def _in_use(folder: Path, why: str) -> Exception:
    return command_errors.export_folder_in_use(folder=str(folder), why=why)


def _move(fresh: Path, folder: Path, written: list[str], earlier: frozenset[str]) -> None:
    """Give the new files their names. The mark lists each before it is there, until it is gone."""
    _note(fresh, folder, earlier.union(written))
    (folder / "data").mkdir(exist_ok=True)
    for name in written:
        (fresh / name).replace(folder / name)
    for name in earlier.difference(written):
        with suppress(FileNotFoundError, IsADirectoryError, PermissionError):
            (folder / name).unlink()
    _note(fresh, folder, written)


def _note(fresh: Path, folder: Path, files: Iterable[str]) -> None:
    """Write the mark as a whole."""
    (fresh / MARK).write_text(json.dumps({"files": sorted(files)}, indent=1), encoding="utf-8")
    (fresh / MARK).replace(folder / MARK)


def _write(documents: Documents, folder: Path) -> tuple[Exported, list[str]]:
    """Write all files into a folder of their own; the first page is the last in their list."""
    (folder / "data").mkdir()
    files: dict[str, str] = {}
    errors: dict[str, str] = {}
    for number, name in enumerate(documents.names()):
        data = documents(name)
        if data is None:
            continue
        if isinstance(data.get("error"), dict):  # a run's own is a text
            errors[name] = data["error"]["text"].partition("\n")[0]
        files[name] = f"data/{number}.js"
        script = f"infold.arrived({_json(name)}, {_json(data)});\n"
        (folder / files[name]).write_text(script, encoding="utf-8")
    (folder / LIST).write_text(f"infold.exported = {_json(files)};\n", encoding="utf-8")
    for name, content in assets().items():
        (folder / name).write_bytes(_index(content) if name == INDEX else content)
    names = sorted([*files.values(), LIST, *assets()], key=lambda name: name == INDEX)
    return Exported(len(files), errors), names


def _json(value: object) -> str:
    """JSON as a script may have it."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"), default=str)


def _index(content: bytes) -> bytes:
    """The first page as a file: it says so, and loads the list of documents before the others."""
    text = content.decode()
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    base = '<script src="base.js" defer></script>'
    assert base in text
    text = text.replace('data-form="served"', 'data-form="files"')
    text = text.replace('<meta charset="utf-8">', f'<meta charset="utf-8">\n{policy}')
    return text.replace(base, f'{base}\n<script src="{LIST}" defer></script>').encode()


INDEX = "index.html"

TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
"""What each ending is; a file with another one is no asset."""


@cache
def assets() -> dict[str, bytes]:
    """The bytes of each file by its name. What is asked for is looked up, and no path is made."""
    folder = files(__package__) / "assets"
    return {
        one.name: one.read_bytes()
        for one in folder.iterdir()
        if one.name.rpartition(".")[2] in TYPES
    }


def type_of(name: str) -> str:
    """The media type of an asset."""
    return TYPES[name.rpartition(".")[2]]
