"""
What is known of a model in Python: it reads its inputs whole or within declared bounds.

Nothing is proven about its code. So its text is a SELECT that says only what it reads and yields:
each column is an unknown function of the code and of the rows of all inputs. Everything that asks a
model for its inputs, its columns or whether it changed finds the answer there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from infold.analysis import node_facts
from infold.analysis.bounds.known_columns import InputBound
from infold.analysis.cumulative_query import split_cumulative_query
from infold.analysis.names.relation import Rows, Table
from infold.analysis.names.subject import Draft, Subject, time_column
from infold.analysis.overrides import RemainingFindings, timed_inputs
from infold.analysis.rules import events, outputs
from infold.analysis.times.shape import Grain
from infold.core.functions import PythonCode, PythonInput
from infold.core.interval import Granularity
from infold.core.model import Kind, Override, any_result_will_do
from infold.core.project import Bound
from infold.core.queries import GroupedQuery, quoted, text_literal
from infold.messages import findings, function_findings
from infold.messages.errors import InfoldError

FOLDED = (Kind.EVENTS, Kind.CUMULATIVE_AGGREGATE)
"""The kinds that are folded: their functions are given rows, and no DataFrame."""


def python_text(code: PythonCode) -> str:
    """
    The SELECT of a model in Python; its code is in it by its digest.

    A type is an argument as well: a function may give other values for another one. That a function
    of rows may leave some out is a condition of its own.
    """
    arguments = ", ".join(_argument(at, one) for at, one in enumerate(code.inputs))
    keys = {name.lower() for name in code.group_by}
    values = {
        name: f"cast(i0.{quoted(name)} AS {type_})"
        if name.lower() in keys
        else f"cast(python('{code.digest}', {text_literal(name)}, {text_literal(type_)}, "
        f"{arguments}) AS {type_})"
        for name, type_ in code.columns
    }
    columns = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in values.items())
    tables = (
        f"{'.'.join(map(quoted, one.table.split('.')))} AS i{at}"
        for at, one in enumerate(code.inputs)
    )
    text = f"SELECT {columns}\nFROM {' CROSS JOIN '.join(tables)}"
    rows = f"python('{code.digest}', {arguments})"
    if grouped := ", ".join(sql for name, sql in values.items() if name.lower() in keys):
        return f"{text}\nGROUP BY {grouped} HAVING {rows}"
    return f"{text}\nWHERE {rows}" if code.of_each_row else text


def _argument(at: int, entry: PythonInput) -> str:
    """The columns of one input that the function sees."""
    names = ["*"] if entry.columns is None else list(map(quoted, entry.columns))
    return f"struct({', '.join(f'i{at}.{name}' for name in names)})"


def unknown_tables(draft: Draft, tables: Mapping[str, Table]) -> Iterator[InfoldError]:
    """Inputs that are no table, and columns of them that they do not have."""
    code = draft.model.python
    for entry in code.inputs if code is not None else ():
        at = draft.place(f"inputs.{entry.table}")
        table = tables.get(entry.table.lower())
        if table is None or entry.table.lower() == draft.model.name.lower():
            known = [table.name for table in tables.values()]
            yield findings.unknown_table(at, name=entry.table, known=known)
        elif entry.columns is not None and table.columns is not None:
            names = {name.lower() for name in table.columns}
            for column in entry.columns:
                if column.lower() not in names:
                    key = f"inputs.{entry.table}.columns"
                    yield findings.no_such_column(at, key=key, column=column, known=table.columns)


def missing_columns(draft: Draft) -> Iterator[InfoldError]:
    """Columns that the declaration names, as a key or otherwise, and does not have."""
    model = draft.model
    code, incremental = model.python, model.incremental
    if code is None:
        return
    columns = [name for name, _ in code.columns]
    named = [
        (f"incremental.unique_key.{i}", name)
        for i, name in enumerate(incremental.unique_key if incremental is not None else ())
    ]
    if model.timeseries is not None and model.kind.is_by_cell:
        named.append(("timeseries.partition_column", model.timeseries.partition_column))
    for key, name in named:
        if name.lower() not in map(str.lower, columns):
            yield findings.no_such_column(draft.place(key), key=key, column=name, known=columns)
    for name in code.group_by:
        if name.lower() not in map(str.lower, columns):
            yield findings.no_such_column(
                draft.place("group_by"), key="group_by", column=name, known=columns
            )
    yield from outputs.wrong_renamings(draft, tuple(columns))
    series = model.timeseries
    types = {name.lower(): type_.lower() for name, type_ in code.columns}
    if series is not None and (type_ := types.get(series.partition_column.lower())):
        of_events = model.kind is Kind.EVENTS
        key = f"timeseries.{'event_time' if of_events else 'partition'}_column"
        if not type_.startswith(("timestamp", "date")):
            yield findings.not_a_time(
                draft.place(key), key=key, column=series.partition_column, type_=type_
            )


def declared_input_bounds(subject: Subject) -> tuple[InputBound, ...]:
    """How far around its cell a model reads each stored table, as declared for its inputs."""
    incremental = subject.model.incremental
    if incremental is None:
        return ()
    declared = {one.input.lower(): Bound(one.before, one.after) for one in incremental.bounds}
    bounds: dict[str, Bound] = {}
    for name in subject.tables_read:
        node = subject.nodes.get(name)
        if node is None:
            continue
        bound = declared.get(name.lower(), Bound())
        stored = [node.name] if time_column(node) is not None else []
        if node.model.kind.is_view:
            stored = [entry.name for entry in node.inputs if entry.time_column]
        for one in stored:
            bounds[one] = bound.widest(bounds.get(one, bound))
    return tuple(InputBound(name, bound, None) for name, bound in bounds.items())


def wrong_bounds(subject: Subject) -> Iterator[InfoldError]:
    """What keeps a model from being built cell by cell."""
    incremental, draft = subject.model.incremental, subject.draft
    if incremental is None or not subject.model.kind.is_by_cell:
        return
    timed = frozenset(timed_inputs(subject))
    if not timed:
        yield function_findings.no_timed_input(draft.place("incremental"), model=subject.model.name)
        return
    for bound in incremental.bounds:
        node = subject.nodes.get(bound.input)
        behind = {one.name for one in node.inputs} if node is not None else set[str]()
        view = node is not None and node.model.kind.is_view and behind & timed
        if (bound.before or bound.after) and bound.input not in timed and not view:
            at = draft.place(f"inputs.{bound.input}")
            yield findings.bound_of_no_input(at, bound.input, sorted(timed))


def folded_query(subject: Subject) -> tuple[GroupedQuery | None, list[InfoldError]]:
    """The keys of a model by key, and what the rules of SQL say against one that is folded."""
    kind = subject.model.kind
    if kind is Kind.EVENTS:
        named = outputs.check_time_columns(subject)
        return None, [*(_at_input(subject, one) for one in events.check(subject)), *named]
    if kind is not Kind.CUMULATIVE_AGGREGATE:
        return None, []
    parts = split_cumulative_query(subject)
    query = parts.query and replace(parts.query, followed=None)
    return query, [_at_input(subject, one) for one in parts.errors]


def row_keys(subject: Subject) -> Rows:
    """What tells the rows of a model's table apart, as far as the declaration says it."""
    if subject.model.kind not in FOLDED:
        return Rows()
    return node_facts.row_keys(subject, RemainingFindings(()))


def _at_input(subject: Subject, error: InfoldError) -> InfoldError:
    """A finding about the query that stands for the code, at the input that it is about."""
    code = subject.model.python
    table = code.inputs[0].table if code is not None else ""
    return error.moved_to(subject.draft.place(f"inputs.{table}"))


def vouched(subject: Subject) -> tuple[Override, ...]:
    """The overrides that count: that any result will do."""
    return (Override.NONDETERMINISTIC,) if any_result_will_do(subject.model) else ()


def partition_grain(subject: Subject) -> Mapping[str, Grain]:
    """The column that places a row in a cell, if there is one, with how coarse its values are."""
    code, series = subject.model.python, subject.model.timeseries
    placed = subject.model.kind in (Kind.INCREMENTAL_TABLE, Kind.EVENTS)
    if not placed or code is None or series is None:
        return {}
    column = series.partition_column.lower()  # of events: the event time
    types = {name.lower(): type_.lower() for name, type_ in code.columns}
    return {column: Granularity.DAY if types.get(column) == "date" else None}
