"""The rows that sessions leave out, as rows of ``set_aside``: which, for whom, how many."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from tests.planning.strips import EVENTS, SESSIONS

from infold.core.own_columns import FILE
from infold.core.ports import Lake, Ledger
from infold.core.project import Input, Node, Project
from infold.core.session_rules import IDENTIFIER, Sessions
from infold.core.target import Target
from infold.core.trace import Trace
from infold.inspecting.left_out import BY, rows_left_out


@dataclass
class StoredRows:
    """A lake, a ledger and Spark in one: what there is, and what they are asked for."""

    table: pa.Table
    counts: dict[str, int] = field(default_factory=dict)
    tests: Mapping[str, str] = field(default_factory=dict)
    limits: list[int | None] = field(default_factory=list)
    by_spark: list[str] = field(default_factory=list)

    def left_out(self) -> dict[str, int]:
        """How many each model leaves out."""
        return self.counts

    def traces(self) -> dict[str, Any]:
        """All were built."""
        return {name: Trace(name, "f") for name in ("sessions", "others")}

    def files(self, model: str) -> Sequence[Any]:
        """None is known."""
        return ()

    def metadata(self, table: str) -> object:
        """Every table is there."""
        return table

    def rows_matching(
        self, table: str, tests: Mapping[str, str], *, limit: int | None, **_: object
    ) -> pa.Table:
        """The rows, unless a test is more than a filter."""
        self.tests = tests
        self.limits.append(limit)
        if any("upper" in test for test in tests.values()):
            raise ValueError
        return self._by(tests, limit)

    def evaluate(self, table: str, nodes: Sequence[Node], limit: int | None) -> pa.Table:
        """What Spark would give."""
        names = [node.name for node in nodes]
        self.by_spark += names
        return self._by(names, limit)

    def _by(self, names: Iterable[str], limit: int | None) -> pa.Table:
        """All models that are asked for leave the row out, in any order."""
        by = pa.array([sorted(names)])
        return self.table.append_column(BY, by).slice(0, limit)

    def rows(self, *nodes: Node, limit: int | None = None) -> list[dict[str, Any]] | None:
        """The rows left out of a project's sessions."""
        project = Project("shop", Path(), None, {}, (EVENTS, *nodes), Target("dev"))
        lake, ledger = cast("Lake", self), cast("Ledger", self)
        found = rows_left_out(project, ledger, lake, limit, self.evaluate)
        return None if found is None else found.to_pylist()


def of(name: str, sessions: Sessions, where: str | None = None, who: str | None = None) -> Node:
    """A sessions model."""
    assert SESSIONS.query is not None
    user = IDENTIFIER if sessions.identifier else "user"
    query = replace(SESSIONS.query, user=user, where=where, owner_sql=who)
    model = replace(SESSIONS.model, name=name, sessions=sessions)
    return replace(SESSIONS, model=model, query=query)


ONE = pa.table({"id": ["1"]})


USER = Sessions("user", 1)
ORDER = Sessions("user", None, identifier=("a", "`b`"))


@pytest.mark.parametrize(
    ("node", "test"),
    [
        (of("sessions", USER), "user IS NULL"),
        (of("sessions", USER, where="k = 1 -- one"), "user IS NULL AND (k = 1 -- one\n)"),
        (of("sessions", ORDER), "a IS NULL AND `b` IS NULL"),
        (
            of("sessions", replace(ORDER, fallback_gap=1)),
            "a IS NULL AND `b` IS NULL AND user IS NULL",
        ),
        (of("sessions", replace(USER, user="lower(u)"), who="lower(u)"), None),
        (of("sessions", USER, where="upper(k) = 'X'"), None),
        (of("sessions", replace(ORDER, identifier=("a.b",))), None),
        (replace(of("sessions", USER), inputs=(Input("events", "ts"), Input("other"))), None),
    ],
)
def test_columns_are_read_and_expressions_are_for_spark(node: Node, test: str | None) -> None:
    """A model's columns become a filter of the same meaning, expressions are Spark's."""
    shop = StoredRows(ONE)
    assert shop.rows(node) is not None
    if test is not None:
        assert (shop.tests, shop.by_spark) == ({"sessions": test}, [])
    else:
        assert "sessions" in shop.by_spark
        shop.by_spark.clear()
        shop.rows(node, of("others", USER))
        assert shop.by_spark == ["sessions", "others"], "so that a row is listed once"


def test_a_row_is_one_with_all_its_models_and_reasons() -> None:
    """Once, with all its models and reasons, and its values as JSON."""
    stored = pa.table({"id": ["1"], "ts": [date(2024, 3, 1)], "n": [Decimal("1.50")], FILE: [7]})
    shop = StoredRows(stored)
    found = shop.rows(of("sessions", USER), of("others", ORDER))
    assert found == [
        {
            "model": "sessions, others",
            "source": "raw.clicks",
            "file": None,
            "file_id": 7,
            "reason": "null user, null identifier",
            "raw": '{"id": "1", "ts": "2024-03-01", "n": "1.50"}',
            "event_time": datetime(2024, 3, 1, tzinfo=UTC),
        }
    ]
    [row] = StoredRows(ONE).rows(of("sessions", USER, who="lower(u)")) or []
    assert (row["file_id"], row["event_time"], row["reason"]) == (None, None, "null user")


def test_nothing_is_read_where_no_row_is_left_out() -> None:
    """Where the ledger counts none nothing is read; a model without a count is searched."""
    shop = StoredRows(ONE, counts={"sessions": 0})
    assert shop.rows(of("sessions", USER)) is None
    assert shop.limits == []
    shop.counts = {"sessions": 0, "others": 1}
    assert shop.rows(of("sessions", USER), of("others", USER), limit=3) is not None
    assert (list(shop.tests), shop.limits) == (["others"], [3])
    assert shop.rows(of("never", USER)) is None


def test_no_more_rows_are_read_than_asked_for() -> None:
    """From a second table only as many rows are read as the first leaves below the limit."""
    shop = StoredRows(ONE)
    other = of("others", USER)
    query = other.query and replace(other.query, input="events2")
    other = replace(other, inputs=(Input("events2", "ts"),), query=query)
    two = replace(EVENTS, model=replace(EVENTS.model, name="events2"))
    project = Project(
        "shop", Path(), None, {}, (EVENTS, two, of("sessions", USER), other), Target("dev")
    )
    for limit, limits in ((1, [1]), (2, [2, 1])):
        shop.limits = []
        rows_left_out(project, cast("Ledger", shop), cast("Lake", shop), limit, shop.evaluate)
        assert shop.limits == limits
