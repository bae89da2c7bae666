"""
Which mutants live: `make mutants`, or `python -m tests.mutants [AREA | NAME …]`.

``killed_by.txt`` says of each which test noticed it last time: that one is tried first, so all of
them take minutes. ``--record`` writes it again. A mutant that changes something else than functions
is tried in a process of its own, which imports it.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from tests.mutants.judge import Verdict, judge_mutants
from tests.mutants.listed import HERE, Mutant, mutants

ROOT = HERE.parents[1]
KILLED_BY = HERE / "killed_by.txt"
WITHOUT_SPARK = ("-m", "not spark and not servers")
ON_SPARK = ("-m", "spark and not servers")


def first_failing(mutant: Mutant, words: Iterable[str]) -> Verdict:
    """The test that fails where a mutant is imported. Raises RuntimeError if pytest cannot tell."""
    env = {**os.environ, "INFOLD_MUTANT": mutant.name, "INFOLD_HYPOTHESIS": "thorough"}
    # A dump of all threads, as a slow test has it, may end the process by a signal.
    quietly = ("-x", "-q", "-p", "no:cacheprovider", "-o", "faulthandler_timeout=0")
    command = [sys.executable, "-m", "pytest", "-p", "tests.mutants.imported", *quietly, *words]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    if done.returncode in (0, pytest.ExitCode.NO_TESTS_COLLECTED):
        return None
    found = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    if found is None:
        raise RuntimeError(f"pytest ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return found[1]


def judge_imported(meant: Iterable[Mutant], known: Mapping[str, str]) -> dict[str, Verdict]:
    """The verdicts on mutants that a running program cannot have."""
    verdicts: dict[str, Verdict] = {}
    for mutant in meant:
        room = str(HERE.parent / Path(mutant.file).parts[0])
        everywhere = (*ON_SPARK, *mutant.spark) if mutant.spark else WITHOUT_SPARK
        tries = ([known.get(mutant.name, room), *everywhere[:2]], everywhere)
        verdicts[mutant.name] = next(filter(None, (first_failing(mutant, t) for t in tries)), None)
    return verdicts


def read_killers() -> dict[str, str]:
    """The test that noticed each mutant last time, by the mutant's name."""
    lines = KILLED_BY.read_text(encoding="utf-8").splitlines()
    return dict(line.split(maxsplit=1) for line in lines)


def record_killers(verdicts: Mapping[str, Verdict]) -> None:
    """Write down which test noticed which mutant; of those not tried what is known stays."""
    listed = [mutant.name for mutant in mutants()]
    killers = {**read_killers(), **{name: test for name, test in verdicts.items() if test}}
    lines = [f"{name:20} {killers[name]}\n" for name in listed if name in killers]
    KILLED_BY.write_text("".join(lines), encoding="utf-8")


def chosen(terms: list[str], *, spark: bool) -> list[Mutant]:
    """The mutants that terms mean: all without any."""
    return [
        mutant
        for mutant in mutants()
        if (not terms or {mutant.area, mutant.name} & {*terms}) and (spark or not mutant.spark)
    ]


def main() -> int:
    """Try the mutants that are meant; 1 when one lives, 2 when the tests fail without any."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("terms", nargs="*", metavar="AREA|NAME", help="all without any")
    parser.add_argument("--no-spark", action="store_true", help="leave out those that need Spark")
    parser.add_argument("--record", action="store_true", help="write killed_by.txt again")
    asked = parser.parse_args()
    meant, known = chosen(asked.terms, spark=not asked.no_spark), read_killers()
    quick = [mutant for mutant in meant if not mutant.spark]
    slow = [mutant for mutant in meant if mutant.spark]
    named = dict.fromkeys(test for mutant in slow for test in mutant.spark)
    verdicts: dict[str, Verdict] = {}
    unswappable: list[Mutant] = []
    for part, words in ((quick, WITHOUT_SPARK), (slow, (*ON_SPARK, *named))):
        if not part:
            continue
        judge = judge_mutants(part, known, words)
        if judge.failing:
            print(f"the tests fail without any mutant: {', '.join(judge.failing)}")
            return 2
        verdicts |= judge.verdicts
        unswappable += judge.unswappable
    verdicts |= judge_imported(unswappable, known)
    if asked.record:
        record_killers(verdicts)
    living = [mutant for mutant in meant if not verdicts[mutant.name]]
    for mutant in living:
        print(f"{mutant.name} LIVES: {mutant.why}")
    print(f"\n{len(meant) - len(living)} killed, {len(living)} alive")
    return 1 if living else 0


if __name__ == "__main__":
    sys.exit(main())
