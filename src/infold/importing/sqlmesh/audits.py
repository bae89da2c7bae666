"""Audits of SQLMesh: those that it brings along by infold's own, others as SELECTs of bad rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from infold.importing.dialects import NotTranslatedError, to_spark
from infold.importing.sqlmesh.blocks import inner, names, split, unquoted


@dataclass(frozen=True, slots=True)
class OwnAudit:
    """An audit of the project: its query as it is written, and what its block says."""

    name: str
    at: str
    query: str
    block: Mapping[str, str]


class NoAuditError(Exception):
    """An audit that infold has no equal of; the argument says why."""


def builtin(name: str, given: Mapping[str, str], dialect: str) -> list[dict[str, Any]]:
    """The entries of front matter for an audit that SQLMesh brings along. Raises NoAuditError."""
    bare = name.removesuffix("_non_blocking")
    if bare not in _MAKERS:
        raise NoAuditError("infold has no such audit; write a SELECT of bad rows into audits/")
    entries = _MAKERS[bare](given, dialect)
    warn = bare != name or given.get("blocking", "").lower() == "false"
    if condition := given.get("condition"):
        entries = [{**entry, "where": _sql(condition, dialect)} for entry in entries]
    return [{**entry, "severity": "warn"} for entry in entries] if warn else entries


def _sql(text: str, dialect: str) -> str:
    try:
        found = to_spark(f"SELECT {text}", dialect)
    except NotTranslatedError as error:
        raise NoAuditError(str(error)) from error
    return " ".join(found.split()).removeprefix("SELECT ")


def _columns(of: str) -> Callable[[Mapping[str, str], str], list[dict[str, Any]]]:
    def make(given: Mapping[str, str], _: str) -> list[dict[str, Any]]:
        return [{of: names(given.get("columns", ""))}]

    return make


def _each_unique(given: Mapping[str, str], _: str) -> list[dict[str, Any]]:
    return [{"unique": [name]} for name in names(given.get("columns", ""))]


def _accepted_values(given: Mapping[str, str], _: str) -> list[dict[str, Any]]:
    values = split(inner(given.get("is_in", "")))
    found = {"column": unquoted(given.get("column", "")), "values": [_value(v) for v in values]}
    return [{"accepted_values": found}]


def _accepted_range(given: Mapping[str, str], _: str) -> list[dict[str, Any]]:
    found: dict[str, Any] = {"column": unquoted(given.get("column", ""))}
    for theirs, ours in (("min_v", "min"), ("max_v", "max")):
        if theirs in given:
            found[ours] = _value(given[theirs])
    if given.get("inclusive", "").lower() == "false":
        found["inclusive"] = False
    return [{"accepted_range": found}]


def _forall(given: Mapping[str, str], dialect: str) -> list[dict[str, Any]]:
    criteria = given.get("criteria", "")
    listed = split(inner(criteria)) if criteria[:1] in "([" else [criteria]
    return [{"expression": _sql(each, dialect)} for each in listed]


def _row_count(given: Mapping[str, str], _: str) -> list[dict[str, Any]]:
    """SQLMesh asks for more than the threshold, of an interval's rows; infold of the table's."""
    threshold = given.get("threshold", "0")
    if not threshold.isdigit():
        raise NoAuditError(f"threshold {threshold} is no number")
    return [{"row_count": {"min": int(threshold) + 1, "within": "table"}}]


def _pattern(given: Mapping[str, str], _: str) -> list[dict[str, Any]]:
    patterns = names(given.get("patterns", ""))
    if len(patterns) != 1:
        raise NoAuditError("several patterns: `matches` has one")
    return [{"matches": {"column": unquoted(given.get("column", "")), "pattern": patterns[0]}}]


def _value(text: str) -> Any:
    """A literal as YAML has it."""
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if re.fullmatch(r"-?\d+\.\d+", text):
        return float(text)
    if text[:1] not in "'\"":
        raise NoAuditError(f"{text} is no literal")
    return unquoted(text)


_MAKERS: Mapping[str, Callable[[Mapping[str, str], str], list[dict[str, Any]]]] = {
    "not_null": _columns("not_null"),
    "unique_values": _each_unique,
    "unique_combination_of_columns": _columns("unique"),
    "accepted_values": _accepted_values,
    "accepted_range": _accepted_range,
    "forall": _forall,
    "number_of_rows": _row_count,
    "match_regex_pattern_list": _pattern,
}


def own_query(audit: OwnAudit, model: str, given: Mapping[str, str]) -> str:
    """The query of an audit for one model, with its arguments; other macros stay in it."""
    values = {
        **{key.lower(): value for key, value in _defaults(audit).items()},
        **{key.lower(): value for key, value in given.items()},
    }
    text = re.sub(r"@this_model\b", model, audit.query, flags=re.IGNORECASE)
    return re.sub(r"@(\w+)", lambda match: values.get(match[1].lower(), match[0]), text)


def _defaults(audit: OwnAudit) -> Mapping[str, str]:
    from infold.importing.sqlmesh.blocks import properties

    return properties(f"d({inner(audit.block['defaults'])})") if "defaults" in audit.block else {}
