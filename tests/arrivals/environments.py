"""
Environments, promotes and rollbacks between arrivals, without Spark: the program's own commands.

Everything above the engine and the storage is real (``infold.api``); these two are as in ``dry``,
and tables can change their names. After each operation two oracles are asked. What a trace claims
is evaluated: the rows of the definition that it names, over the versions and files that it names.
So nothing is believed that a command left behind, whoever died. And after a complete run, of
production or of an environment, each table equals its definition over all that is in the files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import strategies as st
from tests.arrivals.borders import Borders, Held, by_ledger, effective_from, shown
from tests.arrivals.branches import ABSENT, BRANCHES, FIRST, OPTIONAL, RENAMED, STEADY
from tests.arrivals.dry import DryEngine, DryPlay, Given, chosen_rows, ingested_file, opened
from tests.arrivals.play import usable_rows
from tests.arrivals.programs import ARRIVALS, Op
from tests.arrivals.shape import (
    Rows,
    SourceSpec,
    TableSpec,
    cell_start,
    entries_key,
    entry_row,
)
from tests.crash.scenario import living
from tests.reference.compare import difference
from tests.reference.tables import events
from tests.reference.world import Broken, Record, Usable

from infold import api
from infold.api import environments
from infold.core.definition import Definition
from infold.core.environment import BUILT_APART, PRODUCTION
from infold.core.files import FileCell, FilesOutcome
from infold.core.interval import EVER, HOUR, MAX, MIN, Granularity, Interval, Ranges, show_instant
from infold.core.model import table_name
from infold.core.plan import Action, FileDiff, Plan, PlanOptions, Step
from infold.core.project import Node, Project
from infold.core.report import RunFailed, RunResult
from infold.core.sessions import ManualEntry
from infold.core.trace import UNKNOWN, Trace
from infold.ledger.store import SqlLedger
from infold.messages.errors import InfoldError, InfoldErrors
from infold.running.observe import Observer

Branch = dict[str, int]
"""The version of each model; ``ABSENT`` for none."""

Records = Sequence[Record]

NAMES = ("a", "b")
"""The environments."""

CHANGES = ("change", "change", "change", "rename", "rename", "merge")
COMMANDS = (
    "run",
    "run",
    "apply",
    "apply",
    "onward",
    "onward",
    "env_run",
    "env_run",
    "env_run",
    "env_some",
    "run_some",
    "ship",
    "promote",
    "promote",
    "promote",
    "rollback",
    "rollback",
    "drop",
    "tidy",
)
FORWARD = ("daily", "daily", "rolling", "rolling", "stays", "clicks", "clicks")
"""The models that are changed forward-only."""
BORDERED = frozenset(FORWARD)
"""The models with a record of what holds where."""
CHANGED_STEADY = 0.25
"""How often a version is chosen to which every change is forward-only."""
CHANGED_FORWARD = 0.7
"""How often one gets another version for it; else the one that the files have is applied."""


@dataclass(frozen=True)
class Act:
    """An operation, which dies at its ``dies``-th write point if it comes so far; 0: it lives."""

    op: Op
    dies: int = 0


def acts(most: int, *, deaths: bool) -> st.SearchStrategy[list[Act]]:
    """Programs of operations; the first is always an arrival."""
    seeds = st.integers(0, 2**20)
    others = ("lookup", "advance", "speak")
    kinds = st.sampled_from((*ARRIVALS[:6], *others, *CHANGES, *COMMANDS, *COMMANDS))
    dies = st.one_of(st.just(0), st.just(0), st.integers(1, 60)) if deaths else st.just(0)
    some = st.builds(Act, st.builds(Op, kinds, seeds), dies)
    return st.lists(some, min_size=4, max_size=most)


Parts = Sequence[tuple[TableSpec, Ranges]]
"""Versions of a query, each with the cells that it holds for."""


class BranchEngine(DryEngine):
    """
    Of a project in which models may have other names, and any version.

    Events are ingested by the definitions in force, and what each file gave when it was read is
    remembered. So a file that the planner forgets to read again keeps rows of another definition.
    """

    play: BranchPlay

    def rows_given(self, known: Given, path: str, parts: Parts, until: int) -> Rows:
        """Once somebody has died, as the definitions in force would give them now."""
        at = path, self.play.prints[path]
        if at not in known:
            known[at] = in_force(self.play, parts, self.play.world.files[path], until).rows
        return known[at]

    def spec(self, name: str) -> TableSpec:
        """The version by the fingerprint."""
        return self.play.spec_of(self.project[name])

    def read_as(self, name: str, read: str) -> str:
        """An environment's own models read one another."""
        if name in self.project.shared or self.project.environment == PRODUCTION:
            return read
        own = {model_of(node.name): node.name for node in self.project}
        return own[read] if own[read] not in self.project.shared else read

    def _ingested(self, node: Node, step: Step) -> tuple[Rows, FilesOutcome]:
        if model_of(step.model) != "clicks":
            return super()._ingested(node, step)
        play = self.play
        known = play.memory.given.setdefault(table_name(step.model), {})
        diff = step.files if step.files is not None else FileDiff("")
        ids = self.ledger.register_files(diff.source, diff.new)
        held = {file.path: file for file in self.ledger.files(step.model)}
        gone = {file.path for file in diff.removed}
        if step.action is Action.BUILD:
            gone |= set(held)
        taken = {**ids, **{file.path: file.id for file in (*diff.come_due, *diff.reingest)}}
        parts = self._parts_of(node, step)
        if step.action is Action.DERIVE:  # other rows follow from all that are stored
            known.clear()
            for path, file in held.items():
                records, until = play.world.files[path], file.horizon
                known[path, play.prints[path]] = in_force(play, parts, records, until).rows
        files, cells = [], []
        for path, id_ in taken.items():
            given = in_force(play, parts, play.world.files[path], diff.as_of)
            if path not in ids and path not in {file.path for file in diff.reingest}:
                late = [row for row in given.rows if row["event_ts"] > held[path].horizon]
                given.rows[:] = self.rows_given(known, path, parts, held[path].horizon) + late
            known[path, play.prints[path]] = given.rows
            count = Counter(Granularity.DAY.cell(row["event_ts"]) for row in given.rows)
            cells += [FileCell(id_, cell, rows) for cell, rows in count.items()]
            files.append(ingested_file(play, path, id_, diff.as_of, given))
        stay = [path for path in held if path not in gone]
        rows = [
            dict.fromkeys(node.columns) | row
            for path in dict.fromkeys((*stay, *ids))
            for row in self.rows_given(known, path, parts, diff.as_of)
        ]
        best = events(
            rows,
            key=["event_id"],
            time="event_ts",
            prefer=["revision desc"],
            everywhere="deduplicate: everywhere" in self.spec(node.name).text,
        )
        removed = tuple(held[path].id for path in gone if path in held)
        return chosen_rows(best), FilesOutcome(diff.source, tuple(files), removed, tuple(cells))

    def _parts_of(self, node: Node, step: Step) -> list[tuple[TableSpec, Ranges]]:
        """The definitions in force, as the step says."""
        trace = step.trace
        assert trace is not None
        found = [(self.spec(node.name), Ranges.ever() - trace.earlier_ranges)]
        for one in trace.earlier:
            [kept] = self.ledger.definitions([one.definition]).values()
            found.append((_SPECS[kept.name, kept.fingerprint], one.cells))
        return found


