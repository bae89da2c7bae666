"""
Definitions checked by Spark's own analyser, before any row is read and any step begins.

Every model is analysed over tables without rows, with the columns that its inputs have: sources as
declared, models as their own analysis found. So functions, types, names and determinism are
Spark's, and the tables that Spark reads must be those that the analysis of the text found. Nothing
is executed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import Any
from uuid import uuid4

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from sqlglot import TokenType, tokenize

from infold.analysis.sql.functions import BUILT_IN
from infold.core.model import Kind, Source, any_result_will_do
from infold.core.project import Node, Project
from infold.core.queries import SessionsQuery
from infold.core.sessions import NUMBERS, SqlType
from infold.messages import findings
from infold.messages.errors import InfoldError, Spot
from infold.running.run_progress import ends_run
from infold.spark.audits.row_audits import refuse_wrong
from infold.spark.content import column, user_columns
from infold.spark.reading import source_rows
from infold.spark.session_facts import is_remote
from infold.spark.step_context import Work
from infold.spark.stored_types import as_stored
from infold.spark.versions import versions_of
from infold.system import failures


@dataclass(frozen=True)
class DefinitionAnalyser:
    """What is known of a project's models; each is analysed once."""

    project: Project
    work: Callable[[], Work]
    found: dict[str, InfoldError] = field(default_factory=dict)
    schemas: dict[str, T.StructType] = field(default_factory=dict)
    """The columns of correct models, as a reader of their tables sees them."""
    replaced: dict[str, str | None] = field(default_factory=dict)
    """Spark's functions -> the class that replaces them in this session, or None."""

    def judge(self, models: Iterable[str]) -> Mapping[str, InfoldError]:
        """What is wrong with models; one that reads a wrong model is not judged."""
        requested = frozenset(models)
        needed = requested | self.project.upstream(requested)
        for node in self.project:
            if node.name in needed and all(name in self.schemas for name in self._reads(node)):
                self._analyse(node)
        return {name: error for name, error in self.found.items() if name in requested}

    def _reads(self, node: Node) -> Iterator[str]:
        return (name for name in node.reads if name in self.project and name != node.name)

    def _analyse(self, node: Node) -> None:
        try:
            with self.work() as work:
                if node.name in self.project.shared and node.model.kind.is_stored:
                    stored = user_columns(work.tables.read(node.name))
                    self.schemas[node.name] = stored.schema
                else:
                    self._keep_columns(work, node, self._analysed(work, node))
        except InfoldError as error:  # what a function in Python did
            if ends_run(error):
                raise
            self.found[node.name] = error
        except (PySparkException, Py4JError) as error:
            known = failures.known_failure(error)
            if known is not None and ends_run(known):
                raise known from error
            self.found[node.name] = (
                known.with_facts(("model", node.name)) if known else _refusal_by_spark(node, error)
            )

    def _analysed(self, work: Work, node: Node) -> DataFrame:
        """The model's rows over inputs without rows."""
        if node.model.kind is Kind.EVENTS:
            source = self.project.sources[node.source or node.name].without_columns(
                node.unread_columns
            )
            rows = self._landing_frame(work, source)
            return work.sql(node, {**self._input_frames(work, node), source.name: rows})
        if node.query is not None:
            return _session_columns(self._events_frame(work, node.query.input), node.query)
        if node.versions is not None:
            return versions_of(work.sql(node, self._input_frames(work, node)), node.versions)
        return work.sql(node, self._input_frames(work, node))

    def _events_frame(self, work: Work, name: str) -> DataFrame:
        """The events that a sessions query reads: a stored table, or a view."""
        node = self.project[name]
        if node.model.kind.is_view:
            return work.sql(node, self._input_frames(work, node))
        return empty_frame(work.spark, self.schemas[name])

    def _input_frames(self, work: Work, node: Node) -> dict[str, DataFrame]:
        return {
            entry.name: empty_frame(work.spark, self.schemas[entry.name])
            if entry.name in self.schemas
            else self._landing_frame(work, self.project.sources[entry.name])
            for entry in node.stored_inputs
        }

    def _landing_frame(self, work: Work, source: Source) -> DataFrame:
        return empty_frame(work.spark, source_rows.column_types(work.spark, self.project, source))

    def _keep_columns(self, work: Work, node: Node, rows: DataFrame) -> None:
        """Keep the columns of a model's rows, or what is wrong with them."""
        schema = user_columns(rows).schema
        wrong = next(
            chain(self._unlike_text(work, node, rows), _columns_not_storable(node, schema)), None
        )
        if wrong is not None:
            self.found[node.name] = wrong
        else:
            self.schemas[node.name] = schema
            self._judge_audits(work, node, schema)

    def _judge_audits(self, work: Work, node: Node, schema: T.StructType) -> None:
        """Keep what is wrong with a model's audits; its readers are judged all the same."""
        if node.model.audits:
            try:
                refuse_wrong(node.name, node.model.audits, empty_frame(work.spark, schema))
            except InfoldError as error:
                self.found[node.name] = error

    def _unlike_text(self, work: Work, node: Node, rows: DataFrame) -> Iterator[InfoldError]:
        """Where Spark's analysis differs from the analysis of the text."""
        at, name = _spot_in_sql(node), node.name
        others, missing = tables_read(rows, work.views)
        yield from (findings.reads_unseen(at, model=name, what=what) for what in others)
        written = node.model.sql if node.model.python is None else ""
        if written:  # a function may leave an input alone
            yield from (
                findings.not_read(at, model=name, what=work.views[view]) for view in missing
            )
        for function in sorted(functions_called(written)):
            if function not in self.replaced:
                self.replaced[function] = replacing_class(work.spark, function)
            if (class_ := self.replaced[function]) is not None:
                yield findings.function_replaced(at, model=name, function=function, class_=class_)
        if not any_result_will_do(node.model):
            for what in nondeterministic_expressions(rows, written):
                yield findings.not_determined(at, model=name, what=what)


