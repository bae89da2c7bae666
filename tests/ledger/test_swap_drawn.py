"""Drawn histories of commits, promotes and rollbacks: what readers are told is what differs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.planning.strips import day

from infold.core.interval import Interval
from infold.core.record import Outcome
from infold.core.swap import Swap, SwapKind, SwappedTable
from infold.core.trace import CellChange, Trace, net_changes
from infold.ledger.store import SqlLedger

MODELS = ("events", "daily")
Contents = dict[Interval, int]

CONTENTS = st.dictionaries(st.integers(1, 4).map(day), st.integers(1, 3), max_size=4)
"""A table: the content of each of its cells, all of one row."""

OPERATIONS = st.one_of(
    st.tuples(st.just("commit"), st.sampled_from(MODELS), CONTENTS),
    st.tuples(st.just("read"), st.sampled_from(("one", "two")), st.sampled_from(MODELS)),
    st.tuples(
        st.just("promote"),
        st.sets(st.sampled_from(MODELS), min_size=1).map(sorted),
        st.tuples(CONTENTS, CONTENTS),
    ),
    st.tuples(st.just("rollback"), st.none(), st.none()),
    st.tuples(st.just("finish"), st.none(), st.none()),
)


@dataclass
class History:
    """A ledger, and beside it in plain dictionaries what it should know."""

    ledger: SqlLedger
    now: dict[str, Contents] = field(default_factory=dict)
    read: dict[tuple[str, str], Contents] = field(default_factory=dict)
    kept: list[dict[str, Contents | None]] = field(default_factory=list)
    steps: int = 0

    def step(self, model: str, action: str) -> str:
        """A step begins."""
        self.steps += 1
        self.ledger.begin_step("r", f"s{self.steps}", self.steps, model, action, {})
        return f"s{self.steps}"

    def commit(self, key: str, before: Contents, after: Contents) -> None:
        """A version of a table that changes its content."""
        step = self.step(key, "build")
        heads = self.ledger.newest_versions()
        number = heads[key].number + 1 if key in heads else 1
        changes = tuple(
            CellChange(
                cell,
                after.get(cell, 0) and 1,
                before.get(cell, 0) and 1,
                1 if cell in before else 0,
                1 if cell in after else 0,
                before.get(cell, 0),
                after.get(cell, 0),
            )
            for cell in sorted({*before, *after})
            if before.get(cell) != after.get(cell)
        )
        trace = Trace(key, "f", {"source": number})
        self.ledger.finish_step(step, Outcome(key, number, trace, changes, snapshot=self.steps))

    def reader(self, name: str, model: str) -> None:
        """A reader is brought up to date with a table."""
        head = self.ledger.newest_versions().get(model)
        known = self.ledger.traces().get(name)
        inputs = dict(known.inputs) if known else {}
        inputs[model] = head.number if head else 0
        step = self.step(name, "build")
        trace = Trace(name, "f", inputs)
        self.ledger.finish_step(step, Outcome(name, 1, trace, committed=False))
        self.read[name, model] = dict(self.now.get(model, {}))

    def promote(self, models: list[str], contents: tuple[Contents, Contents]) -> None:
        """Own tables, built by some versions, take the names of others."""
        tables, kept = [], dict[str, Contents | None]()
        for model, content in zip(models, contents, strict=False):
            key = f"{model}__{self.steps}"
            for number in range(1 + len(content)):
                self.commit(key, content if number else {}, content)
            there = model in self.ledger.traces()
            kept[model] = self.now.get(model) if there else None
            tables.append(SwappedTable(model, key, f"{key}_kept" if there else None))
            self.now[model] = dict(content)
        step = self.step("dev", "promote")
        self.ledger.finish_swap(step, Swap(SwapKind.PROMOTE, "dev", tuple(tables)))
        self.kept.append(kept)

    def rollback(self) -> None:
        """The last promote is taken back, if there is one."""
        if not self.kept:
            return
        last = next(one for one in self.ledger.swaps() if one.kind is SwapKind.PROMOTE)
        tables = []
        for model, before in self.kept.pop().items():
            key = last.kept[model]
            there = model in self.ledger.traces()
            tables.append(SwappedTable(model, key, f"{model}__{self.steps}x" if there else None))
            self.now[model] = dict(before or {})
        step = self.step("dev", "rollback")
        swap = Swap(SwapKind.ROLLBACK, "dev", tuple(tables), undoes=last.id)
        self.ledger.finish_swap(step, swap)

    def check(self) -> None:
        """Cells are the contents, and each reader is told exactly what differs for it."""
        for model, content in self.now.items():
            assert {one.cell: one.content for one in self.ledger.cells(model)} == content
        traces = self.ledger.traces()
        for (name, model), then in self.read.items():
            changes = net_changes(self.ledger.changes(model, traces[name].inputs[model]))
            content = self.now.get(model, {})
            differing = {c for c in {*then, *content} if then.get(c) != content.get(c)}
            assert {change.cell for change in changes} == differing


@pytest.mark.deep
@settings(max_examples=150, deadline=None)
@given(st.lists(OPERATIONS, min_size=4, max_size=14))
def test_readers_are_told_what_differs(operations: list[tuple[str, object, object]]) -> None:
    """
    After any commits, promotes and rollbacks, the changes since a reader's version are the cells
    with another content than it has read, whatever was pruned at the ends of runs.
    """
    with TemporaryDirectory() as folder:
        ledger = SqlLedger(Path(folder) / "ledger.db", keep=1)
        ledger.acquire("r")
        ledger.begin_run("r", "run", 0, {})
        history = History(ledger)
        for what, one, two in operations:
            if what == "commit":
                assert isinstance(one, str)
                assert isinstance(two, dict)
                history.commit(one, history.now.get(one, {}), two)
                history.now[one] = two
            elif what == "read":
                history.reader(str(one), str(two))
            elif what == "promote":
                assert isinstance(one, list)
                assert isinstance(two, tuple)
                history.promote(one, two)
            elif what == "rollback":
                history.rollback()
            else:
                ledger.finish_run("r", "done", ledger.runs()[0].receipt)
            history.check()
        ledger.close()
