"""
Observed + project → steps with their reasons.

:func:`plan` is a pure function: it never sees a clock, a session, a path or a ledger, so a plan
can be shown, stored, compared and tested without Spark, and what ``infold plan`` prints is what
``infold run`` carries out. A run is a loop: which cells a file touches may be known only after it
was read, so steps that depend on another step of the plan are *expected*, and the run plans again
before it carries them out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from infold.interval import MAX, Interval, Ranges
from infold.model import Kind
from infold.plan import (
    Action,
    FileNews,
    InputNews,
    Left,
    ModelSeen,
    Observed,
    Plan,
    Reason,
    Step,
)
from infold.project import Input, Node, Project
from infold.trace import Cause, CellChange, Pending, Trace


def plan(
    project: Project,
    seen: Observed,
    *,
    window: Interval | None = None,
    selected: frozenset[str] | None = None,
) -> Plan:
    """
    The steps that bring every selected model up to date, inputs before their readers.

    ``window`` bounds the cells of models that are recomputed cell by cell; files and folds take
    all that arrived, because their cost follows what arrived and a half-folded table would be
    wrong. ``selected`` None means all. The result depends on the arguments alone.
    """
    draft = _Draft(project, seen, window)
    for node in project:
        if node.model.kind is Kind.VIEW:
            continue
        if selected is not None and node.name not in selected:
            draft.left.append(Left(node.name, "not selected"))
            continue
        draft.add(node)
    return Plan(tuple(draft.steps.values()), tuple(draft.left), seen.as_of, seen.notes)


class _Draft:
    """A plan while it is made: the steps so far, by model, and what was left alone."""

    def __init__(self, project: Project, seen: Observed, window: Interval | None) -> None:
        self.seen = seen
        self.wanted = Ranges((window,)) if window else Ranges.ever()
        self.bounded = window is not None
        self.kept = Ranges.ever()
        if project.start is not None:
            self.kept = Ranges((Interval(project.start, MAX),))
        self.steps: dict[str, Step] = {}
        self.left: list[Left] = []

    def add(self, node: Node) -> None:
        """The step that a model needs, or the reason why it is left alone."""
        for entry in _tables(node):
            if entry.name not in self.steps and self._head(node, entry.name) == 0:
                self.left.append(Left(node.name, f"its input {entry.name} was never built"))
                return
        step = _RULES[node.model.kind](self, node, self.seen.models[node.name])
        if step is not None:
            self.steps[node.name] = step
        elif not any(entry.model == node.name for entry in self.left):
            self.left.append(Left(node.name, "up to date"))

    def events(self, node: Node, model: ModelSeen) -> Step | None:
        """Files in and out; everything when there is no table yet or another definition."""
        files = model.files or FileNews(node.source or "")
        first = _whole(node, model)
        if first is not None:
            rows = sum(cell.rows for cell in files.peek or ())
            return self._step(node, Action.BUILD, [replace(first, rows=rows)])
        reasons = _file_reasons(files, model)
        return self._step(node, Action.INGEST, reasons) if reasons else None

    def sessions(self, node: Node, model: ModelSeen) -> Step | None:
        """A fold of what changed; a build where most of the input is new to the table."""
        news = model.inputs[0]
        rows = sum(cell.rows for cell in news.cells)
        first = _whole(node, model)
        if first is not None:
            return self._step(node, Action.BUILD, [replace(first, rows=rows)])
        gap = node.query.gap if node.query else 0
        reasons = self._stale(node, model, gap)
        changed = sum(change.added + change.removed for change in news.changes)
        if changed * 2 > rows > 0:
            return self._step(node, Action.BUILD, reasons)
        return self._step(node, Action.FOLD, reasons) if reasons else None

    def whole(self, node: Node, model: ModelSeen) -> Step | None:
        """One cell: all of it when anything it reads changed."""
        rows = sum(cell.rows for news in model.inputs for cell in news.cells)
        first = _whole(node, model)
        reasons = [first] if first else self._stale(node, model, 0)
        if not reasons:
            return None
        reasons = [replace(reason, cells=Ranges.ever(), rows=0) for reason in reasons]
        reasons[0] = replace(reasons[0], rows=rows)
        return self._step(node, Action.BUILD, reasons)

    def time_range(self, node: Node, model: ModelSeen) -> Step | None:
        """The stale cells inside the window; the others stay pending in the trace."""
        first = _whole(node, model)
        reasons = [first] if first else self._stale(node, model, 0)
        pending = []
        build = []
        for reason in reasons:
            outside = (reason.cells - self.wanted) & self.kept
            if outside:
                pending.append(Pending(reason.cause, outside))
            inside = reason.cells & self.wanted & self.kept
            if inside or not reason.cells:
                build.append(replace(reason, cells=inside, rows=_rows(node, model, inside)))
        if pending:
            stale = Ranges.of(part for entry in pending for part in entry.ranges)
            self.left.append(Left(node.name, "outside the window", stale))
        if not build:
            return None
        everything = not self.bounded and any(part.cells == self.kept for part in build)
        action = Action.BUILD if everything else Action.RECOMPUTE
        return self._step(node, action, build, tuple(pending))

    def _stale(self, node: Node, model: ModelSeen, reach: int) -> list[Reason]:
        """Why cells of a built model no longer hold; changes reach ``reach`` beyond their cells."""
        reasons = [
            Reason(entry.cause, "left out before", entry.ranges)
            for entry in (model.trace.pending if model.trace else ())
        ]
        for news in model.inputs:
            for cause, changes in _by_cause(node, news).items():
                cells = self._cells(node, news.name, _touched(changes), reach)
                rows = sum(change.added + change.removed for change in changes)
                detail = f"{rows:,} rows in {_count(len(changes), 'cell')} of {news.name}"
                reasons.append(Reason(cause, detail, cells, rows))
        for entry in _tables(node):
            step = self.steps.get(entry.name)
            if step is not None:
                cells = self._cells(node, entry.name, step.cells, reach) if step.cells else Ranges()
                cause = Cause.LOOKUP if _lookup(node, entry.name) else step.reasons[0].cause
                reasons.append(Reason(cause, f"because {entry.name} is built", cells, step.rows))
        return reasons

    def _cells(self, node: Node, name: str, touched: Ranges, reach: int) -> Ranges:
        granularity = node.model.granularity
        if granularity is None or _lookup(node, name):
            return Ranges.ever()
        if node.model.kind is Kind.TIME_RANGE:
            return granularity.cover(node.input(name).reached(touched))
        return granularity.cover(touched.widen(reach, reach))

    def _head(self, node: Node, name: str) -> int:
        for news in self.seen.models[node.name].inputs:
            if news.name == name:
                return news.head
        return 0

    def _step(
        self,
        node: Node,
        action: Action,
        reasons: Sequence[Reason],
        pending: tuple[Pending, ...] = (),
    ) -> Step:
        model = self.seen.models[node.name]
        heads = {news.name: news.head for news in model.inputs}
        cells = Ranges.of(part for reason in reasons for part in reason.cells)
        return Step(
            model=node.name,
            action=action,
            cells=Ranges.ever() & self.kept_for(node) if action is Action.BUILD else cells,
            reasons=tuple(reasons),
            inputs={news.name: (news.since, news.head) for news in model.inputs},
            files=model.files,
            version=model.version + 1,
            trace=Trace(node.name, node.fingerprint, heads, pending),
            before=model.trace,
            expected=any(entry.name in self.steps for entry in _tables(node)),
        )

    def kept_for(self, node: Node) -> Ranges:
        """The cells that a model may hold: from the project's start where cells are recomputed."""
        return self.kept if node.model.kind is Kind.TIME_RANGE else Ranges.ever()


