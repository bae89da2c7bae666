"""
What Spark's analysed plan of a query says that its text did not: what is read, what is called, and
what would come out otherwise a second time. A plan is only looked at; nothing is executed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from py4j.java_gateway import is_instance_of
from pyspark.sql import DataFrame, SparkSession

from infold.analysis.sql.functions import BUILT_IN

# -- what is read


def tables_read(rows: DataFrame, views: Collection[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """
    What a plan reads besides views of these names, and those of them that it does not read.

    A program that it would start counts as read.
    """
    nodes = tuple(_nodes(rows))
    seen = {_view_name(rest) for name, _, rest in nodes if name == "View"}
    missing = (view for view in reversed(tuple(views)) if view not in seen)  # outer ones first
    return tuple(_others(nodes, views)), tuple(missing)


def _others(nodes: Sequence[tuple[str, int, str]], views: Collection[str]) -> Iterator[str]:
    for at, (name, depth, rest) in enumerate(nodes):
        is_leaf = at + 1 == len(nodes) or nodes[at + 1][1] <= depth
        if name == "View":
            if _view_name(rest) not in views:
                yield (name + rest)[:_SHOWN]
        elif name == "ScriptTransformation" or (is_leaf and name not in _LEAVES):
            yield (name + rest)[:_SHOWN]


def _nodes(rows: DataFrame) -> Iterator[tuple[str, int, str]]:
    """The nodes of a plan in the order of its tree: name, how far in, and what else it says."""
    for line in _plan(rows).treeString().splitlines():
        if node := _NODE.match(line):
            yield node["name"], node.start("name"), node["rest"]


def _view_name(rest: str) -> str:
    tables_read = _VIEW.match(rest)
    return tables_read["name"] if tables_read else ""


def _plan(rows: DataFrame) -> Any:
    return rows._jdf.queryExecution().analyzed()  # noqa: SLF001 (no other way here)


_NODE = re.compile(r"^(?:[ :]*[:+]- )?'?(?P<name>[A-Z]\w*)(?P<rest>.*)")
_VIEW = re.compile(r" \(`(?P<name>\w+)`,")
_LEAVES = frozenset({"Range", "LocalRelation", "OneRowRelation", "CTERelationRef"})
"""What holds no stored rows: views without rows end in these, and so do lists of values."""
_SHOWN = 160


# -- what is called


def functions_called(sql: str) -> frozenset[str]:
    """Those of Spark's own functions that a text calls, by their names."""
    from sqlglot import TokenType, tokenize

    pairs = pairwise(tokenize(sql, read="spark"))
    return BUILT_IN & {
        one.text.lower() for one, two in pairs if two.token_type is TokenType.L_PAREN
    }


def replacing_class(spark: SparkSession, name: str) -> str | None:
    """The class that stands in this session for one of Spark's own functions; None: its own."""
    state = spark._jsparkSession.sessionState()  # noqa: SLF001 (no other way here)
    jvm: Any = spark._jvm  # noqa: SLF001 (no other way here)
    catalyst = jvm.org.apache.spark.sql.catalyst
    wanted = catalyst.FunctionIdentifier(name)
    for kind, registry in (
        (catalyst.analysis.FunctionRegistry, state.functionRegistry()),
        (catalyst.analysis.TableFunctionRegistry, state.tableFunctionRegistry()),
    ):
        found = _class_of(registry, wanted)
        if found != _class_of(kind.builtin(), wanted):
            return found.partition("$$")[0] or "nothing"
    return None


def _class_of(registry: Any, name: Any) -> str:
    """The class that a registry has for a function; empty for none."""
    found = registry.lookupFunction(name)
    return str(found.get().getClassName()) if found.isDefined() else ""


# -- what is determined


def nondeterministic_expressions(rows: DataFrame) -> Iterator[str]:
    """
    The expressions of a plan that Spark itself holds for not deterministic, as they are shown.

    Aggregates that take any row, or rows in any order, are left to the analysis: it knows whether
    their order is total.
    """
    return _Walk(rows.sparkSession.sparkContext._gateway).plan(_plan(rows))  # noqa: SLF001 (as above)


@dataclass(frozen=True)
class _Walk:
    """Down a plan, only to where something is not deterministic."""

    gateway: Any

    def plan(self, plan: Any) -> Iterator[str]:
        if plan.deterministic():
            return
        for one in _items(plan.expressions()):
            yield from self.expression(one)
        for child in _items(plan.children()):
            yield from self.plan(child)

    def expression(self, one: Any) -> Iterator[str]:
        if one.deterministic():
            return
        inner = [child for child in _items(one.children()) if not child.deterministic()]
        for child in inner:
            yield from self.expression(child)
        if self._is(one, "PlanExpression"):
            yield from self.plan(one.plan())
        elif self._is(one, "Nondeterministic") or not (inner or _ordered(one)):
            yield one.sql()[:_SHOWN]

    def _is(self, one: Any, name: str) -> bool:
        return bool(is_instance_of(self.gateway, one, f"{_EXPRESSIONS}.{name}"))


def _ordered(one: Any) -> bool:
    return one.getClass().getSimpleName() in _BY_ORDER


def _items(items: Any) -> Iterator[Any]:
    return (items.apply(at) for at in range(items.size()))


_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"
_BY_ORDER = frozenset({"AnyValue", "CollectList", "CollectSet", "First", "Last", "ListAgg"})
"""Aggregates by which rows have an order; ``analysis.rules.order_dependent`` judges them."""
