"""A cumulative aggregate is one SELECT with GROUP BY over one table: rows are kept by their key."""

from __future__ import annotations

from collections.abc import Iterator

from infold.analysis.grouped import take_grouped
from infold.analysis.subject import Subject
from infold.errors import InfoldError
from infold.model import Kind


def check(subject: Subject) -> Iterator[InfoldError]:
    """Anything in a cumulative aggregate that looks beyond the rows of one key."""
    if subject.model.kind is Kind.KEYED:
        yield from take_grouped(subject).errors
