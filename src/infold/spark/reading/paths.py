"""Paths as Spark takes them and as it gives them back."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path, PurePosixPath

from infold.core.formats import ending_for_spark, packing_of
from infold.core.object_store import is_url
from infold.lake.reading.source_file import location

_GLOB = frozenset("\\{}[]*?")
_LEGAL = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-!.~'()*,;:$&+=/@"
)

_SPACES_AND_CONTROLS = frozenset({"Zs", "Zl", "Zp", "Cc"})


def glob(path: str) -> str:
    """A path as a pattern that matches it alone: Spark reads every path as a pattern."""
    return "".join("\\" + letter if letter in _GLOB else letter for letter in path)


LINKS = Path(".infold/links")
"""Links to files whose own names Spark cannot read."""


def takeable(root: Path, path: str) -> str:
    """
    Where Spark finds a file of a project: where it is, or a link to it.

    Hadoop reads a colon in a file's name as the end of a URI's scheme, and so it does anywhere in a
    path that has to be escaped. Spark silently skips names that begin with ``_`` or ``.``, or end
    in ``._COPYING_``, and unpacks by endings that mean something else here.
    """
    at = location(root, path)
    name = at.rpartition("/")[2]
    passed_over = name[0] in "_." or name.endswith("._COPYING_")
    escaped = not _GLOB.isdisjoint(at)
    ending = ending_for_spark(name)
    if not passed_over and ending is None and ":" not in (at if escaped else name):
        return at
    folder = (root / LINKS).absolute()
    file = Path(at).absolute()
    if ending is None:
        ending = PurePosixPath(name).suffix if packing_of(name) else ""
    link = folder / f"{sha256(str(file).encode()).hexdigest()[:24]}{ending}"
    if not link.is_symlink():
        _sweep(folder)
        with suppress(FileExistsError):  # another step made it
            link.symlink_to(file)
    return str(link)


def _sweep(folder: Path) -> None:
    """Make the folder of links, or take out those to files that are no longer there."""
    folder.mkdir(parents=True, exist_ok=True)
    with os.scandir(folder) as links:
        for link in links:
            if not Path(link.path).exists():
                with suppress(FileNotFoundError):
                    os.unlink(link.path)  # noqa: PTH108 - as it was listed


def uri(path: str) -> str:
    """
    The path, or URL of an object, as Spark reports it in ``_metadata.file_path``.

    That is Java's URI: ASCII outside the legal characters is escaped, and beyond it spaces and
    control characters alone.
    """
    legal = path if _LEGAL.issuperset(path) else "".join(map(_escaped, path))
    return legal if is_url(path) else f"file:{legal}"


def _escaped(letter: str) -> str:
    if letter in _LEGAL:
        return letter
    if letter.isascii() or unicodedata.category(letter) in _SPACES_AND_CONTROLS:
        return "".join(f"%{byte:02X}" for byte in letter.encode())
    return letter


SMALL_FILE_BYTES = 64 * 1024
"""Bytes. Files that have no more on average are small."""

MOST_BYTES = 256 * 1024 * 1024
"""Bytes of files whose rows are kept at most: in memory as far as they fit, else on disk."""


def worth_keeping(sizes: Sequence[int]) -> bool:
    """Whether the rows of files of these sizes are kept, so that nothing opens the files again."""
    total = sum(sizes)
    return total <= min(MOST_BYTES, SMALL_FILE_BYTES * len(sizes))
