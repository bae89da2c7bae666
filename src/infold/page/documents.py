"""
All that the page can ask for, by name: plain JSON, made when it is asked for.

``model/daily`` is a document, ``runs`` another. A name that is none has no document. A mistake in
the project, or a table that is gone, is a document as well: one with an ``error``, which is shown.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from difflib import unified_diff
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from infold import api
from infold.api.environments import list_environments
from infold.api.rows import rows_left_out_without_spark
from infold.core.arrow_values import rows_of
from infold.core.definition import Definition, digest_of
from infold.core.interval import EVER, Interval, show_instant
from infold.core.model import Kind, table_name
from infold.core.ports import Lake
from infold.core.project import Node, Project
from infold.core.queries import left_out_reason
from infold.core.record import StepRecord
from infold.core.unit_tests import SHUFFLES
from infold.declare.definitions import definitions_of
from infold.ledger import SqlLedger
from infold.messages import errors
from infold.messages.errors import InfoldError
from infold.page import project_documents
from infold.page.project_documents import (
    JsonObject,
    file_shape,
    files_of_step,
    plain,
    rows_before,
    run_shape,
    seconds_of,
    seconds_of_range,
    step_shape,
    version_shape,
)
from infold.render.environments import environments_json
from infold.render.erasures import requests_json
from infold.render.formatting import iso
from infold.render.lateness import model_lateness_json
from infold.render.session_history import quarantine_json, session_history_shape
from infold.system import failures
from infold.testing.run_tests import PassedTests, read_project_tests

if TYPE_CHECKING:
    pass


def tests_document(project: Project, _: SqlLedger) -> JsonObject:
    """
    For each model the tests that expect rows of it, by the files, whatever is applied.

    A test passed if it did with the usual orders and nothing that it follows from has changed
    since. Of others nothing is known: failures are not kept.
    """
    declared = api.open_project(project.root, project.target.name, declared=True)
    try:
        tests = read_project_tests(declared)
    except InfoldError as error:
        if error.slug != "no-tests":
            raise
        return {"models": {}}
    passed = PassedTests(declared, seed=0, shuffles=SHUFFLES).of(tests)
    found: dict[str, list[JsonObject]] = {}
    for test in tests:
        for model in test.models:
            found.setdefault(model, []).append(
                {
                    "test": test.name,
                    "file": f"{test.file}:{test.at.line}",
                    "passed": test.name in passed,
                }
            )
    return {"models": found}


CHANGES = 200
"""How many changes of definitions are shown, the newest."""

LINES = 400
"""How many lines of one change are shown."""


def changes_document(project: Project, ledger: SqlLedger) -> JsonObject:
    """The environments of the target, its swaps, and the definitions that were kept."""
    return {
        **environments_json(list_environments(project)),
        "swaps": [
            {
                "kind": one.kind.value,
                "environment": one.environment,
                "made_at": iso(one.made_at),
                "models": sorted(one.kept),
            }
            for one in ledger.swaps()
        ],
        "waiting": _waiting(project, ledger),
        "unapplied": list(project.unapplied),
        "definitions": _changes(project, ledger),
    }


def _waiting(project: Project, ledger: SqlLedger) -> list[JsonObject]:
    """The definitions of the project that no run has applied yet, against those that were."""
    applied = {name: one.digest for name, one in ledger.applied().items()}
    bodies = ledger.definitions(applied.values())
    found = []
    for name, now in definitions_of(project).items():
        was = bodies.get(applied.get(name, ""))
        # Not by digests: a newer infold writes fields that older texts lack.
        if was is not None and was != now:
            found.append(
                {"model": name, "lines": _lines(was, now), "keys": _changed_keys(was, now)}
            )
    return found


def _changes(project: Project, ledger: SqlLedger) -> list[JsonObject]:
    """Each kept definition with what is different from the one before it, newest first."""
    kept = ledger.definition_history()
    bodies = ledger.definitions(digest for _, digest, _ in kept)
    applied = {name: one.digest for name, one in ledger.applied().items()}
    now = {name: digest_of(one) for name, one in definitions_of(project).items()}
    before: dict[str, Definition] = {}
    found: list[JsonObject] = []
    for model, digest, at in kept:
        body, was = bodies.get(digest), before.get(model)
        found.append(
            {
                "model": model,
                "digest": digest[:12],
                "kept_at": iso(at),
                "first": was is None,
                "applied": applied.get(model) == digest,
                "in_files": now.get(model) == digest,
                "lines": _lines(was, body),
                "keys": _changed_keys(was, body),
            }
        )
        if body is not None:
            before[model] = body
    return found[-CHANGES:][::-1]


def _lines(was: Definition | None, body: Definition | None) -> list[str]:
    """The query, by what was removed and added."""
    if body is None:
        return []
    if was is None:
        return [f" {line}" for line in body.sql.strip("\n").splitlines()[:LINES]]
    old, new = (one.sql.strip("\n").splitlines() for one in (was, body))
    return list(islice(unified_diff(old, new, lineterm="", n=3), 2, LINES))


def _changed_keys(was: Definition | None, body: Definition | None) -> list[str]:
    """What else of a declaration is different: the names of its fields."""
    if was is None or body is None:
        return []
    fields = type(body.model).__dataclass_fields__
    own = [name for name in fields if getattr(was.model, name) != getattr(body.model, name)]
    beside = ("source", "start", "backfill_limit", "columns", "views")
    return own + [name for name in beside if getattr(was, name) != getattr(body, name)]


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
        project, ledger = self._open()
        yield from _PLAIN
        for node in project:
            yield f"model/{node.name}"
            yield f"explained/{node.name}"
            if node.model.kind is Kind.EVENTS:
                yield f"lateness/{node.name}"
        for run in project_documents.runs_document(ledger)["runs"][:RUNS]:
            yield f"run/{run['run']}"

    def _open(self) -> tuple[Project, SqlLedger]:
        """The project as its files are, one thread at a time; then all work on the same value."""
        with self._lock:
            now = time.monotonic()
            if self._opened is None or now - self._opened[0] > SAME_FOR:
                project = api.open_project(self._root, self._target)
                same = self._opened is not None and self._opened[1].target == project.target
                ledger = (
                    self._opened[2] if self._opened is not None and same else api.ledger_of(project)
                )
                self._opened = (now, project, ledger)
            return self._opened[1:]

    def _made(self, name: str) -> JsonObject | None:
        project, ledger = self._open()
        if name in _PLAIN:
            return _PLAIN[name](project, ledger)
        kind, _, of = name.partition("/")
        if kind == "run":
            return run_document(project, ledger, of)
        if kind == "session" and of:
            return session_document(project, of)
        if of not in project:
            return None
        if kind == "model":
            return project_documents.model_document(project, ledger, of)
        if kind == "explained":
            return project_documents.explained_document(project, of)
        if kind == "lateness" and project[of].model.kind is Kind.EVENTS:
            return lateness_document(project, ledger, of)
        if kind == "sessions" and project[of].model.kind is Kind.SESSIONS:
            return sessions_document(ledger, api.lake_of(project), of)
        return None


def _runs(_: Project, ledger: SqlLedger) -> JsonObject:
    return project_documents.runs_document(ledger)


def _aside(project: Project, ledger: SqlLedger) -> JsonObject:
    return aside_document(project, ledger, api.lake_of(project))


_PLAIN: dict[str, Callable[[Project, SqlLedger], JsonObject]] = {
    "project": project_documents.project_document,
    "states": project_documents.states_document,
    "runs": _runs,
    "aside": _aside,
    "changes": changes_document,
    "tests": tests_document,
}


FILES = 50
"""How many files of a step are listed."""

SPANS = 300
"""How many ranges of a step are drawn."""


def run_document(project: Project, ledger: SqlLedger, id_: str) -> JsonObject | None:
    """A run with its steps; None where there is none of this id."""
    found = ledger.runs(run=id_)
    if not found:
        return None
    run = found[0]
    return {
        **run_shape(run),
        "steps": [_step(project, ledger, step) for step in run.steps],
    }


def _step(project: Project, ledger: SqlLedger, step: StepRecord) -> JsonObject:
    """A step, the cells that it was to build, and what its version did to the rows."""
    node = next((one for one in project if one.name == step.model), None)
    granularity = node.model.granularity if node is not None else None
    files = (
        files_of_step(ledger.files(step.model), step)
        if node is not None and node.source is not None
        else []
    )
    return {
        **step_shape(step),
        "known": node is not None,
        "granularity": granularity.value if granularity else None,
        "spans": _spans(step.detail),
        "changed": _changed(ledger, step),
        "files": [file_shape(file) for file in files[:FILES]],
        "more_files": len(files[FILES:]),
    }


def _spans(detail: Any) -> list[list[int | None]]:
    """The cells of a plan's step; other steps have none."""
    cells = detail.get("cells", ())
    return [seconds_of_range(Interval(start, end)) for start, end in list(cells)[-SPANS:]]


