"""
The note beside a ledger's file that names the damaged one which a repair has just put aside.

It is there before the file is moved, and until what can be read of that is taken over. So a repair
that died goes on with its own file, and never takes that of an earlier repair.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path


def damaged_path(ledger: Path) -> Path:
    """Where a damaged file goes, as the note says from now on."""
    noted = noted_path(ledger)
    if noted is not None and not noted.exists():
        return noted  # a process died before it moved the file, perhaps after it moved the log
    stamp = time.strftime("damaged-%Y%m%dT%H%M%S", time.gmtime())
    path = Path(f"{ledger}.{stamp}")
    _note(ledger).write_text(path.name, encoding="utf-8")
    return path


def noted_path(ledger: Path) -> Path | None:
    """The damaged file of a repair that goes on or died, there or not; None without a note."""
    with suppress(FileNotFoundError):
        name = _note(ledger).read_text(encoding="utf-8")
        return ledger.with_name(name) if name else None
    return None


def remove_note(ledger: Path) -> None:
    """Nothing is to be taken out of a damaged file any more."""
    _note(ledger).unlink(missing_ok=True)


def _note(ledger: Path) -> Path:
    return Path(f"{ledger}.repairing")
