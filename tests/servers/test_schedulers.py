"""
Airflow and Dagster themselves: the examples of the docs on Spark, and how their work ends.

Each is in an environment of Python without any of infold's dependencies, as a lock file beside this
one says, in ``build/schedulers``, and stays there until the lock changes: installing Airflow takes
longer than testing with it. infold is in it by a path.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest
from click.testing import CliRunner
from tests.orchestration.recorded import error, lay_out_stand_in, says, step

from infold.cli import cli

pytestmark = pytest.mark.servers

ROOT = Path(__file__).parents[2]
LOCKS = Path(__file__).parent
STAND_IN = ROOT / "tests/orchestration/stand_in.py"


def python_with(scheduler: str) -> Path:
    """The Python of the environment of a scheduler, which is made if it is not there."""
    lock = LOCKS / f"{scheduler}.lock"
    of = hashlib.sha256(f"{sys.version}{lock.read_text()}".encode()).hexdigest()[:12]
    folder = ROOT / "build/schedulers" / f"{scheduler}-{of}"
    python, whole = folder / "bin/python", folder / "installed"
    if not whole.exists():
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=False, symlinks=True)
        # The lock has all of it, so nothing has to be resolved; what is used is compiled then.
        words = ["--quiet", "--no-compile", "--no-deps", "--require-hashes", "-r", str(lock)]
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install"]
        subprocess.run([*pip, *words], check=True)
        (site,) = folder.glob("lib/python*/site-packages")
        (site / "infold.pth").write_text(f"{ROOT / 'src'}\n")
        whole.touch()
    return python


def examples_for_starter(page: str, folder: Path) -> list[str]:
    """The Python of a page, of a new project of `infold init` in place of the one in /srv/shop."""
    shop = folder / "shop"
    assert CliRunner().invoke(cli, ["init", str(shop)]).exit_code == 0
    command = folder / "infold"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m infold "$@"\n')
    command.chmod(0o755)
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    text = text.replace("/srv/shop/.venv/bin/infold", str(command)).replace("/srv/shop", str(shop))
    return [code.partition("```")[0] for code in text.split("```python\n")[1:]]


def run_with(python: Path, *words: str, env: Mapping[str, str], cwd: Path) -> str:
    """What a process of that Python prints; it has to succeed. It keeps what it compiles."""
    left_out = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
    done = subprocess.run(
        [python, *words],
        cwd=cwd,
        env={**{k: v for k, v in os.environ.items() if k not in left_out}, **env},
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
    return done.stdout


IN_AIRFLOW = """
import json, runpy, sys
from datetime import datetime, timezone

from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.models.xcom import XComModel
from airflow.utils.db import initdb
from airflow.utils.session import create_session

def carry_out(dag):
    run = dag.test(logical_date=datetime(2024, 3, 9, tzinfo=timezone.utc))
    states = {ti.task_id: str(ti.state) for ti in run.get_task_instances()}
    tries = {ti.task_id: ti.try_number for ti in run.get_task_instances()}
    with create_session() as session:
        of_run = XComModel.dag_id == run.dag_id, XComModel.run_id == run.run_id
        values = session.query(XComModel).filter(*of_run)
        results = {one.task_id: one.value for one in values}
        fields = session.query(RenderedTaskInstanceFields)
        rendered = json.dumps([one.rendered_fields for one in fields])
    print("FOUND", json.dumps([states, tries, results, rendered], default=str))

initdb()
for path, *names in map(str.split, sys.argv[1:]):
    found = runpy.run_path(path)
    for name in names:
        carry_out(found[name])
"""
"""Reads files of DAGs, and carries out some of each, as `airflow dags test` does."""

SEND_REPORT = """
from airflow.sdk import BaseOperator
send_report = BaseOperator(task_id="send_report")
"""
"""A task of another tool, which an example lets follow one of infold's."""

DAGS = """
from datetime import datetime, timedelta
from airflow.sdk import DAG
from infold.orchestration.airflow import *

SHOP = InfoldProject("/srv/shop", "prod", {command!r}, {{"SHOP_DAY": "{{{{ ds }}}}"}})
MODE = "shop_ledger.extra.sslmode"
ONCE_MORE = {{"retries": 1, "retry_delay": timedelta(0)}}
with DAG("all", schedule=None, start_date=datetime(2024, 1, 1)) as dag:
    InfoldRunOperator(
        task_id="templates", project=SHOP, start="{{{{ ds }}}}", flags=["--as-of={{{{ ts }}}}"],
        secrets={{"SHOP_PASSWORD": "shop_ledger.password", "SHOP_MODE": MODE}},
    )
    for how in ("locked", "wrong", "nothing", "killed"):
        InfoldRunOperator(
            task_id=how, project=SHOP, select=how, skip_if_nothing=True, **ONCE_MORE
        )
    InfoldRunOperator(
        task_id="slow", project=SHOP, select=["slow"], execution_timeout=timedelta(seconds=3)
    )
    elsewhere = InfoldProject("/srv/shop", infold_command="/nowhere/infold")
    InfoldOperator(task_id="missing", project=elsewhere, arguments=["check"], **ONCE_MORE)
    InfoldOperator(task_id="verify", project=SHOP, arguments=["verify"], **ONCE_MORE)
    InfoldTaskGroup(project=SHOP)
"""


Ended = tuple[dict[str, str], dict[str, int], dict[str, Any], str]
"""States, tries and XComs of a DAG's tasks, and rendered fields of all DAGs."""


