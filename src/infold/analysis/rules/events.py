"""An events model turns each row of one source into at most one row."""

from __future__ import annotations

from collections.abc import Iterator

from infold import refusals
from infold.analysis.relation import Block, Table
from infold.analysis.row_wise import calls_over_rows, clauses
from infold.analysis.subject import Subject
from infold.errors import InfoldError
from infold.model import Kind


def check(subject: Subject) -> Iterator[InfoldError]:
    """Anything in an events model that is not a projection with WHERE of one source."""
    if subject.model.kind is not Kind.EVENTS:
        return
    text, relation = subject.text, subject.relation
    for what, at in clauses(text, relation):
        yield refusals.not_row_wise(at, what)
    if not isinstance(relation, Block):
        return
    for what, node in calls_over_rows(relation):
        yield refusals.not_row_wise(text.spot_of(node), what)
    for entry in relation.entries[:1]:
        inner = entry.relation
        if isinstance(inner, Table) and inner.name not in subject.sources:
            yield refusals.events_of_model(text.spot_of(entry.node), inner.name)
