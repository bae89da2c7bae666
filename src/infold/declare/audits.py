"""
Audits as they are declared: `audits` of a model, and the files in ``audits/``.

An entry of the list is one key that says what is asked, with `name`, `severity` and `where` beside
it. Whether the columns are there is for ``analysis.audits`` to say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from infold.core.audits import Audit, AuditKind, Severity, Within
from infold.core.functions import CalledFunction
from infold.core.model import Model
from infold.core.queries import text_literal
from infold.core.yaml_tree import Page, Value, read, split_front_matter
from infold.declare.functions import ProjectFunctions
from infold.declare.keys import Keys
from infold.messages import audit_findings, findings
from infold.messages.errors import InfoldError

BESIDE = ("name", "severity", "where")
KINDS = tuple(kind.value for kind in AuditKind if kind is not AuditKind.QUERY)
OF_FILES = ("model", "severity", "description")

_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?\Z")
_LONGEST_NAME = 60


def read_audits(keys: Keys, model: str) -> tuple[Audit, ...]:
    """The audits in a model's `audits`; what is wrong with them is noted in ``keys.errors``."""
    listed = keys.entries.get("audits")
    if listed is None:
        return ()
    if listed.kind != "a list":
        keys.errors.append(
            findings.wrong_type(listed.at, key="audits", wanted="a list", found=listed.kind)
        )
        return ()
    audits = (_read_audit(item, model, keys.errors) for item in listed.items)
    return with_names_apart([audit for audit in audits if audit is not None], model, keys.errors)


def with_names_apart(
    audits: Sequence[Audit], model: str, errors: list[InfoldError]
) -> tuple[Audit, ...]:
    """The audits of a model that have names of their own; the others are noted as errors."""
    known: dict[str, Audit] = {}
    for audit in audits:
        other = known.setdefault(audit.name.lower(), audit)
        if other is not audit:
            errors.append(
                audit_findings.duplicate_audit(
                    audit.at, model=model, name=audit.name, other=str(other.at)
                )
            )
    return tuple(known.values())


def _read_audit(item: Value, model: str, errors: list[InfoldError]) -> Audit | None:
    """One entry of the list; None when it is too wrong to go on."""
    if item.kind == "text":  # a word alone, such as no_gaps
        word, none = item.text, Value("nothing", item.at)
        item = Value("a mapping", item.at, entries={word: none}, keys={word: item.at})
    if item.kind != "a mapping":
        form = "a mapping such as not_null: [user_id]"
        errors.append(findings.wrong_type(item.at, key="audits[]", wanted=form, found=item.kind))
        return None
    keys = Keys(item, f"audit of model {model}", errors)
    before = len(errors)
    keys.check((*KINDS, *BESIDE))
    kinds = [key for key in keys.entries if key in KINDS]
    if len(kinds) != 1:
        if len(errors) == before:
            words = ", ".join(kinds) if kinds else "none"
            errors.append(audit_findings.not_one_audit(item.at, found=words, known=KINDS))
        return None
    [key] = kinds
    kind = AuditKind(key)
    fields = _READERS[kind](keys, key)
    name = keys.text("name")
    severity = keys.choice("severity", tuple(Severity))
    where = keys.text("where")
    if fields is None or len(errors) > before:
        return None
    at = keys.key_at(key)
    audit = Audit(
        name="",
        kind=kind,
        severity=Severity(severity or Severity.ERROR),
        where=where or "",
        file=at.file,
        line=at.line,
        **fields,  # type: ignore[arg-type]
    )
    return _named(audit, name)


def _named(audit: Audit, name: str | None) -> Audit:
    """The audit with its own name, or one that says what it asks."""
    if name is None:
        words = ", ".join(audit.columns) or " ".join(audit.sql.split())
        words += f" in {audit.to}" if audit.to else ""
        name = f"{audit.kind.value}({words})" if words else audit.kind.value
        if len(name) > _LONGEST_NAME:
            name = name[: _LONGEST_NAME - 1] + "…"
    return replace(audit, name=name)


Fields = Mapping[str, object]


def _columns(keys: Keys, key: str) -> Fields | None:
    """One column, or several."""
    columns = keys.texts(key)
    if not columns:
        _note_missing(keys, key, "a column, or a list of columns")
        return None
    return {"columns": columns}


