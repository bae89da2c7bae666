"""
SQL that sqlglot accepts and Spark lacks, or reads with another meaning, is refused by name.

And the variables of a run's interval in queries, such as ``@start_ts``.
"""

from __future__ import annotations

import pytest
from tests.analysis.rules.cases import around, under_caret
from tests.analysis.sql.lenient_sql import RIGHT, WRONG
from tests.declare.shop import read

from infold.analysis.sql.functions import BUILT_IN, GRAMMAR
from infold.analysis.sql.parse import parse, refuse_compiled
from infold.analysis.sql.run_interval import NAMES, replace_run_interval
from infold.messages.errors import InfoldError


@pytest.mark.parametrize("sql", WRONG)
def test_what_is_missing_is_named(sql: str) -> None:
    """A missing part of a query is named, though sqlglot by itself would fill it in."""
    with pytest.raises(InfoldError) as raised:
        parse("models/m.sql", sql)

    assert raised.value.slug == "bad-sql"
    assert dict(raised.value.facts)["why"].startswith(WRONG[sql])


@pytest.mark.parametrize("sql", RIGHT)
def test_valid_sql_of_similar_form_is_accepted(sql: str) -> None:
    """Keywords as names, empty brackets with a meaning, and CASE in CASE are accepted."""
    assert parse("models/m.sql", sql).text.sql == sql


def test_the_names_stand_for_all_time() -> None:
    """The interval variables are replaced by all time, only
    in the query and not in texts or comments.
    """
    source = "@start_ds\nSELECT '@end_ts' FROM t -- @x\nWHERE ts >= @start_ts AND d < @END_DS"

    text, used = replace_run_interval("m.sql", source, 10)

    assert replace_run_interval("m.sql", "SELECT a FROM t", 0) == ("SELECT a FROM t", ())

    assert used == ("@start_ts", "@end_ds")
    assert text == (
        "@start_ds\nSELECT '@end_ts' FROM t -- @x\n"
        f"WHERE ts >= {NAMES['start_ts']} AND d < {NAMES['end_ds']}"
    )


def test_any_other_name_is_a_mistake_at_its_place() -> None:
    """Any other variable is a mistake at its place, as it
    would be a session variable that nobody sets.
    """
    with pytest.raises(InfoldError) as found:
        replace_run_interval("m.sql", "SELECT a FROM t WHERE b = @yesterday", 0)

    assert found.value.slug == "unknown-variable"
    assert found.value.at is not None
    assert found.value.at.text[found.value.at.column - 1 :] == "@yesterday"


# ruff: noqa: E501 (one case is one row of a table)


FRONT = "---\nmaterialization: table\n---\n"


def found(sql: str) -> list[tuple[str, str]]:
    """What is wrong with a query, and where."""
    _, errors = read({**around(sql), "models/subject.sql": FRONT + sql})
    return [(error.slug, under_caret(error)) for error in errors]


UNSUPPORTED = [
    ("SELECT url FROM IDENTIFIER('infold.shop.clicks')", "IDENTIFIER"),
    ("SELECT url FROM clicks WHERE EXISTS (SELECT 1 FROM identifier('text.`/etc/hostname`'))", "identifier"),
    ("SELECT IDENTIFIER('url') AS url FROM clicks", "IDENTIFIER"),
    ("SELECT TRANSFORM(url) USING 'sh -c date' AS (url) FROM clicks", "USING"),
    ("SELECT TRANSFORM(url) USING 'sh' FROM clicks", "USING"),
    ("SELECT a FROM read_files('/etc') AS t(a)", "read_files('/etc')"),
    ("SELECT * FROM python_worker_logs()", "python_worker_logs()"),
    ("SELECT * FROM my_rows(TABLE(SELECT 1))", "my_rows(TABLE(SELECT 1))"),
    ("SELECT url FROM clicks VERSION AS OF 3", "clicks"),
    ("SELECT system.builtin.upper(url) AS u FROM clicks", "upper"),
    ("SELECT :url AS u FROM clicks", ":url"),
    ("SELECT raw.clicks.url FROM raw.clicks", "raw.clicks.url"),
    ("SELECT url FROM clicks QUALIFY row_number() OVER (ORDER BY event_ts, event_id) = 1", "QUALIFY"),
    ("SELECT url FROM clicks UNION ALL BY NAME SELECT url FROM clicks", "BY"),
    ("SELECT DISTINCT ON (url) url FROM clicks", "DISTINCT"),
    ("SELECT count(*) OVER (ORDER BY event_ts RANGE BETWEEN INTERVAL 1 MONTH PRECEDING AND INTERVAL 1 DAY FOLLOWING) AS n FROM clicks", "count(*) OVER (ORDER BY event_ts RANGE BETWEEN INTERVAL 1 MONTH PRECEDING AND INTERVAL 1 DAY FOLLOWING)"),
    ("SELECT url -- the last \\\n, amount FROM clicks", "-- the last \\"),
]  # fmt: skip
"""What is refused, and where."""


