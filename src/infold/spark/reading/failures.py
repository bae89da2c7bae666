"""Spark's failures to read a file, as the error that names the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

from infold.core.model import Source
from infold.core.project import Project
from infold.messages import run_errors
from infold.messages.errors import InfoldError

_FILE = re.compile(
    r"\[(?:FAILED_READ_FILE\.\w+|PATH_NOT_FOUND)\][^\n]*?(file:/[^\n]*?)\.\s+"
    r"(?:SQLSTATE|File does not exist)"
)
_CAUSE = re.compile(r"^Caused by: (?:[\w.$]+: )?(.+)$", re.MULTILINE)


@contextmanager
def naming_files(project: Project, source: Source) -> Iterator[None]:
    """Raise Spark's failures in the block as ``unreadable_file``, or as a missing file."""
    try:
        yield
    except InfoldError as error:
        if error.slug != "unreadable-file":
            raise
        path = dict(error.facts)["file"]
        if not (project.root / path).exists():
            raise run_errors.source_changed(source=source.name, path=path) from error
        raise
    except Exception as error:
        found = _as_error(project, source, str(error))
        if found is None:
            raise
        raise found from error


def _as_error(project: Project, source: Source, message: str) -> InfoldError | None:
    """The error of one of Spark's messages; None if it is not about a source's file."""
    match = _FILE.search(message)
    if match is None:
        return None
    at = Path("/" + unquote(match[1].removeprefix("file:")).lstrip("/"))
    if project.warehouse in at.parents:
        return None  # a table's own file, which is another matter
    there = at.exists()
    if at.is_symlink():
        at = at.readlink()
    inside = project.root.absolute() in at.parents
    path = str(at.relative_to(project.root.absolute()) if inside else at)
    if not there:
        return run_errors.source_changed(source=source.name, path=path)
    causes = _CAUSE.findall(message)
    return run_errors.unreadable_file(
        path=path, why=causes[-1] if causes else "Spark cannot read it"
    )
