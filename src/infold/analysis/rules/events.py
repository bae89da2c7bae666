"""An events model turns each row of one source into rows by itself, and what lookups say of it."""

from __future__ import annotations

from collections.abc import Iterator

from infold.analysis.inputs.fold_inputs import JOINS
from infold.analysis.inputs.ingested import ingested_table, why_not_row_wise, wrong_joins
from infold.analysis.names.relation import Block, Table
from infold.analysis.names.select_parts import calls_over_rows, clauses_beyond_row_wise
from infold.analysis.names.subject import Subject
from infold.core.model import Kind
from infold.messages import refusals
from infold.messages.errors import InfoldError


def check(subject: Subject) -> Iterator[InfoldError]:
    """Anything in an events model but a projection with WHERE of one source, and lookups."""
    if subject.model.kind is not Kind.EVENTS:
        return
    text, relation = subject.text, subject.relation
    for what, at in clauses_beyond_row_wise(text, relation):
        if what != JOINS:
            yield refusals.not_row_wise(at, what=what)
    if not isinstance(relation, Block):
        return
    for entry, why in wrong_joins(subject, relation):
        joined = entry.relation
        if isinstance(joined, Table) and joined.name not in {*subject.nodes, *subject.sources}:
            continue  # it could not be read, which is an error of its own
        yield refusals.joined_events(text.spot_of_entry(entry.node), why=why)
    for what, node in calls_over_rows(relation):
        yield refusals.not_row_wise(text.spot_of(node), what=what)
    yield from _taken_in(subject, relation)


def _taken_in(subject: Subject, block: Block) -> Iterator[InfoldError]:
    """A first entry of FROM that is no source, and no view that shows one row by row."""
    for entry in block.entries[:1]:
        inner, main, at = entry.relation, ingested_table(block), subject.text.spot_of(entry.node)
        if not isinstance(inner, Table):
            continue  # it is refused for what it is
        if inner.view is not None and (what := why_not_row_wise(subject, inner.view)):
            yield refusals.not_row_wise(at, what=f"{what}, as {inner.name} has")
        elif main is not None and main not in subject.sources:
            yield refusals.events_of_model(at, name=main)
