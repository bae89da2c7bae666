"""The partition column places a row in a cell, and that is the cell of the rows it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from infold.analysis.bounds.cells import Cells, cells_of
from infold.analysis.bounds.known_columns import Shapes
from infold.analysis.names.relation import (
    Block,
    OtherRows,
    OutputColumn,
    Relation,
    RenamedColumns,
    SetOperation,
    Table,
)
from infold.analysis.names.subject import Subject, time_column
from infold.analysis.rules.combining import COMBINING
from infold.analysis.sql.text import UNIT
from infold.analysis.times.durations import is_text_of_seconds
from infold.analysis.times.floors import floor_of
from infold.core.interval import Granularity
from infold.messages import refusals
from infold.messages.errors import InfoldError, Spot


def check(subject: Subject) -> Iterator[InfoldError]:
    """A partition column that is not proven to keep the cell."""
    cells, series = cells_of(subject), subject.model.timeseries
    if cells is None or series is None:
        return
    column, relation = series.partition_column, subject.relation
    known = cells.known(relation)
    places = relation.places.get(column.lower())
    if relation.columns is not None and places is None:
        return  # time_columns says so
    if not known.reads_time:
        yield _no_time_input(cells)
    elif not _can_partition(cells, known.columns.get(column.lower(), {})):
        errors = [*_findings_at(cells, relation, places[0] if places else 0)]
        if not errors and not _another_rule_has_findings(cells):
            errors = [
                _finding_without_place(
                    cells, "what is known of its parts is not true of them together"
                )
            ]
        yield from errors
    elif known.nulls.get(column.lower()) and not _another_rule_has_findings(cells):
        out = _output_place(relation, column)
        spot = out if out is not None else subject.text.spot(0, len(subject.text.tokens[0].text))
        yield refusals.null_cell(spot, cell=cells.cell_name, column=column)


def _output_place(relation: Relation, column: str) -> Spot | None:
    """The position of an output, if a SELECT is the whole query."""
    if not isinstance(relation, Block):
        return None
    outputs = [out for out in relation.outputs or () if out.name.lower() == column.lower()]
    return relation.text.spot_of(outputs[0].node) if outputs and outputs[0].origin is None else None


def _can_partition(cells: Cells, shapes: Shapes) -> bool:
    """Whether a column with these shapes says in which cell a row belongs."""
    return bool(shapes) and cells.can_partition(shapes)


def _findings_at(cells: Cells, relation: Relation, at: int) -> Iterator[InfoldError]:
    """The finding, as deep in UNIONs and CTEs as the ``at``-th column's expression is."""
    if isinstance(relation, RenamedColumns):
        yield from _findings_at(cells, relation.inner, at)
    elif isinstance(relation, SetOperation):
        sides = {side: _shapes_at(cells, side, at) for side in (relation.left, relation.right)}
        unknown = [side for side, shapes in sides.items() if not shapes]
        for side, shapes in sides.items():
            if side in unknown or not (unknown or _can_partition(cells, shapes)):
                yield from _findings_at(cells, side, at)
    elif isinstance(relation, Block) and relation.outputs and at < len(relation.outputs):
        out = relation.outputs[at]
        deeper = _computed_in(cells, relation, out)
        if deeper is not None:
            yield from _findings_at(cells, *deeper)
            return
        if _blamed_elsewhere(cells, relation, out):
            return
        spot, why = relation.text.spot_of(out.node), _why_not_kept(cells, relation, out)
        keeping = cells.time_columns(relation)
        yield refusals.partition_unproven(
            spot,
            cell=cells.cell_name,
            column=cells.partition_column,
            why=why,
            columns=keeping,
            rewrite=_floor_text(cells, keeping[0]) if len(keeping) == 1 else "",
        )
    elif not _another_rule_has_findings(cells):
        yield _finding_without_place(cells, "its columns are not known")


def _shapes_at(cells: Cells, relation: Relation, at: int) -> Shapes:
    """The shapes of the ``at``-th column of a relation."""
    items = cells.known(relation).by_position
    return items[at] if items is not None and at < len(items) else {}


def _finding_without_place(cells: Cells, why: str) -> InfoldError:
    """The finding where no expression is to blame."""
    text = cells.subject.text
    spot = text.spot(0, len(text.tokens[0].text))
    return refusals.partition_unproven(
        spot,
        cell=cells.cell_name,
        column=cells.partition_column,
        why=why,
        columns=[],
        rewrite="",
    )


