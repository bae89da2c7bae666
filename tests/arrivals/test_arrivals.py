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
from tests.arrivals.forward import FORWARD, FORWARD_EVENTS, EventsPlay, ForwardPlay
from tests.arrivals.play import Play
from tests.arrivals.programs import programs
from tests.arrivals.shape import Shape
from tests.arrivals.shapes import SHAPES

from infold.spark.jvm.java import find_java

pytestmark = pytest.mark.spark

USERS = 300
KINDS = 7
"""A program has at least so many kinds of operations and runs; simpler ones are drawn again."""

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


@pytest.mark.parametrize("shape", SHAPES)
@few
@given(data=st.data())
def test_tables_equal_the_reference_after_every_run(
    folders: Path, shape: str, data: st.DataObject
) -> None:
    """After every run of a random program each table equals the reference."""
    program = data.draw(programs(USERS, rounds=(3, 4), ops=(4, 8)), label="program")
    assume(len(program.kinds) >= KINDS)
    number = len(list(folders.iterdir()))
    name = f"{shape}{number}"
    tables = SHAPES[shape].tables
    versions = {
        table: data.draw(st.integers(0, len(tables[table]) - 1), label=table)
        for table in SHAPES[shape].changeable()
    }
    drawn = replace(SHAPES[shape], versions=versions)
    play = Play(drawn, folders / name, name, folders / "warehouse", program.users)
    play.play(program)


@pytest.mark.parametrize(("kind", "shape"), [(ForwardPlay, FORWARD), (EventsPlay, FORWARD_EVENTS)])
@few
@given(data=st.data())
def test_cells_keep_the_definition_in_force_there(
    folders: Path, kind: type[ForwardPlay], shape: Shape, data: st.DataObject
) -> None:
    """After forward-only changes each cell equals the definition in force there."""
    program = data.draw(programs(USERS // 2, rounds=(3, 3), ops=(2, 4)), label="program")
    assume(sum(each.run.seed % 3 for each in program.rounds) >= 4)  # so many queries change
    assume("select" not in program.kinds)
    name = shape.name
    play = kind(shape, folders / name, name, folders / "warehouse", program.users)
    play.play(program)
    assert max(len(held) for held in play.held.values()) > 1
