"""The files of a project, and a hash of the bytes of each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NoReturn

from infold.messages import findings

PROJECT_FILE = "infold.yml"
MODELS = "models"
AUDITS = "audits"


@dataclass(frozen=True, slots=True)
class Folder:
    """infold.yml, the files of models and of audits, read once; names relative to the project."""

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

    def _under(self, folder: str) -> Iterator[tuple[str, bytes]]:
        return (one for one in self.files if one[0].startswith(f"{folder}/"))


def read_folder(root: Path) -> Folder:
    """
    The project's files as they are now; infold.yml must be there.

    Raises ``no_models`` where there is no folder of models: a folder that is not mounted, or that
    somebody removed, is not a project without models.
    """
    found = [(PROJECT_FILE, (root / PROJECT_FILE).read_bytes())]
    models = root / MODELS
    if not models.is_dir():
        why = "it is no folder" if models.exists() else "there is no such folder"
        raise findings.no_models(folder=str(models), why=why)
    audits = root / AUDITS
    queries = [path for path in _files(audits) if path.suffix == ".sql"] if audits.is_dir() else []
    for path in sorted([*_files(models), *queries]):
        name = path.relative_to(root).as_posix()
        if path.exists() and not path.is_file():  # reading a pipe would never end
            raise findings.no_models(folder=str(path), why="it is no file")
        try:
            found.append((name, path.read_bytes()))
        except OSError as error:
            raise findings.no_models(folder=str(path), why=error.strerror or str(error)) from error
    return Folder(root, tuple(found))


def _files(models: Path) -> Iterator[Path]:
    """The files of models, in folders below the folder too; none is passed over for being shut."""

    def shut(error: OSError) -> NoReturn:
        raise findings.no_models(folder=error.filename, why=error.strerror or str(error)) from error

    for folder, _, names in os.walk(models, onerror=shut, followlinks=True):
        for name in names:
            if name.endswith((".sql", ".py")) and not name.startswith((".", "__")):
                yield Path(folder, name)
