"""
The rows that a model sets aside in a test, and the columns in which they are compared.

Those are what `infold show set_aside` shows (the file by its name in the test), and the columns of
the row itself, as it stands in the file or in the table that sessions read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from infold import api
from infold.core.model import Kind
from infold.core.project import Node, Project
from infold.core.typed_text import value_in_file
from infold.core.unit_tests import Row
from infold.messages.errors import InfoldError
from infold.testing.project import Tables
from infold.testing.scratch import Scratch

if TYPE_CHECKING:
    import pyarrow as pa

OWN = {"reason": "string", "event_time": "timestamp", "file": "string", "raw": "string"}
"""The columns of every row that is set aside, with their types."""


def aside_columns(node: Node, tables: Tables) -> Mapping[str, str]:
    """The columns of the rows that a model sets aside, with types as Spark SQL writes them."""
    found: dict[str, str] = {}
    if node.source is not None:
        found |= tables.sources[node.source]
    elif node.model.kind is Kind.SESSIONS:
        for entry in node.folded_inputs:
            found |= tables.columns(entry.name)
    return {**found, **OWN}


def rows_set_aside(scratch: Scratch, project: Project, node: Node, tables: Tables) -> list[Row]:
    """The rows that a model sets aside, as its project in the scratch has them."""
    types = aside_columns(node, tables)
    return [_row(one, types) for one in _listed(scratch, project, node)]


def _listed(scratch: Scratch, project: Project, node: Node) -> Iterator[Mapping[str, Any]]:
    """The rows of ``set_aside`` that name the model."""
    from infold.inspecting.left_out import rows_left_out

    def by_spark(table: str, nodes: Sequence[Node], most: int | None) -> pa.Table:
        from infold.spark.left_out import left_out

        with scratch.engine(project).work("") as work:
            return left_out(work, table, nodes, most)

    lake = api.lake(project)
    try:
        found = [lake.rows(project.set_aside)]
    except InfoldError as error:
        if error.slug != "not-built":
            raise
        found = []  # it is made with its first row
    left = rows_left_out(project, api.ledger(project), lake, None, by_spark)
    for table in [*found, *([] if left is None else [left])]:
        yield from (row for row in table.to_pylist() if node.name in row["model"].split(", "))


def _row(listed: Mapping[str, Any], types: Mapping[str, str]) -> Row:
    try:
        inside = json.loads(listed["raw"])
    except ValueError:  # a line that is no JSON
        inside = {}
    row = {
        name: value_in_file(inside.get(name), of) for name, of in types.items() if name not in OWN
    }
    file = listed["file"] and PurePosixPath(listed["file"]).stem
    return {**row, **{name: listed[name] for name in OWN}, "file": file}
