"""
Random programs over a project that keeps its events for some days, and totals for longer.

The reference knows where events begin and which cells are frozen from the ledger, and judges both:
no run of everything leaves an older event, and no cell is frozen that lacks none of its events.
What is not frozen is what its definition says over the events that are left; what is frozen is what
it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tests.arrivals.dry import DryPlay, chosen_rows
from tests.arrivals.programs import Op
from tests.arrivals.shape import Rows, Shape, TableSpec, cell_start
from tests.arrivals.shapes import FOLD
from tests.reference.compare import difference, stored
from tests.reference.world import Usable

from infold.core.interval import DAY, MIN, Granularity, Interval
from infold.core.report import RunResult

KEEPERS = ("daily", "sections")
EVENTS, HOURS = 30 * DAY, 10 * DAY
"""How long events are kept, and the hours made of them."""


def _keeping(spec: TableSpec, keys: str) -> TableSpec:
    assert "incremental: {}" in spec.text
    return replace(spec, text=spec.text.replace("incremental: {}", keys, 1))


def _kept(shape: Shape) -> Shape:
    clicks, *others = shape.sources
    clicks = replace(clicks, yaml=f"{clicks.yaml}\nretain: {EVENTS // DAY} days")
    forever = "incremental: {forward_only: true}\nretain: forever"
    tables = {name: shape.tables[name] for name in ("raw.pages", "clicks", "sessions", "paying")}
    tables["clicks"] = shape.tables["clicks"][:2]
    # What reads these changes forward-only with them, which other programs are about.
    tables["sessions"] = shape.tables["sessions"][:1]
    tables["paying"] = shape.tables["paying"][:1]
    tables["daily"] = (_keeping(shape.tables["daily"][0], forever),)
    [hourly] = shape.tables["hourly"]
    tables["hourly"] = (_keeping(hourly, f"incremental: {{}}\nretain: {HOURS // DAY} days"),)
    [sections] = shape.tables["sections"]
    tables["sections"] = (_keeping(sections, forever),)
    tables["totals"] = shape.tables["totals"]
    return replace(shape, name="kept", sources=(clicks, *others), tables=tables, windows=False)


KEPT = _kept(FOLD)


@dataclass
class KeptPlay(DryPlay):
    """A play in which rows go for their age."""

    starts: dict[str, int] = field(default_factory=dict)
    starts_before: dict[str, int] = field(default_factory=dict)
    frozen: dict[str, int] = field(default_factory=dict)
    lacking: dict[str, int] = field(default_factory=dict)
    """Before which instant cells lack some of the events that they were made from."""
    lacking_before: dict[str, int] = field(default_factory=dict)
    before: dict[str, Rows] = field(default_factory=dict)
    """What tables had before the run."""

    def run(self, op: Op) -> RunResult:
        """Whatever dies meanwhile, what was there before is what it was."""
        self.starts_before, self.lacking_before = self.starts, dict(self.lacking)
        self.before = dict(self.state)
        result = super().run(op)
        self.lacking = {name: self._lacking_until(name) for name in KEEPERS}
        return result

    def _run(self, window: Interval | None, terms: Sequence[str]) -> RunResult:
        result = super()._run(window, terms)
        kept = {name: trace.retention for name, trace in self.ledger.traces().items()}
        self.starts = {name: one.start for name, one in kept.items()}
        self.frozen = {name: one.frozen_until for name, one in kept.items()}
        if not (window or terms):
            self._check_starts()
        return result

    def _check_starts(self) -> None:
        """A run of everything leaves no row that is too old."""
        for name, column, length, unit in _TOO_OLD:
            since = unit.floor(self.world.as_of - length)
            if any(cell_start(row[column]) < since for row in self._read(name)):
                self._fail(f"{name} has rows that are too old")

    def _usable(self, spec: TableSpec) -> Usable:
        return self._usable_since(spec, self.starts.get(spec.name, MIN))

    def _check_counts(self, name: str, aside: int, waiting: int) -> None:
        """Rows that were set aside before they were too old are still counted."""
        found, waits = self._counts(name)
        if found < aside or waits != waiting:
            self._fail(f"{name}: (set aside, waiting) is {found, waits}, not {aside, waiting}")

    def _evaluate(self, spec: TableSpec) -> Rows:
        rows = super()._evaluate(spec)
        if spec.name == "hourly":
            start = Granularity.HOUR.floor(self.world.as_of - HOURS)
            return [row for row in rows if cell_start(row["hour"]) >= start]
        return self._with_frozen(spec, rows) if spec.name in KEEPERS else rows

    def _with_frozen(self, spec: TableSpec, rows: Rows) -> Rows:
        """Rows of cells that lack none of their events, and those of others as they were."""
        cell, frozen = spec.cell or "", self._lacking_until(spec.name)
        if self.frozen.get(spec.name, MIN) > frozen:
            self._fail(f"{spec.name} is frozen beyond {frozen}")
        own = stored(self._read(spec.name), ("session_id",))
        was, read = (
            self.before.get(spec.name, []),
            self._over(spec, self._without_erased(self.before)),
        )
        would, before = (
            self._over(spec, self._before_expiry()),
            self.lacking_before.get(spec.name, MIN),
        )
        expected = [row for row in rows if cell_start(row[cell]) >= frozen]
        for at in {cell_start(row[cell]) for some in (own, was, would) for row in some}:
            if at < frozen:
                kept, had, full, has = (
                    [row for row in some if cell_start(row[cell]) == at]
                    for some in (was, read, would, own)
                )
                # Rows that were too old when they came count in some runs, and in others not.
                expected += kept if at < before else full if difference(had, has) else had
        return expected

    def _without_erased(self, given: Mapping[str, Rows]) -> Mapping[str, Rows]:
        """Tables without the clicks of those who asked to be erased."""
        erased = self.world.erased
        kept = [row for row in given.get("clicks", ()) if not any(one.has(row) for one in erased)]
        return {**given, "clicks": kept} if "clicks" in given else given

    def _over(self, spec: TableSpec, given: Mapping[str, Rows]) -> Rows:
        """A table's rows over these clicks and pages."""
        if "clicks" not in given:
            return []
        derived = {"raw.pages": [], **given}
        for name in ("sessions", "paying"):
            rows = self.spec(name).rows
            assert rows is not None
            derived[name] = rows(derived)
        assert spec.rows is not None
        return spec.rows(derived)

    def _before_expiry(self) -> Mapping[str, Rows]:
        """What came before some of it was too old."""
        clicks = self.spec("clicks")
        assert clicks.best is not None
        since = self.starts_before if "clicks" in self.before else self.starts
        found = self._usable_since(clicks, since.get("clicks", MIN))
        return {**self.state, "clicks": chosen_rows(clicks.best(found.rows))}

    def _lacking_until(self, name: str) -> int:
        lost, known = self.starts.get("clicks", MIN), self.lacking_before.get(name, MIN)
        if lost <= MIN:
            return known
        ends = [lost]
        if name == "daily":  # what is left of a session that reaches over the start is another one
            would = self._over(self.spec("sessions"), self._before_expiry())
            sessions = (*self.before.get("sessions", ()), *would)
            ends += [row["session_end"] + 1 for row in sessions if row["session_start"] < lost]
        return max(known, Granularity.DAY.floor(max(ends) + DAY - 1))


_TOO_OLD = (
    ("clicks", "event_ts", EVENTS, Granularity.DAY),
    ("hourly", "hour", HOURS, Granularity.HOUR),
)
