"""Every output column has a name of its own, and none that infold keeps for itself."""

from __future__ import annotations

from collections.abc import Iterator

from infold.analysis.names.column_types import types_of
from infold.analysis.names.relation import (
    Block,
    OutputColumn,
    Relation,
    RenamedColumns,
    SetOperation,
)
from infold.analysis.names.subject import Subject
from infold.core.model import Kind
from infold.messages import findings, refusals
from infold.messages.errors import InfoldError, Spot


def check(subject: Subject) -> Iterator[InfoldError]:
    """Columns without a name, names given twice or kept by infold, and types of no column."""
    by_name: dict[str, OutputColumn] = {}
    block = _naming(subject.relation)
    for out in block.outputs or () if block is not None else ():
        at = block.text.spot_of(out.label or out.node) if block is not None else Spot("")
        if not out.name:
            if subject.model.kind is not Kind.SESSIONS:  # found there, at the item's own place
                yield refusals.unnamed_column(at)
            continue
        if out.name.lower() in by_name:
            yield refusals.duplicate_column(at, column=out.name)
        if out.name.startswith("_") and subject.draft.landed:
            yield findings.reserved_column_of_source(
                subject.draft.place("columns"), source=subject.model.name, column=out.name
            )
        elif out.name.startswith("_"):
            yield findings.reserved_column(at, column=out.name)
        by_name[out.name.lower()] = out
    if subject.model.kind.is_stored and block is not None:
        yield from _not_stored(subject, block)


def _not_stored(subject: Subject, block: Block) -> Iterator[InfoldError]:
    """Columns of types that a table cannot have."""
    known = types_of(subject.relation, subject.types)
    for out in block.outputs or ():
        type_ = known.get(out.name.lower())
        if out.name and type_ in _NEVER_STORED:
            at = block.text.spot_of(out.node)
            yield refusals.not_stored(at, out.name, _NEVER_STORED[type_], type_)


_NEVER_STORED = {"interval": "an interval", "void": "always NULL, of no type"}


def _naming(relation: Relation) -> Block | None:
    """The SELECT that names the columns: the first of a UNION."""
    while not isinstance(relation, Block):
        if isinstance(relation, SetOperation):
            relation = relation.left
        elif isinstance(relation, RenamedColumns):
            relation = relation.inner
        else:
            return None
    return relation
