"""
Other names for columns whose names are infold's own.

Loaders add columns such as ``_fivetran_synced`` or ``_sdc_batched_at``. A name with an underscore
in front is refused in a table of infold's, so such a column of a source gets another one, in the
source and in all queries. Its rows are to be landed by that name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from infold.importing.columns import source_columns
from infold.importing.draft import Draft
from infold.importing.report import Line, changed

_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)


def without_own_names(draft: Draft) -> Draft:
    """The same draft, with other names for such columns of its sources."""
    found = source_columns(draft)
    names = sorted({name for columns in found.values() for name in columns.dropped})
    if not names:
        return draft
    new = {name.lower(): other_name(name) for name in names}
    models = tuple(
        replace(
            model,
            query=_renamed(model.query, new),
            time_column=new.get(model.time_column.lower(), model.time_column),
        )
        for model in draft.models
    )
    sources = tuple(
        replace(one, columns={new.get(n.lower(), n): type_ for n, type_ in one.columns.items()})
        for one in draft.sources
    )
    lines: list[Line] = []
    for source in draft.sources:
        for name in sorted(found[source.name].dropped):
            why = (
                f"{name} is {new[name.lower()]}: land it so, as names with _ in front are infold's"
            )
            lines.append(changed(f"source {source.name}", source.at, why))
    return replace(draft, models=models, sources=sources, lines=(*draft.lines, *lines))


def other_name(name: str) -> str:
    """A name without underscores in front, which still begins with a letter."""
    bare = name.lstrip("_")
    return bare if bare[:1].isalpha() else f"col{name}"


def _renamed(query: str, names: Mapping[str, str]) -> str:
    """A query with other names; texts and comments stay as they are."""
    if not any(name in query.lower() for name in names):
        return query
    try:
        tokens = Spark().tokenize(query)
    except SqlglotError:
        return query
    parts, end = [], 0
    for token in tokens:
        if token.token_type in _NAMES and token.text.lower() in names:
            parts += [query[end : token.start], names[token.text.lower()]]
            end = token.end + 1
    return "".join([*parts, query[end:]])
