"""The error pages show what `infold check` prints, and a model that it accepts instead."""

from __future__ import annotations

import pytest
from tests.analysis.rules.cases import cases
from tests.docs.error_examples import pages, pairs
from tests.messages.every import MESSAGES, rendered


@pytest.mark.deep
def test_the_pages_are_current() -> None:
    """`make docs` writes the examples, with the messages as they are printed."""
    old = [path.name for path, text in pages() if path.read_text(encoding="utf-8") != text]

    assert old == [], "run: python -m tests.docs.error_examples"


def test_every_refusal_of_a_query_has_an_example() -> None:
    """Every slug of `messages/refusals.py`, and of the queries of the rules, has a pair."""
    refused = {slug for case in cases() for slug, _ in case.refused}
    refused |= {rendered(name).slug for name in MESSAGES if name.startswith("refusals.")}

    assert refused - {pair.slug for pair in pairs()} == set()


def test_every_shown_case_is_half_of_a_pair() -> None:
    """A refused model comes first, then the accepted one that replaces it."""
    for pair in pairs():
        assert pair.refused.refused
        assert not pair.accepted.refused
        assert pair.refused.file == pair.accepted.file