@pytest.mark.parametrize(("sql", "words"), UNSUPPORTED)
def test_forms_that_are_refused(sql: str, words: str) -> None:
    """Each unsupported form is refused at its place."""
    slugs = found(sql)

    assert ("unsupported-sql", words) in slugs


@pytest.mark.parametrize(
    "name",
    [
        "infold.shop.clicks",
        "infold.shop.clicks.snapshots",
        "a.b.c.d.e",
        "text.`/etc/hostname`",
        "json.`landing/x.json`",
        "clicks.branch_main",
        "infold_view_1",
    ],
)
def test_only_models_and_sources_are_tables(name: str) -> None:
    """Only models and sources are tables; other names that Spark could resolve are refused."""
    assert [slug for slug, _ in found(f"SELECT 1 AS one FROM {name}")] == ["unknown-table"]


@pytest.mark.parametrize(
    ("sql", "name", "near"),
    [
        ("SELECT smu(amount) AS s FROM clicks", "smu", "sum"),
        ("SELECT upper(frist(url)) AS s FROM clicks GROUP BY user_id", "frist", "first"),
        ("SELECT TIMESTAMP_TRUNC(event_ts, DAY) AS s FROM clicks", "TIMESTAMP_TRUNC", ""),
        ("SELECT iff(amount > 1, 1, 2) AS s FROM clicks", "iff", "if"),
        ("SELECT date_trunk('DAY', event_ts) OVER (ORDER BY 1) AS s FROM clicks", "date_trunk", "date_trunc"),
    ],
)  # fmt: skip
def test_a_function_that_spark_does_not_have(sql: str, name: str, near: str) -> None:
    """A function that Spark does not have is one finding that suggests near names."""
    _, errors = read({**around(sql), "models/subject.sql": FRONT + sql})

    assert [(error.slug, under_caret(error)) for error in errors] == [("unknown-function", name)]
    assert near in str(errors[0])


def test_an_unknown_function_in_sessions_is_one_finding() -> None:
    """An unknown function in sessions is one finding,
    without one about a column outside of aggregates.
    """
    front = "---\nmaterialization: sessions\nsessions: {user: user_id, gap: 1 hour}\n---\n"
    sql = "SELECT frst(url) AS entry FROM clicks"
    _, errors = read({**around(sql), "models/subject.sql": front + sql})

    assert [error.slug for error in errors] == ["unknown-function"]
    assert "first" in str(errors[0])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM range(3)",
        "SELECT c FROM clicks LATERAL VIEW explode(tags) t AS c",
        "SELECT c FROM clicks, LATERAL explode(tags) AS t(c)",
        "SELECT '-- no comment \\\\' AS a, url FROM clicks -- a comment",
        "SELECT /* a comment \\\n in two lines */ url FROM clicks",
        "WITH few (a, b) AS (SELECT url, amount FROM clicks) SELECT try_cast(a AS int) AS a, cast(b AS decimal(10,2)) AS b FROM few t(a, b)",
        "SELECT timestampadd(DAY, 1, event_ts) AS t, extract(DAY FROM event_ts) AS d, if(amount > 1, 1, 0) AS i, left(url, 2) AS l FROM clicks",
        "SELECT clicks.url, `raw`.x FROM clicks, (SELECT 1 AS x) AS raw",
    ],
)  # fmt: skip
def test_similar_forms_are_accepted(sql: str) -> None:
    """Table functions of their arguments, comments that
    end, and keywords before brackets are accepted.
    """
    assert found(sql) == []


def test_words_of_the_grammar_are_no_functions_of_the_registry() -> None:
    """Every word that the grammar reads as a function is in one of the lists."""
    assert {"date_diff"} >= BUILT_IN & GRAMMAR


@pytest.mark.parametrize("library", ["spark.cpython-311-x86_64-linux-gnu.so", "spark.pyd"])
def test_a_compiled_parser_is_named(library: str) -> None:
    """Sqlglotc puts libraries beside sqlglot's modules, whose classes cannot be extended."""
    refuse_compiled("sqlglot/parsers/spark.py")
    with pytest.raises(InfoldError) as raised:
        refuse_compiled(f"sqlglot/parsers/{library}")

    assert raised.value.slug == "compiled-sqlglot"
