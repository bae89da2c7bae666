"""Many small files: to open one takes longer than to read its rows, so each is opened once."""

from __future__ import annotations

from collections.abc import Sequence

SMALL = 64 * 1024
"""Bytes. Files that have no more on average are small."""

MOST = 256 * 1024 * 1024
"""Bytes of files whose rows are kept at most: in memory as far as they fit, else on disk."""


def worth_keeping(sizes: Sequence[int]) -> bool:
    """Whether the rows of files of these sizes are kept, so that nothing opens the files again."""
    total = sum(sizes)
    return total <= min(MOST, SMALL * len(sizes))
