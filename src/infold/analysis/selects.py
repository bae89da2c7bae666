"""What a SELECT is made of: its windows and what they are partitioned by, groups, aggregates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from infold.analysis.aggregates import is_aggregate
from infold.analysis.frames import base_of, called
from infold.analysis.relation import Block, own


def windows(block: Block) -> Iterator[exp.Window]:
    """The window functions of a block."""
    for node in block.expressions():
        if isinstance(node, exp.Window) and node.arg_key != "windows":
            yield node


def named_windows(block: Block) -> dict[str, exp.Expr]:
    """The windows of the WINDOW clause, by lower-case name."""
    return {window.this.name.lower(): window for window in block.node.args.get("windows") or ()}


def partitioned_by(window: exp.Expr, named: Mapping[str, exp.Expr]) -> Iterator[exp.Expr]:
    """What a window, or the named one that it builds on, is partitioned by."""
    yield from window.args.get("partition_by") or []
    base = base_of(window, named)
    if base is not None:
        yield from partitioned_by(base, named)


def over_windows(block: Block, window: exp.Window) -> bool:
    """Whether a window is over the value of another one of its SELECT, named by an alias."""
    columns = (node for node in own(window) if isinstance(node, exp.Column))
    meant = (block.aliases.get(id(column)) for column in columns)
    return any(node is not None and node.find(exp.Window) is not None for node in meant)


def group_items(block: Block, group: exp.Group) -> Iterator[exp.Expr]:
    """What is grouped by, ordinals replaced by the items they stand for."""
    items = block.node.expressions
    for node in group.expressions:
        if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
            at = int(node.name) - 1
            if 0 <= at < len(items):
                yield items[at]
        else:
            yield node


def has_aggregate(tree: exp.Expr) -> bool:
    """Whether a tree has an aggregate call that is not a window function."""
    over: set[int] = set()
    for node in own(tree):
        if isinstance(node, exp.Window):
            over.add(id(called(node)))
        elif is_aggregate(node) and id(node) not in over:
            return True
    return False


def aggregates(block: Block) -> bool:
    """Whether a block turns many rows into one: GROUP BY, or an aggregate without it."""
    args = block.node.args
    if args.get("group"):
        return True
    clauses = [*block.node.expressions, args.get("having"), args.get("order")]
    return any(has_aggregate(clause) for clause in clauses if clause is not None)
