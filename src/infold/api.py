"""
What commands do, as functions: open, observe, plan, run, verify, status, history, explain.

Everything that needs Spark is imported where it is used, so that a command that does not need it
starts at once. A process keeps one Spark session for each project it runs, so a program (or a
test) that runs many times pays for one start.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infold.core.files import FileSeen
from infold.core.interval import Granularity, Interval, Ranges
from infold.core.manual_entry import ManualEntry
from infold.core.model import Format, Source
from infold.core.plan import Observations, Plan, PlanOptions
from infold.core.progress import Progress
from infold.core.project import Node, Project
from infold.core.record import RunRecord
from infold.core.report import Certificate, Explanation, Forgotten, ModelStatus, RunResult
from infold.core.trace import CellState
from infold.inspecting.explain import explain as explained
from infold.inspecting.model_status import status_of
from infold.inspecting.session_history import SessionHistories
from infold.messages.errors import InfoldError
from infold.planning.model_states import model_states
from infold.planning.planner import plan as planned
from infold.planning.selection import selected, with_landed
from infold.planning.withheld_steps import waits_for, without
from infold.process import close, one_of, run_size, session, whole_size
from infold.running.execute import Runner
from infold.running.observe import Observer
from infold.running.request import Request
from infold.system.process_lock import fence

if TYPE_CHECKING:
    import pyarrow as pa

    from infold.core.ports import Engine
    from infold.inspecting.session_events import UserEvents
    from infold.lake.iceberg import IcebergLake
    from infold.ledger import SqlLedger
    from infold.running.forget import Dropper
    from infold.spark.step_context import Work

__all__ = ["close", "session"]  # Spark itself, for programs


class SilentProgress:
    """A :class:`infold.core.progress.Progress` that says nothing."""

    def step(self, index: int, total: int | None, step: object) -> None:
        """Nothing."""

    def done(self, step: object, receipt: object) -> None:
        """Nothing."""

    def failed(self, step: object, error: object) -> None:
        """Nothing: the run raises it in the end."""

    def note(self, text: str) -> None:
        """Nothing."""


def open_project(
    root: Path | str, target: str | None = None, *, downgrade: bool = False
) -> Project:
    """Read a project folder. Raises all its errors at once."""
    from infold.declare import load

    return load(Path(root), target, downgrade=downgrade)


def ledger(project: Project) -> SqlLedger:
    """The target's ledger; nothing is created before something is written."""
    from infold.ledger import open_ledger

    return open_ledger(project.target.ledger, project.root)


def lake(project: Project) -> IcebergLake:
    """The target's tables, readable without a JVM."""
    from infold.lake.iceberg import IcebergLake

    return IcebergLake(project.catalog_db, project.name, project.warehouse)


def now() -> int:
    """The present instant."""
    return time.time_ns() // 1000


def judge(project: Project) -> Mapping[str, InfoldError]:
    """
    What Spark's analyser finds wrong, by model; nothing is read but the project, and none written.

    A model that reads a wrong one is not judged yet.
    """
    from infold.spark.engine import SparkEngine

    engine = SparkEngine(session(project), project, ledger(project), lake(project), "check")
    return engine.judge([node.name for node in project])


def observer(
    project: Project,
    as_of: int | None = None,
    *,
    peek: bool = False,
    asked: PlanOptions | None = None,
) -> Observer:
    """Looks at the project's sources and tables; ``peek`` reads small new files' event times."""
    from infold.lake.listing import look
    from infold.lake.source_files import table_files

    def times(
        source: Source, files: Sequence[FileSeen], granularity: Granularity, clock: int
    ) -> tuple[tuple[CellState, ...], int] | None:
        from infold.lake.event_times import peek as read  # pyarrow: half of the no-op budget

        return read(project.root, source, files, granularity, clock)

    def files(source: Source) -> tuple[Sequence[FileSeen], Sequence[str]]:
        if source.format is Format.ICEBERG:
            return table_files(project.root, source, project.catalog_db), ()
        return look(project.root, source, clock)

    book, tables, clock = ledger(project), lake(project), now()

    def count(source: Source, some: Sequence[FileSeen]) -> Mapping[str, int]:
        if source.format is not Format.PARQUET:
            return {}
        from infold.lake.footers import rows

        return rows(project.root, some)

    return Observer(
        project,
        book,
        tables,
        files,
        clock if as_of is None else as_of,
        times if peek else None,
        frozenset(asked.restated) if asked else frozenset(),
        count,
    )


