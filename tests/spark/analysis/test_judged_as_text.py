"""What a server of Spark Connect can be asked of a query is what plan objects show of it here."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from infold.analysis.sql.functions import BUILT_IN
from infold.spark import analyser
from infold.spark.connect import plans

pytestmark = pytest.mark.spark

QUERIES = (
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


@pytest.mark.parametrize("query", QUERIES)
def test_what_is_not_determined_is_found_in_both_ways(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    """Chance and clocks, wherever they stand in a query; words in texts and names are none."""
    monkeypatch.setattr(plans, "_explained", explained)
    rows = spark.sql(query)

    by_objects = list(analyser.nondeterministic_expressions(rows, query))
    by_text = list(plans.nondeterministic_expressions(rows, query))

    assert bool(by_objects) == bool(by_text), (by_objects, by_text)


def test_a_plan_is_read_the_same_from_its_text(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes and their depths, of views, lists of values, subqueries and stored rows."""
    monkeypatch.setattr(plans, "_explained", explained)
    spark.range(3).createOrReplaceTempView("judged_view")
    rows = spark.sql(
        "WITH c AS (SELECT * FROM judged_view) SELECT a.*, b.col1 AS x FROM c AS a"
        " JOIN (VALUES (1), (2)) AS b ON a.id = b.col1"
        " WHERE a.id IN (SELECT id FROM judged_view) AND 'a\n+- Relation b' <> 'c'"
    )

    by_text = plans.analysed_text(rows).split("\n", 2)[2]

    assert by_text.strip() == str(rows._jdf.queryExecution().analyzed().treeString()).strip()
    spark.catalog.dropTempView("judged_view")


def test_every_function_says_whose_it_is(spark: SparkSession) -> None:
    """A class of Spark's own for each, by what a server says too; none for words of the syntax."""
    found = {name: plans.class_of(spark, name) for name in BUILT_IN}

    none = {name for name, class_ in found.items() if not class_}
    foreign = {name for name in found.keys() - none if analyser._OF_SPARK not in found[name]}
    shown = {row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    assert foreign == set()
    assert none & shown <= {"case"}, "syntax that Spark shows among its functions"
