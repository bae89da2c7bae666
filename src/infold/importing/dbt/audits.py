"""Tests of dbt as audits: generic ones of properties files, and SELECTs of bad rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from sqlglot import exp

from infold.importing.dbt.folder import DbtFolder, Properties
from infold.importing.dbt.templates import NotRenderedError, Templates
from infold.importing.dialects import SPARK, NotTranslatedError, parsed, spark_text
from infold.importing.draft import Audit, DraftFile, Line, left, project_name
from infold.importing.project_files import Lined, as_list, as_mapping, line_of

_THRESHOLDS = ("error_if", "warn_if", "fail_calc", "limit")
_CONFIG = ("severity", "where", "tags", "enabled", "store_failures", "name", *_THRESHOLDS)


@dataclass(frozen=True, slots=True)
class Test:
    """A generic test of a column or of a whole model, as a properties file has it."""

    name: str
    column: str
    arguments: Mapping[str, Any]
    config: Mapping[str, Any]
    at: str

    @property
    def shown(self) -> str:
        """How the report names it."""
        return f"{self.name}({self.column})" if self.column else self.name


def tests_in(entry: Properties) -> Iterator[Test]:
    """Every test of an entry, of its columns first."""
    for column in as_list(entry.found.get("columns")):
        if isinstance(column, Lined):
            at = f"{entry.file}:{line_of(column)}"
            name = str(column.get("name", ""))
            for test in (*as_list(column.get("tests")), *as_list(column.get("data_tests"))):
                yield _test(test, name, at)
    for test in (*as_list(entry.found.get("tests")), *as_list(entry.found.get("data_tests"))):
        yield _test(test, "", entry.at)


def _test(declared: Any, column: str, at: str) -> Test:
    if not isinstance(declared, Lined):
        return Test(str(declared), column, {}, {}, at)
    if "test_name" in declared:
        name, given = str(declared["test_name"]), declared
    else:
        name = next(iter(declared), "")
        given = as_mapping(declared.get(name))
    at = f"{at.rpartition(':')[0]}:{line_of(declared)}" if line_of(declared) else at
    words = {**given, **as_mapping(given.get("arguments"))}
    config = {**{k: v for k, v in words.items() if k in _CONFIG}, **as_mapping(given.get("config"))}
    arguments = {
        key: value
        for key, value in words.items()
        if key not in (*_CONFIG, "config", "arguments", "description", "meta", "test_name")
    }
    return Test(name, str(arguments.pop("column_name", column)), arguments, config, at)


def audits_of(
    entry: Properties, model: str, templates: Templates, lines: list[Line]
) -> list[Audit]:
    """The audits of a model; the report says which tests are none."""
    audits: dict[str, Audit] = {}
    for test in tests_in(entry):
        try:
            entry_made = _entry(test, templates)
        except _NoAuditError as error:
            lines.append(left(f"test of {model}: {test.shown}", test.at, str(error)))
            continue
        audits.setdefault(str(entry_made), Audit(entry_made, test.at))
    return list(audits.values())


class _NoAuditError(Exception):
    """A test that no audit is; the argument says why."""


def _entry(test: Test, templates: Templates) -> dict[str, Any]:
    for key in _THRESHOLDS:
        if key in test.config:
            raise _NoAuditError(f"{key}: an audit has no thresholds")
    if str(test.config.get("enabled", True)).lower() == "false":
        raise _NoAuditError("it is disabled")
    maker = _MAKERS.get(test.name.removeprefix("dbt."))
    if maker is None:
        raise _NoAuditError("infold has no such audit; write a SELECT of bad rows into audits/")
    entry = maker(test, templates)
    if str(test.config.get("severity", "error")).lower() == "warn":
        entry["severity"] = "warn"
    if where := test.config.get("where"):
        entry["where"] = _rendered(str(where), test, templates)
    return entry


def _rendered(text: str, test: Test, templates: Templates) -> str:
    try:
        return templates.render(test.at, text).text
    except NotRenderedError as error:
        raise _NoAuditError(f"jinja that only dbt resolves: {error.what}") from error


def _columns(name: str) -> Callable[[Test, Templates], dict[str, Any]]:
    def make(test: Test, _: Templates) -> dict[str, Any]:
        if not test.column:
            raise _NoAuditError("it names no column")
        return {name: [_column(test)]}

    return make


def _column(test: Test) -> str:
    """The column's name; an expression is none."""
    if not test.column.replace("_", "a").isalnum():
        raise _NoAuditError(f"{test.column} is no column")
    return test.column


