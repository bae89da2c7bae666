"""A cumulative aggregate is one SELECT with GROUP BY over one table: rows are kept by their key."""

from __future__ import annotations

from collections.abc import Iterator

from infold.analysis.cumulative_query import split_cumulative_query, split_versioned_query
from infold.analysis.names.subject import Subject
from infold.core.model import Kind
from infold.messages.errors import InfoldError


def check(subject: Subject) -> Iterator[InfoldError]:
    """Anything in a model that is kept by key that looks beyond the rows of one key."""
    if subject.model.kind is Kind.CUMULATIVE_AGGREGATE:
        yield from split_cumulative_query(subject).errors
    elif subject.model.kind is Kind.SCD_TYPE_2:
        yield from split_versioned_query(subject).errors
