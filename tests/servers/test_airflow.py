"""Operators in Airflow itself: the example of the docs on Spark, and how tasks end."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest
from tests.orchestration.recorded import lay_out_stand_in
from tests.servers.schedulers import STAND_IN, examples_for_starter, python_with, run_with

pytestmark = pytest.mark.servers

PROGRAM = """
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
        task_id="slow", project=SHOP, select=["slow"], execution_timeout=timedelta(seconds=5)
    )
    elsewhere = InfoldProject("/srv/shop", infold_command="/nowhere/infold")
    InfoldOperator(task_id="missing", project=elsewhere, arguments=["check"], **ONCE_MORE)
    InfoldOperator(task_id="verify", project=SHOP, arguments=["verify"], **ONCE_MORE)
    InfoldTaskGroup(project=SHOP)
"""


Ended = tuple[dict[str, str], dict[str, int], dict[str, Any], str]
"""States, tries and XComs of a DAG's tasks, and rendered fields of all DAGs."""


@dataclass(frozen=True)
class Seen:
    """How the docs' two DAGs and one of the stand-in ended, which wrote into ``folder``."""

    run: Ended
    models: Ended
    ends: Ended
    folder: Path


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
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
    printed = run_with(python_with("airflow"), "-c", PROGRAM, *words, env=env, cwd=home)
    lines = [line for line in printed.splitlines() if line.startswith("FOUND ")]
    run, models, ends = (json.loads(line.removeprefix("FOUND ")) for line in lines)
    return Seen(run, models, ends, folder)


def test_the_example_of_the_docs(seen: Seen) -> None:
    """
    One task builds all tables of the starter's project, on Spark.

    After it no model has work, so the tasks of the second DAG are skipped.
    """
    states, _, results, _ = seen.run
    assert states == {"run": "success"}
    assert [step["model"] for step in results["run"]["steps"]] == ["clicks", "sessions", "daily"]
    assert results["run"]["receipt"]["written"] == 16
    assert seen.models[0] == {
        "infold.plan": "success",
        "infold.clicks": "skipped",
        "infold.sessions": "skipped",
        "infold.daily": "skipped",
    }


def test_how_tasks_end(seen: Seen) -> None:
    """What infold says decides whether a task succeeds, is skipped, tried again, or given up."""
    folder, (states, tries, results, rendered) = seen.folder, seen.ends
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
