"""SQL over one event in front matter: what it may contain, and what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from infold.analysis.names.relation import Block, Columns, Table
from infold.analysis.names.resolve import resolve
from infold.analysis.names.row_wise import calls_over_rows
from infold.analysis.names.subject import Draft, Subject
from infold.analysis.rules import clock, collations, random
from infold.analysis.sql.parse import parse
from infold.core.model import Materialization, Model
from infold.messages import findings
from infold.messages.errors import InfoldError, Spot

_TABLE = "infold_events"


def check_event_sql(at: Spot, key: str, sql: str, columns: Columns) -> Iterator[InfoldError]:
    """Why the SQL under a key of front matter is no function of one event of a table."""
    if re.fullmatch(r"\s*(\w+|`[^`]+`)\s*", sql) and columns is not None:
        name = sql.strip().strip("`")
        if name.lower() not in {column.lower() for column in columns}:
            yield findings.no_such_column(at, key=key, column=name, known=columns)
        return
    try:
        parsed = parse(at.file, f"SELECT ({sql}) AS value FROM {_TABLE}")
    except InfoldError as error:
        yield findings.not_of_one_event(at, key=key, sql=sql, why=error.what)
        return
    known = {_TABLE: Table(_TABLE, columns)}
    resolved = resolve(parsed.text, parsed.tree, known)
    if resolved.errors:
        yield resolved.errors[0].moved_to(at)
        return
    block = resolved.relation
    if not isinstance(block, Block) or block.nested_queries or len(block.node.expressions) != 1:
        yield findings.not_of_one_event(at, key=key, sql=sql, why="it has a query of its own")
        return
    for what, _ in calls_over_rows(block):
        yield findings.not_of_one_event(at, key=key, sql=sql, why=f"it has {what}")
        return
    draft = Draft(Model("", Materialization.VIEW, parsed.text.sql), parsed)
    subject = Subject(draft, block, {}, {})
    for rule in (clock, random, collations):
        for found in rule.check(subject):
            yield findings.not_of_one_event(at, key=key, sql=sql, why=found.what)
            return