def observe(
    project: Project, *, as_of: int | None = None, asked: PlanOptions | None = None
) -> Observations:
    """Everything that a plan follows from."""
    return observer(project, as_of, peek=True, asked=asked).observe()


def look(
    project: Project, *, as_of: int | None = None, asked: PlanOptions | None = None
) -> Observations:
    """The same as :func:`observe`; models that are refused are among it, and no error."""
    return observer(project, as_of, peek=True, asked=asked).look()


def window_of(
    project: Project, start: str | None, end: str | None, select: Sequence[str] = ()
) -> Interval | None:
    """
    The event times between two dates or times, ``[start, end)``, to be asked for.

    Raises ``errors.window_unaligned`` where one lies inside a cell of a model.
    """
    from infold.planning.window import window

    return window(project, selected(project, select), start, end)


def plan(
    project: Project,
    *,
    asked: PlanOptions | None = None,
    window: Interval | None = None,
    select: Sequence[str] = (),
    exclude: Sequence[str] = (),
    as_of: int | None = None,
) -> Plan:
    """
    What :func:`run` would do, asked the same; nothing is written and no Spark started.

    What it could not do, as models are refused, is in the plan's ``refused``.
    """
    if window is not None:
        asked = replace(asked or PlanOptions(), window=window)
    observed = look(project, as_of=as_of, asked=asked)
    return make_plan(project, observed, asked, select=select, exclude=exclude)


def make_plan(
    project: Project,
    observed: Observations,
    asked: PlanOptions | None = None,
    *,
    select: Sequence[str] = (),
    exclude: Sequence[str] = (),
) -> Plan:
    """The steps that a run would carry out."""
    from infold.planning import removals
    from infold.planning.protection import stands, warnings

    asked = _asked(project, asked, select, exclude)
    made = without(project, planned(project, observed, asked), observed.refused, asked.selected)
    made = replace(made, notes=(*made.notes, *removals.warnings(project, made)))
    if project.target.protected:
        said = warnings(project, made, asked, stands(ledger(project), lake(project)))
        made = replace(made, notes=(*made.notes, *said))
    return made


def run(
    project: Project,
    *,
    asked: PlanOptions | None = None,
    window: Interval | None = None,
    select: Sequence[str] = (),
    exclude: Sequence[str] = (),
    as_of: int | None = None,
    max_rows: int | None = None,
    wait: float = 0.0,
    command: str = "run",
    jobs: int | None = None,
    allow_refresh: bool = False,
    fail_fast: bool = False,
    allow_removals: bool = False,
    progress: Progress | None = None,
) -> RunResult:
    """
    Bring the project's tables up to date; see :meth:`infold.running.execute.Runner.run`.

    Raises RunFailed where some of them are not, once all others are (``fail_fast``: at once).
    """
    if window is not None:
        asked = replace(asked or PlanOptions(), window=window)
    asked = replace(_asked(project, asked, select, exclude), jobs=jobs)
    looking = observer(project, as_of, peek=max_rows is not None, asked=asked)
    runner = Runner(
        project=project,
        ledger=looking.ledger,
        lake=looking.lake,
        observer=looking,
        engine=lambda run_id, first: _engine(project, looking, run_id, first),
        progress=progress or SilentProgress(),
        fence=lambda: fence(project.root, project.target.name),
    )
    result = runner.run(
        Request(asked, max_rows, wait, command, allow_refresh, fail_fast, allow_removals)
    )
    if result.steps:
        from infold.spark.jvm import class_archive

        class_archive.make_later()
    return result


def restate(
    project: Project, terms: Sequence[str], window: Interval | None = None, **options: Any
) -> RunResult:
    """Build models again, as `infold restate` does; ``options`` are those of :func:`run`."""
    from infold.planning import restating

    asked = restating.restate(project, terms, window).asked
    return run(project, asked=asked, command="restate", **options)


def backbuild(
    project: Project, terms: Sequence[str], window: Interval, **options: Any
) -> RunResult:
    """Build models over a window again, with all that they read for it; as `infold backbuild`."""
    from infold.planning import restating

    asked = restating.backbuild(project, terms, window).asked
    return run(project, asked=asked, command="backbuild", **options)


