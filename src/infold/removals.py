"""
Sources that lose much at once: an unmounted share looks like a folder whose files were all deleted.

What left is taken out of the tables, as the contract says; but a source that loses more than a part
of its files, or of the rows in them, is refused until that run is allowed to. The part is declared
(``removal_limit``), or else: all there is, and of more than 20 files half.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from infold import mismatches
from infold.files import FileKnown
from infold.plan import FileNews, Plan
from infold.project import Project

FEW = 20
"""Of up to so many files, any may go as long as some stay, where nothing is declared."""

HALF = 50.0
ALL = 100.0


def refuse_removals(project: Project, plan: Plan, *, allowed: bool) -> None:
    """Raise ``mismatches.source_shrank`` when a plan would take out too much of a source."""
    found = () if allowed else tuple(dict(losses(project, plan)).items())
    if found:
        raise mismatches.source_shrank(found)


def warnings(project: Project, plan: Plan) -> tuple[str, ...]:
    """What whoever looks at a plan should know of such sources."""
    return tuple(
        f"{source}: {what}; a run needs --allow-removals"
        for source, what in dict(losses(project, plan)).items()
    )


def losses(project: Project, plan: Plan) -> Iterator[tuple[str, str]]:
    """The sources that lose too much, each with how much it is."""
    for step in plan.steps:
        news = step.files
        if news is not None and _too_much(news, project.sources[news.source].removal_limit):
            files = f"{len(news.lost):,} of {len(news.known):,} files gone"
            rows = f"{_rows(news.lost):,} of {_rows(news.known):,} rows"
            yield news.source, f"{files}, with {rows}"


def _too_much(news: FileNews, limit: float | None) -> bool:
    if not news.lost:
        return False
    part = max(
        ALL * len(news.lost) / len(news.known),
        ALL * _rows(news.lost) / (_rows(news.known) or 1),
    )
    if limit is not None:
        return part > limit
    return part >= ALL or (len(news.known) > FEW and part > HALF)


def _rows(files: Sequence[FileKnown]) -> int:
    return sum(file.rows + file.waiting for file in files)
