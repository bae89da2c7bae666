"""
Which mutants live: `make mutants`, or `python -m tests.mutants [AREA | NAME …]`.

Each mutant is applied to a copy of the checkout, and the tests run there until one fails: the
quick ones, then the deep ones; for those that only Spark can tell, the tests they name. Before
that the same tests have to pass in a copy without any mutant, else a death would say nothing.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.mutants.listed import HERE, PACKAGE, Mutant, mutants

ROOT = HERE.parents[1]
GENERATED = frozenset({"build", "dist", "demo", "spark-warehouse"})
SEVERAL = ("--numprocesses", "auto", "--dist", "worksteal")
FAST = ("-m", "not spark and not deep and not servers", *SEVERAL)
DEEP = ("-m", "deep and not spark and not servers", *SEVERAL)

Tests = tuple[str, ...]
"""What pytest is given to select tests."""


def stages(mutant: Mutant) -> tuple[tuple[str, Tests], ...]:
    """The tests to try, quickest first."""
    if mutant.spark:
        return (("spark", ("-m", "spark", *mutant.spark)),)
    return (("fast", FAST), ("deep", DEEP))


def unchanged(meant: Sequence[Mutant]) -> tuple[Tests, ...]:
    """The tests that have to pass without any mutant; those that need Spark share one start."""
    named = dict.fromkeys(test for mutant in meant for test in mutant.spark)
    quick = (FAST, DEEP) if any(not mutant.spark for mutant in meant) else ()
    return (*quick, ("-m", "spark", *named)) if named else quick


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

    def fails(self, tests: Tests) -> str | None:
        """The test that fails here, if one does. Raises RuntimeError where pytest cannot tell."""
        env = {
            **os.environ,
            "PYTHONPATH": str(self.folder / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",  # a file put back within a second looks unchanged
            "INFOLD_HYPOTHESIS": "thorough",
        }
        # A dump of all threads, as a slow test has it, may end the process by a signal.
        quietly = ("-x", "-q", "-p", "no:cacheprovider", "-o", "faulthandler_timeout=0")
        command = [sys.executable, "-m", "pytest", *quietly, *tests]
        done = subprocess.run(
            command, cwd=self.folder, env=env, capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            return None
        found = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
        if found is None:
            raise RuntimeError(f"pytest ended with {done.returncode}\n{done.stdout}{done.stderr}")
        return found[1]


def killed_by(copy: Copy, mutant: Mutant) -> str | None:
    """The stage whose tests notice the mutant; None when it lives."""
    with copy.changed(mutant):
        return next((stage for stage, tests in stages(mutant) if copy.fails(tests)), None)


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
    asked = parser.parse_args()
    meant = chosen(asked.terms, spark=not asked.no_spark)
    living = 0
    with tempfile.TemporaryDirectory(prefix="infold-mutants-") as name:
        copy = Copy(Path(name))
        for tests in unchanged(meant):
            if failing := copy.fails(tests):
                print(f"the tests fail without any mutant: {failing}")
                return 2
        for mutant in meant:
            began = time.monotonic()
            stage = killed_by(copy, mutant)
            living += stage is None
            end = f"killed by {stage} tests" if stage else "LIVES"
            seconds = time.monotonic() - began
            print(f"{mutant.name:14} {end:22} {seconds:5.0f} s  {mutant.why}", flush=True)
    print(f"\n{len(meant) - living} killed, {living} alive")
    return 1 if living else 0


if __name__ == "__main__":
    sys.exit(main())
