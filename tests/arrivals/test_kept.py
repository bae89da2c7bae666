"""Events that go for their age, in random programs: see ``kept``."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.arrivals.dry import play_through
from tests.arrivals.kept import KEPT, KeptPlay
from tests.arrivals.programs import Program, programs
from tests.arrivals.test_dry import dying

pytestmark = pytest.mark.deep

EXAMPLES = settings().max_examples


@settings(max_examples=EXAMPLES)
@given(program=programs(users=6, rounds=(2, 7), more=("advance",) * 6))
def test_tables_are_as_if_older_rows_had_never_come(program: Program) -> None:
    """And frozen cells as they were, whatever comes late, twice, corrected or deleted."""
    play_through(KeptPlay, KEPT, program)


@settings(max_examples=EXAMPLES // 2)
@given(
    program=programs(users=4, rounds=(2, 5), more=("advance",) * 6),
    deaths=st.lists(st.lists(st.integers(1, 60), max_size=2), max_size=6),
)
def test_a_run_that_dies_loses_no_cell(program: Program, deaths: list[list[int]]) -> None:
    """However often runs die before one is done."""
    play_through(dying(KeptPlay, deaths), KEPT, program)
