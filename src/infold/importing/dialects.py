"""SQL of another dialect as Spark's, and types of other systems as Spark's."""

from __future__ import annotations

from sqlglot import exp, parse_one
from sqlglot.errors import ErrorLevel, SqlglotError, UnsupportedError

from infold.importing.draft import Line, changed

SPARK = frozenset({"", "spark", "spark2", "spark3", "databricks"})
"""Dialects whose text is left as it is."""

DIALECTS = (
    "athena", "bigquery", "clickhouse", "databricks", "duckdb", "fabric", "hive", "mysql",
    "oracle", "postgres", "presto", "redshift", "snowflake", "spark", "sqlite", "trino", "tsql",
)  # fmt: skip
"""What ``--dialect`` takes, by sqlglot's names."""


class NotTranslatedError(Exception):
    """A text has no equal in Spark, or cannot be read; the argument says why."""


def of_translation(dialect: str) -> list[Line]:
    """What is said of a project whose SQL is not Spark's."""
    if dialect in SPARK:
        return []
    why = "sqlglot translated the SQL: compare the rows, as functions alike may differ in corners"
    return [changed(f"dialect {dialect}", "", why)]


def to_spark(text: str, dialect: str) -> str:
    """A query in Spark SQL; one of Spark's own dialect keeps its layout. May raise."""
    if dialect in SPARK:
        return text
    return spark_text(parsed(text, dialect))


def parsed(text: str, dialect: str) -> exp.Expr:
    """A query's tree. May raise."""
    try:
        return parse_one(text, dialect=dialect or "spark")
    except (SqlglotError, ValueError, RecursionError) as error:  # of an unknown dialect, too
        raise NotTranslatedError(_first_line(error)) from error


def spark_text(tree: exp.Expr) -> str:
    """A tree as Spark SQL, laid out. May raise."""
    try:
        return tree.sql("spark", pretty=True, unsupported_level=ErrorLevel.RAISE)
    except UnsupportedError as error:
        raise NotTranslatedError(f"Spark has no equal: {_first_line(error)}") from error


def spark_type(text: str, dialect: str = "") -> str | None:
    """A column's type as infold declares it, None if there is no equal."""
    from infold.core.type_changes import is_type

    try:
        type_ = exp.DataType.build(text, dialect=dialect or "spark").sql("spark").replace(", ", ",")
    except (SqlglotError, ValueError):
        return None
    # Spark's session is in UTC, where a time without a zone is that instant.
    type_ = type_.replace("TIMESTAMP_NTZ", "TIMESTAMP")
    type_ = type_ if "<" in type_ else type_.lower()
    return type_ if is_type(type_) else None


def _first_line(error: Exception) -> str:
    import re

    text = re.sub(r"\x1b\[\d+m", "", str(error))
    return " ".join(text.split())[:200]


def grouped_by(tree: exp.Query) -> set[str]:
    """The output columns that the outermost SELECT groups by, in lower case."""
    group = tree.args.get("group") if isinstance(tree, exp.Select) else None
    if not isinstance(tree, exp.Select) or not isinstance(group, exp.Group):
        return set()
    columns = set()
    for key in group.expressions:
        if isinstance(key, exp.Literal) and key.is_int:
            place = int(key.name) - 1
            if place < len(tree.selects):
                columns.add(tree.selects[place].alias_or_name.lower())
        else:
            named = [s for s in tree.selects if s.unalias() == key]
            columns.add((named[0] if named else key).alias_or_name.lower())
    return columns
