"""The event time of an events model is a time, as far as its query says so."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from infold.analysis.names.relation import Block, Origin, OutputColumn, Table
from infold.analysis.names.subject import Subject
from infold.core.model import Kind
from infold.messages import findings
from infold.messages.errors import InfoldError

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


def check(subject: Subject) -> Iterator[InfoldError]:
    """An event time of another type: Spark would cast or refuse it in the middle of a run."""
    series, block = subject.model.timeseries, subject.relation
    if subject.model.kind is not Kind.EVENTS or series is None or not isinstance(block, Block):
        return
    name = series.event_time_column
    found = next((out for out in block.outputs or () if out.name.lower() == name.lower()), None)
    type_ = _type(subject, block, found) if found is not None else None
    if type_ is None:
        return
    at = subject.draft.place("timeseries.event_time_column")
    yield findings.not_a_time(at, key="event_time_column", column=name, type_=type_)


def _type(subject: Subject, block: Block, out: OutputColumn) -> str | None:
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
