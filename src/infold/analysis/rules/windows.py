"""Window functions look at rows of one cell: PARTITION BY holds what keeps the cell."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from infold import refusals
from infold.analysis.cells import Cells, cells_of
from infold.analysis.relation import Block
from infold.analysis.subject import Subject
from infold.errors import InfoldError


def check(subject: Subject) -> Iterator[InfoldError]:
    """Every window over rows of several cells."""
    cells = cells_of(subject)
    if cells is None:
        return
    for block in cells.blocks():
        if not isinstance(block, Block) or not cells.of(block).time:
            continue
        named = {
            window.this.name.lower(): window for window in block.node.args.get("windows") or ()
        }
        for node in block.expressions():
            if not isinstance(node, exp.Window) or node.arg_key == "windows":
                continue
            if not _keeps(cells, block, node, named):
                at = block.text.spot_of(node)
                yield refusals.window_over_cells(at, cells.called, cells.keeping(block))


def _keeps(cells: Cells, block: Block, node: exp.Window, named: dict[str, exp.Expr]) -> bool:
    """Whether the window, or the named one that it builds on, keeps the cell."""
    items = node.args.get("partition_by") or []
    if any(cells.keeps(block, item)[0] for item in items):
        return True
    alias = node.args.get("alias")
    base = named.get(alias.name.lower()) if isinstance(alias, exp.Expr) else None
    return isinstance(base, exp.Window) and base is not node and _keeps(cells, block, base, named)
