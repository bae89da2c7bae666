"""The partition column says in which cell a row belongs, and it is the cell the row came from."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from infold import refusals
from infold.analysis.cells import Cells, cells_of, floor_of
from infold.analysis.relation import Block, Other, Output, Relation, Renamed, SetOperation, Table
from infold.analysis.subject import Subject
from infold.errors import InfoldError


def check(subject: Subject) -> Iterator[InfoldError]:
    """A partition column that is not proven to keep the cell."""
    cells, series = cells_of(subject), subject.model.timeseries
    if cells is None or series is None:
        return
    column, relation = series.partition_column, subject.relation
    kept = cells.of(relation)
    names = [name.lower() for name in relation.columns or ()]
    if relation.columns is not None and column.lower() not in names:
        return  # time_columns says so
    if not kept.time:
        spot = subject.text.spot(0, len(subject.text.tokens[0].text))
        yield refusals.no_time_input(spot, cells.called)
    elif column.lower() not in kept.columns:
        at = names.index(column.lower()) if names else 0
        yield from _refused(cells, relation, at)


def _refused(cells: Cells, relation: Relation, at: int) -> Iterator[InfoldError]:
    """The finding, as deep in UNIONs and CTEs as the ``at``-th column's expression stands."""
    if isinstance(relation, Renamed):
        yield from _refused(cells, relation.inner, at)
    elif isinstance(relation, SetOperation):
        for side in (relation.left, relation.right):
            items = cells.of(side).items
            if items is None or at >= len(items) or not items[at][0]:
                yield from _refused(cells, side, at)
    elif isinstance(relation, Block) and relation.outputs and at < len(relation.outputs):
        out = relation.outputs[at]
        deeper = _computed_in(cells, relation, out)
        if deeper is not None:
            yield from _refused(cells, *deeper)
            return
        spot, why = relation.text.spot_of(out.node), _why(cells, relation, out)
        keeping = cells.keeping(relation)
        yield refusals.partition_unproven(spot, cells.called, cells.column, why, keeping)
    else:
        text = cells.subject.text
        spot = text.spot(0, len(text.tokens[0].text))
        yield refusals.partition_unproven(
            spot, cells.called, cells.column, "its columns are not known", []
        )


def _computed_in(cells: Cells, block: Block, out: Output) -> tuple[Relation, int] | None:
    """The relation in FROM, and the position there, of a column that is only passed on."""
    origin = out.origin
    if origin is None and isinstance(out.node, exp.Column):
        origin = block.origins.get(id(out.node))
    if origin is None:
        return None
    relation = origin.entry.relation
    names = [name.lower() for name in relation.columns or ()]
    inside = not isinstance(relation, (Table, Other)) and cells.of(relation).time
    return (relation, names.index(origin.column)) if inside and origin.column in names else None


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
