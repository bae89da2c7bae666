"""Column types are those of Spark SQL, no more and no fewer."""

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
    """Spark's simple, sized and nested types are accepted in any case and spacing."""
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
def test_other_types_are_refused(text: str) -> None:
    """Types of other systems, and too wide or incomplete ones, are refused."""
    assert not is_type(text)
