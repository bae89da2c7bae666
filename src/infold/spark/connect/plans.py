"""
What a server of Spark Connect says of a query: its analysed plan as text, and Spark's judgement.

A client has no objects of a plan. Whether a plan is deterministic Spark itself decides where it has
to: it refuses a lateral join with a subquery that is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from sqlglot import TokenType, tokenize

ANALYSED, OPTIMISED = "== Analyzed Logical Plan ==", "== Optimized Logical Plan =="

_CLOCK = re.compile(
    r"(?<![\w.])(?:current_date|current_time|current_timestamp|localtimestamp|now)"
    r"\((?:[^()\n]|\([^()\n]*\)){0,40}\)"
)
_LITERALS = (TokenType.STRING, TokenType.RAW_STRING, TokenType.IDENTIFIER)
_NOT_DETERMINISTIC = "NON_DETERMINISTIC_LATERAL_SUBQUERIES"
_NAMED = re.compile(
    r"(?<![\w.])(?:rand|random|randn|randstr|uniform|uuid|shuffle|sample|monotonically_increasing_id"
    r"|spark_partition_id|input_file_name|input_file_block_\w+|reflect|java_method|try_reflect)"
    r"\([^()\n]{0,60}\)"
)
"""Expressions that are named in a message, if they are what is not deterministic."""


def analysed_text(rows: DataFrame) -> str:
    """
    The analysed plan, a line for each node.

    Texts of the query may have a heading in them: of several, the piece is taken that has most.
    """
    text = _explained(rows)
    start = text.find(ANALYSED)
    return text[start + len(ANALYSED) : text.rfind(OPTIMISED)]


def _explained(rows: DataFrame) -> str:
    return str(rows._explain_string(extended=True))  # type: ignore[operator]  # noqa: SLF001 (`explain` prints it)


def has_rows_of_client(rows: DataFrame) -> bool:
    """
    Whether a plan has rows that the client sends with it: those of ``createDataFrame``.

    In the server's plan they look like a list of values in the text of a query.
    """
    session: Any = rows.sparkSession
    plan: Any = rows
    return _has_local_rows(plan._plan.to_proto(session.client))  # noqa: SLF001 (the only plan here)


def _has_local_rows(message: Any) -> bool:
    if message.DESCRIPTOR.name in _LOCAL_ROWS:
        return True
    return any(
        _has_local_rows(part)
        for field, value in message.ListFields()
        if field.message_type is not None
        for part in ((value,) if hasattr(value, "ListFields") else value)
        if hasattr(part, "ListFields")  # a map has its keys here
    )


_LOCAL_ROWS = ("LocalRelation", "CachedLocalRelation", "ChunkedCachedLocalRelation")


def class_of(spark: SparkSession, name: str) -> str:
    """The class of a function of this session; empty for none."""
    try:
        # At most a dozen lines.
        description_rows = spark.sql(f"DESCRIBE FUNCTION `{name}`").collect()
    except AnalysisException:
        return ""
    lines = (row[0].partition("Class: ") for row in description_rows)
    return next((class_name for _, separator, class_name in lines if separator), "")


def nondeterministic_expressions(rows: DataFrame, sql: str) -> Iterator[str]:
    """As ``analysed.nondeterministic_expressions``; ``sql`` is what the query was written as."""
    text = analysed_text(rows)
    for token in tokenize(sql, read="spark"):
        if token.token_type in _LITERALS and _CLOCK.search(token.text):
            text = text.replace(token.text, "")
    yield from dict.fromkeys(found[0] for found in _CLOCK.finditer(text))
    if not _is_deterministic(rows):
        yield from dict.fromkeys(found[0] for found in _NAMED.finditer(text)) or ("its plan",)


def _is_deterministic(rows: DataFrame) -> bool:
    spark, view = rows.sparkSession, f"infold_judged_{uuid4().hex}"
    rows.createOrReplaceTempView(view)
    try:
        spark.sql(f"SELECT 1 FROM range(2), LATERAL (SELECT * FROM {view})").schema  # noqa: B018 (analyses it)
    except AnalysisException as error:
        if _NOT_DETERMINISTIC not in (error.getCondition() or ""):
            raise
        return False
    finally:
        spark.catalog.dropTempView(view)
    return True
