"""Sources in databases: which ones a run reads first, what that is, and what it cannot see."""

from __future__ import annotations

from collections.abc import Iterator

from infold.core.formats import FORMATS
from infold.core.interval import show_duration
from infold.core.model import Source
from infold.core.project import Project


def extracted_sources(project: Project, selected: frozenset[str] | None) -> Iterator[Source]:
    """The sources in databases that chosen models take in; of all models for None."""
    named = {
        node.source
        for node in project
        if node.name not in project.shared and (selected is None or node.name in selected)
    }
    for name, source in project.sources.items():
        if name in named and FORMATS[source.format].is_extracted:
            yield source


def extraction_notes(project: Project, selected: frozenset[str] | None) -> Iterator[str]:
    """What a run of chosen models reads before it plans: a plan knows what was extracted before."""
    for source in extracted_sources(project, selected):
        read, unseen = _read(source)
        yield f"{source.name}: a run first reads {read}; not seen are {unseen}"


def _read(source: Source) -> tuple[str, str]:
    """What is read of a table, and what stays unseen by that."""
    if source.key is None:
        return f"all of {source.table}", "rows that come and go between two runs"
    if source.reread is None:
        return (
            f"the rows of {source.table} with a greater {source.key} than any before",
            "rows that are committed later with a smaller or equal one, changes and deletions",
        )
    length = show_duration(source.reread)
    return (
        f"the rows of {source.table} from {length} before the greatest {source.key} on",
        "changes, deletions and new rows before that",
    )


def extracted_note(source: Source, *, rows: int, whole: bool, changed: int) -> str:
    """What a run read of a table; empty where that changed nothing."""
    if not changed:
        return ""
    read = f"{source.name}: {rows:,} rows of {source.table} were read"
    if source.reread is None or whole:
        return read
    return f"{read}; {changed:,} days of {source.key} have other rows than before"
