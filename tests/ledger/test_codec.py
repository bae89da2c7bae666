"""Outcomes, receipts and traces come back from text exactly as they went in."""

from __future__ import annotations

from hypothesis import given
from tests.ledger.drawn import any_outcomes, names, receipts, traces

from infold.ledger import codec
from infold.record import Outcome, Receipt
from infold.trace import Trace


@given(any_outcomes)
def test_an_outcome_comes_back_as_it_was(outcome: Outcome) -> None:
    """Every field, whatever it holds: hashes at both ends of 64 bits, names in any script."""
    assert codec.load_outcome(codec.dump_outcome(outcome)) == outcome


@given(receipts)
def test_a_receipt_comes_back_as_it_was(receipt: Receipt) -> None:
    """Counts, seconds and reasons."""
    assert codec.load_receipt(codec.dump_receipt(receipt)) == receipt


@given(traces(names))
def test_a_trace_comes_back_as_it_was(trace: Trace) -> None:
    """Inputs and pending ranges."""
    assert codec.load_trace(codec.dump_trace(trace)) == trace


def test_a_receipt_of_nothing_is_two_characters() -> None:
    """Zeros are left out, so a field added later reads as zero from an older row."""
    assert codec.dump_receipt(Receipt()) == "{}"


@given(any_outcomes)
def test_a_slim_outcome_keeps_what_no_table_of_its_own_holds(outcome: Outcome) -> None:
    """Trace and receipt stay; changes and files stand in tables of their own."""
    kept = codec.slim(outcome)

    assert (kept.trace, kept.receipt, kept.snapshot) == (
        outcome.trace,
        outcome.receipt,
        outcome.snapshot,
    )
    assert (kept.changes, kept.files) == ((), None)
