"""
A small project for crashes: events, sessions, a daily table; deliveries that touch all three.

Two ways to die. :func:`kill` starts a process of its own that SIGKILLs itself at a numbered write
point: the real thing, at the price of a JVM for each death. :class:`Life` dies inside the test's
process: at a point it raises :class:`KilledError`, which no code of the program catches, and from
then on every further write point raises it too, so nothing more can be written, as after a real
death; to those who come later the holder of the lease looks like another, dead process. What it
cannot show is a JVM that outlives its Python process; the real one does.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Generic, Self, TypeVar

import pytest
from tests.arrivals.dry import DryPlay
from tests.arrivals.play import DRY, Play, Tally
from tests.arrivals.programs import Drawer, Person
from tests.arrivals.shape import Rows, Shape
from tests.arrivals.shapes import FEW_SESSIONS, FOLD
from tests.reference.compare import difference, stored
from tests.reference.world import Record

from infold import api
from infold.core import write_points
from infold.core.model import table_name
from infold.core.plan import Step
from infold.core.record import Receipt
from infold.core.report import RunResult
from infold.ledger import lease
from infold.messages.errors import InfoldError

TABLES = ("clicks", "sessions", "daily", "users")
"""The tables of :data:`SHAPE`; a scenario of another shape has its own."""

SHAPE = Shape(
    "crash",
    sources=(FOLD.source("raw.clicks"),),
    tables={name: FOLD.tables[name] for name in TABLES} | {"sessions": (FEW_SESSIONS,)},
)
EVERYWHERE = replace(
    SHAPE, name="everywhere", tables={**SHAPE.tables, "clicks": FOLD.tables["clicks"][1:]}
)
"""The same with one row for each key: an event that moves leaves one cell and enters another."""


class Untied(Drawer):
    """Draws conflicting copies that preference alone decides, so that every state is foreseen."""

    def conflict(self, person: Person, random: Random, as_of: int) -> list[Record]:
        """Another copy of an event, preferred to all before it or to none."""
        found = super().conflict(person, random, as_of)
        person.ids += 1
        for row in found:
            assert isinstance(row, dict)
            row["revision"] = random.choice((-1, 1)) * (10 + person.ids)
        return found

    def moved(self, person: Person, random: Random, as_of: int) -> list[Record]:
        """Another copy at another time: like :meth:`conflict`, or alike in all but the time."""
        found = super().moved(person, random, as_of)
        for row in found:
            assert isinstance(row, dict)
            old = next(each for each in person.sent if each["event_id"] == row["event_id"])
            person.ids += 1
            if random.random() < 0.5:
                row |= {name: old[name] for name in old if name != "event_ts"}
            else:
                row["revision"] = random.choice((-1, 1)) * (10 + person.ids)
        return found


@dataclass
class Scenario(Play):
    """A play whose tables can be foreseen before anything runs."""

    jobs: int | None = None
    """How many steps a run has in hand at the same time."""

    @property
    def _drawer(self) -> Drawer:
        usual = super()._drawer
        return Untied(usual.tick, usual.tolerance, usual.broken, usual.columns)

    def deliver(self, seed: int) -> None:
        """News: rows on time, late and twice; from the second on a file leaves as well."""
        random = Random(seed)
        if len(self.world.files) > 2:
            self.delete(random)
        self.arrive(random)
        self.burst(random)
        self.again(random)
        self.advance(random)

    def foreseen(self) -> Mapping[str, Rows]:
        """What each table has to hold once everything that lies there is taken in."""
        found: dict[str, Rows] = {}
        for name in self.shape.tables:
            spec = self.spec(name)
            if spec.best is not None:
                best = spec.best(self._usable(spec).rows)
                assert all(len(copies) == 1 for copies in best.groups.values())
                found[name] = best.rows()
            else:
                assert spec.rows is not None
                found[name] = spec.rows(found)
        return found

    def read(self) -> dict[str, Rows]:
        """What each table holds now; a table that is not there yet holds nothing."""
        lake = api.lake_of(self.project)
        found = {}
        for name in self.shape.tables:
            there = lake.metadata(table_name(name)) is not None
            rows = lake.rows(table_name(name)).to_pylist() if there else []
            found[name] = stored(rows, ("session_id",))
        return found

    def go(self, life: Life | None = None) -> RunResult:
        """One run of everything, reported to ``life``."""
        return api.run(
            self.project, as_of=self.world.as_of, jobs=self.jobs, allow_removals=True, progress=life
        )

    def settle(self) -> None:
        """Run, and hold every table against the reference."""
        result = self.go()
        self.check(set(self.shape.tables), None)
        again = self.go()
        assert not again.steps, f"still stale after {result.run}: {again.steps}"


@dataclass
class DryScenario(Scenario, DryPlay):
    """A scenario over tables in memory."""

    tally: Tally = field(default_factory=lambda: DRY)

    def read(self) -> dict[str, Rows]:
        """What each table holds now; a table that is not there yet holds nothing."""
        there = self.memory.tables
        return {
            name: stored(self._read(name)) if table_name(name) in there else []
            for name in self.shape.tables
        }

    def go(self, life: Life | None = None) -> RunResult:
        """One run of everything, reported to ``life``."""
        self.progress = life
        return self._run(None, ())


Kind = TypeVar("Kind", bound=Scenario)


def new_scenario(folder: Path, name: str, users: int = 12, shape: Shape = SHAPE) -> Scenario:
    """A project with its first files delivered and nothing run."""
    return first_delivered(Scenario(shape, folder / name, name, folder / "warehouse", users))


def new_dry_scenario(folder: Path, name: str, users: int = 12, shape: Shape = SHAPE) -> DryScenario:
    """The same over tables in memory."""
    return first_delivered(DryScenario(shape, folder / name, name, folder / "warehouse", users))


def first_delivered(scenario: Kind) -> Kind:
    """The same with its first files."""
    scenario.deliver(1)
    scenario.deliver(2)
    return scenario


def whole_steps(
    read: Mapping[str, Rows], before: Mapping[str, Rows], after: Mapping[str, Rows]
) -> str:
    """Nothing when each table is entirely as before or entirely as after, else the difference."""
    for name, rows in read.items():
        if difference(before[name], rows) and (found := difference(after[name], rows)):
            return f"{name} is neither as before nor as after; to after: {found}"
    return ""


# -- dying inside the test's process ---------------------------------------------------------------


class KilledError(BaseException):
    """The death of a process; no code of the program may survive it."""


@dataclass
class Life:
    """
    A process to be. It dies at its ``at``-th write point, or at the first that is not among those
    ``met``, and stays dead. A point is known by its name and by the model that is being built.
    """

    at: int = 0
    met: Collection[tuple[str, str]] | None = None
    passed: list[tuple[str, str]] = field(default_factory=list)
    dead: bool = False
    model: str = ""

    def point(self, name: str) -> None:
        """In place of ``crash.point``."""
        if not self.dead:
            self.passed.append((self.model, name))
            new = self.met is not None and self.passed[-1] not in self.met
            self.dead = new or len(self.passed) == self.at
        if self.dead:
            raise KilledError(name)

    def step(self, index: int, total: int | None, step: Step) -> None:
        """A step begins: points from here on are its own."""
        self.model = step.model

    def done(self, step: Step, receipt: Receipt) -> None:
        """A step has ended."""
        self.model = ""

    def failed(self, step: Step, error: InfoldError) -> None:
        """The run raises it in the end."""

    def note(self, text: str) -> None:
        """Nothing that matters here."""


class AllBut(list[tuple[str, str]]):
    """The write points that a process survives: all but those of one name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def __contains__(self, point: object) -> bool:
        return isinstance(point, tuple) and point[1] != self.name


