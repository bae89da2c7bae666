"""Values that a block's predicates and joins make equal."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from infold.analysis.names.relation import (
    Block,
    FromEntry,
    Origin,
)
from infold.analysis.times.distances import conjuncts


def equal_expressions(block: Block) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """``(known, new)``: where the first is the same in some rows, so is the second."""
    for node in conjuncts(block.node.args.get("where")):
        if isinstance(node, exp.EQ):
            yield from ((node.this, node.expression), (node.expression, node.this))
    for entry in block.entries:
        join = entry.join
        side = join.side.upper() if join is not None else ""
        if join is None or entry.hidden or side == "FULL":
            continue
        for node in conjuncts(join.args.get("on")):
            if not isinstance(node, exp.EQ):
                continue
            for known, new in ((node.this, node.expression), (node.expression, node.this)):
                # The side that may lack a row determines nothing on the other.
                mine = _is_of_entry(block, new, entry)
                if not side or (mine if side == "LEFT" else not mine):
                    yield known, new


def _is_of_entry(block: Block, node: exp.Expr, entry: FromEntry) -> bool:
    origins = [block.origins.get(column) for column in node.find_all(exp.Column)]
    return bool(origins) and all(one is not None and one.entry is entry for one in origins)


def equal_by_using(block: Block) -> Iterator[tuple[Origin, Origin]]:
    """Pairs of columns that USING makes equal, the known one first."""
    for at, entry in enumerate(block.entries):
        join = entry.join
        if join is None or join.side.upper() in ("RIGHT", "FULL"):
            continue
        for name in join.args.get("using") or ():
            here = Origin(entry, name.name.lower())
            for other in block.entries[:at]:
                if here.column in {c.lower() for c in other.relation.columns or ()}:
                    there = Origin(other, here.column)
                    yield there, here
                    if not join.side:
                        yield here, there
