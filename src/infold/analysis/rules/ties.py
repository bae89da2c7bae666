"""
An order that decides is total.

Where rows tie in ORDER BY, nothing says which comes first, and Spark uses any order: for
ROW_NUMBER, LAG, a ROWS frame, LIMIT. So the order (with PARTITION BY) has to contain a key of the
rows, or all columns of them that the SELECT uses. Ranks and RANGE frames treat tied rows alike, and
a value that is the same in tied rows may come from any of them. ``min_by`` and ``max_by`` choose
among rows by an order, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from infold.analysis.bounds.cells import cells_of
from infold.analysis.names.relation import Block, SetOperation, blocks_of
from infold.analysis.names.select_parts import named_windows, window_calls
from infold.analysis.names.subject import Subject
from infold.analysis.row_identity import (
    COLLECTS,
    PICKS,
    AgreeingRows,
    RowIdentity,
    group_keys,
    window_clause_nodes,
)
from infold.analysis.rules.order_dependent import order_is_forgotten
from infold.analysis.sql.text import SPAN, span_of
from infold.analysis.sql.token_calls import calls
from infold.analysis.times.distances import function_of, window_clause
from infold.core.model import Kind
from infold.messages import refusals
from infold.messages.errors import InfoldError, Spot

_BY_PLACE = (exp.Lag, exp.Lead, exp.Ntile, exp.RowNumber)
_ALIKE = (exp.CumeDist, exp.DenseRank, exp.PercentRank, exp.Rank)
_CHOOSES = (exp.ArgMax, exp.ArgMin)


def check(subject: Subject) -> Iterator[InfoldError]:
    """Every order that leaves open what it decides."""
    if subject.model.kind in (Kind.EVENTS, Kind.SCD_TYPE_2):
        return  # one row is one row there
    identity = RowIdentity(subject.row_keys)
    for block in blocks_of(subject.relation):
        if isinstance(block, Block):
            yield from _in_windows(subject, identity, block)
            yield from _max_by_findings(subject, identity, block)
        if subject.model.kind is not Kind.CUMULATIVE_AGGREGATE and not _over_cells(subject, block):
            yield from _limit_findings(identity, block)


def _in_windows(subject: Subject, identity: RowIdentity, block: Block) -> Iterator[InfoldError]:
    if not window_calls(block):
        return
    known, text = named_windows(block), block.text
    listed = list(calls(text.tokens, 0, len(text.tokens)))
    starts = {one.start: one for one in listed}
    orders = {
        _order_of(window, block) for window in window_calls(block) if _is_by_place(window, block)
    }
    for window in window_calls(block):
        function, order = function_of(window), window_clause_nodes(window, known, "order")
        alike = AgreeingRows.agreeing_in(
            identity, block, [*window_clause_nodes(window, known, "partition_by"), *order]
        )
        if alike.one_row() or isinstance(function, _ALIKE):
            continue
        if isinstance(function, _CHOOSES) and not _is_by_place(window, block):
            # The rows of a frame agree in what they are partitioned by, and in nothing else.
            parts = window_clause_nodes(window, known, "partition_by")
            order_of_choice = _where_chosen(function.expression)
            alike = AgreeingRows.agreeing_in(identity, block, [*parts, order_of_choice])
            yield from _findings_of_choice(subject, block, function, alike, at=window)
            continue
        if _is_by_place(window, block):
            # Of rows that are alike it does not matter which comes first, but they may come in
            # another order in each of two windows.
            fine = alike.as_one_row() and len(orders) == 1
        elif order and isinstance(function, (*PICKS, *COLLECTS)):
            at = text.token_index(window.meta[SPAN][0]) if SPAN in window.meta else -1
            call = starts.get(at)
            forgotten = call is not None and order_is_forgotten(subject, listed, call)
            fine = alike.same(function.this) or (isinstance(function, COLLECTS) and forgotten)
        else:
            continue
        if not fine:
            spot = text.spot_of(window)
            name = spot.text[spot.column - 1 :].partition("(")[0].strip().lower()
            missing = alike.columns_missing()
            if instead := _choice_in_range(subject, block, window, missing):
                yield refusals.ties_in_range(spot, what=name, instead=instead)
            else:
                yield refusals.order_not_total(spot, name, missing)


def _over_cells(subject: Subject, block: Block | SetOperation) -> bool:
    """Whether the rule on limits has its finding."""
    cells = cells_of(subject)
    return cells is not None and cells.reads_time(block) and block not in cells.bounded_by_where


def _is_by_place(window: exp.Window, block: Block) -> bool:
    """Whether what a window function yields depends on the place of its row among its peers."""
    function = function_of(window)
    if isinstance(function, _BY_PLACE):
        return True
    return not isinstance(function, _ALIKE) and _counts_rows(window, named_windows(block))


def _counts_rows(window: exp.Expr, known: dict[str, exp.Expr]) -> bool:
    """Whether its frame is of ROWS, and not of all of them."""
    spec = window.args.get("spec")
    if isinstance(spec, exp.WindowSpec):
        ends = (str(spec.args.get("start")).upper(), str(spec.args.get("end")).upper())
        return str(spec.args.get("kind", "")).upper() == "ROWS" and ends != ("UNBOUNDED",) * 2
    alias = window.args.get("alias")
    base = known.get(alias.name.lower()) if isinstance(alias, exp.Expr) else None
    return base is not None and base is not window and _counts_rows(base, known)


def _choice_in_range(
    subject: Subject, block: Block, window: exp.Window, missing: Sequence[str]
) -> str:
    """
    What takes the place of the first or last value of a frame by time, whose ORDER BY can have no
    second column; nothing for other windows.
    """
    function, known = function_of(window), named_windows(block)
    spec = window_clause(window, known, "spec")
    name = ""
    if isinstance(function, (exp.First, exp.FirstValue)):
        name = "min_by"
    elif isinstance(function, (exp.Last, exp.LastValue)):
        name = "max_by"
    ordered = window_clause_nodes(window, known, "order")
    if (
        not name
        or not isinstance(spec, exp.WindowSpec)
        or str(spec.args.get("kind", "")).upper() != "RANGE"
        or len(ordered) != 1
        or ordered[0].args.get("desc")
    ):
        return ""
    value, time = function.this, ordered[0].this
    order = _with_more(subject, block, time, missing or [value.sql("spark")])
    if isinstance(window.this, exp.IgnoreNulls):
        order = f"CASE WHEN {value.sql('spark')} IS NOT NULL THEN {order} END"
    return f"{name}({value.sql('spark')}, {order})"


def _order_of(window: exp.Window, block: Block) -> tuple[str, ...]:
    known = named_windows(block)
    parts = [
        *window_clause_nodes(window, known, "partition_by"),
        *window_clause_nodes(window, known, "order"),
    ]
    return tuple(part.sql("spark", normalize=True) for part in parts)


def _max_by_findings(
    subject: Subject, identity: RowIdentity, block: Block
) -> Iterator[InfoldError]:
    """``min_by`` and ``max_by`` in a group."""
    over = {id(function_of(window)) for window in window_calls(block)}
    for node in block.expressions():
        if isinstance(node, _CHOOSES) and id(node) not in over:
            agreed = [*group_keys(block), _where_chosen(node.expression)]
            alike = AgreeingRows.agreeing_in(identity, block, agreed)
            yield from _findings_of_choice(subject, block, node, alike, at=node)


def _findings_of_choice(
    subject: Subject, block: Block, node: exp.Expr, alike: AgreeingRows, *, at: exp.Expr
) -> Iterator[InfoldError]:
    if not alike.same(node.this):
        name = "max_by" if isinstance(node, exp.ArgMax) else "min_by"
        value, order = (part.sql("spark") for part in (node.this, node.expression))
        add = [] if subject.model.kind is Kind.SESSIONS else alike.columns_missing()
        instead = f"{name}({value}, {_with_more(subject, block, node.expression, add or [value])})"
        yield refusals.ties_in_choice(
            block.text.spot_of(at), call=name, order=order, instead=instead
        )


def _where_chosen(order: exp.Expr) -> exp.Expr:
    """
    What ``min_by`` and ``max_by`` compare in the rows that they choose among.

    A row with NULL there is never chosen: of ``CASE WHEN c THEN x END`` it is x that counts.
    """
    node = order.unnest()
    if isinstance(node, exp.Case) and node.this is None and len(node.args["ifs"]) == 1:
        branches = [node.args["ifs"][0].args.get("true"), node.args.get("default")]
    elif isinstance(node, exp.If):
        branches = [node.args.get("true"), node.args.get("false")]
    else:
        return node
    left = [one for one in branches if one is not None and not isinstance(one, exp.Null)]
    return _where_chosen(left[0]) if len(left) == 1 else node


def _with_more(subject: Subject, block: Block, order: exp.Expr, columns: Sequence[str]) -> str:
    """
    The SQL of an order by ``columns`` as well, which is NULL for the same rows.

    A struct is not NULL where its fields are, so it would choose rows that had no place before.
    """
    chosen = _where_chosen(order)
    if chosen is not order:
        changed = order.copy()
        inner = _with_more(subject, block, chosen, columns)
        _where_chosen(changed).replace(exp.Var(this=inner))
        return changed.sql("spark")
    text = order.sql("spark")
    parts = [order]
    if isinstance(order, (exp.Struct, exp.Tuple)):
        parts = [p.expression if isinstance(p, exp.PropertyEQ) else p for p in order.expressions]
    struct = f"struct({', '.join([*(part.sql('spark') for part in parts), *columns])})"
    if isinstance(order, (exp.Struct, exp.Tuple)) or _is_never_null(subject, block, order):
        return struct
    return f"CASE WHEN {text} IS NOT NULL THEN {struct} END"


def _is_never_null(subject: Subject, block: Block, node: exp.Expr) -> bool:
    """Whether it is the time column of the one table that is read."""
    origin = block.origins.get(node) if isinstance(node, exp.Column) else None
    return len(block.entries) == 1 and origin is not None and subject.is_time_of_model(origin)


def _limit_findings(identity: RowIdentity, block: Block | SetOperation) -> Iterator[InfoldError]:
    """LIMIT and OFFSET behind an ORDER BY that leaves open which rows come first."""
    args = block.node.args
    order = args.get("order")
    word = next((key for key in ("limit", "offset") if args.get(key)), "")
    if not word or not isinstance(order, exp.Order) or isinstance(block.node.parent, exp.Exists):
        return
    if isinstance(block, SetOperation):
        names = {one.this.name.lower() for one in order.expressions}  # or ALL
        total = block.columns is not None and (
            {c.lower() for c in block.columns} <= names or names == {"all"}
        )
        missing: list[str] = []
    elif [one.this.name.upper() for one in order.expressions] == ["ALL"]:
        return  # ORDER BY ALL
    else:
        by = [_output_of(block, one.this) for one in order.expressions]
        alike = AgreeingRows.agreeing_in(identity, block, by)
        distinct = bool(args.get("distinct"))
        every = block.outputs is not None and all(map(alike.same_output, block.outputs))
        total, missing = every or (alike.one_row() and not distinct), alike.columns_missing()
    if not total:
        at = block.text.spot_of(order.expressions[0])
        yield refusals.order_not_total(at, word.upper(), missing)


def _output_of(block: Block, node: exp.Expr) -> exp.Expr:
    """The meaning of an item of ORDER BY: an output by its number or its name, or itself."""
    outputs = block.outputs or ()
    if isinstance(node, exp.Literal) and node.name.isdigit() and int(node.name) <= len(outputs):
        return outputs[int(node.name) - 1].node if int(node.name) else node
    return node


_KINDS = {"limit": TokenType.LIMIT, "offset": TokenType.OFFSET}


def check_limits(subject: Subject) -> Iterator[InfoldError]:
    """Every LIMIT and OFFSET where none is allowed."""
    cells = cells_of(subject)
    if subject.model.kind.is_by_key:
        return  # refused there in any form
    for block in blocks_of(subject.relation, views=cells is not None):
        for key in _KINDS:
            clause = block.node.args.get(key)
            if clause is None:
                continue
            at, word = _spot(block, key), key.upper()
            if (
                cells is not None
                and cells.reads_time(block)
                and block not in cells.bounded_by_where
            ):
                if block in cells.unbounded_laterals:
                    break  # its bound in time has to be stated first
                yield refusals.limit_over_cells(at, word=word, cell=cells.cell_name)
            elif isinstance(block.node.parent, exp.Exists):
                pass  # how many rows are left does not depend on which
            elif not block.node.args.get("order") and block.text is subject.text:
                yield refusals.limit_without_order(at, word=word)
            break


def _spot(block: Block | SetOperation, key: str) -> Spot:
    """The keyword: the first of its kind behind all other names of the query."""
    ends = [
        span[1]
        for name, value in block.node.args.items()
        if name not in ("limit", "offset")
        for part in (value if isinstance(value, list) else [value])
        if isinstance(part, exp.Expr) and (span := span_of(part)) is not None
    ]
    token = block.text.token_after(max(ends, default=0), _KINDS[key])
    return block.text.spot_of_token(token) if token else block.text.spot(0)
