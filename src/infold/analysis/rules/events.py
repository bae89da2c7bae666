"""An events model turns each row of one source into rows by itself, and what lookups say of it."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from infold.analysis.inputs.fold_inputs import JOINS
from infold.analysis.inputs.ingested import ingested_table, why_not_row_wise, wrong_joins
from infold.analysis.names.relation import Block, Origin, OutputColumn, Table
from infold.analysis.names.select_parts import calls_over_rows, clauses_beyond_row_wise
from infold.analysis.names.subject import Subject
from infold.core.model import Kind
from infold.messages import findings, refusals
from infold.messages.errors import InfoldError


def check(subject: Subject) -> Iterator[InfoldError]:
    """Anything in an events model but a projection with WHERE of one source, and lookups."""
    if subject.model.kind is not Kind.EVENTS:
        return
    text, relation = subject.text, subject.relation
    for construct, at in clauses_beyond_row_wise(text, relation):
        if construct != JOINS:
            yield refusals.not_row_wise(at, what=construct)
    if not isinstance(relation, Block):
        return
    for entry, why in wrong_joins(subject, relation):
        joined = entry.relation
        if isinstance(joined, Table) and joined.name not in {*subject.nodes, *subject.sources}:
            continue  # it could not be read, which is an error of its own
        yield refusals.joined_events(text.spot_of_entry(entry.node), why=why)
    for construct, node in calls_over_rows(relation):
        yield refusals.not_row_wise(text.spot_of(node), what=construct)
    yield from _wrong_input(subject, relation)


def _wrong_input(subject: Subject, block: Block) -> Iterator[InfoldError]:
    """A first entry of FROM that is no source, and no view that shows one row by row."""
    for entry in block.entries[:1]:
        inner, main, at = entry.relation, ingested_table(block), subject.text.spot_of(entry.node)
        if not isinstance(inner, Table):
            continue  # it is refused for what it is
        if inner.view is not None and (construct := why_not_row_wise(subject, inner.view)):
            yield refusals.not_row_wise(at, what=f"{construct}, as {inner.name} has")
        elif main is not None and main not in subject.sources:
            yield refusals.events_of_model(at, name=main)


_TIMES = frozenset(
    {
        exp.DataType.Type.TIMESTAMP,
        exp.DataType.Type.TIMESTAMPTZ,
        exp.DataType.Type.TIMESTAMPLTZ,
        exp.DataType.Type.TIMESTAMPNTZ,
        exp.DataType.Type.DATETIME,
        exp.DataType.Type.DATE,
        exp.DataType.Type.UNKNOWN,
    }
)
_TEXTS = (exp.Concat, exp.Substring, exp.Upper, exp.Lower, exp.Trim, exp.DPipe)


def check_event_times(subject: Subject) -> Iterator[InfoldError]:
    """An event time of another type: Spark would cast or refuse it in the middle of a run."""
    series, block = subject.model.timeseries, subject.relation
    if subject.model.kind is not Kind.EVENTS or series is None or not isinstance(block, Block):
        return
    name = series.event_time_column
    output = next((out for out in block.outputs or () if out.name.lower() == name.lower()), None)
    type_ = _time_type(subject, block, output) if output is not None else None
    if type_ is None:
        return
    at = subject.draft.place("timeseries.event_time_column")
    yield findings.not_a_time(at, key="event_time_column", column=name, type_=type_)


def _time_type(subject: Subject, block: Block, out: OutputColumn) -> str | None:
    """The type of an output as its source or its own words say; None for a time or unknown."""
    node = out.node
    while isinstance(node, exp.Alias | exp.Paren):
        node = node.this
    if isinstance(node, exp.Cast | exp.TryCast):
        return None if node.to.this in _TIMES else node.to.sql(dialect="spark").lower()
    if isinstance(node, exp.Literal):
        return "text" if node.is_string else "a number"
    if isinstance(node, _TEXTS):
        return "text"
    origin = out.origin or block.origins.get(node)
    return _declared(subject, origin) if origin is not None else None


def _declared(subject: Subject, origin: Origin) -> str | None:
    if origin.fields or not isinstance(origin.entry.relation, Table):
        return None
    source = subject.sources.get(origin.entry.relation.name)
    types = {c.name.lower(): c.type for c in source.columns} if source else {}
    type_ = types.get(origin.column.lower())
    known = type_ is not None and not type_.lower().startswith(("timestamp", "date"))
    return type_ if known else None