def _unique(keys: Keys, key: str) -> Fields | None:
    value = keys.entries[key]
    if value.kind != "a mapping":
        return _columns(keys, key)
    section = _section(keys, key, ("columns", "within"))
    columns = section.texts("columns")
    if not columns:
        _note_missing(section, key, "`columns`")
        return None
    return {"columns": columns, "within": _within_cells(section, Within.TABLE)}


def _accepted_values(keys: Keys, key: str) -> Fields | None:
    section = _section(keys, key, ("column", "values"))
    column, listed = section.text("column"), section.entries.get("values")
    if column is None or listed is None or listed.kind != "a list" or not listed.items:
        _note_missing(section, key, "`column`, and `values` as a list")
        return None
    values = [_literal(section, f"{key}.values[]", item) for item in listed.items]
    return {"columns": (column,), "values": tuple(one for one in values if one)}


def _accepted_range(keys: Keys, key: str) -> Fields | None:
    section = _section(keys, key, ("column", "min", "max", "inclusive"))
    column, low, high = section.text("column"), _bound(section, "min"), _bound(section, "max")
    if column is None or not (low or high):
        _note_missing(section, key, "`column`, and `min` or `max`")
        return None
    inclusive = section.flag("inclusive", default=True)
    return {"columns": (column,), "minimum": low, "maximum": high, "inclusive": inclusive}


def _matches(keys: Keys, key: str) -> Fields | None:
    section = _section(keys, key, ("column", "pattern"))
    column, pattern = section.text("column"), section.text("pattern")
    if column is None or pattern is None:
        _note_missing(section, key, "`column` and `pattern`")
        return None
    return {"columns": (column,), "pattern": pattern}


def _expression(keys: Keys, key: str) -> Fields | None:
    text = keys.text(key)
    if text is None:
        return None
    at = keys.at(key)
    return {"sql": text.strip(), "sql_line": at.line}


def _relationship(keys: Keys, key: str) -> Fields | None:
    section = _section(keys, key, ("column", "columns", "to", "to_column", "to_columns"))
    columns = _one_or_several(section, "column", "columns")
    to = section.text("to")
    if not columns or to is None:
        _note_missing(section, key, "`column` and `to`, the name of a model")
        return None
    other_columns = _one_or_several(section, "to_column", "to_columns")
    return {"columns": columns, "to": to, "to_columns": other_columns or columns}


def _one_or_several(section: Keys, single: str, several: str) -> tuple[str, ...]:
    """Columns that are written as one, or as a list; both would be two answers to one question."""
    if single in section.entries:
        todo = "Name all columns in one of both."
        section.needless((several,), f"{section.where} with `{single}`", todo, full=True)
    return (*section.texts(single), *section.texts(several))


def _row_count(keys: Keys, key: str) -> Fields | None:
    section = _section(keys, key, ("min", "max", "within"))
    low, high = (_whole_number(section, name) for name in ("min", "max"))
    if not (low or high):
        _note_missing(section, key, "`min` or `max`")
        return None
    return {"minimum": low, "maximum": high, "within": _within_cells(section, Within.CELL)}


def _freshness(keys: Keys, key: str) -> Fields | None:
    section = _section(keys, key, ("column", "max_age"))
    age, column = section.span("max_age"), section.text("column")
    if age is None:
        _note_missing(section, key, "`max_age`, a length of time")
        return None
    return {"columns": (column,) if column else (), "max_age": age}


def _no_gaps(keys: Keys, key: str) -> Fields | None:
    value = keys.entries[key]
    plain = value.kind == "nothing" or (value.kind == "true or false" and value.text != "false")
    if not plain and (value.kind != "a mapping" or value.entries):
        form = "nothing but its name"
        keys.errors.append(findings.wrong_type(value.at, key=key, wanted=form, found=value.kind))
        return None
    return {}


_READERS: Mapping[AuditKind, Callable[[Keys, str], Fields | None]] = {
    AuditKind.NOT_NULL: _columns,
    AuditKind.UNIQUE: _unique,
    AuditKind.ACCEPTED_VALUES: _accepted_values,
    AuditKind.ACCEPTED_RANGE: _accepted_range,
    AuditKind.MATCHES: _matches,
    AuditKind.EXPRESSION: _expression,
    AuditKind.RELATIONSHIP: _relationship,
    AuditKind.ROW_COUNT: _row_count,
    AuditKind.FRESHNESS: _freshness,
    AuditKind.NO_GAPS: _no_gaps,
}


