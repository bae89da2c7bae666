"""Every listed mutant fits the code that it changes."""

from __future__ import annotations

import ast
import re

import pytest
from tests.mutants.listed import PACKAGE, Mutant, mutants

LISTED = tuple(mutants())


def test_there_are_at_least_sixty() -> None:
    """There are at least sixty mutants, so that each area has several."""
    assert len(LISTED) >= 60


@pytest.mark.parametrize("mutant", LISTED, ids=lambda mutant: mutant.name)
def test_each_changes_the_program_and_leaves_it_valid(mutant: Mutant) -> None:
    """A mutant's text is in its file exactly once, and the
    changed program is another one that compiles.
    """
    now = ast.dump(ast.parse((PACKAGE / mutant.file).read_text(encoding="utf-8")))

    assert ast.dump(ast.parse(mutant.mutated)) != now


@pytest.mark.parametrize("mutant", LISTED, ids=lambda mutant: mutant.name)
def test_the_tests_that_mutants_name_exist(mutant: Mutant) -> None:
    """Every test that a mutant names exists, so that a renamed test fails here."""
    for test in mutant.spark:
        file, *names = test.partition("[")[0].split("::")
        there = (PACKAGE.parents[1] / file).read_text(encoding="utf-8")
        assert all(re.search(rf"^ *(class|def) {name}\b", there, re.MULTILINE) for name in names)
