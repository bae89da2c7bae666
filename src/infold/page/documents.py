"""
All that the page can ask for, by name: plain JSON, made when it is asked for.

``model/daily`` is a document, ``runs`` another. A name that is none has no document. A mistake in
the project, or a table that is gone, is a document as well: one with an ``error``, which is shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock

from infold import api
from infold.core.model import Kind
from infold.core.project import Project
from infold.ledger import SqlLedger
from infold.messages.errors import InfoldError
from infold.page import (
    aside,
    definition_changes,
    lateness,
    model_document,
    project_documents,
    session_documents,
    unit_tests,
)
from infold.page.run_document import run_document
from infold.page.shapes import JsonObject
from infold.system import failures

SAME_FOR = 2.0
"""For so many seconds the project's files are not looked at again."""

RUNS = 100
"""How many runs an export has pages for."""


class Documents:
    """The documents of the project in a folder, by the state of its files and its ledger."""

    def __init__(self, root: Path, target: str | None = None) -> None:
        """Nothing is read before a document is asked for."""
        self._root, self._target = root, target
        self._lock = Lock()
        self._opened: tuple[float, Project, SqlLedger] | None = None

    def __call__(self, name: str) -> JsonObject | None:
        """The document of a name, in any thread; None where there is none."""
        try:
            return self._made(name)
        except InfoldError as error:
            return project_documents.error_document(error)
        except Exception as error:  # noqa: BLE001 (the page shows it, as a command would)
            known = failures.as_user_error(error, self._root)
            return project_documents.error_document(known)

    def names(self) -> Iterator[str]:
        """All names with a document, as an export has them: none of single sessions."""
        project, book = self._open()
        yield from _PLAIN
        for node in project:
            yield f"model/{node.name}"
            yield f"explained/{node.name}"
            if node.model.kind is Kind.EVENTS:
                yield f"lateness/{node.name}"
        for run in project_documents.runs_document(book)["runs"][:RUNS]:
            yield f"run/{run['run']}"

    def _open(self) -> tuple[Project, SqlLedger]:
        """The project as its files are, one thread at a time; then all work on the same value."""
        with self._lock:
            now = time.monotonic()
            if self._opened is None or now - self._opened[0] > SAME_FOR:
                project = api.open_project(self._root, self._target)
                same = self._opened is not None and self._opened[1].target == project.target
                book = self._opened[2] if self._opened is not None and same else api.ledger(project)
                self._opened = (now, project, book)
            return self._opened[1:]

    def _made(self, name: str) -> JsonObject | None:
        project, book = self._open()
        if name in _PLAIN:
            return _PLAIN[name](project, book)
        kind, _, of = name.partition("/")
        if kind == "run":
            return run_document(project, book, of)
        if kind == "session" and of:
            return session_documents.session_document(project, of)
        if of not in project:
            return None
        if kind == "model":
            return model_document.model_document(project, book, of)
        if kind == "explained":
            return model_document.explained_document(project, of)
        if kind == "lateness" and project[of].model.kind is Kind.EVENTS:
            return lateness.lateness_document(project, book, api.lake(project), of)
        if kind == "sessions" and project[of].model.kind is Kind.SESSIONS:
            return session_documents.sessions_document(book, api.lake(project), of)
        return None


def _runs(_: Project, book: SqlLedger) -> JsonObject:
    return project_documents.runs_document(book)


def _aside(project: Project, book: SqlLedger) -> JsonObject:
    return aside.aside_document(project, book, api.lake(project))


_PLAIN: dict[str, Callable[[Project, SqlLedger], JsonObject]] = {
    "project": project_documents.project_document,
    "states": project_documents.states_document,
    "runs": _runs,
    "aside": _aside,
    "changes": definition_changes.changes_document,
    "tests": unit_tests.tests_document,
}
