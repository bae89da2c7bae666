"""The files of a project, and what they are worth as a whole: one hash of all their bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

PROJECT_FILE = "infold.yml"
MODELS = "models"


@dataclass(frozen=True, slots=True)
class Folder:
    """infold.yml and the files of models, read once; names are relative to the project."""

    root: Path
    files: tuple[tuple[str, bytes], ...]

    @property
    def key(self) -> str:
        """A hash of all names and bytes."""
        digest = sha256()
        for name, content in self.files:
            digest.update(f"{name}\0{len(content)}\0".encode())
            digest.update(content)
        return digest.hexdigest()

    @property
    def project_file(self) -> bytes:
        """The bytes of infold.yml."""
        return dict(self.files)[PROJECT_FILE]

    def models(self) -> Iterator[tuple[str, bytes]]:
        """The files under models/ in the order of their names."""
        return ((name, content) for name, content in self.files if name != PROJECT_FILE)


def read_folder(root: Path) -> Folder:
    """The project's files as they are now; infold.yml must be there."""
    found = [(PROJECT_FILE, (root / PROJECT_FILE).read_bytes())]
    models = root / MODELS
    paths = sorted(path for path in models.rglob("*") if path.suffix in (".sql", ".py"))
    found.extend(
        (path.relative_to(root).as_posix(), path.read_bytes())
        for path in paths
        if path.is_file() and not path.name.startswith((".", "__"))
    )
    return Folder(root, tuple(found))
