"""
The oracles for as long as one likes: ``python -m tests.soak --seed S --steps N``.

Random programs of arrivals until so many random steps are made; with ``--crash`` real SIGKILLs at
every write point and at random moments; with ``--replay`` the real history by received day in
:data:`REPLAY_RUNS` runs; with ``--data DIR`` all files of a folder of shop's lines; with
``--interrupts N`` Ctrl-C at so many moments of runs with an engine, and a third as many without. A
failure prints the program, which the same seed draws again; ``--shrink`` looks for a smaller one
first.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from tests.arrivals.play import TALLY, Play
from tests.arrivals.programs import Program, programs
from tests.arrivals.shape import Rows
from tests.arrivals.shapes import SHAPES
from tests.crash.scenario import TABLES, Scenario, kill, new_scenario, whole_steps
from tests.replay.history import replay
from tests.replay.retail import trade
from tests.system.interrupts import Sweep

REPLAY_RUNS = 220


def main(words: list[str] | None = None) -> int:
    """Soak as asked; 1 when a table differed."""
    asked = _parser().parse_args(words)
    number = asked.seed if asked.seed is not None else int(time.time())
    print(f"seed {number}", flush=True)
    with tempfile.TemporaryDirectory(prefix="infold-soak-") as name, _summary_printed():
        folder = Path(name)
        if asked.steps:
            arrivals(folder, number, asked.steps, asked.users, shrink=asked.shrink)
        if asked.crash:
            deaths(folder, number, asked.crash)
        if asked.replay:
            checks = Random(number).sample(range(1, REPLAY_RUNS), k=20)
            print(f"replay: {replay(folder, 'history', REPLAY_RUNS, checks)}", flush=True)
        if asked.data:
            files = sorted(asked.data.glob("*.csv.gz"))
            trade(folder, "retail", files, together=5, every=10)
            print(f"shop: {len(files)} files, equal", flush=True)
        if asked.interrupts:
            return interrupts(folder, number, asked.interrupts)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tests.soak", description=__doc__)
    parser.add_argument("--seed", type=int, help="what everything random follows from")
    parser.add_argument("--steps", type=int, default=0, help="random steps of arrivals")
    parser.add_argument("--users", type=int, default=300, help="users in each program")
    parser.add_argument("--shrink", action="store_true", help="look for a smaller program")
    parser.add_argument("--crash", type=int, default=0, help="random kills, after all points")
    parser.add_argument("--interrupts", type=int, default=0, help="moments of Ctrl-C")
    parser.add_argument("--replay", action="store_true", help="the real history, day by day")
    parser.add_argument("--data", type=Path, help="a folder of online_retail, one file a day")
    return parser


@contextmanager
def _summary_printed() -> Iterator[None]:
    started = time.monotonic()
    try:
        yield
    finally:
        print(f"{TALLY}; {time.monotonic() - started:.0f} s", flush=True)


def arrivals(folder: Path, number: int, steps: int, users: int, *, shrink: bool) -> None:
    """Programs of arrivals over all shapes until so many random steps are made."""
    numbers = count()

    @seed(number)
    @settings(
        max_examples=1_000_000,
        phases=[Phase.generate, Phase.shrink] if shrink else [Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.sampled_from(sorted(SHAPES)), programs(users, rounds=(4, 12)), st.randoms())
    def one(shape: str, program: Program, random: Random) -> None:
        if steps <= TALLY.steps:
            raise unittest.SkipTest("enough")
        name = f"{shape}{next(numbers)}"
        tables = SHAPES[shape].tables
        versions = {table: random.randrange(len(tables[table])) for table in tables}
        drawn = replace(SHAPES[shape], versions=versions)
        play = Play(drawn, folder / name, name, folder / "warehouse", users)
        play.play(program)
        play.verify()
        print(f"{name}: {TALLY}", flush=True)

    with suppress(unittest.SkipTest):
        one()


def deaths(folder: Path, number: int, random_kills: int) -> None:
    """SIGKILL at every write point of a first load and of an arrival, then at random moments."""
    for at in count(1):
        scenario = new_scenario(folder, f"first{at}")
        if not _dies_and_converges(scenario, at):
            break
    print(f"killed at each of {at - 1} write points of a first load", flush=True)
    scenario = new_scenario(folder, "arrivals")
    scenario.settle()
    for at in count(1):
        scenario.deliver(number + at)
        if not _dies_and_converges(scenario, at):
            break
    print(f"killed at each of {at - 1} write points of an arrival", flush=True)
    random = Random(number)
    for each in range(random_kills):
        scenario.deliver(number + 1_000 + each)
        before, after = dict(scenario.state), scenario.foreseen()
        # Twice, so that a recovery dies too; any moment, also inside Spark.
        for _ in range(2):
            kill(scenario, 0, seconds=random.uniform(3, 20))
            _whole(scenario, before, after)
        scenario.settle()
    print(f"killed at {2 * random_kills} random moments", flush=True)


def interrupts(folder: Path, number: int, moments: int) -> int:
    """Ctrl-C at drawn moments, each part of a run as often; 1 if anything was wrong."""
    sweep = Sweep(folder / "interrupts", Random(number))
    sweep.measure()
    print(f"undisturbed: {sweep.seconds}", flush=True)
    parts = _drawn_parts(sweep.random, moments)
    others = _drawn_parts(sweep.random, moments // 3)
    for done, part in enumerate(parts, 1):
        sweep.interrupt("warm", part)
        if done % 3 == 0:
            sweep.interrupt("cold" if done % 2 else "leaving", others.pop())
        sweep.finish()
        if done % 10 == 0:
            print(f"{done} of {moments}: {dict(sweep.outcomes)}", flush=True)
    sweep.stop_engine()
    print(f"interrupts: {dict(sweep.outcomes)}; wrong: {len(sweep.faults)}", flush=True)
    return int(bool(sweep.faults))


def _drawn_parts(random: Random, many: int) -> list[float]:
    """Moments, as parts of the time that a run takes: one in each part, and a few after its end."""
    return random.sample([(each + random.random()) / many * 1.05 for each in range(many)], many)


def _dies_and_converges(scenario: Scenario, at: int) -> bool:
    """Whether the run reached its ``at``-th point, and died there."""
    nothing: Mapping[str, Rows] = {name: [] for name in TABLES}
    before, after = dict(scenario.state) or nothing, scenario.foreseen()
    ended: subprocess.CompletedProcess[str] = kill(scenario, at)
    died = ended.returncode == -signal.SIGKILL
    if not died and ended.returncode != 0:
        raise RuntimeError(ended.stderr)
    _whole(scenario, before, after)
    scenario.settle()
    return died


def _whole(scenario: Scenario, before: Mapping[str, Rows], after: Mapping[str, Rows]) -> None:
    found = whole_steps(scenario.read(), before, after)
    if found:
        raise AssertionError(found)


if __name__ == "__main__":
    sys.exit(main())