def in_force(play: DryPlay, parts: Parts, records: Sequence[Record], as_of: int) -> Usable:
    """What the definitions in force make of some records."""
    every = Usable()
    for by, part in parts:
        rules = play.shape.source(by.source or "").rules
        found = usable_rows(by, own_records(records, part), rules, as_of)
        assert by.best is not None
        every.rows += [row for one in found.rows for row in by.best([one]).rows()]
        every.waiting += found.waiting
        every.aside += found.aside
    return every


def own_records(records: Iterable[Record], part: Ranges) -> list[Record]:
    """The records at some times; those without a time are the newest definition's, at the end."""
    return [
        record
        for record in records
        if (MAX - 1 if (at := _time_of(record)) is None else at) in part
    ]


def _time_of(record: Record) -> int | None:
    return None if isinstance(record, Broken) else record["event_ts"]


def model_of(name: str) -> str:
    """The model of a table, by its key."""
    return name if name in BRANCHES.tables else name.rpartition("__")[0]


_SPECS: dict[tuple[str, str], TableSpec] = {}
"""The versions by model and fingerprint."""


def branch_of(branch: Branch, *, manual: bool) -> Project | None:
    """The project of a branch, as its files declare it; None where they have a mistake."""
    specs = {n: BRANCHES.tables[n][at] for n, at in branch.items() if at != ABSENT}
    found = opened(BRANCHES, specs, "    apply: manual\n" if manual else "", declared=True)
    for node in found or ():
        _SPECS.setdefault((node.name, node.fingerprint), specs[node.name])
    return found


