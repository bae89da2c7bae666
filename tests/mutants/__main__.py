"""
Which mutants live: `make mutants`, or `python -m tests.mutants [AREA | NAME …]`.

``killed_by.txt`` says of each which test noticed it last time: that one is tried first, so all of
them take minutes. ``--record`` writes it again. A mutant that changes something else than functions
is tried in a copy of the checkout.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.mutants.judge import Verdict, judge_mutants
from tests.mutants.listed import HERE, PACKAGE, Mutant, mutants

ROOT = HERE.parents[1]
KILLED_BY = HERE / "killed_by.txt"
GENERATED = frozenset({"build", "dist", "demo", "spark-warehouse"})
WITHOUT_SPARK = ("-m", "not spark and not servers")
ON_SPARK = ("-m", "spark and not servers")


class Copy:
    """A copy of the checkout, in which the package may be changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        ignored = shutil.ignore_patterns("__pycache__", "data.*", "test_listed.py")
        for part in ROOT.iterdir():
            if part.name.startswith(".") or part.name in GENERATED:
                continue
            if part.is_dir():
                shutil.copytree(part, folder / part.name, ignore=ignored)
            else:
                shutil.copy(part, folder / part.name)
        shutil.rmtree(folder / "bench" / "data", ignore_errors=True)

    @contextmanager
    def changed(self, mutant: Mutant) -> Iterator[None]:
        """With the mutant in its place."""
        path = self.folder / PACKAGE.relative_to(ROOT) / mutant.file
        before = path.read_text(encoding="utf-8")
        path.write_text(mutant.mutated, encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(before, encoding="utf-8")

    def first_failing(self, words: Iterable[str]) -> Verdict:
        """The test that fails here, if one does. Raises RuntimeError where pytest cannot tell."""
        env = {
            **os.environ,
            "PYTHONPATH": str(self.folder / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",  # a file put back within a second looks unchanged
            "INFOLD_HYPOTHESIS": "thorough",
        }
        # A dump of all threads, as a slow test has it, may end the process by a signal.
        quietly = ("-x", "-q", "-p", "no:cacheprovider", "-o", "faulthandler_timeout=0")
        command = [sys.executable, "-m", "pytest", *quietly, *words]
        done = subprocess.run(
            command, cwd=self.folder, env=env, capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            return None
        found = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
        if found is None:
            raise RuntimeError(f"pytest ended with {done.returncode}\n{done.stdout}{done.stderr}")
        return found[1]


def judge_copies(meant: Iterable[Mutant], known: Mapping[str, str]) -> dict[str, Verdict]:
    """The verdicts on mutants that a running program cannot have."""
    verdicts: dict[str, Verdict] = {}
    for mutant in meant:
        with tempfile.TemporaryDirectory(prefix="infold-mutants-") as name:
            copy = Copy(Path(name))
            first = known.get(mutant.name)
            with copy.changed(mutant):
                verdict = copy.first_failing([first]) if first else None
                tests = (*ON_SPARK, *mutant.spark) if mutant.spark else WITHOUT_SPARK
                verdicts[mutant.name] = verdict or copy.first_failing(tests)
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
    verdicts |= judge_copies(unswappable, known)
    if asked.record:
        record_killers(verdicts)
    living = [mutant for mutant in meant if not verdicts[mutant.name]]
    for mutant in living:
        print(f"{mutant.name} LIVES: {mutant.why}")
    print(f"\n{len(meant) - len(living)} killed, {len(living)} alive")
    return 1 if living else 0


if __name__ == "__main__":
    sys.exit(main())
