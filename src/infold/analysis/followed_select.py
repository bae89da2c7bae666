"""
Taking the SELECT of a cumulative aggregate apart: its outputs as expressions over aggregates.

An aggregate that has a state follows from the rows that come and go. If all of a query have one,
its rows do. As in sessions, the text of arguments and conditions is the user's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from infold.analysis.names.query_pieces import QueryPieces, first_outside
from infold.analysis.names.relation import Block
from infold.analysis.sql.token_calls import Call, calls
from infold.core.aggregates import AGGREGATES
from infold.core.queries import Aggregate, FollowedSelect, Output


def followed_select(
    cut: QueryPieces, block: Block, items: Sequence[tuple[int, int]], keys: Iterable[Output]
) -> FollowedSelect | None:
    """
    The parts of a SELECT with GROUP BY, if all its aggregates have states.

    ``items`` are those of the SELECT as ranges of tokens, without their aliases. None also where a
    column stands outside the aggregates and is no key.
    """
    taker = _Taker(cut, block)
    by_key = {key.name for key in keys}
    outputs = []
    for (start, stop), item in zip(items, block.node.expressions, strict=True):
        name = item.alias_or_name
        sql = "" if name in by_key else taker.over_aggregates(start, stop, item, frozenset())
        if sql is None:
            return None
        outputs.append(Output(name, sql))
    having, node = None, block.node.args.get("having")
    if node is not None:
        tokens = cut.text.tokens
        start = first_outside(tokens, TokenType.HAVING) + 1
        shown = frozenset(output.name.lower() for output in outputs)
        having = taker.over_aggregates(start, len(tokens), node, shown)
        if having is None:
            return None
    end = cut.text.tokens[first_outside(cut.text.tokens, TokenType.FROM)].start
    return FollowedSelect(tuple(taker.aggregates.values()), tuple(outputs), end, having)


@dataclass(slots=True)
class _Taker:
    cut: QueryPieces
    block: Block
    aggregates: dict[tuple[str, ...], Aggregate] = field(default_factory=dict)

    def over_aggregates(
        self, start: int, stop: int, node: exp.Expr, outputs: frozenset[str]
    ) -> str | None:
        """
        Some tokens with the names of aggregates for their calls.

        ``outputs`` may be named outside of aggregates, in lower case. None where another column is,
        or a call has no state.
        """
        tokens, behind = self.cut.text.tokens, start
        named: list[tuple[int, int, str]] = []
        for call in calls(tokens, start, stop):
            if call.start < behind or call.name not in AGGREGATES:
                continue
            aggregate = self._aggregate(call)
            if aggregate is None:
                return None
            name = f"_a{len(self.aggregates)}"
            words = self.cut.words(call.start, call.end)
            own = self.aggregates.setdefault(words, Aggregate(name, *aggregate))
            named.append((tokens[call.start].start, tokens[call.end - 1].end + 1, own.name))
            behind = call.end
        if not all(self._may_stand(column, named, outputs) for column in node.find_all(exp.Column)):
            return None
        return self.cut.sql_of(start, stop, named)

    def _may_stand(
        self, column: exp.Column, named: Sequence[tuple[int, int, str]], outputs: frozenset[str]
    ) -> bool:
        """Whether a column is in an aggregate's call, or is an output and nothing else."""
        at = column.this.meta.get("start")
        if isinstance(column.this, exp.Star) or at is None:
            return False
        alias = column in self.block.aliases
        if any(a <= at < b for a, b, _ in named):
            return not alias
        return alias and column.name.lower() in outputs and len(column.parts) == 1

    def _aggregate(
        self, call: Call
    ) -> tuple[str, str | None, str | None, bool, str, bool, str | None] | None:
        """The fields of an aggregate behind its name; None: it has no state."""
        follows = AGGREGATES[call.name].follows
        arguments = [self.cut.sql_of(*part) for part in call.arguments]
        order = None
        if follows is None or call.within or call.over or call.nulls is not None:
            return None
        if call.distinct and follows not in ("min", "max", "bool_and", "bool_or"):
            return None
        if follows in ("min_by", "max_by") and len(arguments) == 2:
            order = arguments.pop()
        elif follows in ("min_by", "max_by") or len(arguments) != 1:
            return None
        argument: str | None = arguments[0]
        start, stop = call.arguments[0]
        one = self.cut.text.tokens[start]
        if follows == "count" and stop - start == 1 and one.token_type is TokenType.STAR:
            argument = None
        where = self.cut.sql_of(*call.filter) if call.filter else None
        sql = self.cut.sql_of(call.start, call.end)
        return follows, argument, where, False, sql, call.distinct, order
