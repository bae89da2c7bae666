"""Each query is admitted or refused as its file says."""

from __future__ import annotations

import pytest
from tests.queries.catalog import queries, verdicts

pytestmark = pytest.mark.deep


@pytest.mark.parametrize("theme", sorted({query.theme for query in queries()}))
def test_queries_are_judged_as_they_should_be(theme: str) -> None:
    """Every query of a theme is admitted, or refused with the expected slug."""
    wrong = [
        f"{query}: {query.expected} expected, found {verdicts()[query.name]}"
        for query in queries()
        if query.theme == theme and query.expected not in verdicts()[query.name].split()
    ]

    assert not wrong, "\n".join(wrong)
