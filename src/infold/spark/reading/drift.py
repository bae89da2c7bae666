"""
Schema drift: files whose columns are not the declared ones, found before any row is read.

Names are compared exactly, as they stand in the file: ``ID`` is not ``id``. What happens to such
a file is declared: it is an error that lists every one of them, or all its rows are set aside.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from infold import errors
from infold.model import Drift, Source


@dataclass(frozen=True, slots=True)
class Present:
    """One version of a file to read: its id, its path as listed, and where it is."""

    id: int
    path: str
    at: Path
    size: int = 0


def differences(
    declared: Sequence[str], found: Collection[str], others: Sequence[str] = ()
) -> str | None:
    """How the names found in a file differ from the declared ones; None when they do not."""
    parts = [f"missing column {name}" for name in declared if name not in found]
    known = set(declared)
    parts += [f"extra column {name}" for name in found if name not in known]
    parts += others
    return "; ".join(parts) or None


def settle(source: Source, drifted: Mapping[int, str], files: Sequence[Present]) -> None:
    """Raise ``errors.drift`` for files that drifted, unless they are to be set aside."""
    if drifted and source.on_drift is Drift.ERROR:
        facts = tuple((file.path, drifted[file.id]) for file in files if file.id in drifted)
        raise errors.drift(source.name, facts)
