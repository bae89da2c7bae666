"""
Each query is admitted or refused as its file says.

What is not judged so yet is listed in ``not_yet.txt``, and a line there that is not needed any more
fails as well. ``pytest tests/queries --rewrite`` takes such lines out; it adds none.
"""

from __future__ import annotations

import pytest
from tests.queries.catalog import NOT_YET, as_expected, not_yet, queries, verdicts


@pytest.mark.parametrize("theme", sorted({query.theme for query in queries()}))
def test_queries_are_judged_as_they_should_be(theme: str) -> None:
    """Every query of a theme is admitted, or refused with the expected slug."""
    wrong = [
        f"{query}: {query.expected} expected, found {verdicts()[query.name]}"
        for query in queries()
        if query.theme == theme and query.name not in not_yet() and not as_expected(query)
    ]

    assert not wrong, "\n".join(wrong)


def test_the_list_of_what_is_not_yet_is_no_longer_than_needed(
    request: pytest.FixtureRequest,
) -> None:
    """A query that is judged as expected is removed from the list of those not yet judged so."""
    judged = {query.name for query in queries() if as_expected(query)}
    if request.config.getoption("--rewrite"):
        lines = NOT_YET.read_text(encoding="utf-8").splitlines(keepends=True)
        NOT_YET.write_text("".join(one for one in lines if one.strip() not in judged))

    assert not judged & set(not_yet()), "take these out of not_yet.txt: --rewrite does"
    assert set(not_yet()) <= {query.name for query in queries()}