def _changed(ledger: SqlLedger, step: StepRecord) -> JsonObject | None:
    """The version that a step made, as far as its changes are kept."""
    number = step.outcome.version if step.outcome else None
    if number is None:
        return None
    versions = {one.number: one for one in ledger.versions(step.model, number - 2)}
    made, earlier = versions.get(number), versions.get(number - 1)
    if made is None or made.step != step.id:
        return None  # nothing was committed, or it was another table's
    before = earlier.rows if earlier is not None else 0
    changes = ledger.changes_by_version(step.model, number - 1).get(number, ())
    return version_shape(made, before, step, changes) | {
        "spans": [seconds_of_range(one.cell) for one in changes if one.changes_rows][-SPANS:],
        "kept": bool(changes),
    }


# They are read from the tables when somebody asks, without a JVM. There are too many of them for an
# export.

NEWEST = 20
"""How many sessions of a table are listed."""


def sessions_document(ledger: SqlLedger, lake: Lake, name: str) -> JsonObject:
    """Some sessions of the newest cell of a table, by start."""
    cells = [one.cell for one in ledger.cells(name) if one.cell != EVER]
    if name not in ledger.traces() or not cells:
        return {"model": name, "sessions": []}
    where = f"session_start >= '{show_instant(cells[-1].start)}'"
    found = rows_of(lake.rows(table_name(name), where=where, limit=NEWEST))
    found.sort(key=lambda row: (row["session_start"], row["session_id"]))
    return {"model": name, "sessions": [plain(row) for row in found]}


