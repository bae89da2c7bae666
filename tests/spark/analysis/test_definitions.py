"""
The comparison of definitions agrees with Spark's own parser and engine.

The parser decides which brackets change nothing and where conditions are joined. The engine
evaluates pairs of queries with the category none or additive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from tests.analysis.definitions.pairs import COLUMNS, VIEW, change, meaning, pairs
from tests.spark.analysis.at_once import interpreted, rows_of, view

from infold.analysis.definitions.canonical import Canon
from infold.analysis.definitions.clauses import redundant
from infold.analysis.names.relation import Block
from infold.analysis.sql.parse import parse
from infold.core.definition import Category
from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

BINARY = [*"+-*/%&|^+-*", "DIV", "||", "=", "<>", "<", ">=", "<=>", "==", "AND", "OR"]
UNARY = ["-", "~", "NOT ", "!"]
BEHIND = [" IS NULL", " IS NOT NULL", " IN (1, 2)", " BETWEEN 1 AND b", " LIKE 'x'", "::int"]
AROUND = ["coalesce({}, {})", "CASE WHEN {} THEN {} END", "CASE {} WHEN {} THEN 1 END"]


def expression(rng: Random, depth: int) -> str:
    """A drawn expression, mostly without sensible types, with brackets anywhere."""
    shape = rng.randint(0, 9) if depth else 0
    if shape <= 1:
        return rng.choice(["a", "b", "c", "1", "2147483648", "'x'", "t.a", "NULL", "TRUE"])
    if shape <= 5:
        text = f"{expression(rng, depth - 1)} {rng.choice(BINARY)} {expression(rng, depth - 1)}"
    elif shape == 6:
        text = f"{rng.choice(UNARY)}{expression(rng, depth - 1)}"
    elif shape == 7:
        text = f"{expression(rng, depth - 1)}{rng.choice(BEHIND)}"
    else:
        text = rng.choice(AROUND).format(*(expression(rng, depth - 1) for _ in range(2)))
    return f"({text})" if rng.random() < 0.5 else text


def condition(rng: Random, depth: int) -> str:
    """Comparisons joined by AND and OR, in brackets and without."""
    if depth == 0:
        return rng.choice(["a = 1", "b < c", "TRUE", "a IS NULL", "a BETWEEN 1 AND 2", "NOT a = b"])
    parts = [condition(rng, depth - 1) for _ in range(rng.choice([1, 2, 2, 3]))]
    text = parts[0]
    for part in parts[1:]:
        text = f"{text} {rng.choice(['AND', 'OR'])} {part}"
    if rng.random() < 0.1:
        text = f"CASE WHEN {text} THEN TRUE END"
    return f"({text})" if rng.random() < 0.5 else text


class Parser:
    """Spark's own parser of expressions."""

    def __init__(self, session: SparkSession) -> None:
        made: Any = session
        self.parser = made._jsparkSession.sessionState().sqlParser()

    def __call__(self, text: str) -> Any:
        """The expression; None for what is none."""
        from pyspark.errors import PySparkException

        try:
            return self.parser.parseExpression(f"({text})")  # in brackets it has no alias
        except PySparkException:
            return None


def test_brackets_that_are_left_out_change_nothing(spark: SparkSession) -> None:
    """Spark reads an expression without the brackets that are left out as it reads it with them."""
    parser, checked = Parser(spark), 0
    for seed in range(700):
        text = expression(Random(seed), 4)
        try:
            tokens = parse("m.sql", f"SELECT {text} AS x").text.tokens
        except InfoldError:
            continue
        left_out = redundant(tokens, 1, len(tokens) - 2)
        if not left_out:
            continue
        sql = f"SELECT {text}"
        kept = [
            sql[token.start : token.end + 1]
            for at, token in enumerate(tokens[:-2])
            if at > 0 and at not in left_out
        ]
        one, two = parser(text), parser(" ".join(kept))
        if one is None:
            continue
        assert two is not None, f"{text}\n{' '.join(kept)}"
        assert one.equals(two), f"{text}\n{' '.join(kept)}"
        checked += 1

    assert checked > 120


