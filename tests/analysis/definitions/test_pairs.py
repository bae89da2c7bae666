"""
Queries that mean the same, and queries that only look alike.

A change with the category none or additive leaves the rows of the old columns as they are: queries
are drawn at random, some are written in another way with the same meaning, others get a few changed
words. DuckDB evaluates both over a few rows and compares the columns that are claimed to be kept.
(The reverse is required only of other ways of writing: a change without an effect may be breaking.)
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from tests.analysis.definitions.drawn import changed, drawn, written
from tests.analysis.definitions.engine import WORLDS, seen
from tests.analysis.definitions.pairs import Pair, category, change, meaning, pairs

from infold.analysis.definitions.canonical import Canon
from infold.analysis.definitions.clauses import Doubt
from infold.core.definition import Category, Redefinition
from infold.messages.errors import InfoldError

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


SEEDS = st.integers(0, 2**32)


def change_of(before: str, after: str) -> Redefinition | None:
    """The change; None for queries that are refused, or are the same to the letter."""
    try:
        return change(before, after)
    except (InfoldError, AssertionError):
        return None


def otherwise(sql: str, rng: Random, changes: int) -> str:
    """A query with some changed words that still can be parsed and resolved."""
    for _ in range(changes):
        for _ in range(8):
            try:
                other = changed(sql, rng)
                meaning(other)
            except (InfoldError, AssertionError):
                continue
            sql = other
            break
    return sql


def apart(before: str, after: str, columns: frozenset[str]) -> bool | None:
    """Whether rows differ in some columns; None where the engine takes one of the two not."""
    evaluated = False
    for world in range(WORLDS):
        old, new = seen(before, columns, world), seen(after, columns, world)
        if old is None or new is None:
            continue
        evaluated = True
        if old != new:
            return True
    return False if evaluated else None


def check(before: str, after: str) -> str:
    """Compare the rows of two queries in the columns that are claimed to be kept."""
    found = change_of(before, after)
    if found is None:
        return "refused"
    differ = apart(before, after, found.columns_kept) if found.columns_kept else None
    assert not differ, f"{found.category}: {sorted(found.columns_kept)}\n{before}\n{after}"
    if found.category in (Category.NONE, Category.ADDITIVE):
        return "not evaluated" if differ is None else str(found.category.value)
    return f"breaking, {'some' if found.columns_kept else 'no'} columns kept"


@pytest.mark.deep
def test_pairs() -> None:
    """Pairs with the category none or additive have the same rows, in both directions."""
    counts = Counter(check(*of) for pair in pairs() for of in _both(pair))

    assert counts["none"] > 60
    assert counts["additive"] > 10


def _both(pair: Pair) -> tuple[tuple[str, str], tuple[str, str]]:
    return (pair.before, pair.after), (pair.after, pair.before)


@pytest.mark.deep
@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_other_ways_of_writing_a_query_are_recognized(seed: int) -> None:
    """Aliases, CTEs, order of columns and conditions, TRUE and brackets are no change."""
    rng = Random(seed)
    query = drawn(rng)
    before, after = written(query), written(query, rng)
    found = change(before, after)

    assert found is None or found.category is Category.NONE, f"{before}\n{after}"
    event(check(before, after))


@pytest.mark.deep
@settings(max_examples=100, deadline=None)
@given(seed=SEEDS, changes=st.integers(1, 3))
def test_changed_words_are_no_change_only_if_rows_are_the_same(seed: int, changes: int) -> None:
    """A query with some words changed has the same rows wherever that is claimed."""
    rng = Random(seed)
    query = drawn(rng)
    before = after = written(query)
    if rng.random() < 0.5:
        after = written(query, rng)
    event(check(before, otherwise(after, rng, changes)))


@pytest.mark.deep
@settings(max_examples=100, deadline=None)
@given(seed=SEEDS, which=st.sampled_from(pairs()), changes=st.integers(1, 2))
def test_changed_words_of_the_pairs(seed: int, which: Pair, changes: int) -> None:
    """Queries of the files with words changed have the same rows wherever that is claimed."""
    rng = Random(seed)
    before, after = which.before, rng.choice([which.before, which.after])
    event(check(before, otherwise(after, rng, changes)))
