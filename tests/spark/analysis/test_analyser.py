"""Spark's analyser judges every definition before anything is built by it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession
from tests.analysis.sql.lenient_sql import RIGHT as RIGHT_SQL
from tests.analysis.sql.lenient_sql import WRONG as WRONG_SQL
from tests.spark.analysis.functions_in_spark import ANSWERS, FUNCTIONS, QUERIES, result

from infold import api
from infold.analysis.sql.functions import BUILT_IN
from infold.cli.main import cli
from infold.core.project import Node, Project, Reference
from infold.declare.folder import Folder
from infold.declare.functions import ProjectFunctions, read_functions
from infold.messages.errors import InfoldError
from infold.spark import analyser
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
    engine = SparkEngine(spark, project, api.ledger_of(project), api.lake_of(project), "check")
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
    [book] = api.ledger_of(project).runs(1)
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


CASED = """
name: cased
sources:
  raw.Clicks:
    path: landing/*.csv
    event_time_column: TS
    columns: {Id: string, Who: string, Ts: timestamp, Url: string}
"""

MODELS = {
    "events": """---
materialization: events
unique_key: [ID]
prefer: [url DESC]
timeseries: {event_time_column: at}
---
SELECT id, WHO, ts AS At, url AS URL FROM RAW.clicks""",
    "visits": """---
materialization: sessions
sessions: {user: who, gap: 30 minutes, cuts: {campaign: uRl}}
---
SELECT count(*) AS N, first(Url) AS Entry FROM Events""",
    "named": """---
materialization: sessions
sessions: {identifier: ID, user: wHo}
---
SELECT count(*) AS n FROM events""",
    "daily": """---
materialization: table
timeseries: {event_time_column: SESSION_START, partition_column: d}
incremental: {unique_key: [D]}
---
SELECT cast(Session_Start AS date) AS D, sum(n) AS Total FROM VISITS GROUP BY d""",
    "weekly": """---
materialization: table
timeseries: {event_time_column: d, partition_column: D, granularity: month}
incremental: {bounds: {DAILY: {before: 40 days}}}
---
SELECT d, total, lag(ToTal) OVER (ORDER BY D) AS Before FROM Daily""",
    "users": """---
materialization: cumulative_aggregate
---
SELECT WHO AS Who, count(*) AS N FROM events GROUP BY who""",
    "seen": """---
materialization: view
---
SELECT * FROM Events WHERE wHO IS NOT NULL""",
    "by_view": """---
materialization: table
timeseries: {event_time_column: aT, partition_column: AT, granularity: hour}
incremental: {}
---
SELECT AT, struct(who AS userId) AS Person FROM Seen""",
}


def test_names_are_found_however_they_are_written(tmp_path: Path) -> None:
    """A first run works with names in any case, and one with a late row, a removed row and a
    changed definition.
    """
    for folder in ("models", "landing"):
        (tmp_path / folder).mkdir()
    (tmp_path / "infold.yml").write_text(CASED)
    for name, text in MODELS.items():
        (tmp_path / "models" / f"{name}.sql").write_text(text)
    landing, head = tmp_path / "landing", "Id,Who,Ts,Url\n"
    (landing / "1.csv").write_text(f"{head}1,ann,2024-03-01T10:00:00Z,/a\n")
    (landing / "2.csv").write_text(f"{head}2,bob,2024-03-09T10:00:00Z,/b\n")
    api.run(api.open_project(tmp_path))

    (landing / "3.csv").write_text(f"{head}3,ann,2024-03-01T10:10:00Z,/a\n")
    (landing / "2.csv").unlink()
    daily = MODELS["daily"].replace("sum(n) AS Total", "sum(N) + 0 AS Total")
    (tmp_path / "models" / "daily.sql").write_text(daily)
    project = api.open_project(tmp_path)
    api.run(project)

    found = api.verify(project, select=["visits", "weekly"])
    assert [v.model for v in found.models if not v.equal] == []
    assert api.lake_of(project).rows("daily").column_names == ["D", "Total"]
    assert api.lake_of(project).rows("daily")["Total"].to_pylist() == [2]


JUDGED = (
    "SELECT 1 AS one",
    "SELECT id, rand() AS r FROM range(3)",
    "SELECT id FROM range(3) ORDER BY rand(1)",
    "SELECT uuid() AS u",
    "SELECT shuffle(array(1, 2)) AS s",
    "SELECT spark_partition_id() AS p FROM range(3)",
    "SELECT monotonically_increasing_id() AS m FROM range(3)",
    "SELECT reflect('java.util.UUID', 'randomUUID') AS u",
    "SELECT id FROM range(3) WHERE EXISTS (SELECT 1 FROM range(3) WHERE rand() > 0.5)",
    "SELECT id, count(1) AS n FROM range(3) GROUP BY id HAVING rand() > 0.5",
    "SELECT sum(x) AS x FROM (SELECT rand() AS x FROM range(3))",
    "WITH c AS (SELECT uuid() AS u FROM range(3)) SELECT a.u FROM c AS a JOIN c AS b ON a.u = b.u",
    "SELECT id % 2 AS k, collect_list(id) AS ids, first(id) AS f FROM range(3) GROUP BY 1",
    "SELECT current_date() AS d, id FROM range(3)",
    "SELECT now() AS n",
    "SELECT unix_timestamp() AS u",
    "SELECT 'now() and rand()' AS words, id AS `current_date()` FROM range(3)",
    "SELECT id, row_number() OVER (ORDER BY id) AS n FROM range(3)",
    "SELECT a.id FROM range(3) AS a JOIN range(3) AS b ON a.id = b.id",
    "SELECT id FROM range(3) UNION ALL SELECT cast(rand() * 3 AS bigint) FROM range(2)",
)


def explained(rows: DataFrame) -> str:
    """What ``explain`` prints, which a client of a server has as a text."""
    jvm: Any = rows.sparkSession.sparkContext._jvm
    return str(jvm.PythonSQLUtils.explainString(rows._jdf.queryExecution(), "extended"))


@pytest.mark.parametrize("query", JUDGED)
def test_what_is_not_determined_is_found_in_both_ways(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    """Chance and clocks, wherever they stand in a query; words in texts and names are none."""
    monkeypatch.setattr(analyser, "_explained", explained)
    rows = spark.sql(query)

    by_objects = list(analyser.nondeterministic_expressions(rows, query))
    by_text = list(analyser.nondeterministic_in_plan(rows, query))

    assert bool(by_objects) == bool(by_text), (by_objects, by_text)


def test_a_plan_is_read_the_same_from_its_text(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes and their depths, of views, lists of values, subqueries and stored rows."""
    monkeypatch.setattr(analyser, "_explained", explained)
    spark.range(3).createOrReplaceTempView("judged_view")
    rows = spark.sql(
        "WITH c AS (SELECT * FROM judged_view) SELECT a.*, b.col1 AS x FROM c AS a"
        " JOIN (VALUES (1), (2)) AS b ON a.id = b.col1"
        " WHERE a.id IN (SELECT id FROM judged_view) AND 'a\n+- Relation b' <> 'c'"
    )

    by_text = analyser.analysed_text(rows).split("\n", 2)[2]

    assert by_text.strip() == str(rows._jdf.queryExecution().analyzed().treeString()).strip()
    spark.catalog.dropTempView("judged_view")


def test_every_function_says_whose_it_is(spark: SparkSession) -> None:
    """A class of Spark's own for each, by what a server says too; none for words of the syntax."""
    found = {name: analyser.class_of(spark, name) for name in BUILT_IN}

    none = {name for name, class_ in found.items() if not class_}
    foreign = {name for name in found.keys() - none if analyser._OF_SPARK not in found[name]}
    shown = {row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    assert foreign == set()
    assert none & shown <= {"case"}, "syntax that Spark shows among its functions"


def functions() -> ProjectFunctions:
    """The functions as a project reads them."""
    errors: list[InfoldError] = []
    files = ((f"functions/{name}.sql", text.encode()) for name, text in FUNCTIONS.items())
    found = read_functions(Folder(Path("shop"), tuple(files)), errors)
    assert not errors, errors[0]
    return found


def test_calls_have_the_values_that_they_have_in_spark(spark: SparkSession) -> None:
    """Each query's expansion gives the columns, types and rows of Spark's own functions."""
    known, wrong = functions(), []
    answers = json.loads(ANSWERS.read_text(encoding="utf-8"))
    for sql in QUERIES:
        parsed, called = known.parse("a.sql", sql, 0)
        assert called
        found = result(spark, parsed.text.sql)
        if found != answers[sql]:
            wrong.append(f"{sql}\n  Spark:    {answers[sql]}\n  expanded: {found}")

    assert not wrong, "\n".join(wrong)
