"""
Tables whose changed definitions take several runs: a shape, and plays that know which is in force.

The reference takes each table's definition from its trace, and evaluates that over all rows. So a
table that readers have is always of exactly one definition, and of all that arrived.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from tests.arrivals.branches import counted_days
from tests.arrivals.dry import DryEngine, DryPlay, Memory
from tests.arrivals.programs import Op
from tests.arrivals.shape import Rows, Shape, TableSpec, by_cells, cell_start
from tests.arrivals.shapes import FOLD

from infold import api
from infold.api.building import Building
from infold.core import write_points
from infold.core.environment import APART
from infold.core.interval import Interval
from infold.core.plan import PlanOptions, Step
from infold.core.ports import Lake
from infold.core.project import Project
from infold.core.report import RunResult
from infold.core.swap import Renaming
from infold.core.trace import Cause
from infold.inspecting.as_built import Stretches
from infold.inspecting.changed_definitions import ChangedDefinitions
from infold.ledger.store import SqlLedger
from infold.running.forget import Dropper
from infold.running.observe import Observer
from infold.running.request import Request

_IN_PARTS = "backfill_limit: 2 days, batch_size: 1"


def _reader(name: str, keys: str, plus: int) -> TableSpec:
    """The same days with something added."""

    def rows(given: Mapping[str, Rows]) -> Rows:
        return [{"day": row["day"], "n": row["n"] + plus} for row in given["daily"]]

    sql = f"SELECT day, n + {plus} AS n FROM daily"
    return by_cells(name, sql, ("daily",), rows, time="day", keys=keys)


APART_SHAPE = Shape(
    "apart",
    sources=FOLD.sources[:1],
    tables={
        "clicks": FOLD.tables["clicks"][:1],
        "daily": (
            counted_days({"n": "once"}, keys=_IN_PARTS),
            counted_days({"n": "double"}, keys=_IN_PARTS),
            counted_days({"n": "triple", "more": "one_less"}, keys=_IN_PARTS),
            counted_days({"n": "fourfold"}, where="url <> '/'", keys=_IN_PARTS),
        ),
        "beside": (_reader("beside", "", 0),),
        "after": (_reader("after", "backfill_limit: 3 days", 1), _reader("after", "", 2)),
    },
)


@dataclass
class Renamed(Memory):
    """Tables in memory that get other names, and are dropped."""

    def location(self, table: str) -> str | None:
        """Where the newest snapshot is; the table keeps it with another name."""
        if table not in self.tables:
            return None
        found = self.tables[table]
        return f"{id(found)}@{max(found.snapshots)}"

    def _location(self, table: str) -> str | None:
        return self.location(table)

    def is_free(self, table: str) -> bool:
        """Whether no table has this name."""
        return table not in self.tables

    def size(self, table: str) -> int:
        """Memory is not counted."""
        del table
        return 0

    def lost_files(self, table: str) -> Sequence[str]:
        """Nothing lies in files."""
        del table
        return ()

    def delete_folder(self, location: str) -> None:
        """Nothing lies in folders."""

    def drop(self, table: str) -> bool:
        """Drop a table, if there is one."""
        write_points.point(f"table {table}: before drop")
        found = self.tables.pop(table, None)
        write_points.point(f"table {table}: after drop")
        return found is not None

    def rename(self, renamings: Sequence[Renaming]) -> bool:
        """All at one instant, or none."""
        if any(self.location(one.table) != one.location for one in renamings):
            return False
        write_points.point("rename: before commit")
        moved = [(one.to, self.tables.pop(one.table)) for one in renamings]
        self.tables.update(moved)
        write_points.point("rename: after commit")
        return True


@dataclass
class ApartEngine(DryEngine):
    """Computes each table by the definition that the project of the run has of it."""

    def _evaluated(self, step: Step, name: str) -> Rows:
        model = step.model.split("__")[0]
        spec = self.play.shape.by_query(model, self.project[name].model.sql)
        return self._rows_by(step, name, spec)


@dataclass
class _DryBuilding(Building):
    """The program's own runs over a play."""

    play: DryApart | None = None
    book: SqlLedger | None = None

    def _observer(self, project: Project, asked: PlanOptions | None = None) -> Observer:
        assert self.play is not None
        assert self.book is not None
        forward = asked.forward_only if asked else {}
        return Observer(
            project,
            self.book,
            cast("Lake", self.play.memory),
            self.play._listing,
            self.play.world.as_of,
            redefinitions=ChangedDefinitions(project, self.book, forward),
            stretches=Stretches(project, self.book, declared=True),
        )

    def _engine(self, project: Project, looking: Observer, run: str, first: Any) -> Any:
        assert self.play is not None
        assert self.book is not None
        return ApartEngine(self.play, project, self.book)

    def _dropper(self) -> Dropper:
        assert self.play is not None
        assert self.book is not None
        return Dropper(self.base, self.book, cast("Lake", self.play.memory), self.play.world.as_of)


@dataclass
class DryApart(DryPlay):
    """A play with changes that take several runs."""

    memory: Memory = field(default_factory=Renamed)
    seen: Counter[str] = field(default_factory=Counter)
    """How often something was built apart, replaced a table, or was dropped."""

    def spec(self, name: str) -> TableSpec:
        """A table's definition; by its key that of the model that is built apart."""
        return super().spec(name.split("__", maxsplit=1)[0])

    def building(self, ledger: SqlLedger, terms: Sequence[str] = ()) -> _DryBuilding:
        """The program's own runs of the project as it is now."""
        self._complete = False  # a run with nothing new may have more to build apart
        request = Request(
            replace(self.options(), jobs=self.jobs), fail_fast=self.fail_fast, allow_removals=True
        )
        shown = self.progress or api.SilentProgress()
        return _DryBuilding(self.project, request, shown, tuple(terms), play=self, book=ledger)

    def _run(self, window: Interval | None, terms: Sequence[str]) -> RunResult:
        ledger = self.ledger
        try:
            return self.building(ledger, terms).run()
        finally:
            known = ledger.environments().get(APART)
            self.seen["apart"] += len(known.own) if known else 0
            self.seen["exchanged"] = sum(
                step.action == "exchange" and step.state == "done"
                for run in ledger.runs(10_000)
                for step in run.steps
            )
            ledger.close()

    def _evaluate(self, spec: TableSpec) -> Rows:
        """A table by the definition that its trace says, without what was never built."""
        ledger = self.ledger
        trace = ledger.traces()[spec.name]
        [kept] = ledger.definitions([trace.definition]).values()
        ledger.close()
        assert all(one.cause is Cause.MISSING for one in trace.pending), trace.pending
        by = self.shape.by_query(spec.name, kept.sql)
        assert by.rows is not None
        left = trace.pending_ranges
        return [row for row in by.rows(self.state) if cell_start(row["day"]) not in left]

    def _check_definitions(self) -> None:
        """Of what is built apart, the model has another definition in the files."""

    def check_again(self) -> None:
        """After enough runs each table is by its wanted definition, and nothing is built apart."""
        for _ in range(200):
            if self._is_settled():
                break
            self.run(Op("all", 0))
        else:
            self._fail(f"never complete: {self.log}")
        super().check_again()

    def _is_settled(self) -> bool:
        project, ledger = self.project, self.ledger
        traces, known = ledger.traces(), ledger.environments().get(APART)
        ledger.close()
        here = (node for node in project if node.name in traces)
        new = all(traces[node.name].fingerprint == node.fingerprint for node in here)
        return (
            new and not any(one.pending for one in traces.values()) and not (known and known.tables)
        )
