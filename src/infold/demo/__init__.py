"""
A real history of late rows, delivered in acts.

The demo's project and data ship with the package. :func:`acts` yields one change of the landing
folder after the other; the command calls ``apply`` on each and then runs the project. Nothing here
runs, reads or checks a table: an act only changes files.
"""

from __future__ import annotations

import csv
import gzip
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path

LANDING = "landing"
"""The folder of the demo's project that receives files."""

WITHDRAWN = "withdrawn"
"""The folder for the files that the last act removes, so that a user can put them back."""

_EARLIER = "22c4b591f7e8"
"""A commit of May 2026 with a session of the same person an hour before it."""

_UNTRUE = "f0cbe97d81e4"


@dataclass(frozen=True, slots=True)
class Act:
    """
    One change of the landing folder, with the text that announces it.

    ``text`` is a line or two of prose; ``apply`` changes the folder.
    """

    title: str
    text: str
    apply: Callable[[], None]


def acts(directory: Path) -> Iterable[Act]:
    """
    The demo's acts in order; the first also writes the project into ``directory``.

    Each act has to be applied after those before it.
    """
    landing = directory / LANDING
    yield Act(
        "ten years at once",
        "Ten files: the history of a public repository as it arrived from 2016 to 2025,\n"
        "49,508 rows, one per commit and file that it touched.",
        partial(_first_load, directory, landing),
    )
    yield Act(
        "five quiet months",
        "January to May 2026: 1,673 rows in five files, none of them late.",
        partial(_deliver, landing, [f"2026-{month:02}" for month in range(1, 6)]),
    )
    yield Act(
        "a month of late rows",
        "June 2026: a year of work done elsewhere is merged. 19,342 of 22,118 rows are more than\n"
        "a week late, 2,607 more than a year; they belong to 342 different days.",
        partial(_deliver, landing, ["2026-06"]),
    )
    yield Act(
        "the same file twice",
        "July and August 2026, and July once more under another name: 3,444 new rows and 1,187\n"
        "copies. An event that was delivered twice is still one event.",
        partial(_deliver_twice, landing),
    )
    yield Act(
        "a corrected file",
        "May 2026 again, by the same name: one commit was made 26 minutes earlier than it said,\n"
        "and joins two sessions into one; another was never made, and its 33 rows are removed.",
        partial(_correct, landing / _file("2026-05")),
    )
    yield Act(
        "files that leave",
        "July's first file and August's only one are withdrawn: July stays, from its copy; August\n"
        "goes, out of every table. May is as it was: the joined sessions are two again.",
        partial(_withdraw, directory, landing),
    )
    yield Act(
        "nothing new",
        "No file changed, so the run only lists files.",
        lambda: None,
    )


def lay_out(directory: Path) -> None:
    """Writes the demo's ``infold.yml`` and models into ``directory``; files of its own stay."""
    with as_file(files(__name__) / "project") as project:
        shutil.copytree(project, directory, dirs_exist_ok=True)


def _file(period: str) -> str:
    return f"received-{period}.csv.gz"


def _deliver(landing: Path, periods: Sequence[str]) -> None:
    for period in periods:
        with as_file(files(__name__) / "data" / _file(period)) as path:
            # not copy2: the time of modification is that of the delivery
            shutil.copyfile(path, landing / path.name)


def _first_load(directory: Path, landing: Path) -> None:
    lay_out(directory)
    landing.mkdir(exist_ok=True)
    _deliver(landing, [str(year) for year in range(2016, 2026)])
    with as_file(files(__name__) / "data" / "README.md") as note:
        shutil.copyfile(note, directory / "DATA.md")


def _deliver_twice(landing: Path) -> None:
    _deliver(landing, ["2026-07", "2026-08"])
    shutil.copyfile(landing / _file("2026-07"), landing / "again-2026-07.csv.gz")


def _correct(path: Path) -> None:
    """Correct a file; this correction is invented, everything else in the demo happened."""
    with gzip.open(path, "rt", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with gzip.open(path, "wt", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            if row["commit_id"] == _EARLIER:
                row["event_ts"] = str(int(row["event_ts"]) - 26 * 60)
            if row["commit_id"] != _UNTRUE:
                writer.writerow(row)


def _withdraw(directory: Path, landing: Path) -> None:
    withdrawn = directory / WITHDRAWN
    withdrawn.mkdir(exist_ok=True)
    for period in ("2026-07", "2026-08"):
        (landing / _file(period)).rename(withdrawn / _file(period))
    _deliver(landing, ["2026-05"])
