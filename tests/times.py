"""
What tests cost: ``make test-times``, or ``python -m tests.times [--record] [FILE.xml …]``.

Each run of pytest by the Makefile leaves its times in ``build/times``, in JUnit's XML. This
prints the most expensive tests of the last runs, and the seconds of each folder. ``--record`` also
writes down the longest files, which are tried first.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

RECORDED = Path(__file__).parents[1] / "build" / "times"
MOST_EXPENSIVE = 60
LONGEST = Path(__file__).parent / "longest.txt"
LONG = 3.0
"""Seconds of a file that is written down."""


@dataclass(frozen=True, slots=True)
class Timed:
    """The seconds of one test, with its set-up and tear-down."""

    file: str
    name: str
    seconds: float


def read_times(files: Iterable[Path]) -> Iterator[Timed]:
    """The tests of some files of JUnit's XML."""
    for file in files:
        for case in ET.parse(file).getroot().iter("testcase"):
            *folders, module = case.attrib["classname"].removeprefix("tests.").split(".")
            if module[:1].isupper():
                *folders, module = folders
            yield Timed(
                "/".join((*folders, module)), case.attrib["name"], float(case.attrib["time"])
            )


def report_times(timed: Iterable[Timed]) -> Iterator[str]:
    """The table of the most expensive tests, and that of folders, line by line."""
    tests = sorted(timed, key=lambda one: -one.seconds)
    seconds, counts = Counter[str](), Counter[str]()
    for one in tests:
        seconds[one.file.rpartition("/")[0]] += one.seconds  # type: ignore[assignment]
        counts[one.file.rpartition("/")[0]] += 1
    yield f"{len(tests):,} tests, {sum(one.seconds for one in tests):,.0f} s"
    yield from ("", " seconds  test")
    yield from (f"{one.seconds:8.1f}  {one.file}::{one.name}" for one in tests[:MOST_EXPENSIVE])
    yield from ("", " seconds   tests  folder")
    for folder, total in seconds.most_common():
        yield f"{total:8.1f}{counts[folder]:8}  tests/{folder}"


def read_longest() -> dict[str, float]:
    """The seconds of the longest files, by their path below ``tests``."""
    lines = LONGEST.read_text(encoding="utf-8").splitlines()
    return {file: float(seconds) for seconds, file in (line.split() for line in lines)}


def record_longest(timed: Iterable[Timed]) -> None:
    """Write down the longest files, the longest first."""
    seconds = Counter[str]()
    for one in timed:
        seconds[f"{one.file}.py"] += one.seconds  # type: ignore[assignment]
    longest = [(file, total) for file, total in seconds.most_common() if total >= LONG]
    LONGEST.write_text("".join(f"{total:.0f} {file}\n" for file, total in longest))


def main() -> int:
    """Print the times of the files that are named, or of the last runs; 2 where there are none."""
    words = [word for word in sys.argv[1:] if word != "--record"]
    files = [Path(word) for word in words] or sorted(RECORDED.glob("*.xml"))
    if not files:
        print("No times are recorded: run make test first", file=sys.stderr)
        return 2
    timed = [*read_times(files)]
    print("\n".join(report_times(timed)))
    if "--record" in sys.argv:
        record_longest(timed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
