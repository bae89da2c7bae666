"""What a ledger notices of rows that are gone from it, in both databases."""

from __future__ import annotations

import pytest
from tests.ledger.conftest import Place
from tests.ledger.steps import change, do, outcome
from tests.planning.strips import day

from infold.core.record import Outcome
from infold.core.trace import Trace
from infold.ledger import SqlLedger

ONE, TWO = day(1), day(2)


@pytest.fixture
def built(place: Place) -> SqlLedger:
    """Events of two versions, and a daily table that has read the first of them."""
    ledger = place.open()
    ledger.acquire("r1")
    ledger.begin_run("r1", "run", 0, {})
    do(ledger, outcome(1, change(ONE, 3)))
    trace = Trace("daily", "f", {"events": 1})
    do(ledger, Outcome("daily", 1, trace, (change(ONE, 1),), snapshot=7, whole=True))
    do(ledger, outcome(2, change(TWO, 2)))
    return ledger


def test_a_sound_ledger(built: SqlLedger) -> None:
    """Nothing contradicts anything, also once a model was forgotten."""
    assert built.contradictions() == {}

    built.forget("daily")

    assert built.contradictions() == {}


@pytest.mark.parametrize(
    ("statement", "table", "noticed"),
    [
        ("drop_cells", "events", {"events": "its cells have 0 rows, and its newest version 5"}),
        ("erase_changes", "events", {"events": "the changes of version 2 do not add up"}),
        (
            "erase_versions",
            "events",
            {
                "events": "its versions are missing",
                "daily": "it was built from version 1 of events, which is missing",
            },
        ),
        ("drop_trace", "daily", {"daily": "its trace is missing"}),
    ],
)
def test_rows_that_are_gone(
    built: SqlLedger, statement: str, table: str, noticed: dict[str, str]
) -> None:
    """What is written twice is noticed in one of both places; erased tables leave steps alone."""
    key = "model" if statement == "drop_trace" else "table_name"
    with built.database.write(None) as query:
        assert query.run(statement, **{key: table})

    assert dict(built.contradictions()) == noticed

    built.erase_tables(["events", "daily"])

    assert (built.contradictions(), built.traces(), built.newest_versions()) == ({}, {}, {})
    assert built.step_models(["r1-1"]) == {"r1-1": "events"}
