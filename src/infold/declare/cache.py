"""
A compiled project kept beside it, so that an unchanged one costs neither YAML nor SQL parsing.

The file is read by an unpickler that makes values of this package only: a folder may come from a
stranger with such a file, which must not run code. A file with anything wrong is ignored.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
from functools import cache as once
from pathlib import Path, PurePosixPath
from typing import Any

from infold import __version__
from infold.core.project import Project
from infold.declare.folder import Folder

FILE = PurePosixPath(".infold/project.pickle")

_PACKAGE = Path(__file__).parents[1]

_VALUES = "infold.core."
"""Where the classes of a project's values are: none of them does anything when it is made."""


class _ValueUnpickler(pickle.Unpickler):
    """Makes values of ``infold.core``, and of nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        """The class of that name."""
        if not module.startswith(_VALUES) or "." in name:
            raise pickle.UnpicklingError(module)
        found = super().find_class(module, name)
        if not isinstance(found, type):
            raise pickle.UnpicklingError(name)
        return found


def load_cached(folder: Folder) -> dict[str, Any] | None:
    """The fields of the project that was kept for exactly these files, or None."""
    found = load_kept(folder)
    return found if found is not None and found.pop(FILES) == folder.digests else None


def load_kept(folder: Folder) -> dict[str, Any] | None:
    """The fields of the project that was kept last, and the digests of its files; or None."""
    try:
        with (folder.root / FILE).open("rb") as file:
            if file.readline().decode().strip() != program_version():
                return None
            found = _ValueUnpickler(io.BytesIO(file.read())).load()
    except Exception:  # noqa: BLE001 (a broken pickle raises anything; then it is made anew)
        return None
    return found if isinstance(found, dict) and set(found) == _FIELDS else None


FILES = "files"
_FIELDS = {"name", "start", "sources", "nodes", "targets", "default", FILES}


def cache(folder: Folder, project: Project, default: str) -> None:
    """Keep a project for these files; a folder that cannot be written to is no mistake."""
    fields = {
        "name": project.name,
        "start": project.start,
        "sources": dict(project.sources),
        "nodes": project.nodes,
        "targets": dict(project.targets),
        "default": default,
        FILES: folder.digests,
    }
    path = folder.root / FILE
    fresh = path.with_name(f"project.{os.getpid()}.tmp")
    with contextlib.suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        fresh.write_bytes(program_version().encode() + b"\n" + pickle.dumps(fields, protocol=5))
        fresh.replace(path)


def program_version() -> str:
    """What tells this program from others, and from itself before a file of it changed."""
    return f"infold {__version__} {_code_version(_PACKAGE)}"


@once
def _code_version(package: Path) -> int:
    """
    When a file of the package last changed: a checkout changes without a new version.

    Any file counts. A list of the modules that decide would go stale with the next import. Asked
    once: a process goes on by the code that it began with, whatever the files are by then.
    """
    return max(file.stat().st_mtime_ns for file in package.rglob("*.py"))
