"""Paths as Spark takes them and as it gives them back."""

from __future__ import annotations

import unicodedata
from pathlib import Path

_GLOB = frozenset("\\{}[]*?")
_LEGAL = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-!.~'()*,;:$&+=/@"
)


def glob(path: Path) -> str:
    """A path as a pattern that matches it alone: Spark takes every path for a pattern."""
    return "".join("\\" + letter if letter in _GLOB else letter for letter in str(path))


def uri(path: Path) -> str:
    """
    The path as Spark reports it in ``_metadata.file_path``.

    That is Java's URI of it: ASCII outside the legal characters is escaped, other letters are not.
    """
    return "file:" + "".join(map(_escaped, str(path)))


def _escaped(letter: str) -> str:
    if letter in _LEGAL:
        return letter
    if letter.isascii() or unicodedata.category(letter)[0] in "ZC":
        return "".join(f"%{byte:02X}" for byte in letter.encode())
    return letter
