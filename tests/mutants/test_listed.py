"""Every listed mutant fits the code that it changes."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest
from tests.mutants.listed import PACKAGE, Mutant, mutants

pytestmark = pytest.mark.deep

LISTED = tuple(mutants())


@pytest.mark.parametrize("area", sorted({mutant.area for mutant in LISTED}))
def test_each_changes_the_program_and_leaves_it_valid(area: str) -> None:
    """Its text is in its file exactly once, and the changed program is another that compiles."""
    same = [mutant.name for mutant in LISTED if mutant.area == area and not changes(mutant)]

    assert same == []


def test_the_tests_that_mutants_name_exist() -> None:
    """Every test that a mutant names exists, so that a renamed test fails here."""
    missing = {
        (mutant.name, test) for mutant in LISTED for test in mutant.spark if not exists(test)
    }

    assert missing == set()


def changes(mutant: Mutant) -> bool:
    """Whether the mutant's program is valid and another one."""
    return ast.dump(ast.parse(mutant.mutated)) != tree_of(mutant.file)


@cache
def tree_of(file: str) -> str:
    """The syntax tree of a file of the program."""
    return ast.dump(ast.parse((PACKAGE / file).read_text(encoding="utf-8")))


@cache
def exists(test: str) -> bool:
    """Whether there is a test of this name in its file."""
    file, *names = test.partition("[")[0].split("::")
    text = (PACKAGE.parents[1] / file).read_text(encoding="utf-8")
    return all(re.search(rf"^ *(class|def) {name}\b", text, re.MULTILINE) for name in names)