def _accepted_values(test: Test, _: Templates) -> dict[str, Any]:
    values = as_list(test.arguments.get("values"))
    if test.arguments.get("quote", True) is not False:
        values = [value if isinstance(value, bool) else str(value) for value in values]
    return {"accepted_values": {"column": _column(test), "values": values}}


def _relationships(test: Test, templates: Templates) -> dict[str, Any]:
    to = _rendered("{{ " + str(test.arguments.get("to", "")) + " }}", test, templates)
    field = str(test.arguments.get("field", ""))
    if "." in to:
        raise _NoAuditError("it reads a source: an audit reads models")
    return {"relationship": {"column": _column(test), "to": to, "to_column": field}}


def _accepted_range(test: Test, templates: Templates) -> dict[str, Any]:
    limits: dict[str, Any] = {"column": _column(test)}
    for theirs, ours in (("min_value", "min"), ("max_value", "max")):
        value = test.arguments.get(theirs)
        if isinstance(value, str):
            text = _rendered(value, test, templates)
            if not text.replace(".", "", 1).lstrip("-").isdigit():
                raise _NoAuditError(f"{theirs} is an expression: use `expression`")
            value = float(text) if "." in text else int(text)
        if value is not None:
            limits[ours] = value
    if test.arguments.get("inclusive") is False:
        limits["inclusive"] = False
    return {"accepted_range": limits}


def _expression(test: Test, templates: Templates) -> dict[str, Any]:
    text = _rendered(str(test.arguments.get("expression", "")), test, templates)
    text = f"{test.column} {text}".strip()
    # dbt finds rows WHERE NOT (…), and NULL is no such row: as an audit's `expression`.
    return {"expression": text}


def _combination(test: Test, _: Templates) -> dict[str, Any]:
    names = test.arguments.get("combination_of_columns", test.arguments.get("column_list"))
    return {"unique": [str(name) for name in as_list(names)]}


def _not_empty(test: Test, _: Templates) -> dict[str, Any]:
    return {"expression": f"trim({_column(test)}) <> ''"}


def _regex(test: Test, _: Templates) -> dict[str, Any]:
    return {"matches": {"column": _column(test), "pattern": str(test.arguments.get("regex", ""))}}


_MAKERS: Mapping[str, Callable[[Test, Templates], dict[str, Any]]] = {
    "not_null": _columns("not_null"),
    "unique": _columns("unique"),
    "accepted_values": _accepted_values,
    "relationships": _relationships,
    "dbt_utils.accepted_range": _accepted_range,
    "dbt_utils.expression_is_true": _expression,
    "dbt_utils.unique_combination_of_columns": _combination,
    "dbt_utils.not_empty_string": _not_empty,
    "dbt_expectations.expect_column_values_to_not_be_null": _columns("not_null"),
    "dbt_expectations.expect_column_values_to_be_unique": _columns("unique"),
    "dbt_expectations.expect_compound_columns_to_be_unique": _combination,
    "dbt_expectations.expect_column_values_to_match_regex": _regex,
}


def singular_tests(
    folder: DbtFolder, templates: Templates, dialect: str, lines: list[Line]
) -> Iterator[DraftFile]:
    """The SELECTs of ``tests/`` as files of ``audits/``."""
    for file, text in folder.tests.items():
        name = PurePosixPath(file).stem
        what = f"test {name}"
        try:
            rendered = templates.render(file, text)
            tree = parsed(rendered.text, dialect)
            query = rendered.text if dialect in SPARK else spark_text(tree)
        except NotRenderedError as error:
            lines.append(left(what, error.at, f"jinja that only dbt resolves: {error.what}"))
            continue
        except NotTranslatedError as error:
            lines.append(left(what, file, f"SQL that cannot be read as Spark's: {error}"))
            continue
        model = _audited(tree, templates)
        if model is None:
            lines.append(left(what, file, "it reads no model"))
            continue
        severity = str(rendered.config.get("severity", "error")).lower()
        head = f"---\nmodel: {model}\n" + ("severity: warn\n" if severity == "warn" else "")
        body = f"{head}---\n{query.strip().rstrip(';')}\n"
        path = f"audits/{project_name(name)}.sql"
        yield DraftFile(path, body, what, file, frozenset({model}))


def _audited(tree: exp.Expr, templates: Templates) -> str | None:
    """The model that a test is about: the first that its query reads."""
    known = set(templates.names.refs.values())
    ctes = {cte.alias for cte in tree.find_all(exp.CTE)}
    tables = [table.name for table in tree.find_all(exp.Table) if table.name not in ctes]
    return next((name for name in tables if name in known), None)
