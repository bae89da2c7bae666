"""Paths of sources with ``{date}`` in the name of a folder, and listings that leave some out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from urllib.parse import unquote

from infold.core.files import ListedFile
from infold.core.interval import DAY, Granularity, parse_duration

DATE = "{date}"
"""What stands for a date in a path: ``2024-03-09``."""

WILD = re.compile(r"[*?\[]")
"""What makes a name a pattern."""

CALENDAR = {"daily": Granularity.DAY, "weekly": Granularity.WEEK}
"""Words for when the next full listing is due."""

_DIGITS = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"


def glob_of(path: str) -> str:
    """A path as a pattern of names alone."""
    return path.replace(DATE, _DIGITS)


def is_dated(name: str) -> bool:
    """Whether a name of a pattern has a date in it."""
    return _DIGITS in name


@dataclass(frozen=True, slots=True)
class DatedPath:
    """
    Where the dated folders of a source are.

    ``start`` is what all its files' paths begin with, up to the first name with a pattern;
    ``names`` are the patterns from there down to the dated folders.
    """

    start: str
    names: tuple[str, ...]

    def folder(self, path: str) -> str | None:
        """The dated folder that a file is in; None for one that is in none of them."""
        if not path.startswith(self.start):
            return None
        names = path[len(self.start) :].split("/", len(self.names))
        return self.start + "/".join(names[:-1]) if len(names) > len(self.names) else None

    def end(self, folder: str) -> int | None:
        """The end of a dated folder's day, in UTC; None where there is no such day."""
        left, right = map(re.escape, self.names[-1].split(_DIGITS))
        found = re.fullmatch(f"{left}({_DIGITS}){right}", folder.rpartition("/")[2])
        try:
            day = date.fromisoformat(found[1]) if found else None
        except ValueError:
            return None
        return None if day is None else (day - date(1970, 1, 1)).days * DAY + DAY


@dataclass(frozen=True, slots=True)
class Listed:
    """The files of a source that are there now, and the paths of those that have yet to settle."""

    files: Sequence[ListedFile]
    settling: Sequence[str] = ()
    folders: int = 0
    """How many dated folders were listed."""
    left_out: frozenset[str] = frozenset()
    """The dated folders that are there and were not listed."""


@dataclass(frozen=True, slots=True)
class FullListing:
    """
    A listing of all that a source has, which had exactly the files that a model has ingested.

    ``newest`` is the greatest id of these, ``of`` tells the source as it was declared.
    """

    at: int
    newest: int
    of: str

    @classmethod
    def of_text(cls, text: str) -> FullListing | None:
        """As the ledger keeps it."""
        at, newest, of = text.split() if text.count(" ") == 2 else ("", "", "")
        return cls(int(at), int(newest), of) if at else None

    def __str__(self) -> str:
        return f"{self.at} {self.newest} {self.of}"

    def is_over(self, every: str, now: int) -> bool:
        """Whether the next one is due: in each day or week of UTC, or after a length of time."""
        if now < self.at:  # by another clock
            return True
        if every in CALENDAR:
            return CALENDAR[every].cell(now) != CALENDAR[every].cell(self.at)
        return now - self.at >= parse_duration(every)


# Hive, Spark and Athena write tables in this way. A character that a folder's name cannot have is
# written as `%` and two hexadecimal digits, NULL as `__HIVE_DEFAULT_PARTITION__`.

NULL = "__HIVE_DEFAULT_PARTITION__"


def folder_values(path: str, names: Iterable[str]) -> Mapping[str, str | None]:
    """
    The texts of the columns ``names`` in the folders of a file, without those that none has.

    Names are compared letter by letter. Of two folders of a name the one nearer to the file counts.
    """
    wanted, found = set(names), {}
    for folder in path.split("/")[:-1]:
        name, equals, value = folder.partition("=")
        if equals and unquote(name) in wanted:
            found[unquote(name)] = None if value == NULL else unquote(value)
    return found
