"""Operators in Airflow itself: the example of the docs on Spark, and how tasks end."""

from __future__ import annotations

import json
import sys
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

initdb()
found = runpy.run_path(sys.argv[1])
for name in sys.argv[2:]:
    run = found[name].test(logical_date=datetime(2024, 3, 9, tzinfo=timezone.utc))
    states = {ti.task_id: str(ti.state) for ti in run.get_task_instances()}
    tries = {ti.task_id: ti.try_number for ti in run.get_task_instances()}
    with create_session() as session:
        values = session.query(XComModel).filter(XComModel.run_id == run.run_id)
        results = {one.task_id: one.value for one in values}
        fields = session.query(RenderedTaskInstanceFields)
        rendered = json.dumps([one.rendered_fields for one in fields])
    print("FOUND", json.dumps([states, tries, results, rendered], default=str))
"""
"""Reads a file of DAGs, and carries out some of them, as `airflow dags test` does."""

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


def carried_out(home: Path, dags: str, *names: str) -> list[tuple[Any, ...]]:
    """States, tries, XComs and rendered fields of each DAG, in an Airflow of its own."""
    (home / "dags").mkdir(parents=True)
    file = home / "dags/shop.py"
    file.write_text(dags)
    env = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW_CONN_SHOP_LEDGER": "postgresql://shop:pa%3Ass@host:5432/ledger?sslmode=require",
    }
    printed = run_with(python_with("airflow"), "-c", PROGRAM, str(file), *names, env=env, cwd=home)
    lines = [line for line in printed.splitlines() if line.startswith("FOUND ")]
    return [tuple(json.loads(line.removeprefix("FOUND "))) for line in lines]


def test_the_example_of_the_docs(tmp_path: Path) -> None:
    """
    One task builds all tables of the starter's project, on Spark.

    After it no model has work, so the tasks of the second DAG are skipped.
    """
    example, *others = examples_for_starter("airflow.md", tmp_path)
    others = [indent(text, "    ") for text in (SEND_REPORT, *others)]
    dags = "".join([example, 'with DAG("others", schedule=None):\n', *others])

    run, models = carried_out(tmp_path / "airflow", dags, "shop", "shop_models")

    assert run[0] == {"run": "success"}
    assert [step["model"] for step in run[2]["run"]["steps"]] == ["clicks", "sessions", "daily"]
    assert run[2]["run"]["receipt"]["written"] == 16
    assert models[0] == {
        "infold.plan": "success",
        "infold.clicks": "skipped",
        "infold.sessions": "skipped",
        "infold.daily": "skipped",
    }


def test_how_tasks_end(tmp_path: Path) -> None:
    """What infold says decides whether a task succeeds, is skipped, tried again, or given up."""
    folder = lay_out_stand_in(tmp_path / "said")
    dags = DAGS.format(command=[sys.executable, str(STAND_IN), str(folder)])

    ((states, tries, results, rendered),) = carried_out(tmp_path / "airflow", dags, "dag")

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
