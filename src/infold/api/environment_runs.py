"""Environments planned and run."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from infold.api.environments import ShownByName, variant_observer
from infold.api.extraction import Extraction
from infold.api.listening import told
from infold.api.opening import lake_of, ledger_of, with_chosen
from infold.api.repairing import finish_steps
from infold.api.rows import coverage
from infold.api.sole_writer import sole_writer
from infold.api.spark_sessions import engine
from infold.core.definition_text import digest_of
from infold.core.environment import checked_name, command_of_run, with_model_names
from infold.core.hooks import Sinks
from infold.core.interval import Ranges, now
from infold.core.plan import Observations, Plan, PlanOptions
from infold.core.ports import Lake, Ledger, Progress
from infold.core.project import Project
from infold.core.report import RunFailed, RunResult, together
from infold.inspecting.environments import Variant, recorded, variant
from infold.messages import environment_errors
from infold.planning.plan_draft import without_refused
from infold.planning.plan_notes import extraction_notes
from infold.planning.planner import plan as planned
from infold.running.execute import Runner
from infold.running.ledger_consistency import refuse_other_project
from infold.running.observe import Observer
from infold.running.run_progress import Request
from infold.running.table_names import drop_left_tables


@dataclass(frozen=True)
class PlannedEnvironment:
    """A plan of an environment with all that is shown with it, by the names of models."""

    project: Project
    observed: Observations
    plan: Plan
    covered: Mapping[str, Ranges]


def plan_environment(
    declared: Project,
    name: str,
    *,
    asked: PlanOptions | None = None,
    select: Sequence[str] = (),
    exclude: Sequence[str] = (),
    as_of: int | None = None,
) -> PlannedEnvironment:
    """
    What :func:`run_environment` would do; nothing is written, and no Spark is started.

    Readers of tables that are to be built count as different until these are there.
    """
    ledger, tables = ledger_of(declared), lake_of(declared)
    refuse_other_project(declared, ledger)
    known: frozenset[str] = frozenset()
    while True:
        found = variant(checked_name(name), declared, ledger, tables, known, assume=True)
        observer = variant_observer(found, as_of, estimate=True)
        observed = observer.observe_all()
        everything = planned(found.project, observed, PlanOptions(selected=found.to_build))
        if known == (known := found.up_to_date(observed, everything)):
            break
    chosen = _asked(found, asked, select, exclude)
    made = without_refused(
        found.project, planned(found.project, observed, chosen), observed.refused, chosen.selected
    )
    shared = [node.name for node in declared if node.name in found.production.project]
    shared = [name for name in shared if name not in found.models.values()]
    made = replace(
        made,
        skipped=tuple(one for one in made.skipped if one.model not in found.project.shared),
        redefinitions=found.decided.changes,
        notes=(
            *made.notes,
            *extraction_notes(found.project, chosen.selected),
            *_sharing(shared),
        ),
    )
    covered = coverage(found.project, made) if made else {}
    shown = PlannedEnvironment(found.project, observed, made, covered)
    return with_model_names(shown, found.models)


def _sharing(shared: Sequence[str]) -> Iterator[str]:
    if shared:
        yield f"production's tables are used of: {', '.join(shared)}"


def _asked(
    found: Variant, asked: PlanOptions | None, select: Sequence[str], exclude: Sequence[str]
) -> PlanOptions:
    """What is asked for, of the tables that are the environment's own."""
    asked = with_chosen(found.declared, asked, select, exclude)
    own = found.decided.identities
    chosen = own if asked.selected is None else [m for m in own if m in asked.selected]
    return replace(
        asked,
        selected=frozenset(found.own[model] for model in chosen),
        allow_destructive=frozenset(found.own.values()),  # nobody relies upon its tables
    )


def run_environment(
    declared: Project,
    name: str,
    *,
    asked: PlanOptions | None = None,
    select: Sequence[str] = (),
    exclude: Sequence[str] = (),
    as_of: int | None = None,
    max_rows: int | None = None,
    wait: float = 0.0,
    jobs: int | None = None,
    allow_refresh: bool = False,
    fail_fast: bool = False,
    allow_removals: bool = False,
    progress: Progress | None = None,
    sinks: Sinks | None = None,
) -> RunResult:
    """
    Bring an environment up to date; it is made if there is none of this name.

    Its tables are built level by level, as what a model reads has to be there before it is known
    whether the model differs from production's. What is asked for is as in
    :func:`infold.api.run`; no table of an environment needs ``allow_refresh``.
    """
    del allow_refresh
    command = command_of_run(checked_name(name))
    asked = replace(asked or PlanOptions(), jobs=jobs)
    request = Request(
        asked,
        max_rows,
        wait,
        command,
        allow_refresh=True,
        fail_fast=fail_fast,
        allow_removals=allow_removals,
    )

    def carry_out(shown: Progress) -> RunResult:
        refuse_other_project(declared, ledger_of(declared))
        finish_steps(declared, wait)
        extraction = Extraction(shown, beside=True)
        level = _Level(declared, name, request, shown, extraction, select, exclude, as_of)
        return _by_levels(level)

    return told(declared, "run", progress, carry_out, sinks=sinks, environment=name)


