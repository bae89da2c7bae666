"""Assets in Dagster itself: the example of the docs on Spark, and how materializations end."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.orchestration.recorded import error, lay_out_stand_in, says, step
from tests.servers.schedulers import STAND_IN, examples_for_starter, python_with, run_with

pytestmark = pytest.mark.servers

PROGRAM = """
import json
import dagster as dg
from dagster._utils.interrupts import setup_interrupt_handlers  # as its own processes do

instance = dg.DagsterInstance.ephemeral()

def told(result):
    found = {"ok": result.success, "built": [], "seen": {}, "checks": {}, "failure": ""}
    for event in result.all_events:
        if event.is_step_materialization:
            made = event.materialization
            values = {name: value.value for name, value in made.metadata.items()}
            found["built"].append([made.asset_key.to_user_string(), made.partition, values])
        elif event.event_type_value == "ASSET_OBSERVATION":
            seen = event.event_specific_data.asset_observation
            values = {name: value.value for name, value in seen.metadata.items()}
            found["seen"][seen.asset_key.to_user_string()] = values
        elif event.event_type_value == "ASSET_CHECK_EVALUATION":
            found["checks"][event.event_specific_data.check_name] = event.event_specific_data.passed
        elif event.event_type_value == "STEP_FAILURE":
            said = event.event_specific_data.user_failure_data
            found["failure"] = said.description if said else ""
        elif event.event_type_value == "STEP_UP_FOR_RETRY":
            found["again"] = True
    print("FOUND", json.dumps(found))

def materialize(*names, **how):
    keys = [dg.AssetKey(name.split("/")) for name in names]
    job = defs.resolve_implicit_global_asset_job_def()
    how |= {"asset_selection": keys, "raise_on_error": False}
    told(job.execute_in_process(instance=instance, **how))

def run_all():
    job = defs.resolve_job_def("shop_run")
    told(job.execute_in_process(instance=instance, raise_on_error=False))

def look():
    sensor = defs.resolve_sensor_def("shop_has_work")
    found = sensor(dg.build_sensor_context(instance=instance, definitions=defs))
    found = list(found) if not isinstance(found, (dg.RunRequest, dg.SkipReason)) else [found]
    print("FOUND", json.dumps([type(one).__name__ for one in found]))

def partitions(name):
    print("FOUND", json.dumps(sorted(instance.get_materialized_partitions(dg.AssetKey(name)))))
"""
"""What a program can do with the definitions ``defs``; each call prints a line."""

OF_THE_DOCS = """
look()
run_all()
partitions("daily")
look()
materialize("daily", partition_key="2024-03-08")
"""

OF_THE_STAND_IN = """
import os
from infold.orchestration.dagster import InfoldProject, infold_definitions