def _floor_text(cells: Cells, time: str) -> str:
    """The partition column as a floor of a time column."""
    if cells.granularity is Granularity.DAY:
        return f"cast({time} AS date) AS {cells.partition_column}"
    unit = cells.granularity.value.partition(" ")[0].upper()
    return f"date_trunc('{unit}', {time}) AS {cells.partition_column}"


def _no_time_input(cells: Cells) -> InfoldError:
    """
    The finding where nothing that is read has a time.

    A table by key has lost the times of the rows that it is made of: then these are to be read.
    """
    subject = cells.subject
    spot = subject.text.spot(0, len(subject.text.tokens[0].text))
    for name in subject.tables_read:
        for made_of in _timed_below(subject, name):
            time = time_column(subject.nodes[made_of])
            if made_of != name and time is not None:
                return refusals.no_time_input(
                    spot,
                    cell=cells.cell_name,
                    reads=f"{name} has no cells of time: it is made of {made_of}, by {time}",
                    rewrite=f"SELECT {_floor_text(cells, time)}, … FROM {made_of} WHERE …",
                    todo=f"Read {made_of} in place of {name}, and say in WHERE which of its rows "
                    "count",
                )
    todo = "Declare event_time_column of the source"
    return refusals.no_time_input(spot, cell=cells.cell_name, reads="", rewrite="", todo=todo)


def _timed_below(subject: Subject, name: str) -> Iterator[str]:
    """The tables with a time that a model is made of, the nearest first."""
    todo, visited = [name], set[str]()
    while todo:
        node = subject.nodes.get(todo.pop(0))
        if node is None or node.name in visited:
            continue
        visited.add(node.name)
        if time_column(node) is not None:
            yield node.name
        todo.extend(entry.name for entry in node.inputs)


def _another_rule_has_findings(cells: Cells) -> bool:
    """Whether a rule on what brings rows together has a finding, which is the cause then."""
    return any(True for check in COMBINING.values() for _ in check(cells.subject))


def _blamed_elsewhere(cells: Cells, block: Block, out: OutputColumn) -> bool:
    """
    Whether the column is a good one, and only what brings rows together is not.

    It follows the time of one of the inputs, then, and another rule has its finding.
    """
    node: exp.Expr = out.node.unalias()
    while isinstance(node, (exp.Min, exp.Max)):
        node = node.this
    shapes = cells.select(block).own_shapes(replace(out, node=node))
    return _can_partition(cells, shapes) and _another_rule_has_findings(cells)


def _computed_in(cells: Cells, block: Block, out: OutputColumn) -> tuple[Relation, int] | None:
    """The relation in FROM, and the position there, of a column that is only passed on."""
    origin = out.origin
    if origin is None and isinstance(out.node, exp.Column):
        origin = block.origins.get(out.node)
    if origin is None:
        return None
    relation = origin.entry.relation
    inside = not isinstance(relation, (Table, OtherRows)) and cells.reads_time(relation)
    if not inside or origin.column not in relation.places:
        return None
    if _can_partition(cells, cells.known(relation).columns.get(origin.column, {})):
        return None  # there it is good; what this SELECT adds to it is not
    return relation, relation.places[origin.column][0]


_COMPUTED = "the unit is computed, so it may be any"


def _why_not_kept(cells: Cells, block: Block, out: OutputColumn) -> str:
    """Why an expression does not keep the cell."""
    if not cells.reads_time(block):
        return "nothing in this SELECT has a time column"
    floor = floor_of(out.node)
    longer = next((s.cell for s in cells.select(block).own_shapes(out).values() if s.cell), None)
    if longer is not None and longer.contains(cells.granularity) and longer != cells.granularity:
        return f"its values are starts of a {longer}: say `granularity: {longer}`"
    unit = out.node.meta.get(UNIT)
    if unit is not None and floor is None:
        return f"'{unit}' is no unit of this function: Spark gives NULL" if unit else _COMPUTED
    node = floor.inner if floor is not None else out.node
    if is_text_of_seconds(out.node.unalias()):
        return "from_unixtime makes a text: write to_timestamp(from_unixtime(…))"
    origin = out.origin or block.origins.get(node)
    if origin is not None:
        relation = origin.entry.relation
        name = relation.name if isinstance(relation, Table) else origin.entry.alias or "a subquery"
        if origin.column in cells.known(relation).columns:
            return f"{origin.column} follows the time of {name}, and not that of the other input"
        return f"{origin.column} is not the column that decides the cell of a row of {name}"
    return "no floor of the input's time column, and no interval that is added to it"