@dataclass
class BranchPlay(DryPlay):
    """Production and two environments, each with a branch of its own."""

    manual: bool = False
    branches: dict[str, Branch] = field(
        default_factory=lambda: {name: dict(FIRST) for name in ("", *NAMES)}
    )
    """What the files have when a command of production, or of an environment, is given."""
    applied: Branch = field(default_factory=dict)
    """The versions that production's runs go by."""
    ran: dict[str, Branch] = field(default_factory=dict)
    """The versions by which each environment was run last."""
    promoted: list[tuple[Branch, Branch]] = field(default_factory=list)
    """What was applied before and after the last promotes."""
    whole: set[str] = field(default_factory=set)
    """Production ("") and environments that were run completely, with nothing new since."""
    done: dict[str, int] = field(default_factory=dict)
    """How often each command came to its end, or was refused with which slug."""
    contents: dict[tuple[str, str], Sequence[Record]] = field(default_factory=dict)
    borders: Borders = field(default_factory=Borders)
    unsure: bool = False
    """Whether somebody died, and nobody knows yet which definitions are applied."""
    keep_old: int | None = None
    ttl: int | None = None

    # -- the outside

    def _put(self, path: str, source: SourceSpec, records: Sequence[Record]) -> None:
        super()._put(path, source, records)
        self.contents[path, self.prints[path]] = records

    def _may_have_no_file(self) -> bool:
        """Never: an environment may get a table of its own of the files at any time."""
        return False

    @property
    def ledger(self) -> SqlLedger:
        """The real ledger; another connection each time."""
        return SqlLedger(self.folder / ".infold" / "ledger.db")

    def declared(self, name: str = "") -> Project:
        """The project of a branch."""
        found = branch_of(self.branches[name], manual=self.manual)
        assert found is not None
        target = replace(found.target, keep_old=self.keep_old, environment_ttl=self.ttl)
        return replace(found, root=self.folder, target=target)

    @property
    def project(self) -> Project:
        """Production's, by what is applied."""
        return api.by_applied(self.declared())

    @contextmanager
    def outside(self) -> Iterator[None]:
        """The storage, the engine and the files are the play's."""

        def engine(project: Project, looking: Observer, run: str, first: Plan) -> BranchEngine:
            del run, first
            return BranchEngine(self, project, cast("SqlLedger", looking.ledger))

        listing = SimpleNamespace(
            list_files=lambda project, source, now: self._listing(source),
            row_counts=lambda root, files: {},
            event_times=lambda path, source, column: None,
        )
        adapters = SimpleNamespace(
            lake=lambda project: self.memory, published_lake=lambda project: self.memory
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("infold.spark.storages.storage_of", lambda project: adapters)
            patch.setattr("infold.lake.reading.formats.files_of", lambda _: listing)
            patch.setattr("infold.spark.jvm.class_archive.make_later", lambda: False)
            patch.setattr("infold.api.repairing.open_project", lambda *_: self.project)
            patch.setattr("infold.api.opening.open_project", lambda *_, **__: self.declared())
            patch.setattr("infold.api.building.engine", engine)
            patch.setattr(environments, "engine", engine)
            yield

    # -- playing

    def act(self, program: Sequence[Act]) -> None:
        """All operations, each with all checks after it."""
        self.tally.programs += 1
        for each in program:
            self._operate(each)

    def _operate(self, act: Act) -> None:
        op = act.op
        self.log.append(f"{op.kind}({op.seed})" + (f" dies at {act.dies}" if act.dies else ""))
        random = Random(op.seed)
        if op.kind not in COMMANDS:
            if op.kind not in CHANGES:
                self.whole.clear()
            getattr(self, op.kind)(random)
            return
        self.tally.runs += 1
        died = False
        if act.dies and op.kind != "run_some":
            with living(act.dies) as life:
                self._command(op.kind, random)
            if died := life.dead:
                self.log.append(f"  died: {life.passed[-1][1]}")
                self._after_death()
        else:
            self._command(op.kind, random)
        if not died:
            self.check_all()

    def _command(self, kind: str, random: Random) -> None:
        try:
            getattr(self, kind)(random)
        except InfoldError as error:
            failed = error.result.failures if isinstance(error, RunFailed) else ()
            errors = error.errors if isinstance(error, InfoldErrors) else (error,)
            slugs = {one.slug for one in errors}
            self.log.append(f"  refused: {', '.join(sorted(slugs))}")
            for slug in slugs:
                self.done[slug] = self.done.get(slug, 0) + 1
            if failed and slugs != {"not-forward-only"}:
                self._fail(f"{kind} failed: " + "; ".join(str(one.error) for one in failed))
            late = self.unsure and slugs <= {*AFTER_DEATH}  # it recovered meanwhile
            if not slugs <= {*REFUSALS.get(kind, ())} and not late:
                raise
            if "not-forward-only" in slugs and kind != "promote":
                self._give_in(random)
        else:
            self.done[kind] = self.done.get(kind, 0) + 1

    def _give_in(self, random: Random) -> None:
        """A change was refused: mostly the files get back what is applied of such models."""
        self.whole.clear()
        self._take_applied()
        refused = [
            node.name
            for node in self.declared()
            if node.name in BORDERED and self.branches[""][node.name] != self.applied[node.name]
        ]
        if random.random() < 0.8:
            self.change_of("", {name: self.applied[name] for name in refused})

    def _after_death(self) -> None:
        """Nobody knows how far it came: what is applied is what the ledger says."""
        self.whole.clear()
        self.unsure = True
        book = self.ledger
        for name in NAMES:
            if name in book.environments():
                digests = {one.digest for one in book.applied(name).values()}
                self.ran[name] = self._versions(book.definitions(digests).values())
        self.promoted = []
        self.memory.given.clear()  # nobody knows which of it was committed
        self.borders.after_somebody_died()

    def _make_sure(self) -> None:
        """After a death, and a command that finished what was left: what is applied."""
        if self.unsure:
            self._take_applied()

    def _take_applied(self) -> None:
        """What is applied, as the ledger has it."""
        book = self.ledger
        found = book.definitions({one.digest for one in book.applied().values()})
        self.applied = self._versions(found.values())
        self.unsure = False

    def _versions(self, definitions: Collection[Definition]) -> Branch:
        """The versions of definitions, by their fingerprints."""
        found = {one.name: _SPECS[one.name, one.fingerprint] for one in definitions}
        return {
            name: BRANCHES.tables[name].index(found[name]) if name in found else ABSENT
            for name in BRANCHES.tables
        }

    # -- changes

    def change(self, random: Random) -> None:
        """A model of a branch gets another version, goes, or comes."""
        name = random.choice(("", *NAMES, *NAMES))
        model = random.choice(BRANCHES.changeable())
        least = ABSENT if model in OPTIONAL else 0
        at = random.randint(least, len(BRANCHES.tables[model]) - 1)
        if random.random() < CHANGED_STEADY:
            model = random.choice([*STEADY])
            at = random.choice(STEADY[model])
        self.change_of(name, {model: at})

    def rename(self, random: Random) -> None:
        """Columns of a model of a branch get other names."""
        name, model = random.choice(("", "", *NAMES)), random.choice([*RENAMED])
        at = RENAMED[model].get(self.branches[name][model])
        if at is not None:
            self.change_of(name, {model: at})

    def change_of(self, name: str, versions: Branch) -> None:
        """Models of a branch get other versions, unless these do not fit together."""
        self._set(name, {**self.branches[name], **versions})

    def merge(self, random: Random) -> None:
        """A branch becomes what another one is."""
        name, other = random.sample(("", *NAMES), 2)
        self._set(name, dict(self.branches[other]))

    def _set(self, name: str, branch: Branch) -> None:
        if branch_of(branch, manual=self.manual) is not None:
            changed = {model for model in branch if branch[model] != self.branches[name][model]}
            self.log.append(f"  {name or 'production'}: { {m: branch[m] for m in changed} }")
            self.branches[name] = branch
            self.whole.discard(name)
            if name == "" and not self.manual:
                self.whole.clear()

    def speak(self, random: Random) -> None:
        """Sessions of production are put into quarantine by hand, or released."""
        book = self.ledger
        if "stays" in book.traces():
            entries = []
            at = book.newest_versions()["clicks"].number
            for row in self._at_version(book, "clicks", at):
                if row["user_id"] is not None and random.random() < 0.1:
                    at = row["event_ts"]
                    held = random.choice((True, False))
                    entries.append(ManualEntry(0, row["user_id"], held, at - HOUR, at))
            book.add_entries("stays", entries)

    # -- commands

    def _asked(self, project: Project) -> PlanOptions:
        names = {node.name for node in project} | self.ledger.applied().keys()
        return PlanOptions(allow_destructive=frozenset(names))

    def _run(self, project: Project, **more: Any) -> RunResult:  # type: ignore[override]
        more = {"asked": self._asked(project), **more}
        self._find_borders()
        ends = {name: self._end(name) for name in BORDERED}
        try:
            result = api.run(
                project, as_of=self.world.as_of, allow_removals=True, allow_refresh=True, **more
            )
        except InfoldError:
            self._check_borders(project, more["asked"], ends)
            raise
        self._check_borders(project, more["asked"], ends)
        return result

    def run(self, random: Random) -> None:  # type: ignore[override]
        """A run of production."""
        before = "" in self.whole
        result = self._run(self.project)
        self._make_sure()
        if not self.manual:
            self.applied = self._as_files_say()
        self._check_nothing_done(result, wanted=before)
        if result.steps:
            self.whole.clear()
        self._complete_production()

    def run_some(self, random: Random) -> None:
        """A run of production, of some models."""
        project = self.project
        name = random.choice([node.name for node in project])
        form = random.choice(("{}", "+{}", "{}+"))
        self._run(project, select=(form.format(name),))
        if not self.manual:
            self.applied = self._as_files_say()
        self.whole.clear()

    def apply(self, random: Random) -> None:
        """The definitions of production's branch are applied; or some of them."""
        some: tuple[str, ...] = ()
        if self.manual and self.applied and random.random() < 0.2:
            some = (random.choice([node.name for node in self.declared()]),)
        project = api.to_apply(self.declared(), some)
        self.whole.clear()
        self._run(project, command="apply", **({"select": some} if some else {}))
        if some:
            self._take_applied()
            return
        self.unsure = False
        self.applied = self._as_files_say()
        self._complete_production()

    def onward(self, random: Random) -> None:
        """
        The definitions of production's branch are applied, that of a model forward-only.

        Where its earlier cells cannot stay as they are, the model and its readers are left alone.
        """
        name = random.choice(FORWARD)
        if random.random() < CHANGED_FORWARD:
            self.change_of("", {name: random.randrange(len(BRANCHES.tables[name]))})
        project = api.to_apply(self.declared())
        at = effective_from(self._end(name), random)
        asked = replace(self._asked(project), forward_only={name: at})
        self.log.append(f"  {name} from {'its end' if at is None else show_instant(at)}")
        self.whole.clear()
        self.borders.asked[name] = (self.spec_of(project[name]), at)
        self._run(project, command="apply" if self.manual else "run", asked=asked)
        self.borders.asked.pop(name, None)
        self.unsure = False
        self.applied = self._as_files_say()
        self._complete_production()

    def _end(self, name: str) -> int:
        """The end of the last cell of a table with rows: where a change would begin."""
        book = self.ledger
        trace, head = book.traces().get(name), book.newest_versions().get(name)
        rows = [] if head is None else self._at_version(book, name, head.number)
        if trace is None or trace.fingerprint == UNKNOWN or not rows:
            return MIN
        spec = _SPECS[name, trace.fingerprint]
        last = max(cell_start(row[_time_column(spec)]) for row in rows)
        granularity = spec.granularity or Granularity.DAY
        return granularity.next(granularity.floor(last))

    def _held(self) -> dict[str, Held]:
        """What holds in production's tables, as the ledger says; nothing if it is unfinished."""
        book = self.ledger
        traces = {} if book.unfinished() else book.traces()
        found = {}
        for name in BORDERED & traces.keys():
            trace = traces[name]
            digests = [trace.definition, *(one.definition for one in trace.earlier)]
            kept = book.definitions(digests)
            specs = {digest: _SPECS[name, one.fingerprint] for digest, one in kept.items()}
            found[name] = by_ledger(trace, specs)
        return found

    def _find_borders(self) -> None:
        """Check that nothing but runs, promotes and rollbacks has changed what holds where."""
        for name, now in self._held().items():
            if self.borders.lost:
                wrong = self.borders.after_death(name, now)
            else:
                was = self.borders.held.get(name)
                held = f"{name} has {shown(now)}, not {shown(was)}"
                wrong = "" if was in (None, now) else held
            if wrong:
                self._fail(wrong)
        self.borders.lost = self.borders.lost and not self._held()

    def _check_borders(self, project: Project, asked: PlanOptions, ends: Mapping[str, int]) -> None:
        """A change that was to be forward-only holds from its border on; any other everywhere."""
        if self.borders.lost:
            self._find_borders()  # now, as the same command may promote other tables next
            return
        for name, now in self._held().items():
            wrong = self.borders.after_run(
                name,
                now,
                asked=(name in asked.forward_only, asked.forward_only.get(name)),
                by_file=name in project and project[name].model.changes_forward_only,
                last=ends[name],
            )
            if wrong:
                self._fail(wrong)
            if len(now) > 1:
                self.done["stretches"] = self.done.get("stretches", 0) + 1

    def env_run(self, random: Random) -> None:
        """A run of an environment."""
        name = random.choice(NAMES)
        before, held = name in self.whole, self._production()
        result = environments.run_environment(
            self.declared(name), name, as_of=self.world.as_of, allow_removals=True
        )
        self._check_production_kept(held)
        self.ran[name] = dict(self.branches[name])
        self._check_nothing_done(result, wanted=before)
        self._complete_environment(name)

    def env_some(self, random: Random) -> None:
        """A run of some models of an environment."""
        name, held = random.choice(NAMES), self._production()
        self.whole.discard(name)
        project = self.declared(name)
        term = random.choice([node.name for node in project])
        environments.run_environment(
            project, name, as_of=self.world.as_of, allow_removals=True, select=(term,)
        )
        self._check_production_kept(held)
        self.ran[name] = dict(self.branches[name])

    def ship(self, random: Random) -> None:
        """Production and an environment catch up; then the environment is promoted."""
        seed = random.random()
        self.run(random)
        self.env_run(Random(seed))
        self.promote(Random(seed))

    def promote(self, random: Random) -> None:
        """The tables of an environment become production's."""
        name = random.choice(NAMES)
        before = self.project
        may_be_refused = not {"", name} <= self.whole
        allowed = self._asked(before).allow_destructive
        only_forward = self._changes_forward_only(name)
        try:
            shown = environments.find_promotion(before, name, allow_destructive=allowed)
        except InfoldError as error:
            expected = ("promote-incomplete", *(["not-forward-only"] if only_forward else []))
            if not may_be_refused and error.slug not in expected:
                self._fail(f"an environment that is up to date is not promoted: {error}")
            raise
        book = self.ledger
        own = book.environments()[name].own
        there = {model: self.memory.tables.get(table_name(key)) for model, key in own.items()}
        if self.unsure and self.ledger.unfinished():
            environments.promote(before, shown, allow_destructive=allowed)
            return
        self._make_sure()
        self._check_promotable(name)
        if not shown.changes:
            return
        if only_forward:
            self._fail(f"what changes forward-only is promoted: {only_forward}")
        environments.promote(before, shown, allow_destructive=allowed)
        self.borders.replace({m: self._specs_of(self.ran[name])[m] for m in BORDERED & own.keys()})
        for model, table in there.items():
            if self.memory.tables.get(table_name(model)) is not table:
                self._fail(f"{model} is not the environment's table")
        was, now = dict(self.applied), dict(self.applied)
        there_too = dict(self._specs(self.ran[name]))
        now |= {model: at for model, at in self.ran[name].items() if model in there_too}
        self.promoted.append((was, now))
        self.applied = now
        self.whole.clear()
        if random.random() < 0.8 and branch_of(now, manual=self.manual) is not None:
            self.branches[""] = dict(now)

    def _changes_forward_only(self, name: str) -> list[str]:
        """The models that an environment has changed, of which no change is promoted."""
        book = self.ledger
        environment, applied = book.environments().get(name), book.applied()
        there = book.applied(name)
        kept = book.definitions({one.digest for one in (*applied.values(), *there.values())})
        if environment is None:
            return []
        both = [m for m in environment.own if m in BORDERED and m in applied and m in there]
        pairs = {m: (kept[applied[m].digest], kept[there[m].digest]) for m in both}
        return [
            model
            for model, (old, new) in pairs.items()
            if new.model.changes_forward_only and old.fingerprint != new.fingerprint
        ]

    def rollback(self, random: Random) -> None:
        """The last promote is taken back."""
        shown = environments.find_rollback(self.project)
        environments.rollback(self.project, shown)
        if self.borders.replaced:
            self.borders.give_back()
        else:
            self.borders.lost = True
        self.whole.clear()
        before = dict(self.applied)
        self._take_applied()
        now = dict(self.applied)
        if self.promoted:
            was, then = self.promoted.pop()
            expected = {m: was[m] if was[m] != then[m] else before[m] for m in was}
            if self._specs_of(now) != self._specs_of(expected):
                self._fail(f"after the rollback {now} is applied, not {expected}")
        if random.random() < 0.8 and branch_of(now, manual=self.manual) is not None:
            self.branches[""] = dict(now)

    def drop(self, random: Random) -> None:
        """An environment is dropped."""
        name, held = random.choice(NAMES), self._production()
        environments.drop_environment(self.project, name)
        self._check_production_kept(held)
        self.whole.discard(name)
        self.ran.pop(name, None)

    def tidy(self, random: Random) -> None:
        """A run of production that drops replaced tables, or an environment that is over."""
        name = random.choice(NAMES)
        if random.random() < 0.5:
            self.keep_old = 0
        else:
            self.ttl = 0
            environments.run_environment(
                self.declared(name), name, as_of=self.world.as_of, allow_removals=True
            )
            self.ran[name] = dict(self.branches[name])
            self.ttl = None
        try:
            self.run(random)
        finally:
            self.keep_old, self.ttl = None, None
        self.whole &= {"", *self.ledger.environments()}

    # -- checks

    def _as_files_say(self) -> Branch:
        """Production's branch; a landed source that no model reads is not in it."""
        there = dict(self._specs(self.branches[""]))
        return {name: at if name in there else ABSENT for name, at in self.branches[""].items()}

    def _check_nothing_done(self, result: RunResult, *, wanted: bool) -> None:
        if wanted and result.steps:
            self._fail(f"a run with nothing new had steps: {result.steps}")

    def _production(self) -> object:
        """All that production has, unless a dead run left something to be finished."""
        book = self.ledger
        if book.unfinished():
            return None
        own = {one.key for each in book.environments().values() for one in each.tables}
        traces = {name: trace for name, trace in book.traces().items() if name not in own}
        heads = {name: head for name, head in book.newest_versions().items() if name not in own}
        applied = {name: entry.digest for name, entry in book.applied().items()}
        tables = {name: self.memory.location(table_name(name)) for name in heads}
        swaps = book.swaps()
        kept = {
            key: self.memory.location(table_name(key))
            for s in swaps
            for key in s.kept.values()
            if key
        }
        return traces, heads, applied, tables, swaps, kept

    def _check_production_kept(self, before: object) -> None:
        if before is not None and before != (now := self._production()):
            self._fail(f"production was changed:\n{before}\n{now}")

    def _complete_production(self) -> None:
        """Every table equals its definition over all there is, if nothing is left to later runs."""
        book, given = self.ledger, dict[str, Rows]()
        if self.is_unfinished(book):
            return
        self.whole.add("")
        for name, spec in self._specs(self.applied):
            given[name] = self._expected(book, name, spec, given)
            if not spec.view:
                self._compare(name, given[name], self._stored(book, name) or [])

    def is_unfinished(self, book: SqlLedger, name: str = "") -> bool:
        """Whether later runs have more to build, of production or of an environment."""
        apart, traces = book.own_tables().get(BUILT_APART), book.traces()
        known = book.environments()[name].own if name else {}
        keys = [known.get(model, model) for model in BRANCHES.tables]
        left = any(key in traces and traces[key].pending for key in keys)
        return left or bool(apart)

    def _complete_environment(self, name: str) -> None:
        """
        Every table of an environment equals its definition over what the environment reads.

        Tables that it shares are production's; they equal its definitions where production is
        complete.
        """
        book, given = self.ledger, dict[str, Rows]()
        if self.is_unfinished(book, name):
            return
        self.whole.add(name)
        own = book.environments()[name].own
        for model, spec in self._specs(self.ran[name]):
            expected = self._expected(book, own.get(model, model), spec, given)
            if not spec.view:
                rows = self._stored(book, own.get(model, model))
                if rows is None:
                    self._fail(f"{name}: {model} is nowhere")
                if model in own or "" in self.whole:
                    self._compare(f"{model} of {name}", expected, rows or [])
                expected = rows or []
            given[model] = expected

    def _specs(self, branch: Branch) -> Iterator[tuple[str, TableSpec]]:
        project = branch_of(branch, manual=self.manual)
        assert project is not None
        for name, at in branch.items():
            if at != ABSENT and name in project:
                yield name, BRANCHES.tables[name][at]

    def _specs_of(self, branch: Branch) -> Mapping[str, TableSpec]:
        """The versions of a branch; those that differ in words only count as one."""
        project = branch_of(branch, manual=self.manual)
        assert project is not None
        return {node.name: _SPECS[node.name, node.fingerprint] for node in project}

    def _check_promotable(self, name: str) -> None:
        """All is by its definitions; of what is shared, as far as it has read all there is."""
        book, given = self.ledger, dict[str, Rows]()
        own, traces = book.environments()[name].own, book.traces()
        digests = {one.digest for one in book.applied(name).values()}
        branch = self._versions(book.definitions(digests).values())
        for model, spec in self._specs(branch):
            key = own.get(model, model)
            if spec.view:
                given[model] = self._expected(book, key, spec, given)
                continue
            given[model] = self._stored(book, key) or []
            if spec.source is None and key in traces and self._has_read_all(book, traces, key):
                expected = self._expected(book, key, spec, given)
                self._compare(f"{model} of {name}, which is promoted,", expected, given[model])

    def _has_read_all(self, book: SqlLedger, traces: Mapping[str, Trace], key: str) -> bool:
        """Whether a table has read the rows that its inputs have now, and all entries."""
        trace = traces.get(key)
        if trace is None or trace.pending:
            return False
        return trace.applied_entry == book.newest_entries().get(key, 0) and all(
            self._has_read_all(book, traces, read)
            and not difference(self._at_version(book, read, at), self._stored(book, read) or [])
            for read, at in trace.inputs.items()
        )

    def _expected(
        self, book: SqlLedger, key: str, spec: TableSpec, given: Mapping[str, Rows]
    ) -> Rows:
        """The rows of a table over all that is in the files."""
        if spec.source is not None:
            records = self.world.under(BRANCHES.source(spec.source).folder)
            return self._of_records(book, key, spec, [(records, self.world.as_of)])
        held = [entry_row(one) for one in book.entries(key)]
        inputs = {**given, entries_key(spec.name): held}
        trace = book.traces().get(key)
        if trace is None or not trace.earlier:
            return _rows(spec, inputs)

        [newest] = book.definitions([trace.definition]).values()

        def rows(of: Definition, part: Interval) -> Rows:
            by = spec if of == newest else _SPECS[of.name, of.fingerprint]
            return _rows(by, inputs, part)

        return self._in_force(book, trace, rows)

    def _in_force(
        self, book: SqlLedger, trace: Trace, rows: Callable[[Definition, Interval], Rows]
    ) -> Rows:
        """The rows of each stretch by its definition, with the columns of the newest."""
        stretches = self._stretches(book, trace)
        names = [name for name in stretches[0][0].columns if name != "session_id"]
        return [
            {name: row.get(name) for name in names} for each in stretches for row in rows(*each)
        ]

    def _stretches(self, book: SqlLedger, trace: Trace) -> list[tuple[Definition, Interval]]:
        """The definitions of a trace, each with a stretch that it holds for; the newest first."""
        kept = book.definitions([trace.definition, *(one.definition for one in trace.earlier)])
        found = [(kept[trace.definition], part) for part in Ranges.ever() - trace.earlier_ranges]
        return found + [(kept[one.definition], part) for one in trace.earlier for part in one.cells]

    def check_all(self) -> None:
        """Every trace tells the truth, and no table is left that nobody knows of."""
        book = self.ledger
        if book.unfinished():
            return  # the command was refused before it recovered what a dead one left
        for name, trace in book.traces().items():
            if trace.fingerprint != UNKNOWN:
                self._check_trace(book, name, trace)
        if wrong := book.contradictions():
            self._fail(f"the ledger contradicts itself: {wrong}")
        self._find_borders()
        known = {*book.traces(), *book.newest_versions(), *BRANCHES.tables}
        known |= {one.key for each in book.environments().values() for one in each.tables}
        known |= {key for swap in book.swaps() for key in swap.kept.values() if key is not None}
        left = self.memory.tables.keys() - {table_name(name) for name in known}
        if left:
            self._fail(f"nobody knows of {left}")

    def _check_trace(self, book: SqlLedger, name: str, trace: Trace) -> None:
        """A table has the rows of the definition in its trace, over what the trace says it read."""
        model = model_of(name)
        heads = book.newest_versions()
        if name != model and any(at and key not in heads for key, at in trace.inputs.items()):
            return  # it waits for a table that its environment has now in place of the one it read
        spec = _SPECS[model, trace.fingerprint]
        actual = self._stored(book, name) or []
        if spec.source is not None:
            expected = self._of_files(book, name, spec)
        else:
            expected = self._by_definitions(book, name, trace)
        stale = trace.pending_ranges
        if stale:
            column = _time_column(spec)
            if spec.cell is None and not spec.sessions and spec.source is None:
                return
            expected, actual = (
                [row for row in rows if cell_start(row[column]) not in stale]
                for rows in (expected, actual)
            )
        found = difference(expected, actual)
        self.tally.tables += 1
        if found:
            self._fail(f"{name} is not what its trace {trace} says: {found}")

    def _by_definitions(self, book: SqlLedger, name: str, trace: Trace) -> Rows:
        """The rows of the definitions of a trace, each in its stretch, over the trace's inputs."""
        if not trace.earlier:
            [newest] = book.definitions([trace.definition]).values()
            return self._by_definition(book, name, trace, newest)
        return self._in_force(
            book, trace, lambda of, part: self._by_definition(book, name, trace, of, part)
        )

    def _by_definition(
        self,
        book: SqlLedger,
        name: str,
        trace: Trace,
        definition: Definition,
        part: Interval = EVER,
    ) -> Rows:
        """The rows of a definition over the inputs of a trace, in a stretch."""
        inputs = {model_of(key): (key, at) for key, at in trace.inputs.items()}

        def rows(of: Definition) -> Rows:
            spec = _SPECS[of.name, of.fingerprint]
            views = book.definitions(of.views.values())
            given = {}
            for read in spec.reads:
                if read in of.views:
                    given[read] = rows(views[of.views[read]])
                else:
                    given[read] = self._at_version(book, *inputs[read])
            held = [one for one in book.entries(name) if one.number <= trace.applied_entry]
            given[entries_key(spec.name)] = [entry_row(one) for one in held]
            return _rows(spec, given, part if of is definition else EVER)

        return rows(definition)

    def _of_files(self, book: SqlLedger, name: str, spec: TableSpec) -> Rows:
        """The rows of the files that a table has taken in."""
        given = [
            (self.contents[one.path, one.fingerprint], one.horizon) for one in book.files(name)
        ]
        return self._of_records(book, name, spec, given)

    def _of_records(
        self, book: SqlLedger, key: str, spec: TableSpec, given: Sequence[tuple[Records, int]]
    ) -> Rows:
        """The rows of records, each known until some instant, by the definitions in force."""
        rules = BRANCHES.source(spec.source or "").rules
        trace, found = book.traces().get(key), Rows()
        if trace is None or not trace.earlier:
            for records, until in given:
                found += usable_rows(spec, records, rules, until).rows
            return chosen_rows(spec.best(found)) if spec.best else found
        stretches = self._stretches(book, trace)
        columns = stretches[0][0].columns
        for definition, part in stretches:
            by = _SPECS[definition.name, definition.fingerprint]
            assert by.best is not None
            own = [(own_records(records, Ranges((part,))), until) for records, until in given]
            rows = [row for some, until in own for row in usable_rows(by, some, rules, until).rows]
            best = by.best(rows)
            for name, copies in best.groups.items():
                best.groups[name] = [dict.fromkeys(columns) | row for row in copies]
            found += chosen_rows(best)
        return found

    def _at_version(self, book: SqlLedger, name: str, number: int) -> Rows:
        if number == 0:
            return []
        [found] = [one for one in book.versions(name) if one.number == number]
        return [] if found.snapshot is None else self.memory.rows_of[found.snapshot]

    def _stored(self, book: SqlLedger, name: str) -> Rows | None:
        """The rows of a table, as the ledger has it; they are the newest in the storage."""
        head = book.newest_versions().get(name)
        if head is None:
            return None
        table = self.memory.tables.get(table_name(name))
        if head.snapshot is None:
            return []
        if table is None or max(table.snapshots) != head.snapshot:
            self._fail(f"{name}: the storage has not the version that the ledger has")
        assert table is not None
        return table.snapshots[head.snapshot]

    def spec_of(self, node: Node) -> TableSpec:
        """The version of a model's definition."""
        return _SPECS[model_of(node.name), node.fingerprint]


REFUSALS: Mapping[str, Collection[str]] = {
    "run": ("nothing-applied", "not-forward-only"),
    "run_some": ("nothing-applied", "not-forward-only"),
    "apply": ("apply-incomplete", "not-forward-only"),
    "onward": ("apply-incomplete", "not-forward-only"),
    "promote": (
        "not-forward-only",
        "unknown-environment",
        "environment-unfinished",
        "production-moved",
        "promote-incomplete",
    ),
    "ship": ("nothing-applied", "promote-incomplete", "not-forward-only"),
    "rollback": ("nothing-to-roll-back", "rollback-outdated", "promote-incomplete"),
    "drop": ("unknown-environment",),
    "tidy": ("nothing-applied", "not-forward-only"),
}
"""What each command may be refused with."""

AFTER_DEATH = ("promote-changed", "applied-meanwhile", "unknown-model")
"""And where it was asked for by what it then found to be otherwise."""


def _rows(spec: TableSpec, given: Mapping[str, Rows], part: Interval = EVER) -> Rows:
    """A definition's rows in a stretch; its sessions are of the events there alone."""
    assert spec.rows is not None
    if part == EVER:
        return spec.rows(given)
    if spec.sessions:
        inside = [row for row in given["clicks"] if part.start <= row["event_ts"] < part.end]
        return spec.rows({**given, "clicks": inside})
    assert spec.cell is not None
    return [row for row in spec.rows(given) if cell_start(row[spec.cell]) in Ranges((part,))]


def _time_column(spec: TableSpec) -> str:
    if spec.sessions:
        return "session_start"
    return spec.cell or spec.time