def session_document(project: Project, id_: str) -> JsonObject:
    """
    The history of a session, or of the first sessions of an identifier.

    Raises ``unknown_session`` for what is none.
    """
    return plain(session_history_shape(api.session_history(project, id_)))


ARRIVALS = 30
"""How many runs with arrivals are listed."""


def lateness_document(project: Project, ledger: SqlLedger, name: str) -> JsonObject:
    """The lateness of the rows of one table of events."""
    [found] = api.lateness(project, [name])
    return model_lateness_json(found) | {"arrivals": _arrivals(ledger, project[name])}


def _arrivals(ledger: SqlLedger, node: Node) -> list[JsonObject]:
    """What each of the newest runs brought, by which files, and for which times."""
    every = ledger.versions(node.name)
    versions, before = every[-ARRIVALS:][::-1], rows_before(every)
    if not versions:
        return []
    steps = ledger.steps_by_id(one.step for one in versions)
    changes = ledger.changes_by_version(node.name, versions[-1].number - 1)
    files, found = ledger.files(node.name), []
    for one in versions:
        step, made = steps.get(one.step), changes.get(one.number, ())
        added = [change for change in made if change.added]
        late = [change for change in added if change.rows_before]
        came = files_of_step(files, step)
        found.append(
            version_shape(one, before[one.number], step, made)
            | {
                "late": None if one.whole else sum(change.added for change in late),
                "late_cells": None if one.whole else len(late),
                "oldest": seconds_of(min(added, key=lambda c: c.cell).cell.start)
                if added
                else None,
                "files": [file.path for file in came[:8]],
                "more_files": len(came[8:]),
            }
        )
    return found


