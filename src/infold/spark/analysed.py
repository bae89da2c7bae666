"""
What Spark's analysed plan of a query shows that its text does not: which tables it reads, which
functions it calls, and what is not deterministic. Plans are only inspected; nothing is executed.
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
from infold.spark.connect import plans
from infold.spark.remote import is_remote

# -- tables


def tables_read(rows: DataFrame, views: Collection[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """
    What a plan reads besides the given views, and which of these views it does not read.

    A program that it would start counts as read, and so do rows that are not in the query's text.
    """
    nodes = tuple(_nodes(rows))
    seen = {_view_name(rest) for name, _, rest in nodes if name == "View"}
    missing = (view for view in reversed(tuple(views)) if view not in seen)  # outer ones first
    others = tuple(_others(nodes, views))
    if is_remote(rows.sparkSession) and plans.has_rows_of_client(rows):
        others += ("rows of createDataFrame",)
    return others, tuple(missing)


def _others(nodes: Sequence[tuple[str, int, str]], views: Collection[str]) -> Iterator[str]:
    for at, (name, depth, rest) in enumerate(nodes):
        is_leaf = at + 1 == len(nodes) or nodes[at + 1][1] <= depth
        if name == "View":
            if _view_name(rest) not in views:
                yield (name + rest)[:_SHOWN]
        elif name == "ScriptTransformation" or (is_leaf and name not in _LEAVES):
            yield (name + rest)[:_SHOWN]


def _nodes(rows: DataFrame) -> Iterator[tuple[str, int, str]]:
    """The nodes of a plan, top down: name, depth, and the rest of its line."""
    for line in _text(rows).splitlines():
        if node := _NODE.match(line):
            yield node["name"], node.start("name"), node["rest"]


def _view_name(rest: str) -> str:
    match = _VIEW.match(rest)
    return match["name"] if match else ""


def _text(rows: DataFrame) -> str:
    if is_remote(rows.sparkSession):
        return plans.analysed_text(rows)
    return str(_plan(rows).treeString())


def _plan(rows: DataFrame) -> Any:
    return rows._jdf.queryExecution().analyzed()  # noqa: SLF001 (no other way here)


_NODE = re.compile(r"^(?:[ :]*[:+]- )?'?(?P<name>[A-Z]\w*)(?P<rest>.*)")
_VIEW = re.compile(r" \(`(?P<name>\w+)`,")
_LEAVES = frozenset({"Range", "LocalRelation", "OneRowRelation", "CTERelationRef"})
"""Leaves without stored rows: those of views without rows, and of lists of values."""
_SHOWN = 160


# -- functions


def functions_called(sql: str) -> frozenset[str]:
    """The names of Spark's own functions that a text calls."""
    from sqlglot import TokenType, tokenize

    pairs = pairwise(tokenize(sql, read="spark"))
    return BUILT_IN & {
        one.text.lower() for one, two in pairs if two.token_type is TokenType.L_PAREN
    }


def replacing_class(spark: SparkSession, name: str) -> str | None:
    """The class that replaces one of Spark's own functions in this session; None if none does."""
    if is_remote(spark):
        found = plans.class_of(spark, name)
        # Words of the syntax have no class, nor has what is not there, which Spark will not find.
        return None if not found or found.startswith(_OF_SPARK) else found
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


# -- determinism


def nondeterministic_expressions(rows: DataFrame, sql: str = "") -> Iterator[str]:
    """
    The expressions of a plan that Spark marks as not deterministic, and clocks, as text.

    Within one query Spark has one instant for all of a clock's calls, and so does not mark them.
    Aggregates that depend on the order of rows are left to the analysis: it knows whether the order
    is total. ``sql`` is what the query was written as; nothing for one in Python.
    """
    if is_remote(rows.sparkSession):
        return plans.nondeterministic_expressions(rows, sql)
    gateway: Any = rows.sparkSession.sparkContext._gateway  # noqa: SLF001 (as above)
    patterns = getattr(gateway.jvm, f"{_PATTERNS}$").__getattr__("MODULE$")
    return _Walk(gateway, patterns.CURRENT_LIKE()).plan(_plan(rows))


@dataclass(frozen=True)
class _Walk:
    """Walks down a plan, only to what is not deterministic or of the present."""

    gateway: Any
    present: Any
    """Spark's pattern for what it replaces when a query starts: clocks, the user, and so on."""

    def plan(self, plan: Any) -> Iterator[str]:
        if self.stays(plan):
            return
        for one in _items(plan.expressions()):
            yield from self.expression(one)
        for child in _items(plan.children()):
            yield from self.plan(child)

    def expression(self, one: Any) -> Iterator[str]:
        if self.stays(one):
            return
        inner = [child for child in _items(one.children()) if not self.stays(child)]
        for child in inner:
            yield from self.expression(child)
        if self._is(one, "PlanExpression"):
            yield from self.plan(one.plan())
        elif one.deterministic():
            if _class(one) in _CLOCKS:
                yield one.sql()[:_SHOWN]
        elif self._is(one, "Nondeterministic") or not (inner or _ordered(one)):
            yield one.sql()[:_SHOWN]

    def stays(self, one: Any) -> bool:
        """Whether a plan or an expression, with all in it, is the same whenever it is evaluated."""
        return bool(one.deterministic()) and not one.containsPattern(self.present)

    def _is(self, one: Any, name: str) -> bool:
        return bool(is_instance_of(self.gateway, one, f"{_EXPRESSIONS}.{name}"))


def _ordered(one: Any) -> bool:
    return _class(one) in _BY_ORDER


def _class(one: Any) -> str:
    return str(one.getClass().getSimpleName())


def _items(items: Any) -> Iterator[Any]:
    return (items.apply(at) for at in range(items.size()))


_PATTERNS = "org.apache.spark.sql.catalyst.trees.TreePattern"
_CLOCKS = frozenset({"CurrentDate", "CurrentTime", "CurrentTimestamp", "LocalTimestamp", "Now"})
_OF_SPARK = "org.apache.spark.sql."
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"
_BY_ORDER = frozenset({"AnyValue", "CollectList", "CollectSet", "First", "Last", "ListAgg"})
"""Aggregates that depend on order; ``analysis.rules.order_dependent`` checks them."""