_RULES = {
    Kind.EVENTS: _Draft.events,
    Kind.SESSIONS: _Draft.sessions,
    Kind.WHOLE: _Draft.whole,
    Kind.TIME_RANGE: _Draft.time_range,
}


def _whole(node: Node, model: ModelSeen) -> Reason | None:
    """Why all of a table has to be built, if so."""
    if model.trace is None:
        return Reason(Cause.MISSING, "first run", Ranges.ever())
    if model.trace.fingerprint != node.fingerprint:
        return Reason(Cause.DEFINITION, "its definition changed", Ranges.ever())
    return None


def _tables(node: Node) -> tuple[Input, ...]:
    """The stored tables that a model reads: an ingest reads files, not tables."""
    return () if node.model.kind is Kind.EVENTS else node.inputs


def _lookup(node: Node, name: str) -> bool:
    return node.model.kind is Kind.TIME_RANGE and node.input(name).time_column is None


def _touched(changes: Iterable[CellChange]) -> Ranges:
    return Ranges.of(change.cell for change in changes)


def _by_cause(node: Node, news: InputNews) -> dict[Cause, list[CellChange]]:
    """The net changes of an input, by what they are to the model that reads it."""
    found: dict[Cause, list[CellChange]] = {}
    for change in news.changes:
        if _lookup(node, news.name):
            cause = Cause.LOOKUP
        elif change.removed:
            cause = Cause.REMOVED
        elif change.rows_before:
            cause = Cause.LATE
        else:
            cause = Cause.ARRIVED
        found.setdefault(cause, []).append(change)
    return found


def _rows(node: Node, model: ModelSeen, cells: Ranges) -> int:
    """About how many rows of its inputs a model reads to build ``cells``."""
    total = 0
    for news in model.inputs:
        entry = node.input(news.name)
        times = cells if entry.time_column is None else entry.read(cells)
        total += sum(state.rows for state in news.cells if times.overlaps(state.cell))
    return total


def _file_reasons(files: FileNews, model: ModelSeen) -> list[Reason]:
    """Why an ingest is due: files that are new, replaced, gone, or hold rows that have come due."""
    reasons = []
    if files.new:
        covered = Ranges.of(state.cell for state in model.cells)
        new = _count(len(files.new) - files.replaced, "new file")
        detail = f"{new}, {files.replaced} replaced" if files.replaced else new
        if files.peek is None:
            reasons.append(Reason(Cause.ARRIVED, detail))
        else:
            late = [state for state in files.peek if covered.overlaps(state.cell)]
            early = [state for state in files.peek if not covered.overlaps(state.cell)]
            for cause, states in ((Cause.LATE, late), (Cause.ARRIVED, early)):
                if states or (cause is Cause.ARRIVED and not late):
                    cells = Ranges.of(state.cell for state in states)
                    rows = sum(state.rows for state in states)
                    reasons.append(Reason(cause, detail, cells, rows))
    if files.gone:
        rows = sum(file.rows for file in files.gone)
        detail = f"{_count(len(files.gone), 'file')} replaced or deleted"
        reasons.append(Reason(Cause.REMOVED, detail, Ranges(), rows))
    if files.due:
        rows = sum(file.waiting for file in files.due)
        detail = f"rows of {_count(len(files.due), 'file')} have come due"
        reasons.append(Reason(Cause.DUE, detail, Ranges(), rows))
    return reasons


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
