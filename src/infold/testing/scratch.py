"""
A place to run projects in: a folder with landing files, tables and ledgers, and a Spark session.

A state of it is a value: the ledger's file, which nothing writes any more, the tables of the
catalog, and the landed files. A run goes from one state to the next. So tests that begin alike
share their first runs, and an arrival can be looked at again after the test is over. It rests on
tables of which a commit leaves all earlier files as they are; nothing is compacted or dropped here.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from infold import api
from infold.api.building import Building
from infold.api.spark_sessions import belongs_to
from infold.core.plan import Plan, PlanOptions
from infold.core.ports import Engine, SilentProgress
from infold.core.project import Project
from infold.core.target import Target
from infold.core.type_changes import Type
from infold.core.typed_text import json_value
from infold.core.unit_tests import Change, Delivery, Entry
from infold.messages.errors import InfoldError
from infold.render.plan import plan_strip
from infold.running.observe import Observer
from infold.running.run_progress import Request
from infold.spark.engine import SparkEngine
from infold.spark.storages import storage_of
from infold.system.process_lock import inherited_descriptors

LANDING = "landing"
_FIRST_MODIFIED = 1_000_000_000
"""When the first changed file was modified, in seconds; each later one a second after it."""


@dataclass(frozen=True)
class State:
    """What was there after a run, or at the beginning."""

    ledger: Path | None = None
    tables: Any = ()
    files: Mapping[str, tuple[bytes, int]] = field(default_factory=dict)
    """Path below the landing folder -> content, and when it was modified (seconds)."""
    changes: int = 0
    """How many files were changed so far."""
    entries: tuple[Entry, ...] = ()
    """Made by hand, and not in the ledger yet."""

    def after(self, deliveries: Iterable[Delivery], entries: Iterable[Entry] = ()) -> State:
        """The same with changed files and new entries, and not run yet."""
        files, changes = dict(self.files), self.changes
        for each in deliveries:
            path = f"{each.of}/{each.file}.json"
            changes += 1
            if each.change is Change.DELETE:
                files.pop(path, None)
            else:
                files[path] = _content(each.rows), _FIRST_MODIFIED + changes
        return replace(self, files=files, changes=changes, entries=(*self.entries, *entries))


def _content(rows: Sequence[Mapping[str, Any]]) -> bytes:
    lines = (
        json.dumps({name: json_value(value) for name, value in row.items()}, ensure_ascii=False)
        for row in rows
    )
    return "".join(f"{line}\n" for line in lines).encode()


@dataclass
class Scratch:
    """Runs projects that belong to it (:meth:`project`), one at a time."""

    root: Path
    base: Project
    types: Mapping[str, Mapping[str, Type]] = field(default_factory=dict)
    """The columns of all models that are right, which Spark's analyser has found."""
    runs: int = 0
    _ledgers: int = 0

    def project(self, tested: Project, state: State) -> Project:
        """A project with its tables and its ledger here, the ledger as a state says it is."""
        self._ledgers += 1
        ledger = self.root / "ledgers" / f"{self._ledgers}.db"
        if state.ledger is not None:
            ledger.parent.mkdir(parents=True, exist_ok=True)
            with (
                closing(sqlite3.connect(state.ledger)) as old,
                closing(sqlite3.connect(ledger)) as new,
            ):
                old.backup(new)
        project = replace(tested, target=self.target(ledger), targets={}, root=self.root)
        for entry in state.entries:
            api.ledger_of(project).add_entries(entry.of, [entry.entry])
        return project

    def target(self, ledger: Path) -> Target:
        """Where tables and a ledger are."""
        return Target(
            "test",
            warehouse=str(self.root / "warehouse"),
            ledger=f"sqlite:///{ledger}",
            storage=self.base.target.storage,
            spark=self.base.target.spark,
        )

    @cached_property
    def analysed(self) -> Project:
        """The project under test, at its own place but with tables here, to be analysed."""
        target = self.target(self.root / "ledgers" / "0.db")
        return replace(self.base, target=target, targets={})

    @cached_property
    def spark(self) -> Any:
        """
        The Spark session; its JVM's log and spilled rows are the project's, as it may be left.

        Where files of the project are protected they are in the cache.
        """
        from infold.spark.jvm.spark_session import JavaProcess, start, tune

        analysed = self.analysed
        analysed.warehouse.mkdir(parents=True, exist_ok=True)
        belongs_to(self.base)
        locks, own = self._locks(), self.base.root / ".infold"
        session = start(
            analysed.warehouse,
            analysed.catalog_db,
            process=JavaProcess(log=own / "spark.log", inherit=locks, spill=own / "spill")
            if locks
            else None,
            extra=dict(analysed.target.spark),
            storage=analysed.target.storage,
        )
        tune(session, "small", dict(analysed.target.spark))
        return session

    def _locks(self) -> tuple[int, ...]:
        """What the JVM has to have open to be left to a run; nothing where files are protected."""
        with suppress(OSError):
            return inherited_descriptors(self.base.root, self.base.target.name)
        return ()

    def engine(self, project: Project, run: str = "test") -> SparkEngine:
        """An engine on the tables of a project of this scratch."""
        return SparkEngine(self.spark, project, api.ledger_of(project), api.lake_of(project), run)

    def go_to(self, project: Project, state: State) -> None:
        """Let tables and landed files be those of a state."""
        storage_of(project).put_back(project, state.tables)
        landing = self.root / LANDING
        for name in project.sources:
            (landing / name).mkdir(parents=True, exist_ok=True)
        files = {path.relative_to(landing).as_posix(): path for path in landing.rglob("*.json")}
        for name in files.keys() - state.files.keys():
            files[name].unlink()
        for name, (content, modified) in state.files.items():
            path = landing / name
            same = name in files and path.stat().st_mtime == modified
            if same and path.read_bytes() == content:
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            os.utime(path, (modified, modified))

    def run(self, tested: Project, state: State, clock: int) -> tuple[State, Project]:
        """
        Run a project from a state at an instant; the state after it, and the project with that.

        Raises InfoldError where the run fails.
        """
        project = self.project(tested, state)
        self.go_to(project, state)
        self.runs += 1
        _ScratchRun(project, _REQUEST, SilentProgress(), as_of=clock, scratch=self).run()
        tables = storage_of(project).tables_now(project)
        ledger = Path(project.target.ledger.removeprefix("sqlite:///"))
        return replace(state, ledger=ledger, tables=tables, entries=()), project

    def strip(self, tested: Project, state: State, clock: int) -> tuple[str, ...]:
        """What a run from a state would do, as `infold plan` draws it."""
        project = self.project(tested, state)
        self.go_to(project, state)
        try:
            observed = api.observe_all(project, as_of=clock, asked=_REQUEST.options)
            plan = api.make_plan(project, observed, _REQUEST.options)
            return tuple(plan_strip(project, observed, plan, api.coverage(project, plan)))
        except InfoldError:  # the run said what is wrong
            return ()


