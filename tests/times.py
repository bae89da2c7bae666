"""
What tests cost: ``make test-times``, or ``python -m tests.times [--record] [FILE.xml …]``.

Each run of pytest that the Makefile starts leaves its times in ``build/times``, in JUnit's XML,
with set-up, call and tear-down of each test as its properties. This prints the most expensive tests
of the last runs, and the seconds of each folder. ``--record`` also writes down the longest files,
which are tried first.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

RECORDED = Path(__file__).parents[1] / "build" / "times"
MOST_EXPENSIVE = 60
LONGEST = Path(__file__).parent / "longest.txt"
LONG = 3.0
"""Seconds of a file that is written down."""
PHASES = ("setup", "call", "teardown")


@dataclass(frozen=True, slots=True)
class Timed:
    """The seconds of one test, by ``PHASES``."""

    file: str
    name: str
    seconds: tuple[float, float, float]

    @property
    def total(self) -> float:
        """All of it."""
        return sum(self.seconds)


def read_times(files: Iterable[Path]) -> Iterator[Timed]:
    """The tests of some files of JUnit's XML. A test that did not end has no tear-down."""
    for file in files:
        for case in ET.parse(file).getroot().iter("testcase"):
            phases = {entry.get("name"): entry.get("value") for entry in case.iter("property")}
            setup, call, teardown = (float(phases.get(phase) or 0) for phase in PHASES)
            *folders, module = case.attrib["classname"].removeprefix("tests.").split(".")
            if module[:1].isupper():
                *folders, module = folders
            path = "/".join((*folders, module))
            yield Timed(path, case.attrib["name"], (setup, call, teardown))


def report_times(timed: Iterable[Timed]) -> Iterator[str]:
    """The table of the most expensive tests, and that of folders, line by line."""
    tests = sorted(timed, key=lambda one: -one.total)
    yield f"{len(tests):,} tests, {sum(one.total for one in tests):,.0f} s"
    yield ""
    yield f"{'set-up':>8}{'call':>8}{'tear-down':>11}  test"
    for one in tests[:MOST_EXPENSIVE]:
        setup, call, teardown = one.seconds
        yield f"{setup:8.1f}{call:8.1f}{teardown:11.1f}  {one.file}::{one.name}"
    seconds: defaultdict[str, float] = defaultdict(float)
    counts = Counter[str]()
    for one in tests:
        folder = one.file.rpartition("/")[0]
        seconds[folder] += one.total
        counts[folder] += 1
    yield ""
    yield f"{'seconds':>8}{'tests':>8}  folder"
    for folder, total in by_seconds(seconds):
        yield f"{total:8.1f}{counts[folder]:8}  tests/{folder}"


def by_seconds(seconds: Mapping[str, float]) -> list[tuple[str, float]]:
    """The most expensive first."""
    return sorted(seconds.items(), key=lambda entry: -entry[1])


def read_longest() -> dict[str, float]:
    """The seconds of the longest files, by their path below ``tests``."""
    lines = LONGEST.read_text(encoding="utf-8").splitlines()
    return {file: float(seconds) for seconds, file in (line.split() for line in lines)}


def record_longest(timed: Iterable[Timed]) -> None:
    """Write down the longest files, the longest first."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for one in timed:
        seconds[f"{one.file}.py"] += one.total
    longest = [(file, total) for file, total in by_seconds(seconds) if total >= LONG]
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
