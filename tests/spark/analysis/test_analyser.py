"""Spark's analyser judges every definition before anything is built by it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.errors import ParseException
from pyspark.sql import SparkSession
from tests.analysis.sql.lenient_sql import RIGHT as RIGHT_SQL
from tests.analysis.sql.lenient_sql import WRONG as WRONG_SQL

from infold import api
from infold.cli.main import cli
from infold.core.project import Node, Project, Reference
from infold.spark.engine import SparkEngine

pytestmark = pytest.mark.spark

PROJECT = """
name: judged
sources:
  raw.clicks:
    path: landing/*.csv
    event_time_column: ts
    columns:
      {id: string, who: string, ts: timestamp, url: string, paid: "decimal(9,2)", n: smallint}
  raw.rates:
    path: rates/*.csv
    columns: {currency: string, rate: "decimal(9,4)"}
"""


def _table(sql: str) -> str:
    return f"---\nmaterialization: table\n---\n{sql}\n"


EVENTS = """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: ts, granularity: day}
---
SELECT id, who, ts, url, paid, n, struct(n AS `in-n`, array(paid) AS all) AS deep
FROM raw.clicks WHERE who IS NOT NULL"""

VISITS = """---
materialization: sessions
sessions: {user: who, gap: 30 minutes, cuts: {campaign: url}, session_number: true}
---
SELECT count(*) AS n, first(url) AS entry, sum(paid) AS paid,
  collect_set(url) FILTER (WHERE n > 0) AS urls
FROM seen WHERE url LIKE '/%'"""

RIGHT = {
    "events": EVENTS,
    "seen": "---\nmaterialization: view\n---\nSELECT * FROM events WHERE paid > 0\n",
    "visits": VISITS,
    "daily": """---
materialization: table
timeseries: {event_time_column: session_start, partition_column: d}
incremental: {}
---
SELECT cast(session_start AS date) AS d, sum(n) AS n, max(size(urls)) AS most,
  count_if(is_first_session) AS fresh
FROM visits GROUP BY 1""",
    "users": """---
materialization: cumulative_aggregate
---
SELECT who, max(paid) AS most FROM events GROUP BY who""",
    "rates_now": _table("SELECT currency, max(rate) AS rate FROM raw.rates GROUP BY currency"),
    "shapes": _table("""WITH own AS (SELECT who, deep, n FROM events), other AS (SELECT 1 AS a)
SELECT own.who, deep.`in-n` + v.q AS q, (SELECT max(n) FROM own) AS most
FROM own CROSS JOIN (VALUES (1), (2)) AS v(q)
WHERE EXISTS (SELECT 1 FROM visits WHERE visits.who = own.who)"""),
}
"""Every kind, each reading what others make: nothing is wrong with any of them."""

_ENDS = "---\nmaterialization: sessions\nsessions: {%s}\n---\n"

SESSIONS = {
    "events": EVENTS,
    "by_id": _ENDS % "identifier: id, user: who, without_identifier: {gap: 30 minutes}"
    + "SELECT count(*) AS n, avg(paid) AS paid FROM events",
    "cut": _ENDS
    % """user: lower(who), gap: 1 hour, max_length: 1 day,
  cuts: {midnight: Europe/Berlin, start_events: "url = '/x'", campaign: [url, n]}"""
    + "SELECT last(url, true) AS url, sum(paid) FILTER (WHERE n > 1) / count(*) AS q FROM events",
    "held": _ENDS % "user: who, gap: 1 hour, quarantine_after: 2 days, session_number: true"
    + "SELECT percentile(n, 0.5) AS n, max(struct(n, url)) AS most FROM events",
}
"""Whatever sessions are of, and whatever ends them."""

WRONG = {
    "argument": _table("SELECT who,\n  date_format(array(ts), 'yyyy') AS year\nFROM events"),
    "reader": _table("SELECT year FROM argument"),
    "view": "---\nmaterialization: view\n---\nSELECT explode(url) AS part FROM events\n",
    "of_view": _table("SELECT part FROM view"),
    "interval": _table("SELECT array(ts - TIMESTAMP '2024-01-01') AS gap FROM events"),
    "fold": VISITS.replace("sum(paid)", "sum(array(paid))"),
    "shown": VISITS.replace("sum(paid) AS paid", "date_add(max(ts), max(deep)) AS paid"),
    "keyed": "---\nmaterialization: cumulative_aggregate\n---\n"
    "SELECT who, sum(deep) AS most FROM events GROUP BY who\n",
}

EXPECTED = {
    "argument": ("refused-by-spark", "models/argument.sql:5"),
    "view": ("refused-by-spark", "models/view.sql:4"),
    "interval": ("not-stored", "models/interval.sql:4"),
    "fold": ("refused-by-spark", "models/fold.sql:5"),
    "shown": ("refused-by-spark", "models/shown.sql:5"),
    "keyed": ("refused-by-spark", "models/keyed.sql:4"),
}


def _project(root: Path, models: dict[str, str]) -> Project:
    (root / "models").mkdir(parents=True)
    (root / "landing").mkdir()
    (root / "rates").mkdir()
    (root / "infold.yml").write_text(PROJECT)
    for name, text in models.items():
        (root / f"models/{name}.sql").write_text(text)
    (root / "landing/a.csv").write_text(
        "id,who,ts,url,paid,n\n1,a,2024-03-01T10:00:00Z,/x,2.50,1\n"
    )
    (root / "rates/a.csv").write_text("currency,rate\nEUR,1.5\n")
    return api.open_project(root)


def test_right_models_of_every_kind(tmp_path: Path) -> None:
    """Valid models of every kind pass, and the columns that
    readers see are those that a run stores.
    """
    project, others = _project(tmp_path / "a", RIGHT), _project(tmp_path / "b", SESSIONS)

    assert dict(api.definition_errors(others)) == {}
    passed = CliRunner().invoke(cli, ["-C", str(project.root), "check", "--deep"])
    assert passed.exit_code == 0, passed.output
    assert {step.model for step, _ in api.run(project).steps} >= set(RIGHT) - {"seen"}


def test_each_wrong_model_is_named(tmp_path: Path) -> None:
    """Each wrong model is reported at its place, and its readers are not judged yet; `check` prints
    all of it, with exit code 2.
    """
    chosen = {name: WRONG[name] for name in (*EXPECTED, "reader", "of_view")}
    project = _project(tmp_path, {**RIGHT, **chosen})

    errors = api.definition_errors(project)
    refused = CliRunner().invoke(cli, ["-C", str(project.root), "check", "--deep"])

    assert {name: (one.slug, dict(one.facts)["at"]) for name, one in errors.items()} == EXPECTED
    assert refused.exit_code == 2
    for slug, at in EXPECTED.values():
        assert slug in refused.output
        assert at in refused.output


UNSEEN = (
    " UNION ALL SELECT id FROM infold.judged.events",
    " UNION ALL SELECT id FROM (SELECT TRANSFORM(c) USING 'cat' AS (id) FROM VALUES (1) AS v(c))",
    " WHERE EXISTS (SELECT 1 FROM infold.judged.events.snapshots)",
    " WHERE who IN (SELECT name FROM others)",
    " UNION ALL SELECT (SELECT max(id) FROM IDENTIFIER('infold.judged.events'))",
)


def test_tables_that_the_analysis_did_not_find(tmp_path: Path) -> None:
    """What Spark reads beyond a model's references is a finding: a table, a program, a view."""
    project = _project(tmp_path, {"events": EVENTS, "t": _table("SELECT who FROM events")})
    api.run(project, select=["events"])
    api.session(project).sql("SELECT 'x' AS name").createOrReplaceTempView("others")

    found = {more: api.definition_errors(_with(project, more)) for more in UNSEEN}

    assert not api.definition_errors(
        _with(project, " WHERE who IN (SELECT who FROM VALUES ('a') AS v(who))")
    )
    for more, errors in found.items():
        assert {name: error.slug for name, error in errors.items()} == {"t": "reads-unseen"}, more


def _with(project: Project, more: str) -> Project:
    """The project as if the analysis of ``t`` had passed over the end of its text."""
    node = project["t"]
    return _changed(
        project, replace(node, model=replace(node.model, sql=node.model.sql.rstrip() + more))
    )


def test_tables_that_spark_does_not_read(tmp_path: Path) -> None:
    """A name that the analysis takes for a table, and Spark for part of a comment, is a finding."""
    models = {"events": EVENTS, "seen": RIGHT["seen"], "t": _table("SELECT who FROM events")}
    longer = _with(_project(tmp_path, models), " -- seen")
    node, at = longer["t"], longer["t"].model.sql.rindex("seen")
    more = replace(node, references=(*node.references, Reference("seen", at, at + 4)))

    errors = api.definition_errors(_changed(longer, more))

    assert {name: (error.slug, error.what) for name, error in errors.items()} == {
        "t": ("not-read", "Spark does not read seen in the query of t")
    }


CHANCE = (
    " WHERE rand() < 0.5",
    " WHERE EXISTS (SELECT 1 FROM VALUES (1) AS v(a) WHERE a < randn())",
    " ORDER BY transform(array(1), x -> uuid())",
    " WHERE size(shuffle(array(1, 2))) > 1",
    " GROUP BY who HAVING element_at(shuffle(collect_list(id)), 1) = 'x'",
    " UNION ALL SELECT user FROM (SELECT try_reflect('java.util.UUID', 'randomUUID') AS user)",
)


def test_functions_that_spark_knows_as_random(tmp_path: Path) -> None:
    """A function that Spark knows as random is a finding
    wherever it is called, unless the author allows it.
    """
    incremental = "{enabled: false, safety_overrides: {allow_nondeterministic: true}}"
    front = f"---\nmaterialization: table\nincremental: {incremental}\n---\n"
    project = _project(
        tmp_path,
        {
            "events": EVENTS,
            "t": _table("SELECT who FROM events"),
            "any": f"{front}SELECT who, rand() AS r FROM events",
        },
    )

    found = {more: api.definition_errors(_with(project, more)) for more in CHANCE}

    for more, errors in found.items():
        assert {name: error.slug for name, error in errors.items()} == {"t": "not-deterministic"}, (
            more
        )
    assert dict(found[CHANCE[0]]["t"].facts)["because of"] == "rand()"


def test_a_function_that_replaces_one_of_sparks(tmp_path: Path) -> None:
    """A session function that replaces one of Spark's is a
    finding for models that call it, in any case.
    """
    models = {
        "events": EVENTS,
        "calls": _table("SELECT LOWER /* so */ (url) AS u FROM events"),
        "names": _table("SELECT upper(url) AS lower FROM events"),
    }
    project = _project(tmp_path, models)
    spark = api.session(project).newSession()
    engine = SparkEngine(spark, project, api.ledger(project), api.lake(project), "check")
    spark.udf.register("another", lambda text: text)
    assert dict(engine.analyse(list(models))) == {}

    spark.udf.register("lower", lambda text: text)

    found = engine.analyse(list(models))
    assert {name: error.slug for name, error in found.items()} == {"calls": "function-replaced"}


