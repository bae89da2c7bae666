"""
Taking the query of an ``scd_type_2`` model apart: its keys, its instants, what it reads.

The query gives at most one row for each row of one table, so the versions of a key follow from the
table's rows with that key.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from infold.analysis.cumulative_query import CumulativeSplitter
from infold.analysis.names.relation import Block
from infold.analysis.names.select_parts import calls_over_rows, clauses_beyond_row_wise
from infold.analysis.names.subject import Subject
from infold.core.queries import (
    ALL_COLUMNS,
    VALID_FROM,
    VALID_TO,
    GroupedQuery,
    Output,
    VersionedQuery,
)
from infold.core.quoting import quoted
from infold.messages import refusals
from infold.messages.errors import InfoldError


@dataclass(frozen=True, slots=True)
class VersionedParts:
    """The parts of a query of versions, and what was wrong with it."""

    query: VersionedQuery | None
    errors: tuple[InfoldError, ...] = ()


def split_versioned_query(subject: Subject) -> VersionedParts:
    """The parts of the query of an ``scd_type_2`` model."""
    rules, block, text = subject.model.versions, subject.relation, subject.text
    assert rules is not None, "such a model declares what a version is"
    refused = [
        refusals.not_versions(at, what=what) for what, at in clauses_beyond_row_wise(text, block)
    ]
    if refused or not isinstance(block, Block):
        return VersionedParts(None, tuple(refused))
    refused += [
        refusals.not_versions(text.spot_of(node), what=what)
        for what, node in calls_over_rows(block)
    ]
    if text.tokens[0].text.upper() != "SELECT":
        what = f"{text.tokens[0].text} before SELECT"
        refused.append(refusals.not_versions(text.spot_of_token(text.tokens[0]), what=what))
    refused += _wrong_names(subject, block)
    if refused:
        return VersionedParts(None, tuple(refused))
    splitter = CumulativeSplitter(subject, block)
    for key in (*subject.model.unique_key, rules.updated_at):
        item = _item_of(block, key)
        if item and any(part in block.aliases for part in item.find_all(exp.Column)):
            what = "a key or a time made of another output"
            start, stop = _span(splitter, block, item)
            at = text.spot(text.tokens[start].start, text.tokens[stop - 1].end + 1)
            refused.append(refusals.not_versions(at, what=what))
    if refused:
        return VersionedParts(None, tuple(refused))
    name = splitter.input()
    if splitter.errors:
        return VersionedParts(None, tuple(splitter.errors))
    names = {column.lower(): column for column in block.columns or ()}
    declared = (*subject.model.unique_key, rules.updated_at, *rules.columns)
    if not {name.lower() for name in declared} <= names.keys() | {ALL_COLUMNS}:
        return VersionedParts(None)  # which the rule on columns says
    keys = tuple(
        Output(names[key.lower()], _sql_of(splitter, block, key))
        for key in subject.model.unique_key
    )
    time = _sql_of(splitter, block, rules.updated_at)
    # A row without its instant is a version at no time.
    where = " AND ".join(
        f"({part})" for part in (splitter.where(), f"({time}) IS NOT NULL") if part is not None
    )
    stars = any(map(_is_star, block.node.expressions))
    grouped = GroupedQuery(name, keys, where, None if stars else splitter.columns())
    compared = None
    if rules.columns:
        others = {key.lower() for key in subject.model.unique_key} | {rules.updated_at.lower()}
        chosen = names if rules.columns == (ALL_COLUMNS,) else map(str.lower, rules.columns)
        compared = tuple(names[one] for one in chosen if one not in others)
    query = VersionedQuery(
        grouped, names[rules.updated_at.lower()], compared, rules.invalidate_hard_deletes
    )
    return VersionedParts(query)


def _wrong_names(subject: Subject, block: Block) -> Iterator[InfoldError]:
    """Columns that the query must not give, or that are not known."""
    at = subject.text.spot_of_token(subject.text.tokens[0])
    if block.columns is None:
        yield refusals.not_versions(at, what="unknown columns")
    for name in block.columns or ():
        if name.lower() in (VALID_FROM, VALID_TO):
            yield refusals.column_of_versions(at, column=name)


def _item_of(block: Block, name: str) -> exp.Expr | None:
    """The item of the SELECT with a name; None where a star passes it on."""
    items = (item for item in block.node.expressions if not _is_star(item))
    return next((item for item in items if item.alias_or_name.lower() == name.lower()), None)


def _sql_of(splitter: CumulativeSplitter, block: Block, name: str) -> str:
    """An output column as SQL over a row of the input."""
    item = _item_of(block, name)
    if item is None:
        return quoted(name)
    return splitter.cut.sql_of(*_span(splitter, block, item))


def _span(splitter: CumulativeSplitter, block: Block, item: exp.Expr) -> tuple[int, int]:
    """The tokens of an item, without its alias."""
    at = next(at for at, one in enumerate(block.node.expressions) if one is item)
    return splitter.items[at]


def _is_star(item: exp.Expr) -> bool:
    return isinstance(item, exp.Star) or item.is_star
