"""
SQL that sqlglot accepts and Spark does not is an error before Spark starts.

And the variables of a run's interval in queries, such as ``@start_ts``.
"""

from __future__ import annotations

import pytest
from tests.analysis.sql.lenient_sql import RIGHT, WRONG

from infold.analysis.sql.parse import parse
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
