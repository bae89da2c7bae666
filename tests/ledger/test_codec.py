"""Outcomes, receipts, traces and texts come back from a ledger exactly as they went in."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.ledger.drawn import any_outcomes, receipts

from infold.core.files import FilesOutcome
from infold.core.interval import EVER
from infold.core.record import Outcome, Receipt
from infold.core.trace import CellChange, CellState, Trace
from infold.ledger import codec
from infold.ledger.postgresql import MARK, escaped, unescaped


@given(any_outcomes)
def test_an_outcome_is_decoded_as_encoded(outcome: Outcome) -> None:
    """An outcome is decoded as it was encoded, with hashes
    at both ends of 64 bits and names in any script.
    """
    assert codec.load_outcome(codec.dump_outcome(outcome)) == outcome


@given(receipts)
def test_a_receipt_is_decoded_as_encoded(receipt: Receipt) -> None:
    """Counts, seconds and reasons; zeros are left out, so a field added later reads as zero."""
    assert codec.load_receipt(codec.dump_receipt(receipt)) == receipt
    assert codec.dump_receipt(Receipt()) == "{}"


def test_a_done_outcome_keeps_what_has_no_table_of_its_own() -> None:
    """Trace and receipt are kept; changes and files have tables of their own."""
    kept = Outcome("m", 1, Trace("m", "f", {"raw": 1}), snapshot=9, receipt=Receipt(written=1))
    change, cells = CellChange(EVER, 1, 0, 0, 1, 0, 7), (CellState(EVER, 1, 7),)
    whole = replace(kept, changes=(change,), files=FilesOutcome("raw"), cells=cells)

    assert codec.without_rows_of_tables(whole) == kept


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
