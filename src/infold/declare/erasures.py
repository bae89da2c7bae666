"""The columns with the keys of persons: ``erasures`` in infold.yml."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from infold.core.erasure import ErasedColumn, form_of
from infold.core.model import Source
from infold.declare.catalogs import check_secret
from infold.declare.keys import NAME, Keys
from infold.messages import findings
from infold.messages.catalog_errors import secret_written_out
from infold.messages.errors import InfoldError, Spot

KEY_OF_TARGET = "erasure_secret"


def read_erasures(
    section: Keys | None, sources: Mapping[str, Source], broken: Collection[str]
) -> dict[str, tuple[ErasedColumn, ...]]:
    """The columns of each source, by its name; sources that are ``broken`` are left out."""
    columns: dict[str, tuple[ErasedColumn, ...]] = {}
    if section is None:
        return columns
    for erasure, keys in section.sections("erasure"):
        if not NAME.match(erasure):
            form = "letters, digits and underscores, a letter first"
            error = findings.bad_name(keys.value.at, what="erasure", name=erasure, form=form)
            keys.errors.append(error)
        for name in keys.entries:
            if name in broken:
                continue
            if name not in sources:
                keys.errors.append(findings.unknown_key(keys.key_at(name), name, erasure, sources))
                continue
            column = _column_of(keys, name, sources[name])
            if column is not None:
                columns[name] = (*columns.get(name, ()), replace(column, erasure=erasure))
    return columns


def _column_of(keys: Keys, name: str, source: Source) -> ErasedColumn | None:
    """The column of a source that holds keys, as it is declared; None with the reason noted."""
    text = keys.text(name)
    if text is None:
        return None
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


def read_secret(keys: Keys) -> str:
    """The reference to the secret that erased keys are hashed with; empty where there is none."""
    text = (keys.text(KEY_OF_TARGET) or "").strip()
    return text if check_secret(keys, KEY_OF_TARGET, text, _written_out) else ""


def _written_out(at: Spot, key: str) -> InfoldError:
    return secret_written_out(at, key=key, form="${env:NAME}")
