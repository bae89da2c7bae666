"""
The branches of a query: each WHEN and ELSE of a CASE, and what each part of WHERE leaves out.

A branch is looked into where its SELECT reads one table and the condition is about one row of it:
then the rows of tests tell whether any of them goes this way. All others are only listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from infold.analysis.sql.parse import Parsed, parse
from infold.core.project import Node
from infold.messages.errors import Spot

_JOINED = "its query reads several tables, or none"
_NOT_OF_A_ROW = "it is not about one row alone"


@dataclass(frozen=True, slots=True)
class Branch:
    """
    A way that a row can go through a query.

    ``condition`` is SQL over a row of ``table``, true for those that go this way. Where that cannot
    be said, ``unknown`` says why.
    """

    model: str
    at: Spot
    label: str
    table: str = ""
    condition: str = ""
    unknown: str = ""


def branches(node: Node) -> tuple[Branch, ...]:
    """The branches of a model, in the order of its text; of one in Python none are known."""
    if node.model.python is not None:
        return ()
    parsed = parse(node.model.place.file, node.model.sql)
    reading = _Reading(node, parsed)
    found = [*reading.of_cases(), *reading.of_filters()]
    return tuple(sorted(found, key=lambda branch: (branch.at.line, branch.at.column)))


@dataclass(frozen=True, slots=True)
class _Reading:
    node: Node
    parsed: Parsed

    def of_cases(self) -> Iterator[Branch]:
        """Each WHEN, and ELSE, whether it is written or not."""
        for case in self.parsed.tree.find_all(exp.Case):
            earlier: list[exp.Expr] = []
            for when in case.args["ifs"]:
                condition = when.this
                if case.this is not None:
                    condition = exp.EQ(this=case.this.copy(), expression=condition.copy())
                label = f"WHEN {when.this.sql(dialect='spark')}"
                yield self._branch(case, when.this, label, condition, earlier)
                earlier.append(condition)
            label = "ELSE" if case.args.get("default") is not None else "no ELSE: NULL"
            yield self._branch(case, case, label, None, earlier)

    def of_filters(self) -> Iterator[Branch]:
        """What each part of WHERE (and of FILTER) leaves out."""
        for where in self.parsed.tree.find_all(exp.Where):
            parts = where.this.flatten() if isinstance(where.this, exp.And) else [where.this]
            for part in parts:
                label = f"left out by WHERE {part.sql(dialect='spark')}"
                yield self._branch(where, part, label, None, [part])

    def _branch(
        self,
        inside: exp.Expr,
        at: exp.Expr,
        label: str,
        condition: exp.Expr | None,
        not_before: Sequence[exp.Expr],
    ) -> Branch:
        """A row goes this way for which ``condition`` is true, and nothing before it is."""
        spot = self.parsed.text.spot_of(at)
        spot = replace(spot, line=spot.line + self.node.model.sql_line - 1)
        branch = Branch(self.node.name, spot, label)
        table = self._table(inside)
        if table is None:
            return replace(branch, unknown=_JOINED)
        conditions = [*not_before, *([condition] if condition is not None else [])]
        if any(one.find(exp.AggFunc, exp.Window, exp.Query) for one in conditions):
            return replace(branch, unknown=_NOT_OF_A_ROW)
        parts = [f"NOT coalesce({_plain(one)}, false)" for one in not_before]
        parts += [_plain(condition)] if condition is not None else []
        return replace(branch, table=table, condition=" AND ".join(f"({part})" for part in parts))

    def _table(self, inside: exp.Expr) -> str | None:
        """The one table that the SELECT around something reads."""
        select = inside.find_ancestor(exp.Select)
        if select is None or select.args.get("joins") or select.args.get("laterals"):
            return None
        clause = select.args.get("from_")
        table = clause.this if clause is not None else None
        if not isinstance(table, exp.Table) or table.args.get("joins"):
            return None
        name = ".".join(part.name for part in table.parts).lower()
        return next((one for one in self.node.reads if one.lower() == name), None)


def _plain(condition: exp.Expr) -> str:
    """A condition with its columns named without their table."""
    copied = condition.copy()
    for column in copied.find_all(exp.Column):
        column.set("table", None)
        column.set("db", None)
    return copied.sql(dialect="spark")
