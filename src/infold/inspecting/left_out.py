"""
The rows that sessions leave out, as ``set_aside`` lists them: they have no owner.

Such a row is in the table that a sessions model reads, and nowhere else: its own values decide that
it is left out. So the list is a view of those tables, each row once however many models leave it
out, and nothing has to be kept in sync. Where plain columns name the owner, it is read without a
JVM; expressions and views need Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from infold.core import definition
from infold.core.arrow_values import rows_of
from infold.core.interval import Ranges
from infold.core.model import Kind, table_name
from infold.core.own_columns import FILE
from infold.core.ports import Lake, Ledger
from infold.core.project import Node, Project, Stretch
from infold.core.queries import left_out_reason
from infold.core.trace import Trace
from infold.inspecting.as_built import Stretches

if TYPE_CHECKING:
    import pyarrow as pa

BY = "_left_out_by"
"""The column of the models that leave a row out."""


Evaluate = Callable[[str, Sequence[Node], int | None], "pa.Table"]
"""
By Spark: a table, models, and at most how many rows. Its rows that they leave out, with
:data:`BY` and, where it has one, :data:`FILE`.
"""


def models_leaving_out(project: Project, ledger: Ledger) -> Mapping[str, tuple[Node, ...]]:
    """
    The tables with rows that sessions models leave out, and these models, as far as counted.

    A model is there once for each stretch of time with a definition of its own.
    """
    counted, built = ledger.left_out(), ledger.traces()
    by_input: dict[str, tuple[Node, ...]] = {}
    for node in project:
        if node.model.kind is Kind.SESSIONS and node.name in built and counted.get(node.name, 1):
            for version in _by_stretch(project, ledger, node, built[node.name]):
                for entry in version.folded_inputs:
                    by_input[entry.name] = (*by_input.get(entry.name, ()), version)
    return by_input


def _by_stretch(project: Project, ledger: Ledger, node: Node, trace: Trace) -> Iterator[Node]:
    """A model by each of its definitions in force, over the events of its stretch of time."""
    if not trace.earlier:
        yield node
        return
    earlier = Stretches(project, ledger, declared=False)(trace)
    newest = Stretch(Ranges.ever() - trace.earlier_ranges, node.name, project)
    for stretch in (newest, *earlier):
        for times in stretch.cells:
            assert stretch.node.query is not None, "a sessions model has a compiled query"
            yield replace(stretch.node, query=stretch.node.query.during(times))


def rows_left_out(
    project: Project, ledger: Ledger, lake: Lake, limit: int | None, evaluate: Evaluate
) -> pa.Table | None:
    """At most ``limit`` of the rows left out, as ``set_aside`` has rows; None without any."""
    import pyarrow as pa

    parts: list[pa.Table] = []
    for table, nodes in models_leaving_out(project, ledger).items():
        room = None if limit is None else limit - sum(part.num_rows for part in parts)
        if room == 0:
            break
        if lake.metadata(table_name(table)) is not None:
            rows = _read_without_spark(lake, table, nodes, room)
            rows = evaluate(table, nodes, room) if rows is None else rows
            parts.append(_as_set_aside(project, ledger, project[table], nodes, rows))
    return pa.concat_tables(parts) if any(part.num_rows for part in parts) else None


def _read_without_spark(
    lake: Lake, table: str, nodes: Sequence[Node], limit: int | None
) -> pa.Table | None:
    """The rows of a table that models leave out; None where only Spark can tell."""
    tests: dict[str, list[str]] = {}
    for node in nodes:
        test = _filter_of(node, table)
        if test is None:
            return None
        tests.setdefault(node.name, []).append(test)
    known_tests = {
        name: every[0] if len(every) == 1 else " OR ".join(f"({one}\n)" for one in every)
        for name, every in tests.items()
    }
    try:
        return lake.rows_matching(
            table_name(table), known_tests, by=BY, beside=(FILE,), limit=limit
        )
    except ValueError:
        return None


def _filter_of(node: Node, table: str) -> str | None:
    """
    The rows of a table that a model leaves out, as a filter; None where plain columns do not
    decide.
    """
    query, sessions = node.query, node.model.sessions
    if query is None or sessions is None or query.input != table or len(node.inputs) > 1:
        return None
    columns = list(sessions.identifier)
    if sessions.user and (not columns or sessions.fallback_gap is not None):
        columns.append(sessions.user)
    if not all(_COLUMN_NAME.fullmatch(sql.strip()) for sql in columns):
        return None
    parts = [f"{sql} IS NULL" for sql in columns]
    if query.where is not None:
        parts.append(f"({query.where}\n)")  # it may end in a comment
    return " AND ".join(parts)


_COLUMN_NAME = re.compile(r"\w+|`\w+`")


def _as_set_aside(
    project: Project, ledger: Ledger, node: Node, nodes: Sequence[Node], rows: pa.Table
) -> pa.Table:
    """Rows of a table as rows of ``set_aside``."""
    import pyarrow as pa

    order = {one.name: at for at, one in enumerate(project)}
    reasons = {one.name: left_out_reason(one.query) for one in nodes if one.query is not None}
    by = [sorted(names, key=order.__getitem__) for names in rows[BY].to_pylist()]
    files: list[int | None] = [None] * rows.num_rows
    if FILE in rows.column_names:
        files = rows[FILE].to_pylist()
    paths: Mapping[Any, str] = {file.id: file.path for file in ledger.files(node.name)}
    table_rows = rows.drop_columns([name for name in (BY, FILE) if name in rows.column_names])
    return pa.table(
        {
            "model": [", ".join(names) for names in by],
            "source": [node.source or node.name] * rows.num_rows,
            "file": [paths.get(file) for file in files],
            "file_id": files,
            "reason": [", ".join(dict.fromkeys(reasons[name] for name in names)) for names in by],
            "raw": [definition.to_json_text(row) for row in rows_of(table_rows)],
            "event_time": _event_times(node, table_rows),
        },
        schema=set_aside_schema(),
    )


def _event_times(node: Node, own: pa.Table) -> pa.Array:
    """The event times of rows of a table, those of days at their midnight; UTC."""
    import pyarrow as pa
    import pyarrow.compute as pc

    series = node.model.timeseries
    name = series.event_time_column if series else ""
    if node.model.kind is Kind.SESSIONS:
        name = "session_start"
    at = next((one for one in own.column_names if one.lower() == name.lower()), None)
    if at is None:
        return pa.nulls(own.num_rows, pa.timestamp("us", "UTC"))
    plain = own[at].cast(pa.timestamp("us"))
    return pc.assume_timezone(plain, "UTC").combine_chunks()


def set_aside_schema() -> pa.Schema:
    """The columns of the table ``set_aside``."""
    import pyarrow as pa

    return pa.schema(
        [
            ("model", pa.string()),
            ("source", pa.string()),
            ("file", pa.string()),
            ("file_id", pa.int64()),
            ("reason", pa.string()),
            ("raw", pa.string()),
            ("event_time", pa.timestamp("us", "UTC")),
        ]
    )
