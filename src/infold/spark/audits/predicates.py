"""Audits of one row as predicates of Spark SQL: true for a bad row, false for any other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.audits import Audit, AuditKind
from infold.core.quoting import quoted, text_literal
from infold.messages import audit_findings
from infold.messages.errors import InfoldError

Types = Mapping[str, T.DataType]
"""The types of columns by their names in lower case."""


def types_of(rows: DataFrame) -> Types:
    """The types of a frame's columns."""
    return {field.name.lower(): field.dataType for field in rows.schema.fields}


def bad_row(audit: Audit, types: Types) -> str:
    """
    A predicate over one row, never NULL; ``audit`` is one of those that are ``of_one_row``.

    Raises InfoldError where a column is of a type that cannot be asked like this.
    """
    bad = _BAD[audit.kind](audit, types)
    return f"coalesce({bad}, false){where(audit)}"


def where(audit: Audit) -> str:
    """What limits an audit to some rows, to be put behind another condition."""
    return f" AND coalesce((\n{audit.where}\n), false)" if audit.where else ""


def _not_null(audit: Audit, types: Types) -> str:
    del types
    return "(" + " OR ".join(f"{quoted(name)} IS NULL" for name in audit.columns) + ")"


def _accepted_values(audit: Audit, types: Types) -> str:
    [name] = audit.columns
    values = ", ".join(_as_column(audit, value, name, types) for value in audit.values)
    return f"NOT {quoted(name)} IN ({values})"


def _accepted_range(audit: Audit, types: Types) -> str:
    [name] = audit.columns
    type_ = types[name.lower()]
    if not isinstance(type_, (T.NumericType, T.DateType, T.StringType, *_TIMES)):
        raise _wrong_type(audit, name, type_, "numbers, times or texts")
    below, above = ("<", ">") if audit.inclusive else ("<=", ">=")
    parts = [
        f"{quoted(name)} {than} {_as_column(audit, bound, name, types)}"
        for than, bound in ((below, audit.minimum), (above, audit.maximum))
        if bound
    ]
    return "(" + " OR ".join(parts) + ")"


def _matches(audit: Audit, types: Types) -> str:
    [name] = audit.columns
    type_ = types[name.lower()]
    if not isinstance(type_, T.StringType):
        raise _wrong_type(audit, name, type_, "texts")
    return f"NOT {quoted(name)} RLIKE {text_literal(audit.pattern)}"


def _expression(audit: Audit, types: Types) -> str:
    del types
    return f"NOT (\n{audit.sql}\n)"


_BAD: Mapping[AuditKind, Callable[[Audit, Types], str]] = {
    AuditKind.NOT_NULL: _not_null,
    AuditKind.ACCEPTED_VALUES: _accepted_values,
    AuditKind.ACCEPTED_RANGE: _accepted_range,
    AuditKind.MATCHES: _matches,
    AuditKind.EXPRESSION: _expression,
}
_TIMES = (T.TimestampType, T.TimestampNTZType)


def _as_column(audit: Audit, literal: str, name: str, types: Types) -> str:
    """
    A literal to compare a column with.

    Texts become values of the column's type; numbers and truth are compared as they are, with
    columns of such types alone: a text that is cast to a number could fail in any row.
    """
    type_ = types[name.lower()]
    if literal.startswith("'"):
        return f"CAST({literal} AS {type_.simpleString()})"
    flag = literal in ("true", "false")
    if flag != isinstance(type_, T.BooleanType) or not (flag or isinstance(type_, T.NumericType)):
        raise _wrong_type(audit, name, type_, f"values such as {literal}")
    return literal


def _wrong_type(audit: Audit, name: str, type_: T.DataType, wanted: str) -> InfoldError:
    return audit_findings.wrong_column_type(
        audit.at,
        kind=audit.kind.value,
        column=name,
        type_=type_.simpleString(),
        wanted=wanted,
    )


def refuse_wrong(model: str, audits: Sequence[Audit], rows: DataFrame) -> None:
    """
    Raise what is wrong with the first audit that cannot be judged on rows of these columns.

    Nothing is read. Literals and patterns are evaluated, as a row would only do that later.
    """
    types = types_of(rows)
    for audit in audits:
        for name in audit.columns:
            if name.lower() not in types:
                raise audit_findings.refused_audit(
                    audit.at, name=audit.name, model=model, why=f"there is no column {name}"
                )
    try:
        _analyse(audits, rows, types)  # all at once, as each call of Spark costs milliseconds
    except (PySparkException, Py4JError):
        for audit in audits:
            try:
                _analyse([audit], rows, types)
            except (PySparkException, Py4JError) as error:
                raise refused(model, audit, error) from error
        raise


def _analyse(audits: Sequence[Audit], rows: DataFrame, types: Types) -> None:
    """Let Spark analyse the predicates of audits, and evaluate what they have besides rows."""
    tests = [
        bad_row(one, types) if one.of_one_row else f"true{where(one)}"
        for one in audits
        if one.of_one_row or one.where
    ]
    if tests:
        rows.select(*map(F.expr, tests)).schema  # noqa: B018 (is analysed)
    values = [value for one in audits for value in _values(one, types)]
    if values:
        named = ", ".join(f"{sql} AS v{at}" for at, sql in enumerate(values))
        # One row.
        rows.sparkSession.sql(f"SELECT {named}").collect()


def refused(model: str, audit: Audit, error: Exception) -> InfoldError:
    """What Spark says of an audit, as a mistake in it."""
    lines = (line.strip() for line in str(error).splitlines())
    first = next(filter(None, lines), type(error).__name__)
    why = first.split(" SQLSTATE: ")[0][:500]
    return audit_findings.refused_audit(audit.at, name=audit.name, model=model, why=why)


def _values(audit: Audit, types: Types) -> list[str]:
    """What an audit has besides the row, as SQL."""
    found = [
        f"CAST({one} AS {types[name.lower()].simpleString()})"
        for name in audit.columns[:1]
        for one in (*audit.values, audit.minimum, audit.maximum)
        if one.startswith("'")
    ]
    if audit.pattern:
        found.append(f"'' RLIKE {text_literal(audit.pattern)}")
    return found
