"""SQL that sqlglot accepts and Spark does not is an error before Spark starts."""

from __future__ import annotations

import pytest
from tests.analysis.sql.lenient_sql import RIGHT, WRONG

from infold.analysis.sql.parse import parse
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
