"""Patterns of a source's ``path``, name by name; ``listing`` says what they mean."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from functools import lru_cache

from infold.core.dated_path import WILD

HIDDEN = "_."
"""What a name begins with that is left out, unless the pattern begins so."""

Matches = Callable[[str], object]


@lru_cache  # the same for thousands of folders
def matcher(pattern: str, *, last: bool) -> Matches:
    """Whether a name matches; as the last of a path, also with ``.gz`` after it."""
    if pattern == "*":
        return lambda _: True
    if last and pattern[0] == "*" and not WILD.search(pattern, 1):
        ends = pattern[1:] if pattern.endswith(".gz") else (pattern[1:], f"{pattern[1:]}.gz")
        return lambda name: name.endswith(ends)
    plain = re.compile(fnmatch.translate(pattern)).match
    if not last or pattern.endswith(".gz"):
        return plain
    gzipped = re.compile(fnmatch.translate(pattern + ".gz")).match
    return lambda name: plain(name) or gzipped(name)