def _by_levels(level: _Level) -> RunResult:
    """Build an environment, each level once those before it are there."""
    results: list[RunResult] = []
    for _ in range(len(level.declared.nodes) + 1):
        try:
            results.append(level.run())
        except RunFailed as failed:
            raise RunFailed(together([*results, failed.result])) from failed
        if level.is_last:
            break
        before = sum(len(one.steps) for one in results)
        level = replace(
            level, known=level.up_to_date, up_to_date=frozenset(), is_last=True, before=before
        )
    return together(results)


@dataclass
class _Level:
    """One run of an environment, of the tables that are known to be its own."""

    declared: Project
    name: str
    request: Request
    progress: Progress
    extraction: Extraction
    select: Sequence[str] = ()
    exclude: Sequence[str] = ()
    as_of: int | None = None
    known: frozenset[str] = frozenset()
    """The identities of tables with contents that may be compared."""
    up_to_date: frozenset[str] = frozenset()
    is_last: bool = True
    before: int = 0
    """How many steps the levels before it took."""

    def run(self) -> RunResult:
        """Build what is known to be its own; whether that was all is known then."""
        ledger, tables = ledger_of(self.declared), lake_of(self.declared)
        refuse_other_project(self.declared, ledger)
        found = self._variant(ledger, tables, self.known)
        asked = _asked(found, self.request.options, self.select, self.exclude)
        estimate = self.request.max_rows is not None
        observer = variant_observer(found, self.as_of, estimate=estimate, asked=asked)
        observer.listing = self.extraction.checked(observer.listing)

        def at_begin() -> Iterator[str]:
            again = self._variant(observer.ledger, observer.lake, self.known)
            if again.follows_from != found.follows_from:
                raise environment_errors.environment_moved(name=self.name)
            yield from self.extraction.extract(found.project, asked.selected)

        runner = Runner(
            project=found.project,
            ledger=observer.ledger,
            lake=observer.lake,
            observer=observer,
            engine=lambda run_id, first: engine(found.project, observer, run_id, first),
            progress=ShownByName(self.progress, found.models, self.before),
            at_begin=at_begin,
            record=partial(_record, found, observer.ledger),
            at_end=partial(self._end, found, observer),
            writer_lock=lambda: sole_writer(self.declared, observer.ledger),
        )
        request = replace(self.request, options=asked)
        try:
            return with_model_names(runner.run(request), found.models)
        except RunFailed as failed:
            raise RunFailed(with_model_names(failed.result, found.models)) from failed

    def _variant(self, ledger: Ledger, tables: Lake, known: frozenset[str]) -> Variant:
        return variant(self.name, self.declared, ledger, tables, known)

    def _end(self, found: Variant, observer: Observer, run: str) -> Iterator[str]:
        """Find out what else is its own; if nothing is, drop what it no longer uses."""
        observed = observer.observe_all()
        left = planned(found.project, observed, PlanOptions(selected=found.to_build))
        self.up_to_date = found.up_to_date(observed, left)
        after = self._variant(observer.ledger, observer.lake, self.up_to_date)
        self.is_last = self.up_to_date == self.known or (
            after.decided.identities == found.decided.identities
            and after.decided.waiting == found.decided.waiting
        )
        if not self.is_last:
            return
        made = observer.ledger.environments()[self.name]
        whole = not after.decided.waiting and len(self.up_to_date) == len(after.decided.identities)
        built_at = now() if whole else None
        observer.ledger.put_environment(replace(made, tables=after.tables, built_at=built_at))
        yield from drop_left_tables(observer.ledger, observer.lake, run, self.name)
        for model in after.decided.waiting:
            yield f"{model} waits: whether it differs is known once what it reads is up to date"


def _record(found: Variant, ledger: Ledger) -> Mapping[str, str]:
    """Record an environment before it is built; the digests of definitions, by key."""
    name, at = found.project.environment, now()
    digests = {model: digest_of(one) for model, one in found.definitions.items()}
    by_digest = {digests[model]: one for model, one in found.definitions.items()}
    lifetime = found.declared.target.environment_ttl
    known = ledger.environments().get(name)
    # First of all that it is not built: nobody may promote it by definitions that nothing is of.
    ledger.put_environment(recorded(found, known, _user(), at, lifetime))
    ledger.keep_definitions(by_digest, digests, {}, environment=name)
    for model, key in found.own.items():  # entries made by hand hold in the environment too
        have = len(ledger.entries(key))
        if missing := ledger.entries(model)[have:]:
            ledger.add_entries(key, missing)
    return {key: digests[model] for model, key in found.own.items()}


def _user() -> str:
    """Who is at work, and where."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError):  # no such user on this machine, as in some containers
        name = "unknown"
    return f"{name}@{socket.gethostname()}"
