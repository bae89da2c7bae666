"""
Oracle 2: whatever arrives, in whatever order and however cut into runs, tables equal the reference.

Hypothesis draws programs; each drives many users with histories of their own, so that one Spark job
checks hundreds of random cases. In the suite the programs are always the same ones; ``make soak``
draws others, and more of them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from tests.arrivals.play import Play
from tests.arrivals.programs import programs
from tests.arrivals.shapes import SHAPES

from infold.core.storages import Storage
from infold.spark.jvm.java import find_java

pytestmark = pytest.mark.spark

USERS = 300
KINDS = 7
"""A program has at least so many kinds of operations and runs; simpler ones are drawn again."""

LANDED, ROWS = SHAPES["landed"], SHAPES["rows"]
TOGETHER = {
    "fold": SHAPES["fold"],
    "reread": replace(SHAPES["reread"], storage=Storage.DELTA),
    "landed": replace(LANDED, tables={**LANDED.tables, **ROWS.tables}),
}
"""Two of the shapes, which have one source, are one project; one is stored in Delta Lake."""

# The few programs that there is time for are drawn, not minimised: a minimal one would cost a
# hundred runs. The message of a failure holds all that is needed to play the program again.
few = settings(
    max_examples=1,
    phases=[Phase.generate],
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all projects of this module; they share a warehouse and a Spark session."""
    find_java()
    return tmp_path_factory.mktemp("arrivals")


@pytest.mark.parametrize("shape", TOGETHER)
@few
@given(data=st.data())
def test_tables_equal_the_reference_after_every_run(
    folders: Path, shape: str, data: st.DataObject
) -> None:
    """After every run of a random program each table equals the reference; and verify agrees."""
    program = data.draw(programs(USERS, rounds=(2, 2), ops=(6, 10)), label="program")
    assume(len(program.kinds) >= KINDS)
    tables = TOGETHER[shape].tables
    versions = {
        table: data.draw(st.integers(0, len(tables[table]) - 1), label=table)
        for table in TOGETHER[shape].changeable()
    }
    drawn = replace(TOGETHER[shape], versions=versions)
    play = Play(drawn, folders / shape, shape, folders / "warehouse", program.users)
    play.play(program)
    if shape == "reread":
        play.verify()