COUNTED = 200_000
"""Of how many set-aside rows the reasons are counted."""

SAMPLES = 5
"""How many rows of each reason are shown."""

ASIDE_FILES = 50
SESSIONS = 500
REQUESTS = 500
"""How many requests to erase are listed, the newest."""


def aside_document(project: Project, ledger: SqlLedger, lake: Lake) -> JsonObject:
    """Set-aside rows by reason with samples, files that have some, quarantine, and erasures."""
    reasons = _set_aside(project, lake)
    return {
        "reasons": reasons,
        "counted": COUNTED if sum(one["rows"] for one in reasons) >= COUNTED else None,
        "files": _files(project, ledger),
        "left_out": _left_out(project, ledger),
        "quarantine": _quarantine(project),
        "erasures": requests_json(api.list_erasures(project)[:REQUESTS]),
    }


def _set_aside(project: Project, lake: Lake) -> list[JsonObject]:
    """The rows of the table, by model and reason."""
    try:
        found = lake.rows(project.set_aside, limit=COUNTED)
    except errors.InfoldError as error:
        if error.slug != "not-built":
            raise
        return []  # the table is made with its first row
    counts: Counter[tuple[str, str]] = Counter()
    samples: dict[tuple[str, str], list[int]] = {}
    pairs = zip(found["model"].to_pylist(), found["reason"].to_pylist(), strict=True)
    for at, pair in enumerate(pairs):
        counts[pair] += 1
        if counts[pair] <= SAMPLES:
            samples.setdefault(pair, []).append(at)
    return [
        {
            "model": model,
            "reason": reason,
            "rows": rows,
            "samples": [plain(row) for row in rows_of(found.take(samples[model, reason]))],
        }
        for (model, reason), rows in counts.most_common()
    ]


def _files(project: Project, ledger: SqlLedger) -> list[JsonObject]:
    """The files with set-aside rows, those with most first."""
    found = [
        (file, node.name)
        for node in project
        if node.source is not None
        for file in ledger.files_set_aside(node.name)
    ]
    found.sort(key=lambda pair: (-pair[0].set_aside, pair[0].path))
    return [file_shape(file) | {"model": model} for file, model in found[:ASIDE_FILES]]


def _left_out(project: Project, ledger: SqlLedger) -> JsonObject:
    """Events in no session: how many of each model, and some of them where no Spark is needed."""
    counts = ledger.left_out()
    models = [
        {
            "model": node.name,
            "rows": counts[node.name],
            "reason": left_out_reason(node.query) if node.query is not None else "",
        }
        for node in project
        if node.model.kind is Kind.SESSIONS and counts.get(node.name)
    ]
    samples: list[JsonObject] = []
    if models:
        found = rows_left_out_without_spark(project, SAMPLES)
        samples = [] if found is None else [plain(row) for row in rows_of(found)]
    return {"models": models, "samples": samples}


def _quarantine(project: Project) -> JsonObject:
    """The sessions in quarantine, the longest first, and the manual entries."""
    rows = api.manifest(project, "quarantined_sessions").to_pylist()
    rows.sort(key=lambda row: row["start_tstamp"] - row["end_tstamp"])
    shape = quarantine_json(rows[:SESSIONS], api.list_quarantine_entries(project))
    return shape | {"sessions": len(rows)}