_generations = itertools.count()


@contextmanager
def living(at: int = 0, met: Collection[tuple[str, str]] | None = None) -> Iterator[Life]:
    """Live in the block; a death ends the block, and the pid is another process afterwards."""
    life = Life(at, met)
    generation = f"#{next(_generations)}"
    real = lease.process_started

    def started(pid: int) -> str | None:
        found = real(pid)
        return f"{found}{generation}" if found and pid == os.getpid() else found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write_points, "point", life.point)
        patch.setattr(lease, "process_started", started)
        with suppress(KilledError):
            yield life


# -- dying for real --------------------------------------------------------------------------------

_RUN = """
import sys
from pathlib import Path
from infold import api
folder, as_of, jobs = sys.argv[1:]
project = api.open_project(Path(folder))
api.run(project, as_of=int(as_of), jobs=int(jobs) or None, allow_removals=True)
"""


def kill(
    scenario: Scenario, at: int | str, log: Path | None = None, seconds: float | None = None
) -> subprocess.CompletedProcess[str]:
    """
    Run the project in a process of its own that SIGKILLs itself at its ``at``-th point, or at the
    first of that name. With ``seconds`` it is killed from outside after that time.
    """
    with _started(scenario, at, log) as process:
        try:
            out, err = process.communicate(timeout=seconds or 600)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def _started(scenario: Scenario, at: int | str, log: Path | None) -> subprocess.Popen[str]:
    environment = {**os.environ, "INFOLD_CRASH_AT": str(at)}
    if log is not None:
        environment["INFOLD_CRASH_LOG"] = str(log)
    words = (str(scenario.folder), str(scenario.world.as_of), str(scenario.jobs or 0))
    return subprocess.Popen(
        [sys.executable, "-c", _RUN, *words],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# -- readers ---------------------------------------------------------------------------------------


Seen = TypeVar("Seen")


class Reader(threading.Thread, Generic[Seen]):
    """Looks at the tables again and again, and keeps everything that it saw."""

    def __init__(self, look: Callable[[], Seen]) -> None:
        super().__init__(daemon=True)
        self.look = look
        self.seen: list[Seen] = []
        self.looks = 0
        self.error: Exception | None = None
        self._end = threading.Event()

    def run(self) -> None:
        """Look until asked to end."""
        try:
            while not self._end.wait(1):  # a look takes the time of what it looks at
                found = self.look()
                self.looks += 1
                if not self.seen or found != self.seen[-1]:
                    self.seen.append(found)
        except Exception as error:  # noqa: BLE001 - the test asks for it
            self.error = error

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.set()
        self.join()

    def end(self) -> Sequence[Seen]:
        """Stop looking; what was seen, each content once."""
        self._end.set()
        self.join()
        if self.error is not None:
            raise self.error
        return self.seen
