"""
What a plan takes from stored tables, whole rows of lost files included, and whether it may.

A table loses something where a step replaces it: columns that are really there, keys, values of
types. A model that is removed, or becomes a view, loses its table: that is no longer kept up to
date. Where `infold apply` applies definitions, that was the permission for what they change, so a
run refuses only columns that no definition ever had.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from infold.core.definition import Category, Loss, Lost, Redefinition
from infold.core.files import IngestedFile, lasting_path
from infold.core.interval import Ranges
from infold.core.model import OnLoss, Source, table_name
from infold.core.plan import Action, Destroyed, FileDiff, Plan, PlanOptions, Step
from infold.core.project import Node, Project
from infold.core.target import Apply
from infold.core.trace import UNKNOWN
from infold.core.type_changes import Type, type_losses
from infold.messages import mismatches, run_errors
from infold.messages.errors import InfoldError, Spot

if TYPE_CHECKING:
    from infold.core.ports import Lake, Ledger


StoredColumns = Callable[[str], Iterable[str]]
"""The columns that a model's table really has, without infold's own; nothing without a table."""


def destroyed(
    project: Project,
    plan: Plan,
    changes: Iterable[Redefinition],
    stored: StoredColumns,
    options: PlanOptions,
) -> tuple[Destroyed, ...]:
    """The tables that lose something by a plan, and what is to happen then."""
    by_model = {change.model: change for change in changes}
    losses_by_model = dict(_losses_without_step(project, by_model.values()))
    for step in plan.steps:
        if step.action in (Action.BUILD, Action.DERIVE) and step.previous_trace is not None:
            change = by_model.get(step.model)
            losses_by_model[step.model] = tuple(
                _losses_of_step(project, step, change, stored(step.model))
            )
    return tuple(
        Destroyed(name, losses, policy(project, name, options, by_model.get(name)))
        for name, losses in losses_by_model.items()
        if losses
    )


def policy(
    project: Project, model: str, options: PlanOptions, change: Redefinition | None = None
) -> OnLoss:
    """What is to happen to a destructive change of a model."""
    if model in options.allow_destructive:
        return OnLoss.ALLOW
    of_model = project[model].model.on_destructive_change if model in project else None
    of_removed = change.on_loss if change is not None else None
    return of_model or of_removed or project.target.on_destructive_change


def _losses_without_step(
    project: Project, changes: Iterable[Redefinition]
) -> Iterator[tuple[str, tuple[Loss, ...]]]:
    """
    The tables that are no longer kept up to date.

    A protected target without `infold apply` only says so, each time: nothing is forgotten there.
    """
    if project.target.protected and project.target.apply is not Apply.MANUAL:
        return
    for change in changes:
        if change.category is Category.REMOVED or any(
            loss.part is Lost.TABLE for loss in change.destroys
        ):
            yield change.model, change.destroys


def _losses_of_step(
    project: Project, step: Step, change: Redefinition | None, stored: Iterable[str]
) -> Iterator[Loss]:
    """What a step that replaces a table takes from it."""
    node = project[step.model]
    permitted = project.target.apply is Apply.MANUAL and step.model not in project.applies
    known = {name.lower() for name in node.columns}
    if change is not None and permitted:
        if change.before is None:
            return  # which columns the applied definition gave up is not known
        known |= {name.lower() for name in change.before.columns}
    elif change is not None:
        yield from change.destroys
        known |= {loss.name.lower() for loss in change.destroys if loss.part is Lost.COLUMN}
    at = Spot(node.model.place.file, node.model.sql_line)
    for name in stored if known else ():
        if name.lower() not in known:
            yield Loss(Lost.COLUMN, name, at=at)


def lost_types(
    node: Node, stored: Mapping[str, Type], defined: Mapping[str, Type]
) -> tuple[Loss, ...]:
    """
    Columns, and fields within them, with values that their new types cannot have.

    Columns that are not there any more are left out: their names say that. So are views.
    """
    if node.model.kind.is_view:
        return ()
    new = {name.lower(): type_ for name, type_ in defined.items()}
    at = Spot(node.model.place.file, node.model.sql_line)
    return tuple(
        Loss(Lost.TYPE, name, before, after, at)
        for column, type_ in stored.items()
        if column.lower() in new
        for name, before, after in type_losses(type_, new[column.lower()], column)
    )


def refuse_destructive(project: Project, destroyed_tables: Collection[Destroyed]) -> None:
    """Raise what a run may not destroy."""
    refused = [one for one in destroyed_tables if one.on is OnLoss.ERROR]
    if refused:
        raise run_errors.destructive_change(
            project.target.name,
            [(one.model, in_words(loss)) for one in refused for loss in one.losses],
        )


def loss_notes(destroyed_tables: Iterable[Destroyed], *, planned: bool = False) -> Iterator[str]:
    """What is said of tables that lose something; a plan names what a run would refuse too."""
    for table in destroyed_tables:
        what = "; ".join(map(in_words, table.losses))
        if table.on is OnLoss.ERROR and planned:
            allowed = f"--allow-destructive {table.model} allows it"
            yield f"{table.model}: {what}: refused; {allowed}"
        elif table.on is OnLoss.WARN:
            yield f"{table.model}: {what}"


def in_words(loss: Loss) -> str:
    """One loss, with its place."""
    place = f" ({loss.at})" if loss.at is not None else ""
    if loss.part is Lost.COLUMN:
        return f"column {loss.name} is dropped{place}"
    if loss.part is Lost.TYPE and not loss.after:
        return f"field {loss.name} is dropped{place}"
    if loss.part is Lost.TABLE:
        of = f" ({loss.before})" if loss.before else place
        return f"its table is no longer kept up to date{of}"
    word = "type of " if loss.part is Lost.TYPE else ""
    return f"{word}{loss.name}: {loss.before or 'none'} → {loss.after or 'none'}{place}"


# On a protected target nothing drops or rebuilds a table, or its ledger entries, unless that run
# was allowed to. Keeping a table up to date is no rebuild, even where that writes all of it.

TableExists = Callable[[str], bool]
"""Whether a model has a table that the ledger does not know."""


def unrecorded_table(ledger: Ledger, lake: Lake) -> TableExists:
    """Looks at the catalog, and at what the ledger knows of the step that wrote a table last."""

    def has_unrecorded_table(model: str) -> bool:
        head = lake.metadata(table_name(model))
        if head is None:
            return False
        last = next(iter([*head.steps][::-1]), "")
        known = ledger.runs(1, run=last.rpartition("-")[0])
        # One that a run of ours had begun, and died over, was never built for good.
        return all(step.state == "done" for run in known for step in run.steps if step.id == last)

    return has_unrecorded_table


def protection_warnings(
    project: Project, plan: Plan, options: PlanOptions, exists: TableExists
) -> tuple[str, ...]:
    """Warnings on a plan for a protected target."""
    if not project.target.protected:
        return ()
    return tuple(
        f"{name}: {why}; {project.target.name} is protected, so a run needs --allow-refresh"
        for name, why in rebuilt_tables(project, plan, options, exists)
    )


def refused_rebuilds(
    project: Project, plan: Plan, options: PlanOptions, exists: TableExists, *, allowed: bool
) -> Mapping[str, InfoldError]:
    """
    The models that a plan rebuilds, each with the refusal: on a protected target, and everywhere
    those that may have cells which nobody can build again.
    """
    if allowed:
        return {}
    unknown = (step.model for step in plan.steps if step.previous_trace is None)
    frozen = {
        name: run_errors.frozen_cells(model=name, what="the ledger does not know its table")
        for name in unknown
        if project.outlived_by(project[name]) and exists(name)
    }
    if not project.target.protected:
        return frozen
    return frozen | {
        name: run_errors.protected(project.target.name, "rebuild", ((name, why),))
        for name, why in rebuilt_tables(project, plan, options, exists)
    }


def rebuilt_tables(
    project: Project, plan: Plan, options: PlanOptions, exists: TableExists
) -> Iterator[tuple[str, str]]:
    """
    The built models that a plan rebuilds, each with the reason.

    Where definitions are applied by hand, that was the permission to rebuild what they change.
    """
    applied = project.target.apply is Apply.MANUAL
    for step in plan.steps:
        why = _rebuild_reason(step, options, exists, applied=applied)
        if why:
            yield step.model, why


def _rebuild_reason(step: Step, options: PlanOptions, exists: TableExists, *, applied: bool) -> str:
    if options.restated.get(step.model) == Ranges.ever() and step.previous_trace is not None:
        return "all of it is to be built again"
    if step.previous_trace is None:
        return "its table exists, and the ledger does not know it" if exists(step.model) else ""
    if step.action is Action.EVOLVE:
        return ""  # no row changes
    old, new = step.previous_trace.fingerprint, step.trace.fingerprint if step.trace else ""
    # What a dead run left half known has to be built again before anything can be.
    return "its definition changed" if not applied and old not in (new, UNKNOWN) else ""


# Removed rows are taken out of the tables, as the contract says. But a source that loses more than
# a part of its files, or of their rows, is refused unless that run is allowed to remove them. The
# part is declared (`removal_limit`); by default it is everything, and half of more than 20 files.
# Files are removed, or replaced by others with fewer rows. The footers of Parquet files give the
# number of rows before anything is read. Other formats are counted while they are read, before the
# commit.

FEW = 20
"""Of up to so many files, any may be removed as long as some stay, where nothing is declared."""

HALF = 50.0  # percent of the files of a source, or of their rows
ALL = 100.0


def refuse_removals(project: Project, plan: Plan, *, allowed: bool) -> None:
    """Raise ``mismatches.source_shrank`` when a plan would take out too much of a source."""
    removals = () if allowed else tuple(dict(excessive_removals(project, plan)).items())
    if removals:
        raise mismatches.source_shrank(removals)


def refuse_lost_rows(source: Source, diff: FileDiff) -> None:
    """The same once the new files of one source were ``counted``, in any format."""
    loss = "" if diff.removals_allowed else _excessive_loss(source, diff)
    if loss:
        raise mismatches.source_shrank(((source.name, loss),))


def removal_warnings(project: Project, plan: Plan) -> tuple[str, ...]:
    """Warnings on a plan about such sources."""
    return tuple(
        f"{source}: {what}; a run needs --allow-removals"
        for source, what in dict(excessive_removals(project, plan)).items()
    )


def excessive_removals(project: Project, plan: Plan) -> Iterator[tuple[str, str]]:
    """The sources that lose too much, each with how much it is."""
    for step in plan.steps:
        diff = step.files
        loss = "" if diff is None else _excessive_loss(project.sources[diff.source], diff)
        if diff is not None and loss:
            yield diff.source, loss


def _excessive_loss(source: Source, diff: FileDiff) -> str:
    """How much a source lost, if that is too much."""
    fewer = _rows_lost_in_files(source, diff)
    if not diff.lost and not fewer:
        return ""
    files, rows = len(diff.ingested), _rows_of_files(diff.ingested)
    removed_rows = _rows_of_files(diff.lost) + sum(fewer)
    part = max(ALL * len(diff.lost) / files, ALL * removed_rows / (rows or 1))
    limit = source.removal_limit
    allowed = part <= limit if limit is not None else part < ALL and (files <= FEW or part <= HALF)
    if allowed:
        return ""
    away = f"{len(diff.lost):,} of {files:,} files gone"
    if not fewer:
        return f"{away}, with {removed_rows:,} of {rows:,} rows"
    less = f"{len(fewer):,} of {files:,} files replaced by ones with fewer rows"
    return f"{f'{away} and {less}' if diff.lost else less}: {removed_rows:,} of {rows:,} rows gone"


def _rows_lost_in_files(source: Source, diff: FileDiff) -> list[int]:
    """
    How many rows each file lost that was replaced by one with fewer, as far as they are counted.

    In a table, rows of new files count for them: an update moves rows from file to file.
    """
    lost = {file.path for file in diff.lost}
    counts = {lasting_path(path): rows for path, rows in diff.row_counts.items()}
    lost_rows = (
        file.rows + file.waiting - counts[lasting_path(file.path)]
        for file in diff.removed
        if lasting_path(file.path) in counts and file.path not in lost
    )
    fewer = [rows for rows in lost_rows if rows > 0]
    known = {lasting_path(file.path) for file in diff.ingested}
    added = sum(rows for path, rows in counts.items() if path not in known)
    moved = source.is_table and added >= sum(fewer)
    return [] if moved else fewer


def _rows_of_files(files: Sequence[IngestedFile]) -> int:
    return sum(file.rows + file.waiting for file in files)
