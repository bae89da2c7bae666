"""
What commands keep in a project's folder to save time, and where things are kept for all projects.

A folder may come from a stranger with such files in it. So each begins with its digest by a key
that only this user has, and any other is as if it were missing: what it says was never the result
of looking. The key is in the cache of the user; where none can be kept, nothing is.
"""

from __future__ import annotations

import contextlib
import os
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TextIO

_DIGEST_BYTES = 32


def cache_dir() -> Path:
    """
    Where fetched and derived files are kept: ``INFOLD_CACHE``, or ``infold`` in the user's cache.

    Everything in it can be deleted at any time; it is made again when needed.
    """
    own = os.environ.get("INFOLD_CACHE")
    if own:
        return Path(own).expanduser().resolve()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "infold"


def is_own(folder: Path) -> bool:
    """Whether only this user, or root, can put files into a folder of the cache."""
    statuses = (one.stat() for one in (folder, folder.parent))
    return all(one.st_uid in (os.geteuid(), 0) and not one.st_mode & 0o002 for one in statuses)


def keep(path: Path, content: bytes) -> None:
    """Keep this in a file, in a folder that is made; where that cannot be, it is no mistake."""
    digest = _digest(content)
    if digest is not None:
        with contextlib.suppress(OSError):
            path.parent.mkdir(exist_ok=True)
            replace_file(path, digest + content)


def kept(path: Path) -> bytes | None:
    """What this user has kept in a file; None if there is none, or it is another's, or damaged."""
    try:
        stored = path.read_bytes() if path.is_file() else b""  # reading a pipe would never end
    except OSError:
        return None
    content = stored[_DIGEST_BYTES:]
    return content if stored[:_DIGEST_BYTES] == _digest(content) else None


def replace_file(path: Path, content: bytes) -> None:
    """Write a file anew, at once; a link there is replaced and not followed. Raises OSError."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    fresh.unlink(missing_ok=True)
    with fresh.open("xb") as file:
        file.write(content)
    fresh.replace(path)


def open_log(path: Path) -> TextIO:
    """Open a file to append to it; a link or a pipe there is replaced. Raises OSError."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        path.unlink()
    return path.open("a", encoding="utf-8")


def _digest(content: bytes) -> bytes | None:
    try:
        key = own_key(cache_dir())
    except (OSError, RuntimeError):  # no home, or none that can be written to
        return None
    return blake2b(content, key=key, digest_size=_DIGEST_BYTES).digest()


@cache
def own_key(folder: Path) -> bytes:
    """The key of this user, made the first time. Raises OSError if it cannot be kept secret."""
    file = folder / "key"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        fresh = file.with_name(f"key.{os.getpid()}")
        opened = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(opened, "wb") as written:
            written.write(os.urandom(_DIGEST_BYTES))
        with contextlib.suppress(FileExistsError):  # another process was first
            os.link(fresh, file)
        fresh.unlink()
    status = file.stat()
    key = file.read_bytes()
    if status.st_uid != os.geteuid() or status.st_mode & 0o077 or len(key) != _DIGEST_BYTES:
        raise PermissionError(file)
    return key