def empty_frame(spark: SparkSession, schema: T.StructType) -> DataFrame:
    """A frame of some columns without rows, for Spark's analyser only."""
    row = F.lit(None).cast(as_stored(schema)).alias("row")
    return spark.range(0).select(row).select("row.*")


def with_columns_to_be(work: Work, stored: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """
    Stored inputs of a step about stored rows, for Spark's analyser only.

    Such a step comes before those of its inputs. So one with a definition that is yet to be carried
    out is replaced by an empty frame of the columns that it gives: the query names these.
    """
    traces, project = work.ledger.traces(), work.project
    changed = [
        name
        for name in stored
        if name in traces and traces[name].fingerprint != project[name].fingerprint
    ]
    analyser = DefinitionAnalyser(project, lambda: replace(work, views={}))
    analyser.judge(changed)
    known = {name: analyser.schemas[name] for name in changed if name in analyser.schemas}
    return {**stored, **{name: empty_frame(work.spark, known[name]) for name in known}}


def _session_columns(events: DataFrame, query: SessionsQuery) -> DataFrame:
    """The columns of a sessions model, with the types of its expressions; no session is made."""
    taken = events.where(query.where) if query.where else events
    declared = [part for cut in query.cuts for part in cut.event_sql]
    conditions = [part.sql for part in declared if part.type is SqlType.BOOLEAN]
    texts = [f"cast({part.sql} AS string)" for part in declared if part.type is SqlType.STRING]
    owner = F.expr(query.owner_sql) if query.owner_sql else column(query.user)
    if query.fallback is not None:
        texts.append(f"cast({query.fallback.user} AS string)")
        owner = owner.cast("string")
    time = column(query.time_column)
    grouped = taken.groupBy(owner.alias(_OWNER)).agg(
        F.first(time).alias("session_start"),
        *(F.expr(f"any_value({sql})").alias(f"_text{at}") for at, sql in enumerate(texts)),
        *(F.expr(f"any_value({sql})").alias(f"_begins{at}") for at, sql in enumerate(conditions)),
        *(F.expr(call.sql).alias(call.name) for call in query.aggregates),
    )
    for at, _ in enumerate(conditions):
        grouped = grouped.where(f"NOT _begins{at} OR _begins{at} IS NULL")
    named = grouped.withColumns(
        {
            "session_id": F.lit(""),
            query.user: F.col(_OWNER),
            "session_end": F.col("session_start"),
            **dict(zip(NUMBERS, (F.lit(1).cast("bigint"), F.lit(True)), strict=True)),
        }
    )
    if query.chosen_user:
        named = named.withColumn(query.chosen_user.name, F.expr(query.chosen_user.sql))
    return named.select(
        *map(column, query.fixed_columns),
        *(F.expr(output.sql).alias(output.name) for output in query.outputs),
    )


_OWNER = "_infold_of"


# -- types


def _columns_not_storable(node: Node, schema: T.StructType) -> Iterator[InfoldError]:
    for part in schema.fields if node.model.kind.is_stored else ():
        if not _is_storable(part.dataType):
            type_ = part.dataType.simpleString()
            yield findings.type_not_stored(
                _spot_in_sql(node), model=node.name, column=part.name, type_=type_
            )


def _is_storable(type_: T.DataType) -> bool:
    """Whether a table can have a column of a type."""
    if isinstance(type_, T.ArrayType):
        return _is_storable(type_.elementType)
    if isinstance(type_, T.MapType):
        return _is_storable(type_.keyType) and _is_storable(type_.valueType)
    if isinstance(type_, T.StructType):
        return all(_is_storable(part.dataType) for part in type_.fields)
    return not isinstance(type_, _NEVER_STORED)


_NEVER_STORED = (T.NullType, T.DayTimeIntervalType, T.YearMonthIntervalType, T.CalendarIntervalType)


# -- Spark's errors


def _refusal_by_spark(node: Node, error: PySparkException | Py4JError) -> InfoldError:
    message = str(error)
    lines = (line.lstrip(": ") for line in message.splitlines() if not line.startswith(_CALLING))
    why = next(filter(None, lines), type(error).__name__)
    why = _STATE.split(_OWN_VIEW.sub("", why))[0].strip()
    at = _WHERE.search(message) if node.query is None else None
    condition = ""
    with suppress(Exception):
        condition = error.getCondition() or "" if isinstance(error, PySparkException) else ""
    why = why.removeprefix(f"[{condition}] ")
    return findings.refused_by_spark(
        _spot_in_sql(node, at), model=node.name, why=why[:500], condition=condition
    )


_CALLING = "An error occurred while calling "
"""How py4j's message of a failed call begins; the failure is in the next line."""
_STATE = re.compile(r" SQLSTATE: | \(line \d+, pos")
_OWN_VIEW = re.compile(r"`?infold_view_\d+`?\.?")
_WHERE = re.compile(r"== SQL \(line (\d+), position \d+\) ==|line (\d+),? pos")


def _spot_in_sql(node: Node, match: re.Match[str] | None = None) -> Spot:
    """The line of the model's file that an error names, or the first line of its query."""
    line = int(match[1] or match[2]) if match else 1
    return Spot(node.model.place.file, node.model.sql_line + line - 1)


# -- tables


def tables_read(rows: DataFrame, views: Collection[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """
    What a plan reads besides the given views, and which of these views it does not read.

    A program that it would start counts as read, and so do rows that are not in the query's text.
    """
    nodes = tuple(_plan_nodes(rows))
    view_names = {_view_name(rest) for name, _, rest in nodes if name == "View"}
    # Outer views first.
    missing = (view for view in reversed(tuple(views)) if view not in view_names)
    others = tuple(_other_leaves(nodes, views))
    if is_remote(rows.sparkSession) and has_rows_of_client(rows):
        others += ("rows of createDataFrame",)
    return others, tuple(missing)


def _other_leaves(nodes: Sequence[tuple[str, int, str]], views: Collection[str]) -> Iterator[str]:
    for at, (name, depth, rest) in enumerate(nodes):
        is_leaf = at + 1 == len(nodes) or nodes[at + 1][1] <= depth
        if name == "View":
            if _view_name(rest) not in views:
                yield (name + rest)[:_SHOWN]
        elif name == "ScriptTransformation" or (is_leaf and name not in _LEAVES):
            yield (name + rest)[:_SHOWN]


def _plan_nodes(rows: DataFrame) -> Iterator[tuple[str, int, str]]:
    """The nodes of a plan, top down: name, depth, and the rest of its line."""
    for line in _plan_text(rows).splitlines():
        if node := _NODE.match(line):
            yield node["name"], node.start("name"), node["rest"]


def _view_name(rest: str) -> str:
    match = _VIEW.match(rest)
    return match["name"] if match else ""


def _plan_text(rows: DataFrame) -> str:
    if is_remote(rows.sparkSession):
        return analysed_text(rows)
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
        token.text.lower() for token, after in pairs if after.token_type is TokenType.L_PAREN
    }


def replacing_class(spark: SparkSession, name: str) -> str | None:
    """The class that replaces one of Spark's own functions in this session; None if none does."""
    if is_remote(spark):
        class_ = class_of(spark, name)
        # Words of the syntax have no class, nor has what is not there, which Spark will not find.
        return None if not class_ or class_.startswith(_OF_SPARK) else class_
    state = spark._jsparkSession.sessionState()  # noqa: SLF001 (no other way here)
    jvm: Any = spark._jvm  # noqa: SLF001 (no other way here)
    catalyst = jvm.org.apache.spark.sql.catalyst
    identifier = catalyst.FunctionIdentifier(name)
    for kind, registry in (
        (catalyst.analysis.FunctionRegistry, state.functionRegistry()),
        (catalyst.analysis.TableFunctionRegistry, state.tableFunctionRegistry()),
    ):
        class_ = _class_of(registry, identifier)
        if class_ != _class_of(kind.builtin(), identifier):
            return class_.partition("$$")[0] or "nothing"
    return None


def _class_of(registry: Any, name: Any) -> str:
    """The class that a registry has for a function; empty for none."""
    builder = registry.lookupFunction(name)
    return str(builder.get().getClassName()) if builder.isDefined() else ""


# -- determinism


def nondeterministic_expressions(rows: DataFrame, sql: str = "") -> Iterator[str]:
    """
    The expressions of a plan that Spark marks as not deterministic, and clocks, as text.

    Within one query Spark has one instant for all of a clock's calls, and so does not mark them.
    Aggregates that depend on the order of rows are left to the analysis: it knows whether the order
    is total. ``sql`` is what the query was written as; nothing for one in Python.
    """
    if is_remote(rows.sparkSession):
        return nondeterministic_in_plan(rows, sql)
    gateway: Any = rows.sparkSession.sparkContext._gateway  # noqa: SLF001 (as above)
    patterns = getattr(gateway.jvm, f"{_PATTERNS}$").__getattr__("MODULE$")
    return _PlanWalk(gateway, patterns.CURRENT_LIKE()).plan(_plan(rows))


@dataclass(frozen=True)
class _PlanWalk:
    """Walks down a plan, only to what is not deterministic or of the present."""

    gateway: Any
    present: Any
    """Spark's pattern for what it replaces when a query starts: clocks, the user, and so on."""

    def plan(self, plan: Any) -> Iterator[str]:
        if self.stays(plan):
            return
        for item in _scala_items(plan.expressions()):
            yield from self.expression(item)
        for child in _scala_items(plan.children()):
            yield from self.plan(child)

    def expression(self, node: Any) -> Iterator[str]:
        if self.stays(node):
            return
        inner = [child for child in _scala_items(node.children()) if not self.stays(child)]
        for child in inner:
            yield from self.expression(child)
        if self._is_instance(node, "PlanExpression"):
            yield from self.plan(node.plan())
        elif node.deterministic():
            if _class_name(node) in _CLOCKS:
                yield node.sql()[:_SHOWN]
        elif self._is_instance(node, "Nondeterministic") or not (inner or _depends_on_order(node)):
            yield node.sql()[:_SHOWN]

    def stays(self, node: Any) -> bool:
        """Whether a plan or an expression, with all in it, is the same whenever it is evaluated."""
        return bool(node.deterministic()) and not node.containsPattern(self.present)

    def _is_instance(self, node: Any, name: str) -> bool:
        return bool(is_instance_of(self.gateway, node, f"{_EXPRESSIONS}.{name}"))


def _depends_on_order(node: Any) -> bool:
    return _class_name(node) in _BY_ORDER


def _class_name(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _scala_items(items: Any) -> Iterator[Any]:
    return (items.apply(at) for at in range(items.size()))


_PATTERNS = "org.apache.spark.sql.catalyst.trees.TreePattern"
_CLOCKS = frozenset({"CurrentDate", "CurrentTime", "CurrentTimestamp", "LocalTimestamp", "Now"})
_OF_SPARK = "org.apache.spark.sql."
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"
_BY_ORDER = frozenset({"AnyValue", "CollectList", "CollectSet", "First", "Last", "ListAgg"})
"""Aggregates that depend on order; ``analysis.rules.order_dependent`` checks them."""


# A client has no objects of a plan. Whether a plan is deterministic Spark itself decides where it
# has to: it refuses a lateral join with a subquery that is not.

ANALYSED, OPTIMISED = "== Analyzed Logical Plan ==", "== Optimized Logical Plan =="

_CLOCK = re.compile(
    r"(?<![\w.])(?:current_date|current_time|current_timestamp|localtimestamp|now)"
    r"\((?:[^()\n]|\([^()\n]*\)){0,40}\)"
)
_LITERALS = (TokenType.STRING, TokenType.RAW_STRING, TokenType.IDENTIFIER)
_NOT_DETERMINISTIC = "NON_DETERMINISTIC_LATERAL_SUBQUERIES"
_NAMED = re.compile(
    r"(?<![\w.])(?:rand|random|randn|randstr|uniform|uuid|shuffle|sample|monotonically_increasing_id"
    r"|spark_partition_id|input_file_name|input_file_block_\w+|reflect|java_method|try_reflect)"
    r"\([^()\n]{0,60}\)"
)
"""Expressions that are named in a message, if they are what is not deterministic."""


def analysed_text(rows: DataFrame) -> str:
    """
    The analysed plan, a line for each node.

    Texts of the query may have a heading in them: of several, the piece is taken that has most.
    """
    text = _explained(rows)
    start = text.find(ANALYSED)
    return text[start + len(ANALYSED) : text.rfind(OPTIMISED)]


def _explained(rows: DataFrame) -> str:
    return str(rows._explain_string(extended=True))  # type: ignore[operator]  # noqa: SLF001 (`explain` prints it)


def has_rows_of_client(rows: DataFrame) -> bool:
    """
    Whether a plan has rows that the client sends with it: those of ``createDataFrame``.

    In the server's plan they look like a list of values in the text of a query.
    """
    session: Any = rows.sparkSession
    plan: Any = rows
    return _has_local_rows(plan._plan.to_proto(session.client))  # noqa: SLF001 (the only plan here)


def _has_local_rows(message: Any) -> bool:
    if message.DESCRIPTOR.name in _LOCAL_ROWS:
        return True
    return any(
        _has_local_rows(part)
        for field, value in message.ListFields()
        if field.message_type is not None
        for part in ((value,) if hasattr(value, "ListFields") else value)
        if hasattr(part, "ListFields")  # a map has its keys here
    )


_LOCAL_ROWS = ("LocalRelation", "CachedLocalRelation", "ChunkedCachedLocalRelation")


def class_of(spark: SparkSession, name: str) -> str:
    """The class of a function of this session; empty for none."""
    try:
        # At most a dozen lines.
        description_rows = spark.sql(f"DESCRIBE FUNCTION `{name}`").collect()
    except AnalysisException:
        return ""
    lines = (row[0].partition("Class: ") for row in description_rows)
    return next((class_name for _, separator, class_name in lines if separator), "")


def nondeterministic_in_plan(rows: DataFrame, sql: str) -> Iterator[str]:
    """As ``analysed.nondeterministic_expressions``; ``sql`` is what the query was written as."""
    text = analysed_text(rows)
    for token in tokenize(sql, read="spark"):
        if token.token_type in _LITERALS and _CLOCK.search(token.text):
            text = text.replace(token.text, "")
    yield from dict.fromkeys(found[0] for found in _CLOCK.finditer(text))
    if not _is_deterministic(rows):
        yield from dict.fromkeys(found[0] for found in _NAMED.finditer(text)) or ("its plan",)


def _is_deterministic(rows: DataFrame) -> bool:
    spark, view = rows.sparkSession, f"infold_judged_{uuid4().hex}"
    rows.createOrReplaceTempView(view)
    try:
        spark.sql(f"SELECT 1 FROM range(2), LATERAL (SELECT * FROM {view})").schema  # noqa: B018 (analyses it)
    except AnalysisException as error:
        if _NOT_DETERMINISTIC not in (error.getCondition() or ""):
            raise
        return False
    finally:
        spark.catalog.dropTempView(view)
    return True
