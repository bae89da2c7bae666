"""
Deaths at commits of tables, on each storage: in the test's own process, and by SIGKILL.

A real death costs the start of a JVM, so a write point is drawn for each storage;
INFOLD_KILL_SEED draws others, and a soak kills at all of them and at random moments between them.
What a ledger is after SIGKILL is tested without Spark. Also commits of other programs.
"""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from tests.crash.scenario import (
    SHAPE,
    AllBut,
    Reader,
    Scenario,
    kill,
    living,
    new_dry_scenario,
    new_scenario,
    whole_steps,
)

from infold import api
from infold.core.storages import Storage
from infold.messages.errors import InfoldError

pytestmark = pytest.mark.spark

COMMITS = (
    "table clicks: after commit",
    "table sessions: before commit",
    "table sessions: after commit",
    "table users: after commit",
)
"""Where the danger is: a commit that its own ledger has not recorded yet."""

SEED = int(os.environ.get("INFOLD_KILL_SEED", "1"))


@pytest.fixture(scope="module", params=Storage, ids=str)
def scenario(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """A project that was run once and is right."""
    shape = replace(SHAPE, storage=request.param)
    folder = tmp_path_factory.mktemp("killed")
    found = new_scenario(folder, f"killed_{request.param}", shape=shape)
    found.settle()
    return found


def points_of_a_run(scenario: Scenario, folder: Path) -> list[str]:
    """Names of the write points that the next run passes at tables, in its order: the run is tried
    before over tables in memory. Without those of a table that is built beside another one.
    """
    twin = new_dry_scenario(folder, "twin", shape=scenario.shape)
    twin.jobs = 1
    twin.settle()
    twin.deliver(200)
    with living() as life:
        twin.go(life)
    names = dict.fromkeys(name for _, name in life.passed if "daily" not in name)
    return [name for name in names if name.startswith("table ")]


def test_a_run_that_dies_at_each_commit(scenario: Scenario, tmp_path: Path) -> None:
    """After SIGKILL at a table's write point, and deaths at others before it and while that is
    mended, readers saw whole steps, and the next run is right.
    """
    passed, log = points_of_a_run(scenario, tmp_path), tmp_path / "points"
    killed = Random(f"{SEED} {scenario.shape.storage}").choice(passed)
    print(f"INFOLD_KILL_SEED={SEED} kills at {killed}")
    before = dict(scenario.state)
    scenario.deliver(200)
    after = scenario.foreseen()
    with Reader(scenario.read) as reader:
        for name in sorted({*COMMITS, killed}, key=passed.index):
            if name == killed:
                ended = kill(scenario, name, log)
                assert ended.returncode == -signal.SIGKILL, (name, ended.stderr)
                assert log.read_text(encoding="utf-8").splitlines()[-1] == name
            else:
                with living(met=AllBut(name)) as life:
                    scenario.go(life)
                assert life.dead, name
            wrong = whole_steps(scenario.read(), before, after)
            assert not wrong, f"after a death at {name}: {wrong}"
    for found in reader.end():
        assert not whole_steps(found, before, after)
    assert reader.looks > 3
    scenario.settle()


def test_others_may_rewrite_and_not_write(scenario: Scenario) -> None:
    """Other files for the same rows change nothing; rows that others add are refused by name."""
    project = scenario.project
    spark, jvm = api.session(project), api.session(project)._jvm
    if scenario.shape.storage is Storage.DELTA:
        folder = str(api.lake_of(project).folder("daily"))  # type: ignore[attr-defined]
        table = jvm.io.delta.tables.DeltaTable.forPath(spark._jsparkSession, folder)
        table.optimize().executeCompaction()
        assert not scenario.go().steps
        rows = spark.read.format("delta").load(folder)
        rows.limit(1).write.format("delta").mode("append").save(folder)
    else:
        name = f"infold.{project.name}.daily"
        more = "options => map('rewrite-all', 'true')"
        spark.sql(f"CALL infold.system.rewrite_data_files(table => '{name}', {more})").collect()
        assert not scenario.go().steps
        spark.sql(f"INSERT INTO {name} SELECT * FROM {name} LIMIT 1")

    with pytest.raises(InfoldError) as raised:
        scenario.go()

    assert raised.value.slug == "foreign-write"
