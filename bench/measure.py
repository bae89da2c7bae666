"""Times, ratios and what they were measured on; the table that shows them."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Size:
    """How large to measure: ``scale`` shrinks rows and users, ``repeats`` is for what is quick."""

    scale: float = 1.0
    repeats: int = 3

    def rows(self, count: int, least: int = 1_000) -> int:
        """A number of rows or users at this scale."""
        return max(least, int(count * self.scale))


@dataclass(frozen=True)
class Line:
    """
    One line of the table: what was measured, what came out, what was to be reached.

    ``value`` is what counts (a ratio, or seconds), ``target`` its upper bound; ``detail`` says the
    rest in a sentence.
    """

    what: str
    value: float | None
    target: float | None
    unit: str = "x"
    detail: str = ""

    @property
    def reached(self) -> str:
        """``yes``, ``no``, or nothing where there is no target."""
        if self.value is None or self.target is None:
            return ""
        return "yes" if self.value <= self.target else "**no**"


@dataclass
class Clock:
    """Seconds of the same thing, several times."""

    seconds: list[float] = field(default_factory=list)

    @contextmanager
    def timing(self) -> Iterator[None]:
        """What is inside is measured once."""
        started = time.perf_counter()
        yield
        self.seconds.append(time.perf_counter() - started)

    def add(self, seconds: float) -> None:
        """A time that was measured elsewhere."""
        self.seconds.append(seconds)

    @property
    def least(self) -> float:
        """The quickest: what the machine's other work disturbed the least."""
        return min(self.seconds)

    @property
    def median(self) -> float:
        """The middle one."""
        return statistics.median(self.seconds)

    def __str__(self) -> str:
        if len(self.seconds) == 1:
            return f"{self.least:.2f} s"
        return f"{self.least:.2f} s (median {self.median:.2f} s of {len(self.seconds)})"


class ProcessorTime:
    """What this process and those it started take of the processors from now on."""

    def __init__(self) -> None:
        self.before = _processor_seconds()

    def taken(self) -> float:
        """Seconds since; a JVM may have ended since, or begun."""
        after = _processor_seconds()
        return sum(seconds - self.before.get(pid, 0) for pid, seconds in after.items())


def _processor_seconds() -> dict[int, float]:
    """What this process and each of those it started have taken of the processors."""
    parents, ticks = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        pid = int(path.parent.name)
        parents[pid], ticks[pid] = int(fields[1]), int(fields[11]) + int(fields[12])
    own = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in own} - own:
        own |= more
    return {pid: ticks[pid] / os.sysconf("SC_CLK_TCK") for pid in own if pid in ticks}


def ratio(ours: Clock, theirs: Clock) -> float:
    """Least over least; the medians stand in the detail."""
    return ours.least / theirs.least


def alternately(repeats: int, *parts: Callable[[], object]) -> None:
    """Each part once, again and again: a noisy minute of the machine falls on all of them."""
    for _ in range(repeats):
        for part in parts:
            part()


def machine() -> dict[str, str]:
    """What the measurements depend on: cores, memory, versions; nothing that names a machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cores": str(os.cpu_count()),
        "memory": f"{memory:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "pyspark": version("pyspark"),
        "driver heap": os.environ.get("INFOLD_MEMORY") or "2g (default)",
    }


def table(lines: Sequence[Line]) -> str:
    """The lines as Markdown."""
    rows = ["| what | measured | to reach | reached | |", "|---|--:|--:|---|---|"]
    for line in lines:
        value = "–" if line.value is None else f"{line.value:,.2f} {line.unit}"
        target = "" if line.target is None else f"≤ {line.target:,.2f} {line.unit}"
        rows.append(f"| {line.what} | {value} | {target} | {line.reached} | {line.detail} |")
    return "\n".join(rows)


def as_dict(line: Line) -> dict[str, Any]:
    """A line as plain values, to be kept between processes."""
    return {
        "what": line.what,
        "value": line.value,
        "target": line.target,
        "unit": line.unit,
        "detail": line.detail,
    }


def largest_child() -> str:
    """The most memory that a process which this one started has had: the JVM."""
    most = 0
    for path in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):  # it ended meanwhile
            fields = dict(line.split(":", 1) for line in path.read_text().splitlines())
            if int(fields["PPid"]) == os.getpid() and "VmHWM" in fields:
                most = max(most, int(fields["VmHWM"].split()[0]))
    return f"the JVM took {most / 2**20:.1f} GiB at most"
