# ruff: noqa: E501 (one case is one row of a table)
"""References are the exact positions of table names in a query.

«These marks» are around each reference that is to be found, and are not part of the query.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infold.analysis.names.relation import Table
from infold.analysis.names.resolve import resolve
from infold.analysis.sql.parse import parse
from infold.core.project import Reference

KNOWN = {
    "clicks": Table("clicks", ("id", "user_id", "ts")),
    "order": Table("order", ("id", "ts")),
    "raw.clicks": Table("raw.clicks", ("id", "user_id", "ts")),
}

QUERIES = [
    "SELECT * FROM «clicks»",
    "select * from «CLICKS» as c",
    "SELECT * FROM «`clicks`» c, «raw.clicks», «`raw`.`clicks`» AS d",
    "SELECT * FROM «raw . clicks» /* raw.clicks */ WHERE id = 'clicks' -- clicks",
    "SELECT * FROM «`raw.clicks`»",
    "SELECT * FROM «order» JOIN «`order`» AS o ON o.id = `order`.id",
    "SELECT clicks.id FROM «clicks» JOIN «clicks» AS other ON clicks.id = other.id",
    "WITH clicks AS (SELECT * FROM «clicks») SELECT * FROM clicks",
    "WITH a AS (SELECT * FROM «clicks»), clicks AS (SELECT * FROM a) SELECT * FROM clicks, «raw.clicks» r",
    "SELECT * FROM (WITH clicks AS (SELECT 1 AS one) SELECT * FROM clicks) x, «clicks»",
    "WITH RECURSIVE clicks(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM clicks) SELECT * FROM clicks",
    "SELECT * FROM «clicks» UNION ALL (SELECT * FROM «clicks» WHERE id IN (SELECT id FROM «order»))",
    "SELECT (SELECT max(ts) FROM «clicks») AS m, EXISTS (SELECT 1 FROM «order» o WHERE o.id = c.id) AS e FROM «raw.clicks» c",
    "SELECT id, tag FROM «clicks» LATERAL VIEW explode(split(user_id, ',')) clicks AS tag",
    "SELECT id FROM «clicks» JOIN LATERAL (SELECT ts AS t FROM «order» WHERE id = clicks.id)",
    "SELECT 'é€😀' AS s, id FROM «clicks» -- «not this»".replace(" -- «not this»", ""),
    "SELECT\r\n\t*\r\nFROM\r\n\t«clicks»",
    "FROM «clicks» SELECT id",
]  # fmt: skip


def marked(query: str) -> tuple[str, list[tuple[int, int]]]:
    """The query without marks, and the ranges that they stood around."""
    spans, plain, at = [], [], 0
    for piece in re.split("([«»])", query):
        if piece == "«":
            spans.append((at, at))
        elif piece == "»":
            spans[-1] = (spans[-1][0], at)
        else:
            plain.append(piece)
            at += len(piece)
    return "".join(plain), spans


def references(sql: str) -> tuple[Reference, ...]:
    """The references of a query that has nothing wrong with it."""
    parsed = parse("m.sql", sql)
    found = resolve(parsed.text, parsed.tree, KNOWN)
    assert not found.errors, str(found.errors[0])
    return found.references


@pytest.mark.parametrize("query", QUERIES)
def test_references_are_found_at_their_positions(query: str) -> None:
    """References are found at their positions, whatever the quoting, the CTEs and the aliases
    around them, with the model's declared name, not the name as written in the query.
    """
    sql, spans = marked(query)

    found = references(sql)
    assert [(one.start, one.end) for one in found] == spans
    for one in found:
        assert re.sub(r"[`\s]", "", sql[one.start : one.end]).lower() == one.name


SPACE = st.sampled_from([" ", "\n", "\t ", " /* clicks */ ", " -- clicks\n", "\r\n"])


@given(
    query=st.sampled_from([query for query in QUERIES if "--" not in query]),
    spaces=st.lists(SPACE, min_size=80, max_size=80),
)
def test_references_can_be_replaced_in_place(query: str, spaces: list[str]) -> None:
    """Replacing the names at their positions makes a valid
    query over other tables, whatever is between them.
    """
    words = re.split(" ", query)
    sql, spans = marked("".join(word + space for word, space in zip(words, spaces, strict=False)))
    found = references(sql)

    assert [(one.start, one.end) for one in found] == spans
    for one in reversed(found):
        sql = sql[: one.start] + "replaced" + sql[one.end :]
    tree = parse("m.sql", sql).tree
    resolved = resolve(parse("m.sql", sql).text, tree, {"replaced": Table("replaced", None)})
    assert [one.name for one in resolved.references] == ["replaced"] * len(found)
    assert not resolved.errors
