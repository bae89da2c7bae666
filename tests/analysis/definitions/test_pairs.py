"""Queries that mean the same, and queries that only look alike."""

from __future__ import annotations

import pytest
from tests.analysis.definitions.pairs import Pair, category, change, meaning, pairs

from infold.analysis.definitions.canonical import Canon
from infold.analysis.definitions.clauses import Doubt
from infold.core.definition import Category

BACKWARDS = {
    Category.NONE: {Category.NONE},
    Category.ADDITIVE: {Category.BREAKING},
    Category.BREAKING: {Category.BREAKING, Category.ADDITIVE},
}
"""No change is none the other way round as well; a column that goes again breaks."""


@pytest.mark.parametrize("pair", pairs(), ids=str)
def test_a_change_has_its_category(pair: Pair) -> None:
    """Every pair of the files has the category of its file, and one that goes with it the other way
    round; what may change rows has a difference to show. A query laid out differently is itself.
    """
    found = change(pair.before, pair.after)

    assert (Category.NONE if found is None else found.category) is pair.category
    assert category(pair.after, pair.before) in BACKWARDS[pair.category]
    if found is not None and found.category is not Category.NONE:
        assert found.differences
        assert all(one.before != one.after for one in found.differences)
    for sql in (pair.before, pair.after):
        assert category(sql, f"-- again\n{sql}") is Category.NONE, sql


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
