"""
Sources that lose much at once: an unmounted share looks like a folder of deleted files.

Removed rows are taken out of the tables, as the contract says. But a source that loses more than a
part of its files, or of their rows, is refused unless that run is allowed to remove them. The part
is declared (``removal_limit``); by default it is everything, and half of more than 20 files. Files
are removed, or replaced by others with fewer rows. The footers of Parquet files give the number of
rows before anything is read. Other formats are counted while they are read, before the commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from infold.core.files import IngestedFile, lasting_path
from infold.core.model import Source
from infold.core.plan import FileDiff, Plan
from infold.core.project import Project
from infold.messages import mismatches

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