@dataclass(frozen=True)
class SeenInAirflow:
    """How the docs' two DAGs and one of the stand-in ended, which wrote into ``folder``."""

    run: Ended
    models: Ended
    ends: Ended
    folder: Path


@pytest.fixture(scope="module")
def in_airflow(tmp_path_factory: pytest.TempPathFactory) -> SeenInAirflow:
    """All DAGs, in an Airflow of its own, which takes long to start."""
    home = tmp_path_factory.mktemp("airflow")
    example, *others = examples_for_starter("airflow.md", home)
    others = [indent(text, "    ") for text in (SEND_REPORT, *others)]
    (home / "dags").mkdir()
    shop, ends = home / "dags/shop.py", home / "dags/ends.py"
    shop.write_text("".join([example, 'with DAG("others", schedule=None):\n', *others]))
    folder = lay_out_stand_in(home / "said")
    ends.write_text(DAGS.format(command=[sys.executable, str(STAND_IN), str(folder)]))
    env = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW_CONN_SHOP_LEDGER": "postgresql://shop:pa%3Ass@host:5432/ledger?sslmode=require",
    }
    words = (f"{shop} shop shop_models", f"{ends} dag")
    printed = run_with(python_with("airflow"), "-c", IN_AIRFLOW, *words, env=env, cwd=home)
    lines = [line for line in printed.splitlines() if line.startswith("FOUND ")]
    run, models, ends = (json.loads(line.removeprefix("FOUND ")) for line in lines)
    return SeenInAirflow(run, models, ends, folder)


def test_the_example_of_the_docs_in_airflow(in_airflow: SeenInAirflow) -> None:
    """
    One task builds all tables of the starter's project, on Spark.

    After it no model has work, so the tasks of the second DAG are skipped.
    """
    states, _, results, _ = in_airflow.run
    assert states == {"run": "success"}
    assert [step["model"] for step in results["run"]["steps"]] == ["clicks", "sessions", "daily"]
    assert results["run"]["receipt"]["written"] == 16
    assert in_airflow.models[0] == {
        "infold.plan": "success",
        "infold.clicks": "skipped",
        "infold.sessions": "skipped",
        "infold.daily": "skipped",
    }


def test_how_tasks_end(in_airflow: SeenInAirflow) -> None:
    """What infold says decides whether a task succeeds, is skipped, tried again, or given up."""
    folder, (states, tries, results, rendered) = in_airflow.folder, in_airflow.ends
    assert {name: (state, tries[name]) for name, state in states.items()} == {
        "templates": ("success", 1),
        "locked": ("failed", 2),
        "wrong": ("failed", 1),
        "nothing": ("skipped", 1),
        "killed": ("failed", 2),
        "slow": ("failed", 1),
        "missing": ("failed", 1),
        "verify": ("failed", 1),
        "infold.plan": ("success", 1),
        "infold.clicks": ("success", 1),
        "infold.daily": ("success", 1),
        "infold.users": ("skipped", 1),
    }
    assert results["infold.plan"]["models"] == ["clicks", "daily"]
    assert results["templates"]["receipt"]["set_aside"] == 2
    assert "states" not in results["templates"]
    calls = [json.loads(line) for line in (folder / "calls").read_text().splitlines()]
    (templates,) = [one for one in calls if "--start=2024-03-09" in one["words"]]
    assert "--as-of=2024-03-09T00:00:00+00:00" in templates["words"]
    assert templates["env"] == {
        "SHOP_DAY": "2024-03-09",
        "SHOP_PASSWORD": "pa:ss",
        "SHOP_MODE": "require",
    }
    assert "pa:ss" not in rendered
    assert sorted((folder / "stopped").read_text().split()) == ["killed", "killed", "slow"]


IN_DAGSTER = """
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
class SeenInDagster:
    """What each call found, of the example and of the stand-in, which wrote into ``folder``."""

    docs: list[Any]
    stand_in: list[Any]
    folder: Path


@pytest.fixture(scope="module")
def in_dagster(tmp_path_factory: pytest.TempPathFactory) -> SeenInDagster:
    """All calls, in a Dagster of its own, which takes long to start."""
    home = tmp_path_factory.mktemp("dagster")
    (example,) = examples_for_starter("dagster.md", home)
    folder = lay_out_stand_in(home / "said")
    _say_more(folder)
    command = [sys.executable, str(STAND_IN), str(folder)]
    stand_in = OF_THE_STAND_IN.format(command=command, folder=str(folder))
    program = f"{IN_DAGSTER}\n{example}\n{OF_THE_DOCS}\n{stand_in}"
    (home / "program.py").write_text(program)
    env = {"DAGSTER_HOME": str(home), "DAGSTER_DISABLE_TELEMETRY": "1"}
    printed = run_with(python_with("dagster"), "program.py", env=env, cwd=home)
    lines = [line for line in printed.splitlines() if line.startswith("FOUND ")]
    found = [json.loads(line.removeprefix("FOUND ")) for line in lines]
    calls = len(OF_THE_DOCS.strip().splitlines())
    return SeenInDagster(found[:calls], found[calls:], folder)


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


def test_the_example_of_the_docs_in_dagster(in_dagster: SeenInDagster) -> None:
    """
    The job builds the starter's tables on Spark, and says which days have rows.

    The sensor starts it before, and not after it. A day that is up to date is materialized, and
    nothing is written.
    """
    before, run, days, after, again = in_dagster.docs
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


def test_how_materializations_end(in_dagster: SeenInDagster) -> None:
    """Partitions are the window of one run; what failed is not materialized."""
    folder, (one, some, partly, whole, days, ended) = in_dagster.folder, in_dagster.stand_in
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