def _section(keys: Keys, key: str, known: tuple[str, ...]) -> Keys:
    """The arguments of an audit; none, with an error noted, where they are no mapping."""
    section = keys.section(key)
    if section is None:
        section = Keys(Value("a mapping", keys.at(key)), keys.where, keys.errors, f"{key}.")
    section.check(known)
    return section


def _note_missing(keys: Keys, key: str, arguments: str) -> None:
    """Note that arguments are missing, unless something about them is noted already."""
    at = keys.value.at
    if not any(error.at is not None and error.at.line == at.line for error in keys.errors):
        keys.errors.append(audit_findings.nothing_asked(at, kind=key, keys=arguments))


def _within_cells(section: Keys, default: Within) -> Within:
    return Within(section.choice("within", tuple(Within)) or default)


def _bound(section: Keys, key: str) -> str:
    value = section.entries.get(key)
    return "" if value is None else _literal(section, section.full_name(key), value)


def _whole_number(section: Keys, key: str) -> str:
    value = section.entries.get(key)
    if value is None:
        return ""
    if value.kind == "a number" and value.text.isdigit():
        return value.text
    form = "a whole number"
    section.errors.append(
        findings.wrong_type(value.at, key=section.full_name(key), wanted=form, found=value.text)
    )
    return ""


def _literal(keys: Keys, key: str, value: Value) -> str:
    """A value of YAML as a literal of SQL; empty, with an error noted, where it is none."""
    if value.kind in ("text", "a date"):
        return text_literal(value.text)
    if value.kind == "true or false":
        return "true" if value.text.lower() in ("true", "yes", "on") else "false"
    if value.kind == "a number" and _NUMBER.match(value.text):
        return value.text
    form = "a text, a number, a date, true or false"
    written = value.text or value.kind
    keys.errors.append(findings.wrong_type(value.at, key=key, wanted=form, found=written))
    return ""


# -- files


@dataclass(frozen=True, slots=True)
class FileAudit:
    """An audit in a file: the model that it is about, and the functions that it calls."""

    model: str
    audit: Audit
    called: tuple[CalledFunction, ...]


def read_audit_file(
    file: str,
    text: str,
    models: Mapping[str, Model],
    broken: Sequence[str],
    functions: ProjectFunctions,
    errors: list[InfoldError],
) -> FileAudit | None:
    """
    The model that a file in ``audits/`` is about, and its audit; None with errors noted.

    Nothing is said of an audit of one of the ``broken`` models, which have errors of their own.
    """
    before = len(errors)
    try:
        front = split_front_matter(file, text)
        parsed, called = functions.parse(file, text, front.sql_start)
    except InfoldError as error:
        errors.extend(error.each)
        return None
    page = Page(file, tuple(text.splitlines()), front.above)
    value = read(page, front.text, errors) or Value("a mapping", front.at)
    if value.kind != "a mapping":
        wrong = findings.wrong_type(
            value.at, key="front matter", wanted="a mapping", found=value.kind
        )
        errors.append(wrong)
        return None
    keys = Keys(value, f"audit {PurePosixPath(file).stem}", errors)
    keys.check(OF_FILES)
    model, severity = keys.text("model"), keys.choice("severity", tuple(Severity))
    if "model" not in keys.entries:
        keys.missing("model", "this SELECT finds bad rows of that model")
    if model is None or len(errors) > before:
        return None
    names = {name.lower(): name for name in models}
    if model.lower() in map(str.lower, broken):
        return None
    if model.lower() not in names:
        at = keys.at("model")
        errors.append(audit_findings.no_such_model(at, model=model, known=tuple(models)))
        return None
    audit = Audit(
        name=PurePosixPath(file).stem,
        kind=AuditKind.QUERY,
        severity=Severity(severity or Severity.ERROR),
        sql=parsed.text.sql,
        file=file,
        line=keys.at("model").line,
        sql_line=parsed.text.line,
    )
    return FileAudit(names[model.lower()], audit, tuple(called))
