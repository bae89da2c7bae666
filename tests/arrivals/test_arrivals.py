"""
Oracle 2: whatever arrives, in whatever order and however cut into runs, tables equal the reference.

A program drives many users with histories of their own, so that one Spark job checks hundreds of
random cases. In the suite it is one that folds each table once, after every kind of operation on
files; ``make soak`` draws others, with changed queries and lookups, and more of them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.arrivals.play import Play
from tests.arrivals.programs import Op, Program, Round
from tests.arrivals.shape import Shape
from tests.arrivals.shapes import FEW_SESSIONS, SHAPES

from infold.core.model import Kind
from infold.core.plan import Action
from infold.core.report import RunResult
from infold.core.storages import Storage
from infold.spark.jvm.java import find_java

pytestmark = pytest.mark.spark

USERS = 120
LATER = ("burst", "again", "replace", "delete", "touch", "empty", "advance", "speak")
"""Operations that leave most rows as they are, and queries and lookups: then tables are folded."""
PROGRAM = Program(
    USERS,
    (
        Round(tuple(Op("arrive", seed) for seed in range(10)), Op("all", 0)),
        Round(tuple(Op(kind, seed) for seed, kind in enumerate(LATER)), Op("all", 0)),
        Round((Op("erase", 1), Op("again", 2)), Op("all", 0)),
    ),
)
FOLDED = (Kind.SESSIONS, Kind.CUMULATIVE_AGGREGATE, Kind.SCD_TYPE_2)


def part_of(name: str, *tables: str, **versions: int) -> Shape:
    """Some tables of one of the shapes, with these versions of their queries."""
    shape = SHAPES[name]
    found = {table: shape.tables[table] for table in tables}
    if "sessions" in tables:
        found["sessions"] = (FEW_SESSIONS,)
    return replace(shape, tables=found, versions=versions)


OF_VIEWS = ("paying", "totals", "placed", "tours")
IN_PYTHON = {"clicks": 2, "users": 3}
ROWS = part_of("fold", "clicks", "sessions", "users")
LANDED = part_of("landed", "raw.clicks", "orders", "stages", "then", "both", "rides")
PLAYED = {
    "fold": part_of(
        "fold", "raw.pages", "clicks", "sessions", "daily", "users", *OF_VIEWS, clicks=1
    ),
    "reread": replace(
        part_of("reread", "clicks", "visits", "weekly", "pages", clicks=1, visits=2),
        storage=Storage.DELTA,
    ),
    "landed": replace(
        LANDED,
        tables={**LANDED.tables, **ROWS.tables},
        versions={"orders": 1, "stages": 1, **IN_PYTHON},
    ),
}
"""With functions in Python are some tables of the third, which has no others over clicks."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all projects of this module; they share a warehouse and a Spark session."""
    find_java()
    return tmp_path_factory.mktemp("arrivals")


@pytest.mark.parametrize("name", PLAYED)
def test_tables_equal_the_reference_after_every_run(folders: Path, name: str) -> None:
    """After every run each table equals the reference, folded where it can be; verify agrees."""
    play = Play(PLAYED[name], folders / name, name, folders / "warehouse", USERS)
    runs = list[RunResult]()
    play.after_run = runs.append

    play.play(PROGRAM)

    can_fold = {each.name for each in play.project if each.model.kind in FOLDED}
    folded = {step.model for step, _ in runs[1].steps if step.action is Action.FOLD}
    assert folded >= can_fold > set()
    if name == "reread":
        play.verify()
