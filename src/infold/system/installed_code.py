"""
Whether the program on disk is still the one that a process has loaded.

The files of infold are looked at one by one, as a developer's change; of other packages the folders
they are installed in, where every installation makes, renames or removes something.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[1]


def installed(package: Path = PACKAGE) -> str:
    """A digest of what is installed now: infold, Python, and the packages beside it."""
    digest = hashlib.sha256(sys.version.encode())
    for path in (sys.executable, *sys.path):
        digest.update(f"{path} {_stamp(path)}\n".encode(errors="surrogateescape"))
    for line in sorted(_files(package)):
        digest.update(line.encode(errors="surrogateescape"))
    return digest.hexdigest()


def _stamp(path: str) -> tuple[int, ...]:
    try:
        status = os.stat(path or ".")  # noqa: PTH116 (a thousand of them, in milliseconds)
    except OSError:
        return ()
    return status.st_mtime_ns, status.st_ino, 0 if os.path.isdir(path) else status.st_size  # noqa: PTH112


def _files(folder: str | Path) -> list[str]:
    files: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__":
                    files += _files(entry.path)
            else:
                status = entry.stat()
                files.append(f"{entry.path} {status.st_mtime_ns} {status.st_size}\n")
    return files
