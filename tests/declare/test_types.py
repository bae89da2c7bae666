"""Column types are those of Spark SQL, no more and no less."""

from __future__ import annotations

import pytest

from infold.declare.types import is_type


@pytest.mark.parametrize(
    "text",
    [
        "string",
        "BIGINT",
        "decimal",
        "decimal(18,2)",
        "DECIMAL( 38 , 38 )",
        "numeric(5)",
        "varchar(10)",
        "timestamp_ntz",
        "array<string>",
        "map<string, array<int>>",
        "struct<a: int, `b c`: struct<d: decimal(9,2)>>",
        "struct<a int, b string>",
    ],
)
def test_types_of_spark_are_accepted(text: str) -> None:
    """Simple, sized and nested ones, in any case and spacing."""
    assert is_type(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "text",
        "decimal(39,2)",
        "decimal(2,3)",
        "decimal(0)",
        "varchar",
        "array",
        "array<>",
        "array<string, int>",
        "array<text>",
        "map<string>",
        "struct<a>",
        "struct<a: int,>",
        "array<string",
        "list<string>",
    ],
)
def test_others_are_not(text: str) -> None:
    """Neither other systems' names nor what is too wide or incomplete."""
    assert not is_type(text)
