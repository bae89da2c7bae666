"""Spark's failures to read a file, as the error that names the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

from infold.core.model import Drift, Source
from infold.core.object_store import is_url, split
from infold.core.project import Project
from infold.lake.stores import places
from infold.lake.stores.buckets import bucket_of
from infold.messages import run_errors
from infold.messages.errors import InfoldError
from infold.system import failures

_FILE = re.compile(
    r"\[(?:FAILED_READ_FILE\.\w+|PATH_NOT_FOUND)\][^\n]*?((?:file:/|(?:s3a?|gs|abfss|hdfs)://)[^\n]*?)\.\s+"
    r"(?:SQLSTATE|File does not exist)"
)
_REPLACED = (
    "RemoteFileChanged",
    "the requested generation is deleted",
    "ConditionNotMet",
    '"Precondition Failed", 412',
)
"""What connectors say of an object that is another one since it was opened."""

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
        if not _is_there(project, path):
            raise run_errors.source_changed(source=source.name, path=path) from error
        if source.on_unreadable is not Drift.SET_ASIDE:
            raise
        raise _of_known(error) from error
    except Exception as error:
        named_error = as_error(project, source, str(error))
        if named_error is None:
            raise
        if named_error.slug == "unreadable-file" and source.on_unreadable is Drift.SET_ASIDE:
            named_error = _of_known(named_error)
        raise named_error from error


def _of_known(error: InfoldError) -> InfoldError:
    """The same where new files that cannot be read are set aside: then the file is no new one."""
    facts = dict(error.facts)
    return run_errors.unreadable_known_file(path=facts["file"], why=facts["why"])


def unread_file(message: str) -> tuple[str, str] | None:
    """
    The file that one of Spark's messages is about, and why Spark cannot read it.

    The file is an absolute path or a URL. None where the message is about something else.
    """
    match = _FILE.search(message)
    if match is None:
        return None
    causes = _CAUSE.findall(message)
    why = causes[-1] if causes else "Spark cannot read it"
    path = unquote(match[1])
    return "/" + path.removeprefix("file:").lstrip("/") if path.startswith("file:") else path, why


def as_error(project: Project, source: Source, message: str) -> InfoldError | None:
    """The error of one of Spark's messages; None if it is not about a source's file."""
    if (file_and_reason := unread_file(message)) is None:
        return None
    location, why = file_and_reason
    if is_url(location):
        return _of_object(project, source, location, message, why)
    at = Path(location)
    if not project.target.in_store and project.warehouse in at.parents:
        return None  # a table's own file, which is another matter
    is_there = at.exists()
    if at.is_symlink():
        at = at.readlink()
    inside = project.root.absolute() in at.parents
    path = str(at.relative_to(project.root.absolute()) if inside else at)
    if not is_there:
        return run_errors.source_changed(source=source.name, path=path)
    return run_errors.unreadable_file(path=path, why=why)


def _of_object(
    project: Project, source: Source, url: str, message: str, why: str
) -> InfoldError | None:
    """The same of an object: it was replaced, is gone, the store refused it, or it is broken."""
    if places.is_inside(url, project.warehouse_location):
        return None  # a table's own file
    if any(sign in message for sign in _REPLACED) or not _is_there(project, url):
        return run_errors.source_changed(source=source.name, path=url)
    known = failures.known_failure_of(message)
    return known or run_errors.unreadable_file(path=url, why=why)


def _is_there(project: Project, path: str) -> bool:
    if not is_url(path):
        return (project.root / path).exists()
    bucket = bucket_of(path, project.target.stores, project.root)
    try:
        bucket.head(split(path)[1])
    except FileNotFoundError:
        return False
    return True
