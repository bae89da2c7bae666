"""The files of a project, and a hash of the bytes of each."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import NoReturn

from infold.core.functions import PROJECT_PACKAGE
from infold.messages import findings
from infold.messages.errors import InfoldError

PROJECT_FILE = "infold.yml"
MODELS = "models"
AUDITS = "audits"
SEEDS = "seeds"
FUNCTIONS = "functions"
_MAY_BE_THERE = (
    (AUDITS, (".sql",)),
    (FUNCTIONS, (".sql", ".py")),
    (SEEDS, (".csv",)),
    (PROJECT_PACKAGE, (".py",)),
)
"""Folders that a project may have, and how the names of their files end."""

FOLDERS = (MODELS, *(name for name, _ in _MAY_BE_THERE))
"""All folders with files of a project."""


@dataclass(frozen=True, slots=True)
class Folder:
    """
    infold.yml, models, audits, seeds, functions and modules of Python, read once.

    Names are relative to the project.
    """

    root: Path
    files: tuple[tuple[str, bytes], ...]

    @property
    def digests(self) -> dict[str, str]:
        """A hash of each file's bytes, by its name."""
        return {name: sha256(content).hexdigest() for name, content in self.files}

    @property
    def project_file(self) -> bytes:
        """The bytes of infold.yml."""
        return dict(self.files)[PROJECT_FILE]

    def models(self) -> Iterator[tuple[str, bytes]]:
        """The files under models/ in the order of their names."""
        return self._under(MODELS)

    def audits(self) -> Iterator[tuple[str, bytes]]:
        """The files under audits/ in the order of their names."""
        return self._under(AUDITS)

    def seeds(self) -> Iterator[tuple[str, bytes]]:
        """The files under seeds/ in the order of their names."""
        return self._under(SEEDS)

    def functions(self) -> Iterator[tuple[str, bytes]]:
        """The files under functions/ in the order of their names; those with _ are modules."""
        files = self._under(FUNCTIONS)
        return (file for file in files if not PurePosixPath(file[0]).name.startswith("_"))

    def library(self) -> Iterator[tuple[str, bytes]]:
        """The files under lib/ in the order of their names."""
        return self._under(PROJECT_PACKAGE)

    def _under(self, folder: str) -> Iterator[tuple[str, bytes]]:
        return (one for one in self.files if one[0].startswith(f"{folder}/"))


def read_folder(root: Path) -> Folder:
    """
    The project's files as they are now; infold.yml must be there.

    Raises ``no_models`` where there is no folder of models: a folder that is not mounted, or that
    somebody removed, is not a project without models.
    """
    files = [(PROJECT_FILE, (root / PROJECT_FILE).read_bytes())]
    models = root / MODELS
    if not models.is_dir():
        why = "it is no folder" if models.exists() else "there is no such folder"
        raise findings.no_models(folder=str(models), why=why)
    try:
        files += _read_files(root, models, (".sql", ".py"))
    except _UnreadableError as error:
        raise findings.no_models(folder=error.path, why=error.why) from error
    for name, endings in _MAY_BE_THERE:
        if not (root / name).exists():
            continue
        try:
            files += _read_files(root, root / name, endings)
        except _UnreadableError as error:
            if name == SEEDS:
                raise findings.unreadable_seeds(folder=error.path, why=error.why) from error
            raise findings.no_models(folder=error.path, why=error.why) from error
    files += _imported_modules(root, files)
    return Folder(root, tuple(files))


def _imported_modules(
    root: Path, files: Sequence[tuple[str, bytes]]
) -> Iterator[tuple[str, bytes]]:
    """The modules of the project that its functions import; mistakes are for others to find."""
    functions = [name for name, _ in files if name.endswith(".py") and name.startswith(FUNCTIONS)]
    if not functions:
        return
    from infold.declare.python_code import read_sources

    known = dict(files)
    for function in functions:
        with suppress(InfoldError):
            for name, text in read_sources(root, function, known).files:
                if name not in known:
                    known[name] = text.encode()
                    yield name, known[name]


class _UnreadableError(Exception):
    """A file or folder of a project cannot be read."""

    def __init__(self, path: Path | str, why: str) -> None:
        super().__init__(path, why)
        self.path, self.why = str(path), why


def _read_files(root: Path, folder: Path, endings: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    """The files of a folder with these endings, by their names in the project."""
    if not folder.is_dir():
        raise _UnreadableError(folder, "it is no folder")
    for path in sorted(_files(folder, endings)):
        name = path.relative_to(root).as_posix()
        if path.exists() and not path.is_file():  # reading a pipe would never end
            raise _UnreadableError(path, "it is no file")
        try:
            yield name, path.read_bytes()
        except OSError as error:
            raise _UnreadableError(path, error.strerror or str(error)) from error


def _files(root: Path, endings: tuple[str, ...]) -> Iterator[Path]:
    """The files, in folders below the folder too; none is passed over for being shut."""

    def shut(error: OSError) -> NoReturn:
        raise _UnreadableError(error.filename, error.strerror or str(error)) from error

    for folder, _, names in os.walk(root, onerror=shut, followlinks=True):
        for name in names:
            if name.endswith(endings) and not name.startswith((".", "__")):
                yield Path(folder, name)


# The files are looked at again and again: that sees changes on every kind of disk, those that come
# over a network or from outside a container too, and what an editor replaces by renaming. Only
# names, sizes and times are looked at, which takes milliseconds for a thousand models.

PAUSE = 0.4
"""The time between two looks, in seconds."""

Mark = tuple[int, int, int]
"""What changes with a file: its time, its size, and which file it is."""


def each_change(root: Path, sleep: Callable[[float], object] = time.sleep) -> Iterator[None]:
    """
    Yields at once, and again whenever a file of the project has changed.

    What changes while the caller is busy counts: it yields again at once.
    """
    while True:
        modules = _imported(root)
        before = marks(root, modules)
        yield
        while marks(root, modules) == before:
            sleep(PAUSE)


def marks(root: Path, modules: frozenset[str] = frozenset()) -> dict[str, Mark]:
    """The files of a project and ``modules`` in it as they are now; what is gone is left out."""
    names = {PROJECT_FILE, *modules}
    for folder in FOLDERS:
        for place, _, files in os.walk(root / folder, followlinks=True):
            names |= {os.path.relpath(Path(place, file), root) for file in files}
    by_name = {}
    for name in names:
        try:
            status = (root / name).stat()
        except OSError:
            continue
        by_name[name] = (status.st_mtime_ns, status.st_size, status.st_ino)
    return by_name


def _imported(root: Path) -> frozenset[str]:
    """The modules that functions import from elsewhere in the project, as far as it can be read."""
    try:
        return frozenset(name for name, _ in read_folder(root).files)
    except (InfoldError, OSError):
        return frozenset()
