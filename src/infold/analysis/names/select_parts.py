"""What a SELECT is made of: its windows and what they are partitioned by, groups, aggregates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from infold.analysis.names.relation import (
    Block,
    Origin,
    OutputColumn,
    Relation,
    Table,
    once_per_block,
    own_nodes,
)
from infold.analysis.sql.functions import is_aggregate
from infold.analysis.sql.text import Text
from infold.analysis.sql.token_calls import closing_bracket
from infold.analysis.times.distances import base_window, function_of
from infold.analysis.times.floors import (
    FIELDS,
    field_of,
    is_bucket,
    makes_several_buckets,
    period_of,
    periods_of,
)
from infold.messages.errors import Spot


@once_per_block
def window_calls(block: Block) -> Sequence[exp.Window]:
    """The window functions of a block."""
    return [
        node
        for node in block.expressions()
        if isinstance(node, exp.Window) and node.arg_key != "windows"
    ]


@once_per_block
def named_windows(block: Block) -> dict[str, exp.Expr]:
    """The windows of the WINDOW clause, by lower-case name."""
    return {window.this.name.lower(): window for window in block.node.args.get("windows") or ()}


def partitioned_by(window: exp.Expr, named: Mapping[str, exp.Expr]) -> Iterator[exp.Expr]:
    """What a window, or the named one that it builds on, is partitioned by."""
    yield from window.args.get("partition_by") or []
    base = base_window(window, named)
    if base is not None:
        yield from partitioned_by(base, named)


def bucket_fields(out: OutputColumn) -> Iterator[tuple[str, OutputColumn]]:
    """
    The start and the end in an output that is a bucket of time, by name.

    It is a call of ``window``, or a column handed on that may be one; so those of a column are
    asked for as well, and nothing is known of them where it is none. An output that names a stretch
    of the calendar has a start as well.
    """
    node, origin = out.node.unalias(), out.origin
    for name in FIELDS if out.name else ():
        key = f"{out.name.lower()}\0{name}"
        if origin is not None:
            yield key, OutputColumn("", node, Origin(origin.entry, f"{origin.column}\0{name}"))
        elif is_bucket(node) or isinstance(node, exp.Column):
            yield key, OutputColumn("", field_of(node, name))
        elif name == "start" and (period := period_of(node)) is not None:
            yield key, OutputColumn("", period)


def merges_columns(block: Block) -> bool:
    """Whether a join makes one column of two: by USING, or a NATURAL one."""
    joins = [entry.join for entry in block.entries if entry.join is not None]
    return any(join.args.get("using") or join.args.get("method") for join in joins)


def is_over_windows(block: Block, window: exp.Window) -> bool:
    """Whether a window is over the value of another one of its SELECT, named by an alias."""
    columns = (node for node in own_nodes(window) if isinstance(node, exp.Column))
    outputs = (block.aliases.get(column) for column in columns)
    return any(node is not None and node.find(exp.Window) is not None for node in outputs)


def group_items(block: Block, group: exp.Group) -> Iterator[exp.Expr]:
    """What is grouped by, with the item in place of each ordinal."""
    items = block.node.expressions
    for node in group.expressions:
        if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
            at = int(node.name) - 1
            if 0 <= at < len(items):
                yield items[at]
        else:
            yield node


_SETS = (exp.GroupingSets, exp.Rollup, exp.Cube)


@once_per_block
def group_of_several_sets(block: Block) -> exp.Group | None:
    """The GROUP BY of a block that groups its rows in several ways at once."""
    group = block.node.args.get("group")
    return group if group is not None and several_sets(group) else None


def several_sets(group: exp.Group) -> bool:
    """Whether rows are grouped in several ways at once."""
    if any(group.args.get(key) for key in ("rollup", "cube", "grouping_sets", "totals")):
        return True
    return any(isinstance(item, _SETS) for item in group.expressions)


def keys_in_every_set(block: Block, group: exp.Group) -> list[exp.Expr]:
    """What all rows are grouped by, in whichever of several ways; aliases seen through."""
    if any(group.args.get(key) for key in ("rollup", "cube", "totals")):
        return []
    keys: list[exp.Expr] = []
    for item in group.args.get("grouping_sets") or group_items(block, group):
        if isinstance(item, exp.GroupingSets):
            first, *other_sets = [_members_of_set(member) for member in item.expressions]
            keys += [node for node in first if all(node in other for other in other_sets)]
        elif not isinstance(item, _SETS):
            keys.append(item)
    return [block.aliases.get(node, node).unalias() for node in keys]


def _members_of_set(grouping: exp.Expr) -> list[exp.Expr]:
    if isinstance(grouping, exp.Tuple):
        return list(grouping.expressions)
    return [] if isinstance(grouping, _SETS) else [grouping.unnest()]


def alike_by(items: Iterable[exp.Expr]) -> Iterator[exp.Expr]:
    """What rows have in common that are alike in ``items``: of year and month the month as well."""
    known = [part for item in items for part in _fields_of_struct(item)]
    yield from known
    for item in known:
        if isinstance(value := item.unalias(), exp.Column) or is_bucket(value):
            yield field_of(value, "start")  # alike in a struct is alike in its fields
    yield from periods_of(item.unalias() for item in known)


def _fields_of_struct(item: exp.Expr) -> Iterator[exp.Expr]:
    """An item, and if it is a struct made there, what it is made of."""
    yield item
    inner = item.unalias().unnest()
    for part in inner.expressions if isinstance(inner, (exp.Struct, exp.Tuple)) else ():
        yield from _fields_of_struct(part.expression if isinstance(part, exp.PropertyEQ) else part)


def has_aggregate(tree: exp.Expr) -> bool:
    """Whether a tree has an aggregate call that is not a window function."""
    over: set[int] = set()
    for node in own_nodes(tree):
        if isinstance(node, exp.Window):
            over.add(id(function_of(node)))
        elif is_aggregate(node) and id(node) not in over:
            return True
    return False


@once_per_block
def is_grouped(block: Block) -> bool:
    """Whether a block turns many rows into one: GROUP BY, or an aggregate without it."""
    args = block.node.args
    if args.get("group"):
        return True
    clauses = [*block.node.expressions, args.get("having"), args.get("order")]
    return any(has_aggregate(clause) for clause in clauses if clause is not None)


_CLAUSES = {
    "with_": ("a CTE", TokenType.WITH),
    "distinct": ("DISTINCT", TokenType.DISTINCT),
    "joins": ("a join", TokenType.JOIN),
    "laterals": ("LATERAL VIEW", TokenType.LATERAL),
    "group": ("GROUP BY", TokenType.GROUP_BY),
    "having": ("HAVING", TokenType.HAVING),
    "windows": ("WINDOW", TokenType.WINDOW),
    "qualify": ("QUALIFY", TokenType.QUALIFY),
    "order": ("ORDER BY", TokenType.ORDER_BY),
    "sort": ("SORT BY", TokenType.SORT_BY),
    "cluster": ("CLUSTER BY", TokenType.CLUSTER_BY),
    "distribute": ("DISTRIBUTE BY", TokenType.DISTRIBUTE_BY),
    "limit": ("LIMIT", TokenType.LIMIT),
    "offset": ("OFFSET", TokenType.OFFSET),
}


def clauses_beyond_row_wise(text: Text, relation: Relation) -> Iterator[tuple[str, Spot]]:
    """Everything that makes a query more than one SELECT … FROM … WHERE … over one table."""
    if not isinstance(relation, Block):
        token = text.token_after(-1, TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT)
        what = token.text.upper() if token else "a subquery"
        yield what, text.spot_of_token(token or text.tokens[0])
        return
    for key, (what, kind) in _CLAUSES.items():
        if relation.node.args.get(key):
            token = text.token_after(-1, kind)
            yield what, text.spot_of_token(token) if token else text.spot(0)
    for entry in relation.entries[:1]:
        if not isinstance(entry.relation, Table):
            yield "a subquery in FROM", text.spot_of_entry(entry.node)
        elif entry.node.args.get("sample"):
            token = text.token_after(-1, TokenType.TABLE_SAMPLE)
            yield "TABLESAMPLE", text.spot_of_token(token or text.tokens[0])
    if not relation.entries:
        yield "a SELECT without FROM", text.spot_of_token(text.tokens[0])
    for holder, _ in relation.nested_queries:
        yield "a subquery", text.spot_of(holder)


def calls_over_rows(block: Block) -> Iterator[tuple[str, exp.Expr]]:
    """Aggregates, windows and generators: calls that do not make one value of one row."""
    inside: set[int] = set()
    for node in block.expressions():
        if id(node) in inside:
            continue
        what = ""
        if isinstance(node, exp.Window):
            what = "a window function"
        elif _makes_several_rows(node):
            what = "a function that makes several rows"
        elif is_aggregate(node):
            what = "an aggregate"
        if what:
            inside.update(id(part) for part in own_nodes(node))
            yield what, node


_GENERATORS = (
    exp.Explode,
    exp.ExplodeOuter,
    exp.Posexplode,
    exp.PosexplodeOuter,
    exp.Inline,
    exp.Stack,
)


def _makes_several_rows(node: exp.Expr) -> bool:
    several = _is_function(node, "stack", "inline_outer", "json_tuple")
    return isinstance(node, _GENERATORS) or several or makes_several_buckets(node)


def _is_function(node: exp.Expr, *names: str) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() in names


# The engine evaluates pieces over frames of its own, where `c.amount` has to be `amount`.


@dataclass(frozen=True, slots=True, eq=False)
class QueryPieces:
    """A text, and where it has table names before columns."""

    text: Text
    qualifiers: Sequence[tuple[int, int]]

    def sql_of(self, start: int, stop: int, named: Sequence[tuple[int, int, str]] = ()) -> str:
        """The text of ``tokens[start:stop]``, with other text for some spans."""
        tokens, sql = self.text.tokens, self.text.sql
        at, end = tokens[start].start, tokens[stop - 1].end + 1
        pieces = []
        for a, b, text in sorted([*named, *((a, b, "") for a, b in self.qualifiers)]):
            if at <= a and b <= end:  # a table name inside a span lies before ``at`` by then
                pieces += [sql[at:a], text]
                at = b
        return "".join([*pieces, sql[at:end]])

    def words(self, start: int, stop: int) -> tuple[str, ...]:
        """The words of ``tokens[start:stop]``, alike however they are laid out."""
        return tuple(
            _normal_word(token)
            for token in self.text.tokens[start:stop]
            if not any(a <= token.start < b for a, b in self.qualifiers)
        )


def _normal_word(token: Token) -> str:
    return token.text if token.token_type is TokenType.STRING else token.text.lower()


def first_outside(tokens: Sequence[Token], *kinds: TokenType, start: int = 0) -> int:
    """The index of the first token of some kinds outside all brackets, or the end."""
    i = start
    while i < len(tokens) and tokens[i].token_type not in kinds:
        opens = tokens[i].token_type in (TokenType.L_PAREN, TokenType.L_BRACKET)
        i = closing_bracket(tokens, i) + 1 if opens else i + 1
    return min(i, len(tokens))


def qualifier_spans(block: Block) -> list[tuple[int, int]]:
    """The positions of table names before columns, dot included."""
    return sorted(_qualifier_spans(block))


def _qualifier_spans(block: Block) -> Iterator[tuple[int, int]]:
    for node in block.expressions():
        if not isinstance(node, exp.Column):
            continue
        origin, parts = block.origins.get(node), node.parts
        if not isinstance(origin, Origin) or len(parts) < 2:
            continue
        entry, names = origin.entry, [part.name.lower() for part in parts]
        depth = 0
        if names[0] == entry.alias and names[1] == origin.column:
            depth = 1
        elif len(parts) > 2 and f"{names[0]}.{names[1]}" == f"{entry.qualifier}.{entry.alias}":
            depth = 2
        if depth:
            yield parts[0].meta["start"], parts[depth].meta["start"]
