"""Queries that mean the same, and queries that only look alike."""

from __future__ import annotations

import pytest
from tests.analysis.definitions.pairs import Pair, category, change, meaning, pairs

from infold.analysis.definitions.canonical import Canon
from infold.analysis.definitions.clauses import Doubt
from infold.core.definition import Category


@pytest.mark.parametrize("pair", pairs(), ids=str)
def test_a_change_has_its_category(pair: Pair) -> None:
    """Every pair of the files has the category of its file."""
    assert category(pair.before, pair.after) is pair.category


def test_the_other_way_round() -> None:
    """No change is none the other way round as well; a column that goes again breaks."""
    backwards = {
        Category.NONE: {Category.NONE},
        Category.ADDITIVE: {Category.BREAKING},
        Category.BREAKING: {Category.BREAKING, Category.ADDITIVE},
    }
    for pair in pairs():
        assert category(pair.after, pair.before) in backwards[pair.category], pair.name


def test_a_query_is_itself() -> None:
    """A query compared with itself, laid out differently, has not changed."""
    for pair in pairs():
        for sql in (pair.before, pair.after):
            assert category(sql, f"-- again\n{sql}") is Category.NONE, sql


def test_what_breaks_is_shown() -> None:
    """Every change that may change rows, or adds columns, has a difference to show."""
    for pair in pairs():
        found = change(pair.before, pair.after)
        if found is not None and found.category is not Category.NONE:
            assert found.differences, pair.name
            assert all(one.before != one.after for one in found.differences), pair.name


def test_queries_of_the_pairs_are_understood() -> None:
    """Nearly every query of the pairs has a canonical form, so the pairs test the form itself."""
    doubtful = set()
    for pair in pairs():
        for sql in (pair.before, pair.after):
            of = meaning(sql)
            assert of.relation is not None
            try:
                Canon(of.prints).rows(of.relation, [c.lower() for c in of.relation.columns or ()])
            except Doubt:
                doubtful.add(pair.name)

    assert len(doubtful) <= 8, doubtful
