"""The columns with the keys of persons: ``erasures`` in infold.yml."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from infold.core.erasure import ErasedColumn, RequestColumns, form_of
from infold.core.model import Source
from infold.core.project import Node, Project
from infold.declare.catalogs import check_secret
from infold.declare.keys import NAME, Keys
from infold.declare.sources import time_column
from infold.messages import findings
from infold.messages.catalog_errors import secret_written_out
from infold.messages.errors import InfoldError, Spot

KEY_OF_TARGET, PURGE_OF_TARGET = "erasure_secret", "erasure_purge"
CERTIFICATE_KEY = "erasure_certificate_key"
NEVER, AT_ONCE = "never", "at_once"
"""Words in place of a length of time: for what never ends, and for one of 0."""


def read_erasures(
    section: Keys | None, project: Project, broken: Collection[str]
) -> dict[str, tuple[ErasedColumn, ...]]:
    """
    The columns of each source, by its name. What is named and ``broken`` is left out.

    A column of a model of events is the column of its source that it passes on.
    """
    columns: dict[str, tuple[ErasedColumn, ...]] = {}
    if section is None:
        return columns
    for erasure, keys in section.sections("erasure"):
        if not NAME.match(erasure):
            form = "letters, digits and underscores, a letter first"
            error = findings.bad_name(keys.value.at, what="erasure", name=erasure, form=form)
            keys.errors.append(error)
        chosen: dict[str, ErasedColumn] = {}
        for name in keys.entries:
            found = None if name in broken else _column_of(keys, name, project)
            if found is None:
                continue
            source, column = found
            other = chosen.setdefault(source, replace(column, erasure=erasure))
            if other.column != column.column:
                keys.errors.append(
                    findings.two_erased_columns(
                        keys.at(name),
                        of=erasure,
                        source=source,
                        columns=(other.column, column.column),
                    )
                )
        for source, column in chosen.items():
            columns[source] = (*columns.get(source, ()), column)
    return columns


def _column_of(keys: Keys, name: str, project: Project) -> tuple[str, ErasedColumn] | None:
    """A source and its column that holds keys, as it is declared; None with the reason noted."""
    source = project.sources.get(name)
    model = project[name] if source is None and name in project else None
    if model is not None:
        source = project.sources.get(model.source or "")
    if source is None:
        events = [node.name for node in project if node.source is not None and not node.landed]
        at = keys.key_at(name)
        keys.errors.append(
            findings.unknown_key(at, name, keys.where, (*project.sources, *events))
            if model is None
            else findings.not_erasable(at, name=name, known=events)
        )
        return None
    text = keys.text(name)
    if text is not None and model is not None:
        text = _passed_column(keys, name, project, model, source)
    column = None if text is None else _key_column(keys, name, text, source)
    return None if column is None else (source.name, column)


def _passed_column(
    keys: Keys, name: str, project: Project, model: Node, source: Source
) -> str | None:
    """The column of its source that a model of events passes on as the one that is named."""
    from infold.analysis.definitions.column_sources import passed_columns

    text, at, key = keys.entries[name].text, keys.at(name), keys.full_name(name)
    passed = {own.lower(): of for own, of in passed_columns(project, model, source).items()}
    if text.lower() in passed:
        return passed[text.lower()]
    names = {own.lower(): own for own in model.columns}
    if names and text.lower() not in names:
        error = findings.no_such_column(at, key=key, column=text, known=[*names.values()])
    else:
        own = names.get(text.lower(), text)
        error = findings.computed_key(at, key=key, column=own, model=name, source=source.name)
    keys.errors.append(error)
    return None


def _key_column(keys: Keys, name: str, text: str, source: Source) -> ErasedColumn | None:
    """A column of a source that holds keys; None with the reason noted."""
    at, key = keys.at(name), keys.full_name(name)
    known = {column.name.lower(): column for column in source.columns}
    column = known.get(text.lower())
    if column is None:
        names = [column.name for column in source.columns]
        keys.errors.append(findings.no_such_column(at, key=key, column=text, known=names))
        return None
    form = form_of(column.type)
    if form is None:
        error = findings.not_a_key(at, key=key, column=column.name, type_=column.type)
        keys.errors.append(error)
    elif column.optional:
        keys.errors.append(findings.optional_key(at, key=key, column=column.name))
    else:
        return ErasedColumn("", column.name, form)
    return None


REQUEST_KEYS = ("key", "requested_at", "id")


def read_request_columns(
    section: Keys | None,
    erasures: Keys | None,
    sources: Mapping[str, Source],
    broken: Collection[str],
) -> tuple[RequestColumns, ...]:
    """The sources with requests; what is ``broken`` is left out."""
    found = []
    known = erasures.entries if erasures is not None else {}
    for erasure, keys in section.sections("erasure") if section is not None else ():
        if section is not None and erasure not in known:
            at = section.key_at(erasure)
            keys.errors.append(findings.unknown_key(at, erasure, "erasures", known))
        for name, columns in keys.sections("requests of"):
            columns.check(REQUEST_KEYS)
            if name not in sources:
                if name not in broken:
                    at = keys.key_at(name)
                    keys.errors.append(findings.unknown_key(at, name, keys.where, sources))
                continue
            source = sources[name]
            if "key" not in columns.entries:
                columns.missing("key")
            own = {
                key: column.column
                for key in ("key", "id")
                if (text := columns.text(key)) is not None
                and (column := _key_column(columns, key, text, source)) is not None
            }
            at_column = time_column(columns, "requested_at", source.columns)
            if "key" in own:
                found.append(RequestColumns(erasure, source, own["key"], at_column, own.get("id")))
    return tuple(found)


def read_secret(keys: Keys, key: str) -> str:
    """The reference to a secret of a target; empty where there is none."""
    text = (keys.text(key) or "").strip()
    return text if check_secret(keys, key, text, _written_out) else ""


def _written_out(at: Spot, key: str) -> InfoldError:
    return secret_written_out(at, key=key, form="${env:NAME}")


def read_purge(keys: Keys) -> int | None:
    """How long after a request a purge is due; None: it is whenever somebody asks for it."""
    value = keys.entries.get(PURGE_OF_TARGET)
    if value is not None and value.text in (NEVER, AT_ONCE):
        return 0 if value.text == AT_ONCE else None
    return keys.span(PURGE_OF_TARGET)
