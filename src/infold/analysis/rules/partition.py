"""The partition column says in which cell a row belongs, and it is the cell the row came from."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from infold import findings
from infold.analysis.cells import Cells, cells_of, floor_of
from infold.analysis.relation import Block, Output, Relation, SetOperation, Table
from infold.analysis.subject import Subject
from infold.errors import InfoldError


def check(subject: Subject) -> Iterator[InfoldError]:
    """A partition column that is not proven to keep the cell."""
    cells, series = cells_of(subject), subject.model.timeseries
    if cells is None or series is None:
        return
    column, relation = series.partition_column, subject.relation
    kept = cells.of(relation)
    names = {name.lower() for name in relation.columns or ()}
    if relation.columns is not None and column.lower() not in names:
        return  # time_columns says so
    if not kept.time:
        at = subject.text.spot(0, len(subject.text.tokens[0].text))
        yield findings.no_time_input(at, subject.model)
    elif column.lower() not in kept.columns:
        yield from _refused(cells, subject, relation, column)


def _refused(
    cells: Cells, subject: Subject, relation: Relation, column: str
) -> Iterator[InfoldError]:
    """The finding, as deep in UNIONs and CTEs as the column's expression stands."""
    if isinstance(relation, SetOperation):
        names = [name.lower() for name in relation.columns or ()]
        at = names.index(column.lower()) if column.lower() in names else 0
        for side in (relation.left, relation.right):
            columns = side.columns or ()
            name = columns[at] if at < len(columns) else column
            if name.lower() not in cells.of(side).columns:
                yield from _refused(cells, subject, side, name)
        return
    text = relation.text if isinstance(relation, Block) else subject.text
    out = _output(relation, column)
    if not isinstance(relation, Block) or out is None:
        yield findings.partition_unproven(text.spot(0), subject.model, column, "", [])
        return
    inner = out.node if out.origin is None else None
    if isinstance(inner, exp.Column):
        origin = relation.origins.get(id(inner))
        deeper = origin.entry.relation if origin is not None else None
        if (
            origin is not None
            and isinstance(deeper, (Block, SetOperation))
            and cells.of(deeper).time
            and _output(deeper, origin.column) is not None
        ):
            yield from _refused(cells, subject, deeper, origin.column)
            return
    why = _why(cells, relation, out)
    spot = text.spot_of(out.node)
    yield findings.partition_unproven(spot, subject.model, column, why, cells.keeping(relation))


def _output(relation: Relation, column: str) -> Output | None:
    while isinstance(relation, SetOperation):
        relation = relation.left
    outputs = relation.outputs if isinstance(relation, Block) else None
    return next((out for out in outputs or () if out.name.lower() == column.lower()), None)


def _why(cells: Cells, block: Block, out: Output) -> str:
    """Why an expression does not keep the cell."""
    if not cells.of(block).time:
        return "nothing in this SELECT has a time column"
    floor = floor_of(out.node)
    if floor is not None and cells.keeps(block, floor.inner)[0] and floor.unit is not None:
        return f"one {floor.unit} does not lie inside one {cells.granularity}"
    node = floor.inner if floor is not None else out.node
    origin = out.origin or block.origins.get(id(node))
    if origin is not None:
        relation = origin.entry.relation
        name = relation.name if isinstance(relation, Table) else origin.entry.alias
        return f"{origin.column} of {name} is not the column by which {name} has its cells"
    return "it is not a floor of the input's time column: cast to date, date_trunc, trunc"