_REQUEST = Request(PlanOptions(ignore_cron=True), command="test", allow_removals=True)
"""Every run of a test: all that is stale, incomplete cells too, whatever goes."""


@dataclass
class _ScratchRun(Building):
    """A run in a scratch."""

    scratch: Scratch | None = None

    def _engine(self, project: Project, observer: Observer, run: str, first: Plan) -> Engine:
        del first  # every run is small
        assert self.scratch is not None
        spark, types = self.scratch.spark, self.scratch.types
        return _ScratchEngine(spark, project, observer.ledger, observer.lake, run, types=types)


@dataclass(frozen=True)
class _ScratchEngine(SparkEngine):
    """An engine for definitions that were analysed before, on tables that are soon gone."""

    types: Mapping[str, Mapping[str, Type]] = field(default_factory=dict)

    def analyse(self, models: Sequence[str]) -> Mapping[str, InfoldError]:
        """Nothing: tests of models that are wrong do not run."""
        del models
        return {}

    def column_types(self, models: Sequence[str]) -> Mapping[str, Mapping[str, Type]]:
        """As they were found."""
        return {name: self.types[name] for name in models if name in self.types}

    def maintain(self, models: Sequence[str]) -> Sequence[str]:
        """Nothing: a state's files stay."""
        del models
        return ()