def test_a_run_judges_before_its_first_step(tmp_path: Path) -> None:
    """A run judges every definition before its first step:
    a wrong one costs no step and no job, exit code 2.
    """
    models = {
        name: {**RIGHT, **WRONG}[name]
        for name in ("events", "rates_now", "argument", "reader", "view", "of_view", "interval")
    }
    project = _project(tmp_path, models)
    jobs = _jobs(project)
    api.definition_errors(project)
    assert _jobs(project) == jobs

    result = CliRunner().invoke(cli, ["-C", str(project.root), "run", "--json"])

    printed = json.loads(result.stdout)
    wrong = ("argument", "interval", "view")
    assert result.exit_code == 2, result.output
    assert sorted(entry["model"] for entry in printed["failed"]) == list(wrong)
    assert {entry["error"]["slug"] for entry in printed["failed"]} == {
        EXPECTED[name][0] for name in wrong
    }
    assert {step["model"] for step in printed["steps"]} == {"events", "raw.rates", "rates_now"}
    [book] = api.ledger(project).runs(1)
    assert {step.model for step in book.steps} == {"events", "raw.rates", "rates_now"}


def _jobs(project: Project) -> int:
    """How many jobs Spark has carried out."""
    context = api.session(project).sparkContext
    return len(context.statusTracker().getJobIdsForGroup(None))


def _changed(project: Project, node: Node) -> Project:
    nodes = (node if one.name == node.name else one for one in project)
    return replace(project, nodes=tuple(nodes))


def test_spark_refuses_the_names_that_infold_refuses(spark: SparkSession) -> None:
    """Spark's parser also refuses what infold refuses early, apart from three known texts."""
    parser = spark._jsparkSession.sessionState().sqlParser()

    def reads(sql: str) -> bool:
        try:
            parser.parsePlan(sql)
        except ParseException:
            return False
        return True

    assert {sql for sql in WRONG_SQL if reads(sql)} == {
        "SELECT a, FROM t",
        "SELECT AS a FROM t",
        "SELECT f(*) AS n, (*) AS m FROM t",
    }
    assert [sql for sql in RIGHT_SQL if not reads(sql)] == []
