"""Texts are stored such that every one comes back, without the one character that cannot be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from infold.ledger.stored_text import MARK, escaped, unescaped

texts = st.text(st.sampled_from(f"\0{MARK}01a")) | st.text()


@given(texts)
def test_every_text_comes_back(text: str) -> None:
    """What is read is what was written, and NUL is not stored."""
    assert unescaped(escaped(text)) == text
    assert "\0" not in escaped(text)


@given(texts, texts)
def test_two_texts_are_stored_as_two(one: str, other: str) -> None:
    """Keys that differ still do."""
    assert (escaped(one) == escaped(other)) == (one == other)