def test_conditions_are_parted_where_spark_parts_them(spark: SparkSession) -> None:
    """The conditions of a WHERE are the ones that Spark joins by AND, TRUE left out."""
    parser = Parser(spark)
    for seed in range(250):
        text = condition(Random(seed), 3)
        sql = f"SELECT a FROM t WHERE {text}"
        of = meaning(sql)
        assert isinstance(of.relation, Block)
        assert of.text is not None
        select = Canon({}).select(of.relation)
        tokens = of.text.tokens
        found = [
            sql[tokens[start].start : tokens[stop - 1].end + 1]
            for _, (start, stop) in select.conditions("where")
        ]
        wanted = [one for one in joined(parser(text)) if one.toString() != "true"]
        assert len(found) == len(wanted), f"{text}\n{found}"
        for one, two in zip(found, wanted, strict=True):
            assert parser(one).equals(two), f"{text}\n{one}"


def joined(tree: Any) -> list[Any]:
    """The expressions that Spark joins by AND, from left to right."""
    if tree.getClass().getSimpleName() != "And":
        return [tree]
    return [*joined(tree.left()), *joined(tree.right())]


ROWS = {
    "t": "a int, b int, c int, s string, d double, xs array<int>, ts timestamp",
    "u": "a int, b int, k int, s string",
}


def prepared(spark: SparkSession) -> SparkSession:
    """The tables of the pairs with a few rows, many NULLs and copies among them."""
    session, rng = interpreted(spark), Random(7)

    def few() -> int | None:
        return rng.choice([0, 1, 1, 2, 3, None])

    t = []
    for at in range(9):
        xs = [rng.randint(0, 3) for _ in range(at % 3)]
        when = datetime(2024, 1 + at % 3, 10 + at, tzinfo=UTC)
        text, half = rng.choice(["x", "X1", None]), rng.choice([0.5, 2.0, None])
        t.append((few(), few(), at - 2, text, half, xs, when))
    u = [(few(), few(), at, "x") for at in range(6)]
    for name, rows in (("t", t), ("u", u)):
        assert len(rows[0]) == len(COLUMNS[name])
        view(session, name, rows, ROWS[name])
    session.sql(VIEW).createOrReplaceTempView("v")
    return session


@dataclass(frozen=True)
class Kept:
    """Two queries, and the columns in which they are said to have the same rows."""

    before: str
    after: str
    columns: frozenset[str]

    def __str__(self) -> str:
        return f"{sorted(self.columns)}\n{self.before}\n{self.after}"

    @property
    def both(self) -> tuple[str, str]:
        """These columns of both."""
        names = ", ".join(f"`{name}`" for name in sorted(self.columns))
        return f"SELECT {names} FROM ({self.before})", f"SELECT {names} FROM ({self.after})"


def evaluated(session: SparkSession, kept: Sequence[Kept]) -> list[Kept]:
    """Those that Spark takes both of; each pair has the same rows."""
    found = rows_of(session, [sql for one in kept for sql in one.both])
    pairs = list(zip(kept, found[::2], found[1::2], strict=True))
    differing = [str(one) for one, old, new in pairs if None not in (old, new) and old != new]
    assert not differing, "\n\n".join(differing)
    return [one for one, old, new in pairs if None not in (old, new)]


SAME = [pair for pair in pairs() if pair.category in (Category.NONE, Category.ADDITIVE)]


def test_pairs_that_are_said_to_have_the_same_rows(spark: SparkSession) -> None:
    """Spark yields the same rows for both queries of a pair, and takes nearly all of them."""
    kept = []
    for pair in SAME:
        found = change(pair.before, pair.after)
        columns = found.columns_kept if found else frozenset(meaning(pair.before).node.columns)
        kept.append(Kept(pair.before, pair.after, columns))

    assert len(evaluated(prepared(spark), kept)) >= len(SAME) - 2
