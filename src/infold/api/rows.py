"""Rows to look at: of tables, views and manifests, and what is known of one session."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infold.api.opening import (
    lake_of,
    ledger_of,
    observer_of,
    published_lake,
    spark_work,
)
from infold.core.interval import Ranges
from infold.core.model import Kind
from infold.core.plan import Plan
from infold.core.project import Node, Project
from infold.core.report import Lateness
from infold.inspecting.session_history import SessionHistories
from infold.planning.selection import select_models

if TYPE_CHECKING:
    import pyarrow as pa

    from infold.inspecting.session_events import UserEvents


def show(
    project: Project,
    table: str,
    *,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    select: Sequence[str] = (),
    limit: int | None = None,
    order: Sequence[str] | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> pa.Table:
    """
    Rows of a model, a landed source, ``set_aside``, ``audit_failures`` or a manifest table, without
    a JVM.

    A view is evaluated by Spark, and so is which rows sessions leave out where that takes more than
    columns; ``note`` is called before. ``where`` is a predicate of Spark SQL that compares columns
    with values; ``select`` picks models of a manifest table. Rows of a table are sorted by time and
    key, or by the columns of an ``order`` (``-revenue``: downwards).
    """
    from infold.inspecting.audits import audit_failure_rows
    from infold.inspecting.left_out import rows_left_out as left_out_of
    from infold.inspecting.manifest import manifest_table_of
    from infold.inspecting.show import StoredRows, in_order, select_rows, shown_rows

    def by_spark(table: str, nodes: Sequence[Node], most: int | None) -> pa.Table:
        from infold.spark.sessions.unassigned import left_out

        who = ", ".join(dict.fromkeys(node.name for node in nodes))
        note(f"Starting Spark to tell which rows of {table} are in no session of {who}.")
        with spark_work(project) as work:
            return left_out(work, table, nodes, most)

    def left(most: int | None) -> pa.Table | None:
        return left_out_of(project, ledger_of(project), lake_of(project), most, by_spark)

    manifest_table = manifest_table_of(table)
    if manifest_table is None:
        shown = published_lake(project)
        beside = evaluate, left, lambda: audit_failure_rows(project, ledger_of(project))
        stored = None
        if order is None and table in project and project[table].model.kind.is_stored:
            stored = StoredRows(project[table], ledger_of(project).cells(table), note)
        return shown_rows(
            project, shown, table, columns, where, limit, *beside, order=order, stored=stored
        )
    rows = manifest(project, manifest_table, select, where)
    return select_rows(rows if order is None else in_order(rows, order), columns, limit)


class _SparkNeededError(Exception):
    """Only Spark can tell which rows these are."""


def rows_left_out_without_spark(project: Project, most: int) -> pa.Table | None:
    """Some of the rows that sessions leave out; None where only Spark can tell which these are."""
    from infold.inspecting.left_out import rows_left_out

    def refuse(table: str, nodes: Sequence[Node], most: int | None) -> pa.Table:
        raise _SparkNeededError(table, nodes, most)

    try:
        return rows_left_out(project, ledger_of(project), lake_of(project), most, refuse)
    except _SparkNeededError:
        return None


def lateness(
    project: Project, terms: Sequence[str] = (), bins: tuple[int, int] | None = None
) -> tuple[Lateness, ...]:
    """
    How late the rows of tables of events came: of those that are named, or of all.

    Nothing is computed by Spark. ``bins`` are how many columns and lines a picture may have.
    """
    from infold.inspecting import lateness as measured

    tables, ledger = lake_of(project), ledger_of(project)
    room = bins or (measured.BINS, measured.BINS)
    return tuple(
        measured.lateness_of(project, ledger, tables, name, room)
        for name in events_of(project, terms)
    )


def events_of(project: Project, terms: Sequence[str]) -> Sequence[str]:
    """The tables of events that are named, or all; an error if only others are named."""
    from infold.messages import command_errors

    named = select_models(project, terms)
    every = [node.name for node in project if node.model.kind is Kind.EVENTS]
    chosen = [name for name in every if name in named]
    if terms and not chosen:
        others = [node.name for node in project if node.name in named]
        raise command_errors.not_events(others, every)
    return chosen


def export_to_store(project: Project, url: str, write: Callable[[Path], None]) -> None:
    """Put the file that ``write`` makes to a place in an object store: whole, or not at all."""
    from infold.lake.stores import places

    places.use(project, url)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "export"
        write(file)
        places.write(url, file.read_bytes())


def evaluate(project: Project, view: str, limit: int | None = None) -> pa.Table:
    """The rows of a view, by Spark; at most ``limit`` of them."""
    from infold.spark.verify.verify import view_rows

    with spark_work(project, published_lake(project)) as work:
        return view_rows(work, project[view], limit)


def manifest(
    project: Project, table: str, select: Sequence[str] = (), where: str | None = None
) -> pa.Table:
    """The rows of a manifest table, of the models that ``select`` names, without a JVM."""
    from infold.inspecting.manifest import manifest_rows
    from infold.lake.chosen_rows import filtered_rows

    names = select_models(project, select)
    rows = manifest_rows(project, ledger_of(project), lake_of(project), table, names)
    return rows if where is None else filtered_rows(rows, where)


def coverage(project: Project, plan: Plan | None = None) -> Mapping[str, Ranges]:
    """The cells that hold rows, of every stored table, or of those that a plan's screen draws."""
    from infold.render.plan import models_to_draw

    observer = observer_of(project)
    ledger, vanished_models = observer.ledger, observer.vanished()
    drawn = None if plan is None else models_to_draw(project, plan)
    return {
        name: Ranges.of(state.cell for state in ledger.cells(name))
        for name in ledger.newest_versions()
        if name not in vanished_models and (drawn is None or name in drawn)
    }


def session_history(
    project: Project, id_: str, model: str | None = None, *, deep: bool = False
) -> SessionHistories:
    """
    The history of a session, or of the sessions of an identifier, without a JVM.

    ``deep`` starts Spark where it alone can tell which events there are.
    """
    from infold.inspecting.read_session_history import read_session_histories
    from infold.spark.storages import storage_of

    ledger, snapshots = ledger_of(project), storage_of(project).snapshot_reader(project)

    def spark_events(
        node: Node,
        match: Mapping[str, Any],
        snapshots: Mapping[str, int | None],
        start: int,
        end: int,
    ) -> UserEvents:
        from infold.spark.session_events import events_of

        with spark_work(project) as work:
            return events_of(work, node, match, snapshots, start, end)

    return read_session_histories(
        project, ledger, snapshots, id_, model, spark_events if deep else None
    )