def forgettable(
    project: Project, terms: Sequence[str] | None, *, allow_refresh: bool = False
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """
    What terms (None: a teardown) mean of what there is, and the terms of which there is nothing.

    Raises ``errors.protected``, so that nobody is asked about what would be refused.
    """
    dropper = _dropper(project)
    found, missing = (dropper.known(), ()) if terms is None else dropper.meant(terms)
    dropper.refuse("forget" if terms else "tear down", found, allowed=allow_refresh)
    return found, missing


def forget(
    project: Project, terms: Sequence[str], *, allow_refresh: bool = False, wait: float = 0.0
) -> Forgotten:
    """Forget models and drop their tables; see :class:`infold.running.forget.Dropper`."""
    return _dropper(project).forget(terms, allowed=allow_refresh, wait=wait)


def teardown(project: Project, *, allow_refresh: bool = False, wait: float = 0.0) -> Forgotten:
    """Drop all tables of the target, and its ledger."""
    return _dropper(project).teardown(allowed=allow_refresh, wait=wait)


def _dropper(project: Project) -> Dropper:
    from infold.running.forget import Dropper

    return Dropper(
        project,
        ledger(project),
        lake(project),
        now(),
        lambda: fence(project.root, project.target.name),
    )


def verify(
    project: Project,
    *,
    select: Sequence[str] = (),
    sample: int | None = None,
    progress: Progress | None = None,
) -> Certificate:
    """Compare every stored table with its definition evaluated from scratch."""
    from infold.spark.verify.verify import Verifier

    chosen = _selected(project, select, ())
    looking = observer(project)
    looking.check()
    started = time.monotonic()
    verifier = Verifier(
        session(project, size=whole_size(looking)),
        project,
        looking.ledger,
        looking.lake,
        looking.vanished(),
        progress or SilentProgress(),
    )
    verdicts = verifier.verify(chosen, sample)
    return Certificate(verdicts, looking.as_of, time.monotonic() - started)


def show(
    project: Project,
    table: str,
    *,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    select: Sequence[str] = (),
    limit: int | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> pa.Table:
    """
    Rows of a model, a landed source, ``set_aside`` or a manifest table, without a JVM.

    A view is evaluated by Spark, and so is which rows sessions leave out where that takes more than
    columns; ``note`` is told so before. ``where`` is a predicate of Spark SQL that compares columns
    with values; ``select`` picks models of a manifest table.
    """
    from infold.inspecting.left_out import rows as left_out_of
    from infold.inspecting.manifest import named
    from infold.inspecting.show import rows, some

    def by_spark(table: str, nodes: Sequence[Node], most: int | None) -> pa.Table:
        from infold.spark.left_out import left_out

        who = ", ".join(node.name for node in nodes)
        note(f"Starting Spark to tell which rows of {table} are in no session of {who}.")
        with _work(project) as work:
            return left_out(work, table, nodes, most)

    def left(most: int | None) -> pa.Table | None:
        return left_out_of(project, ledger(project), lake(project), most, by_spark)

    manifest_table = named(table)
    if manifest_table is None:
        return rows(project, lake(project), table, columns, where, limit, evaluate, left)
    return some(manifest(project, manifest_table, select, where), columns, limit)


def evaluate(project: Project, view: str) -> pa.Table:
    """The rows of a view, by Spark."""
    from infold.spark.verify.verify import view_rows

    with _work(project) as work:
        return view_rows(work, project[view])


def _work(project: Project) -> Work:
    from infold.spark.engine import SparkEngine

    return SparkEngine(session(project), project, ledger(project), lake(project), "show").work("")


def status(project: Project, as_of: int | None = None) -> tuple[ModelStatus, ...]:
    """How each model stands."""
    looking = observer(project, as_of)
    seen = looking.look()
    todo = planned(project, seen)
    steps = {step.model: step for step in todo.steps}
    known = {entry.model: entry for entry in model_states(project, seen, todo)}
    found = (
        status_of(node, looking.ledger, seen, steps.get(node.name), known.get(node.name))
        for node in project
    )
    refused = seen.refused
    return tuple(
        replace(
            entry,
            refused=refused.get(entry.model),
            waits_for=waits_for(project, entry.model, refused),
        )
        for entry in found
    )


def add_quarantine_entries(
    project: Project,
    model: str,
    *,
    terms: Sequence[str],
    users: Sequence[str] = (),
    numbers: Sequence[int] = (),
    held: bool | None,
    reason: str = "",
    force: bool = False,
) -> tuple[ManualEntry, ...]:
    """
    Put sessions into quarantine by hand (``held``), or release them; the next run heeds it.

    With None what was said of them before is taken back. See
    :func:`infold.inspecting.quarantine.entries`.
    """
    from infold.inspecting.quarantine import entries

    book = ledger(project)
    found = entries(
        project,
        book,
        lake(project),
        model,
        terms=terms,
        users=users,
        numbers=numbers,
        held=held,
        reason=reason,
        force=force,
    )
    book.add_entries(model, found)
    return tuple(_named(project, model, entry) for entry in found)


def list_quarantine_entries(project: Project) -> Mapping[str, tuple[tuple[ManualEntry, bool], ...]]:
    """The manual entries of every model's quarantine, and whether a run has heeded them."""
    book = ledger(project)
    traces = book.traces()
    return {
        model: tuple(
            (
                _named(project, model, entry),
                model in traces and entry.number <= traces[model].entries,
            )
            for entry in book.entries(model)
        )
        for model in sorted(book.newest_entries())
    }


def _named(project: Project, model: str, entry: ManualEntry) -> ManualEntry:
    """An entry as people speak: without the letter that tells users from identifiers."""
    said = project[model].model.sessions if model in project else None
    fallback = said is not None and said.fallback_gap is not None
    return replace(entry, of=entry.of[1:]) if fallback else entry


def manifest(
    project: Project, table: str, select: Sequence[str] = (), where: str | None = None
) -> pa.Table:
    """The rows of a manifest table, of the models that ``select`` names, without a JVM."""
    from infold.inspecting.manifest import filtered, rows

    names = selected(project, select)
    found = rows(project, ledger(project), lake(project), table, names)
    return found if where is None else filtered(found, where)


def coverage(project: Project) -> Mapping[str, Ranges]:
    """The cells that hold rows, of every stored table."""
    looking = observer(project)
    book, gone = looking.ledger, looking.vanished()
    return {
        name: Ranges.of(state.cell for state in book.cells(name))
        for name in book.heads()
        if name not in gone
    }


def explain(
    project: Project, model: str, cell: Interval | None = None, as_of: int | None = None
) -> Explanation:
    """Everything that is known about a model, or about one cell of it."""
    return explained(observer(project, as_of, peek=True), model, cell)


def session_history(
    project: Project, id_: str, model: str | None = None, *, deep: bool = False
) -> SessionHistories:
    """
    The story of a session, or of the sessions of an identifier, without a JVM.

    ``deep`` starts Spark where it alone can tell which events there are.
    """
    from infold.inspecting.read_session_history import read_session_histories
    from infold.lake.snapshots import IcebergSnapshotReader

    book, tables = ledger(project), lake(project)

    def judge(
        node: Node,
        match: Mapping[str, Any],
        snapshots: Mapping[str, int | None],
        start: int,
        end: int,
    ) -> UserEvents:
        from infold.spark.session_events import events_of

        with _work(project) as work:
            return events_of(work, node, match, snapshots, start, end)

    return read_session_histories(
        project, book, IcebergSnapshotReader(tables), id_, model, judge if deep else None
    )


def history(project: Project, limit: int = 10, model: str | None = None) -> Sequence[RunRecord]:
    """Past runs, newest first."""
    return ledger(project).runs(limit, model)


def _engine(project: Project, looking: Observer, run_id: str, first: Plan) -> Engine:
    from infold.spark.engine import SparkEngine

    size = run_size(looking, first)
    return SparkEngine(
        session(project, size=size),
        project,
        looking.ledger,
        looking.lake,
        run_id,
        lambda number: one_of(project, size, number + 1),
    )


def _asked(
    project: Project, asked: PlanOptions | None, select: Sequence[str], exclude: Sequence[str]
) -> PlanOptions:
    asked = asked or PlanOptions()
    chosen = _selected(project, select, exclude)
    if chosen is None:
        return asked
    return replace(asked, selected=with_landed(project, chosen, exclude))


def _selected(
    project: Project, select: Sequence[str], exclude: Sequence[str]
) -> frozenset[str] | None:
    return selected(project, select, exclude) if select or exclude else None
