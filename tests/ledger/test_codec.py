"""Outcomes, receipts and traces come back from text exactly as they went in."""

from __future__ import annotations

from hypothesis import given
from tests.ledger.drawn import any_outcomes, names, receipts, traces

from infold.core.files import FilesOutcome
from infold.core.interval import EVER
from infold.core.record import Outcome, Receipt
from infold.core.trace import CellChange, CellState, Trace
from infold.ledger import codec


@given(any_outcomes)
def test_an_outcome_is_decoded_as_encoded(outcome: Outcome) -> None:
    """An outcome is decoded as it was encoded, with hashes
    at both ends of 64 bits and names in any script.
    """
    assert codec.load_outcome(codec.dump_outcome(outcome)) == outcome


@given(receipts)
def test_a_receipt_is_decoded_as_encoded(receipt: Receipt) -> None:
    """A receipt is decoded as it was encoded: counts, seconds and reasons."""
    assert codec.load_receipt(codec.dump_receipt(receipt)) == receipt


@given(traces(names))
def test_a_trace_is_decoded_as_encoded(trace: Trace) -> None:
    """A trace is decoded as it was encoded: inputs and pending ranges."""
    text = codec.dump_outcome(Outcome("m", 1, trace))

    assert codec.load_outcome(text).trace == trace


def test_a_receipt_of_nothing_is_two_characters() -> None:
    """An empty receipt is two characters: zeros are left out, so a field added later reads as
    zero.
    """
    assert codec.dump_receipt(Receipt()) == "{}"


def test_a_done_outcome_keeps_what_has_no_table_of_its_own() -> None:
    """A done outcome keeps trace and receipt, and leaves
    out changes and files, which have tables of their own.
    """
    change, cells = CellChange(EVER, 1, 0, 0, 1, 0, 7), (CellState(EVER, 1, 7),)
    trace, receipt = Trace("m", "f", {"raw": 1}), Receipt(written=1)
    whole = Outcome(
        "m",
        1,
        trace,
        (change,),
        snapshot=9,
        files=FilesOutcome("raw"),
        receipt=receipt,
        cells=cells,
    )

    assert codec.without_rows_of_tables(whole) == Outcome(
        "m", 1, trace, snapshot=9, receipt=receipt
    )