instance = dg.DagsterInstance.ephemeral()
defs = infold_definitions(
    InfoldProject("/srv/shop", "prod", {command!r}), retry_policy=dg.RetryPolicy(max_retries=1)
)
dg.Definitions.validate_loadable(defs)
materialize("daily", partition_key="2024-03-03")
range_of_days = {{
    "dagster/asset_partition_range_start": "2024-03-06",
    "dagster/asset_partition_range_end": "2024-03-08",
}}
materialize("daily", "clicks", tags=range_of_days)
materialize("clicks", "users")
run_all()
partitions("daily")
os.chdir({folder!r})
os.rename("asleep.json", "run-clicks.json")
setup_interrupt_handlers()
materialize("clicks")
"""


@dataclass(frozen=True)
class Seen:
    """What each call found, of the example and of the stand-in, which wrote into ``folder``."""

    docs: list[Any]
    stand_in: list[Any]
    folder: Path


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """All calls, in a Dagster of its own, which takes long to start."""
    home = tmp_path_factory.mktemp("dagster")
    (example,) = examples_for_starter("dagster.md", home)
    folder = lay_out_stand_in(home / "said")
    _say_more(folder)
    command = [sys.executable, str(STAND_IN), str(folder)]
    stand_in = OF_THE_STAND_IN.format(command=command, folder=str(folder))
    program = f"{PROGRAM}\n{example}\n{OF_THE_DOCS}\n{stand_in}"
    (home / "program.py").write_text(program)
    env = {"DAGSTER_HOME": str(home), "DAGSTER_DISABLE_TELEMETRY": "1"}
    printed = run_with(python_with("dagster"), "program.py", env=env, cwd=home)
    lines = [line for line in printed.splitlines() if line.startswith("FOUND ")]
    found = [json.loads(line.removeprefix("FOUND ")) for line in lines]
    calls = len(OF_THE_DOCS.strip().splitlines())
    return Seen(found[:calls], found[calls:], folder)


def _say_more(folder: Path) -> None:
    """What the stand-in says of audits, of two days, of a failure, and when it is stopped."""
    audits = [
        {"audit": "not_null", "severity": "error", "state": "passed", "bad": 0, "found": ""},
        {"audit": "row_count", "severity": "warn", "state": "failed", "bad": 1, "found": "none"},
    ]
    covered = [["2024-03-02T00:00:00Z", "2024-03-05T00:00:00Z"]]
    daily = {"model": "daily", "rows": 12, "covered": covered, "audits": audits}
    says(folder, "status", result={"models": [daily]})
    late = step("daily", ("2024-03-03T00:00:00Z", None))
    says(folder, "run", result={"run": "r1", "steps": [step("clicks"), late], "receipt": {}})
    failed = {
        "steps": [step("clicks")],
        "failed": [{"model": "users", "refused": False, "error": error("drift", 1)}],
        "not_tried": [],
    }
    says(folder, "run-users", code=1, result=failed)
    says(folder, "asleep", sleep=60, stops_caller=True)


def test_the_example_of_the_docs(seen: Seen) -> None:
    """
    The job builds the starter's tables on Spark, and says which days have rows.

    The sensor starts it before, and not after it. A day that is up to date is materialized, and
    nothing is written.
    """
    before, run, days, after, again = seen.docs
    assert (before, after) == (["RunRequest"], ["SkipReason"])
    assert run["ok"], run["failure"]
    assert days == ["2024-03-08", "2024-03-09"]
    assert {name: values["dagster/row_count"] for name, _, values in run["built"]} == {
        "clicks": 9,
        "sessions": 5,
        "daily": 2,
    }
    assert run["seen"] == {"raw/clicks": {"files_new": 2, "rows_arrived": 9}}
    assert again["ok"]
    ((name, partition, values),) = again["built"]
    assert (name, partition, values["written"]) == ("daily", "2024-03-08", 0)


def test_how_materializations_end(seen: Seen) -> None:
    """Partitions are the window of one run; what failed is not materialized."""
    folder, (one, some, partly, whole, days, ended) = seen.folder, seen.stand_in
    assert [(name, partition) for name, partition, _ in one["built"]] == [("daily", "2024-03-03")]
    assert one["checks"] == {"not_null": True, "row_count": False}
    assert sorted((name, partition) for name, partition, _ in some["built"] if partition) == [
        ("daily", "2024-03-06"),
        ("daily", "2024-03-07"),
        ("daily", "2024-03-08"),
    ]
    calls = [json.loads(line)["words"] for line in (folder / "calls").read_text().splitlines()]
    runs = [words for words in calls if "run" in words]
    assert [
        [w for w in words if w.startswith(("--select", "--start", "--end"))] for words in runs
    ] == [
        [
            "--select=daily",
            "--start=2024-03-03T00:00:00+00:00",
            "--end=2024-03-04T00:00:00+00:00",
        ],
        [
            "--select=clicks",
            "--select=daily",
            "--start=2024-03-06T00:00:00+00:00",
            "--end=2024-03-09T00:00:00+00:00",
        ],
        ["--select=clicks", "--select=users"],
        [],
        *[["--select=clicks"]] * 2,
    ]
    assert not partly["ok"]
    assert "drift: this" in partly["failure"]
    assert "again" not in partly
    assert [name for name, _, _ in partly["built"]] == ["clicks"]
    assert whole["ok"]
    assert [(name, partition) for name, partition, _ in whole["built"]] == [
        ("clicks", None),
        ("daily", "2024-03-03"),
        ("daily", "2024-03-04"),
    ]
    assert days == ["2024-03-03", "2024-03-04", "2024-03-06", "2024-03-07", "2024-03-08"]
    assert not ended["ok"]
    assert (folder / "stopped").read_text() == "clicks\nclicks\n"  # Dagster tries again itself
