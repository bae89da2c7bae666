"""
The same oracles over tables in Delta Lake: random arrivals, deaths at commits, commits of others.

Few of each: what is above the ports is the same, and all of it is tried over Iceberg.
"""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.arrivals.play import Play
from tests.arrivals.programs import programs
from tests.arrivals.shapes import SHAPES
from tests.arrivals.test_arrivals import KINDS, few
from tests.crash.scenario import (
    SHAPE,
    TABLES,
    Reader,
    Scenario,
    kill,
    living,
    new_scenario,
    whole_steps,
)

from infold import api
from infold.core.storages import Storage
from infold.messages.errors import InfoldError

pytestmark = pytest.mark.spark

USERS = 60
COMMITS = tuple(f"table {name}: {when} commit" for name in TABLES for when in ("before", "after"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for the projects of this module; they share a warehouse and a Spark session."""
    return tmp_path_factory.mktemp("delta")


@pytest.fixture(scope="module")
def scenario(folder: Path) -> Scenario:
    """A project that was run once and is right."""
    found = new_scenario(folder, "crash", shape=replace(SHAPE, storage=Storage.DELTA))
    found.settle()
    return found


@pytest.mark.parametrize("shape", ["fold"])
@few
@given(data=st.data())
def test_tables_equal_the_reference_after_every_run(
    folder: Path, shape: str, data: st.DataObject
) -> None:
    """After every run of a random program each table equals the reference, and verify agrees."""
    program = data.draw(programs(USERS, rounds=(3, 3), ops=(4, 6)), label="program")
    assume(len(program.kinds) >= KINDS)
    name = f"{shape}{len(list(folder.iterdir()))}"
    drawn = replace(SHAPES[shape], storage=Storage.DELTA)
    play = Play(drawn, folder / name, name, folder / "warehouse", program.users)
    play.play(program)


class AllBut(list[tuple[str, str]]):
    """The write points that no run dies at: all but one of a name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def __contains__(self, point: object) -> bool:
        return isinstance(point, tuple) and point[1] != self.name


def test_a_run_that_dies_at_each_commit(scenario: Scenario) -> None:
    """A death before or after a table's commit leaves whole steps, and the next run is right."""
    before = dict(scenario.state)
    scenario.deliver(100)
    after = scenario.foreseen()
    died = set()
    for name in COMMITS:
        with living(met=AllBut(name)) as life:
            scenario.go(life)
        if life.dead:
            died.add(name)
        found = whole_steps(scenario.read(), before, after)
        assert not found, f"after a death at {name}: {found}"
    scenario.settle()
    assert {name for name in COMMITS if "clicks" in name or "sessions" in name} <= died


def test_sigkill_leaves_whole_steps(scenario: Scenario, tmp_path: Path) -> None:
    """After SIGKILL right after a commit readers saw whole steps, and the next run is right."""
    name, log = "table sessions: after commit", tmp_path / "points"
    before = dict(scenario.state)
    scenario.deliver(200)
    after = scenario.foreseen()
    with Reader(scenario.read) as reader:
        ended = kill(scenario, name, log)
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        assert log.read_text(encoding="utf-8").splitlines()[-1] == name
        scenario.go()
    for found in reader.end():
        assert not whole_steps(found, before, after)
    scenario.check(set(TABLES), None)


def test_others_may_rewrite_and_not_write(scenario: Scenario) -> None:
    """OPTIMIZE of another program changes nothing; rows that it adds are refused by name."""
    daily = str(api.lake(scenario.project).folder("daily"))  # type: ignore[attr-defined]
    spark = api.session(scenario.project)
    jvm, session = spark._jvm, spark._jsparkSession
    scenario.deliver(300)
    scenario.settle()
    jvm.io.delta.tables.DeltaTable.forPath(session, daily).optimize().executeCompaction()
    assert not scenario.go().steps

    spark.read.format("delta").load(daily).limit(1).write.format("delta").mode("append").save(daily)
    with pytest.raises(InfoldError) as raised:
        scenario.go()

    assert raised.value.slug == "foreign-write"
