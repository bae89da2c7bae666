"""The list of mutants does not rot: each one still fits the code that it changes."""

from __future__ import annotations

import ast
import re

import pytest
from tests.mutants.listed import PACKAGE, Mutant, mutants

LISTED = tuple(mutants())


def test_there_are_at_least_sixty() -> None:
    """Enough for each area to have several."""
    assert len(LISTED) >= 60


@pytest.mark.parametrize("mutant", LISTED, ids=lambda mutant: mutant.name)
def test_each_changes_the_program_and_leaves_it_valid(mutant: Mutant) -> None:
    """The text to replace is there once, and what comes out is another program that compiles."""
    now = ast.dump(ast.parse((PACKAGE / mutant.file).read_text(encoding="utf-8")))

    assert ast.dump(ast.parse(mutant.mutated)) != now


@pytest.mark.parametrize("mutant", LISTED, ids=lambda mutant: mutant.name)
def test_the_tests_that_it_names_are_there(mutant: Mutant) -> None:
    """Where one moves or gets another name, its mutants are told."""
    for test in mutant.spark:
        file, *names = test.partition("[")[0].split("::")
        there = (PACKAGE.parents[1] / file).read_text(encoding="utf-8")
        assert all(re.search(rf"^ *(class|def) {name}\b", there, re.MULTILINE) for name in names)
