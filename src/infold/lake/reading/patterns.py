"""Patterns of a source's ``path``, name by name; ``listing`` says what they mean."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from functools import lru_cache

from infold.core.dated_path import WILD
from infold.core.formats import PACKINGS, packing_of

HIDDEN = "_."
"""What a name begins with that is left out, unless the pattern begins so."""

Matches = Callable[[str], object]


@lru_cache  # the same for thousands of folders
def matcher(pattern: str, *, last: bool) -> Matches:
    """Whether a name matches; as the last of a path, also with an ending of ``PACKINGS``."""
    if pattern == "*":
        return lambda _: True
    endings = ("", *PACKINGS) if last and packing_of(pattern) is None else ("",)
    if last and pattern[0] == "*" and not WILD.search(pattern, 1):
        ends = tuple(pattern[1:] + ending for ending in endings)
        return lambda name: name.endswith(ends)
    return re.compile("|".join(fnmatch.translate(pattern + ending) for ending in endings)).match
