"""
Plays a program: writes the files, runs the project, and compares every table with the reference.

The reference is evaluated again after each run, table by table in dependency order, over what each
table's inputs held when it was last built. So a run of some models, or of a window, is checked as
exactly as a run of everything: what was not asked for has to be what it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.arrivals.files import write
from tests.arrivals.programs import Drawer, Op, Person, Program, Round, people, user_name
from tests.arrivals.shape import (
    PERSON,
    Rows,
    Shape,
    SourceSpec,
    TableSpec,
    cell_start,
    entries_key,
    model_path,
    project_file,
)
from tests.reference.compare import difference, stored
from tests.reference.tables import Deduplicated, Entry
from tests.reference.world import (
    Aside,
    Broken,
    Erased,
    Record,
    Row,
    Rules,
    Usable,
    World,
    dated_since,
    frozen,
    usable,
    without_erased,
)

from infold import api
from infold.core import interval
from infold.core.interval import DAY, HOUR, MIN, Interval
from infold.core.model import table_name
from infold.core.plan import HELD_BACK, Action, Step
from infold.core.project import Project
from infold.core.report import RunResult
from infold.core.sessions import ManualEntry
from infold.core.trace import Cause

BROKEN: Mapping[str, Sequence[str]] = {
    "json": (
        "{",
        "no record at all",
        '{"event_id": "x", "event_ts": ',
        '{"event_id": "x", "user_id": "u", "event_ts": "2024-03-02T00:00:00Z", "amount": "abc"}',
    ),
    "csv": (
        "x,u,1709337600000,1709337600000,/,abc,1.5,1,true,1",
        "x,u,1709337600000,1709337600000,/,1.50,1.5,1.5,true,1",
        "x,u,1709337600000,1709337600000,/,1.50,1.5,1,maybe,1",
    ),
    "parquet": (),
}


SET_ASIDE = "infold__set_aside"


@dataclass
class Tally:
    """How much was tried: programs, runs, arrival operations on one user each, tables compared."""

    programs: int = 0
    runs: int = 0
    steps: int = 0
    tables: int = 0
    rows: int = 0

    def add(self, counts: Mapping[str, int]) -> None:
        """Count what was tried in another process as well."""
        for name, count in counts.items():
            setattr(self, name, getattr(self, name) + count)

    def __str__(self) -> str:
        return (
            f"{self.steps:,} random steps (arrival operations x users) in {self.runs:,} runs of "
            f"{self.programs:,} programs; {self.tables:,} tables compared, {self.rows:,} rows"
        )


TALLY = Tally()
"""Of this process, on Spark; printed at the end of a test run."""

DRY = Tally()
"""The same without Spark (see ``dry``)."""


class DifferenceError(AssertionError):
    """A table is not what its definition says."""


@dataclass
class Play:
    """One project in a folder, its world, and what each of its tables should hold."""

    shape: Shape
    folder: Path
    name: str
    warehouse: Path
    users: int
    world: World = field(default_factory=World)
    state: dict[str, Rows] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    tally: Tally = field(default_factory=lambda: TALLY)
    checking: bool = True
    """Whether tables are compared after a run; off where a history is too long to do it always."""
    after_run: Callable[[RunResult], None] = lambda result: None
    _people: list[Person] = field(default_factory=list)
    _files: int = 0
    _complete: bool = False
    """Whether everything was run and nothing has happened since."""
    _session_ids: dict[tuple[Any, ...], str] = field(default_factory=dict)
    _choices: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._people = people(self.users)
        self.world.as_of = interval.parse_instant_text("2024-03-11")
        self._begin()
        for name in self.shape.tables:
            self._declare(name, self.shape.versions.get(name, 0))
        if self.shape.lookup:
            self.lookup(Random(0))

    # -- playing

    def play(self, program: Program) -> None:
        """All rounds, checked after each run, and at the end with a run of everything."""
        self.tally.programs += 1
        for each in program.rounds:
            self.round(each)
        self.run(Op("all", 0))
        self.check_again()

    def round(self, each: Round) -> None:
        """Some operations, then one run and its checks."""
        for op in each.ops if each.run.kind != "nothing" else ():
            self.log.append(f"{op.kind}({op.seed})")
            self.changed()
            getattr(self, op.kind)(Random(op.seed))
        self.run(each.run)

    def changed(self) -> None:
        """Something happened outside: the next run may have something to do."""
        self._complete = False

    @property
    def project(self) -> Project:
        """The project as its folder says now."""
        return api.open_project(self.folder)

    # -- operations on files

    def arrive(self, random: Random) -> None:
        """New files with rows of about half of the users."""
        self._deliver(random, Drawer.send, random.choice((0.2, 0.5, 0.8)))

    def burst(self, random: Random) -> None:
        """New files with whole late sessions of a few users."""
        self._deliver(random, Drawer.burst, 0.05)

    def again(self, random: Random) -> None:
        """A file once more, under another name."""
        path = self._any_file(random)
        if path is not None:
            self._write(self._new_path(), self.world.files[path])
            self._count(self.world.files[path])

    def replace(self, random: Random) -> None:
        """A file corrected in place: some rows gone, some changed, some new."""
        path = self._any_file(random)
        if path is None:
            return
        records: list[Record] = []
        for record in self.world.files[path]:
            fate = random.random()
            if fate < 0.2:
                continue
            if fate < 0.4 and isinstance(record, dict) and record["event_ts"] is not None:
                record = dict(record)
                change = random.choice(("url", "event_ts", "user_id", "revision"))
                record[change] = {
                    "url": "/corrected",
                    "event_ts": record["event_ts"] + random.choice((-1, 1)) * HOUR,
                    "user_id": random.choice((record["user_id"], None)),
                    "revision": record["revision"] + 1,
                }[change]
            records.append(record)
        for person in random.sample(self._people, k=max(1, self.users // 20)):
            records += self._drawer.send(person, random, self.world.as_of)
        self._write(path, tuple(records))
        self._count(records)

    def delete(self, random: Random) -> None:
        """A file is taken away; without any a first build is refused, so the last one may stay."""
        path = self._any_file(random)
        if path is not None and (len(self._event_files()) > 1 or self._may_have_no_file()):
            self._count(self.world.files.pop(path))
            self._drop(path)

    def touch(self, random: Random) -> None:
        """A file is written again as it was: it looks new and changes nothing."""
        path = self._any_file(random)
        if path is not None:
            self._write(path, self.world.files[path])
            self._count(self.world.files[path])

    def empty(self, random: Random) -> None:
        """A file without a row."""
        self._write(self._new_path(), ())

    def lookup(self, random: Random) -> None:
        """The lookup is replaced: some keys, some of them twice, some with no value."""
        if self.shape.lookup is None:
            return
        source = self.shape.source(self.shape.lookup)
        urls = random.sample(
            ("/", "/pay", "/pay/now", "/Ä?q=1,2", "/other"), k=random.randint(1, 4)
        )
        rows = [
            {"url": url, "section": random.choice(("top", "pay, or not", None))}
            for url in (*urls, *random.sample(urls, k=random.randint(0, 1)))
        ]
        path = f"{source.folder}/pages{source.suffix}"
        self.world.files[path] = tuple(rows)
        self._put(path, source, rows)
        self.tally.steps += 1

    def query(self, random: Random) -> None:
        """A model's query becomes its next version."""
        name = random.choice(self.shape.changeable())
        self._declare(name, self.versions[name] + 1)
        self.tally.steps += 1

    def advance(self, random: Random) -> None:
        """Time passes; what was future may come due."""
        self.world.as_of += random.choice((HOUR, DAY, random.randint(1, 20 * 24) * HOUR))
        self.tally.steps += 1

    def speak(self, random: Random) -> None:
        """Sessions are put into quarantine by hand, or released."""
        built = [name for name in self.shape.tables if self.spec(name).sessions]
        if not built:
            return
        name = random.choice(built)
        spec, entries = self.spec(name), []
        events = self.state.get(spec.reads[0], [])
        for row in random.choices(events, k=max(1, self.users // 10)) if events else ():
            of = spec.whose(row)
            if of is not None:
                reach = random.choice((None, 0, HOUR, DAY))
                at = row[spec.time]
                span = (None, None) if reach is None else (at - reach, at)
                entries.append(
                    Entry(spec.said_as(of), random.choice((True, True, False, None)), *span)
                )
        if entries:
            self._add_entries(
                name, [ManualEntry(0, one.of, one.held, one.start, one.end) for one in entries]
            )
            self.state.setdefault(entries_key(name), []).extend(map(asdict, entries))
        self.tally.steps += len({one.of for one in entries}) or 1

    def erase(self, random: Random) -> None:
        """A few users ask to be erased: for good, or what they did before some instant."""
        some = random.sample(self._people, k=max(1, self.users // 12))
        names = [name for person in some if (name := user_name(person.number)) is not None]
        before = random.choice((None, None, some[0].clock))
        self.world.erased += [Erased(name, before) for name in names]
        self._erase(names, before)
        self.tally.steps += len(names)

    # -- runs

    def run(self, op: Op) -> RunResult:
        """One run of everything, of some models or of a window, and all checks after it."""
        random = Random(op.seed)
        window: Interval | None = None
        terms: tuple[str, ...] = ()
        names = set(self.shape.tables)
        if op.kind == "window" and self.shape.windows:
            start = interval.Granularity.DAY.floor(self.world.as_of - random.randint(0, 30) * DAY)
            window = Interval(start, start + random.randint(1, 20) * DAY)
        if op.kind == "select":
            terms, names = self._select(random)
        self.log.append(
            f"run {window or ''}{' '.join(terms)} as of {interval.show_instant(self.world.as_of)}"
        )
        result = self._run(window, terms)
        self.tally.runs += 1
        if self._complete and result.steps:
            self._fail(f"a run with nothing new had steps: {result.steps}")
        self._complete = window is None and not terms
        if found := self._contradictions():
            self._fail(f"the ledger contradicts itself: {found}")
        if self.checking:
            self.check(names, window, result)
        self.after_run(result)
        return result

    def _contradictions(self) -> Mapping[str, str]:
        """Rows of the ledger that contradict each other: there must be none, whatever was done."""
        return api.ledger_of(self.project).contradictions()

    def _select(self, random: Random) -> tuple[tuple[str, ...], set[str]]:
        name = random.choice(list(self.shape.tables))
        form = random.choice(("{}", "+{}", "{}+", "+{}+"))
        names = {name}
        if form.startswith("+"):
            names |= self.shape.upstream([name])
        if form.endswith("+"):
            names |= self.shape.downstream([name])
        return (form.format(name),), names | self.shape.landed(names)

    # -- checks

    def check(
        self, names: set[str], window: Interval | None, result: RunResult | None = None
    ) -> None:
        """Every table: those that were run against the reference, the others against themselves."""
        steps = [step for step, _ in result.steps] if result else []
        held_back = _held_back(result) if result else set()
        for name in self.shape.tables:
            spec = self.spec(name)
            if spec.view:
                if all(read in self.state for read in spec.reads):
                    self.state[name] = self._evaluate(spec)
                continue
            if any(read not in self.state for read in spec.reads):
                continue
            before = self.state.get(name)
            if name not in names and before is None:
                continue
            read = self._read(name)
            actual = stored(read, ("session_id",))
            if name not in names:
                expected = before or []
            elif spec.source is not None:
                expected = self._ingested(spec, actual)
            else:
                expected = self._evaluate(spec)
                anew = any(
                    step.model == name and step.previous_trace and _replaces_table(step, before)
                    for step in steps
                )
                if name in held_back:  # one table, one definition: the old one
                    assert window is not None
                    assert name not in {step.model for step in steps}
                    expected = before or []
                elif window is not None and spec.cell is not None and not anew:
                    expected = _patched(spec.cell, before or [], expected, window)
            self._compare(name, expected, actual)
            self.state[name] = expected
            if spec.sessions:
                self._check_session_ids(name, read)
                if name in names and name not in held_back and window is None:
                    self._check_left_out(spec)

    def check_again(self) -> None:
        """At the end: views as a reader sees them."""
        for name in self.shape.tables:
            if self.spec(name).view:
                actual = stored(api.evaluate(self.project, name).to_pylist())
                self._compare(name, self.state[name], actual)

    def verify(self) -> None:
        """The program's own verification finds no more than the reference."""
        report = api.verify(self.project)
        if not report.equal:
            self._fail(f"verify found a difference that the reference does not: {report}")

    def spec(self, name: str) -> TableSpec:
        """The present version of a table's definition."""
        versions = self.shape.tables[name]
        return versions[self.versions[name] % len(versions)]

    def _evaluate(self, spec: TableSpec) -> Rows:
        assert spec.rows is not None
        return spec.rows(self.state)

    def _usable(self, spec: TableSpec) -> Usable:
        return self._usable_since(spec, MIN)

    def _usable_since(self, spec: TableSpec, since: int) -> Usable:
        source = self.shape.source(spec.source or "")
        records = without_erased(self.world.under(source.folder), self.world.erased)
        known = dated_since(records, since)
        return usable_rows(spec, known, source.rules, self.world.as_of)

    def _ingested(self, spec: TableSpec, actual: Rows) -> Rows:
        """The rows of a table of files; what it sets aside and what waits is compared at once."""
        found = self._usable(spec)
        expected = found.rows
        if spec.best is not None:
            best = spec.best(found.rows)
            expected = best.rows(actual)
            self._check_choices(spec.name, best, expected)
        self._check_counts(spec.name, found.aside.total(), len(found.waiting))
        self._check_aside(spec)
        return expected

    def _check_counts(self, name: str, aside: int, waiting: int) -> None:
        counts = self._counts(name)
        if counts != (aside, waiting):
            self._fail(f"{name}: (set aside, waiting) is {counts}, expected {(aside, waiting)}")

    def _compare(self, name: str, expected: Rows, actual: Rows) -> None:
        self.tally.tables += 1
        self.tally.rows += len(actual)
        found = difference(expected, actual)
        if found:
            self._fail(f"{name}: {found}")

    def _check_choices(self, name: str, best: Deduplicated, kept: Rows) -> None:
        """Among equally preferred copies the same one is kept whenever these are the copies."""
        chosen = {frozen(row) for row in kept}
        for copies in best.groups.values():
            if len(copies) > 1:
                key = (name, frozenset(map(frozen, copies)))
                [choice] = {frozen(row) for row in copies} & chosen
                if self._choices.setdefault(key, choice) != choice:
                    self._fail(f"{name}: among {copies} another copy was kept before: {choice}")

    def _check_aside(self, spec: TableSpec) -> None:
        """The table of rows set aside lists each of them, with its file and a reason."""
        source = self.shape.source(spec.source or "")
        expected: Counter[tuple[str, Aside]] = Counter()
        for path, records in self.world.files.items():
            if path.startswith(f"{source.folder}/"):
                known = without_erased(records, self.world.erased)
                found = usable_rows(spec, known, source.rules, self.world.as_of)
                for reason, rows in found.aside.items():
                    expected[path, reason] += rows
        actual = Counter(
            (row["file"].rpartition("landing/")[2], _aside(row["reason"]))
            for row in self._set_aside()
            if row["model"] == spec.name
        )
        if +expected != actual:
            self._fail(f"{spec.name}: set aside are {actual}, expected {+expected}")

    def _check_left_out(self, spec: TableSpec) -> None:
        """The events that name nobody are counted, as many as there are."""
        [read] = spec.reads
        expected = sum(spec.keeps(row) and spec.whose(row) is None for row in self.state[read])
        actual, _ = self._counts(spec.name)
        if actual != expected:
            self._fail(f"{spec.name}: {actual} rows are left out, expected {expected}")

    def _check_session_ids(self, name: str, rows: Sequence[Row]) -> None:
        """An id belongs to one user (or identifier) and start, and to the same ones for good."""
        query = self.project[name].query
        of = (query.user, *([query.chosen_user.name] if query.chosen_user else [])) if query else ()
        kind = str(self.spec(name).text)  # what a session is of decides about its id
        for row in rows:
            key = (name, kind, *(row[column] for column in of), row["session_start"])
            if self._session_ids.setdefault(key, row["session_id"]) != row["session_id"]:
                self._fail(f"{name}: session_id of {key} was another before")
        ids = Counter(row["session_id"] for row in rows)
        if len(ids) != len(rows):
            self._fail(f"{name}: session_id is not unique: {ids.most_common(2)}")

    def _fail(self, message: str) -> None:
        raise DifferenceError(
            f"{message}\nafter:\n  " + "\n  ".join(self.log) + f"\nin {self.folder}"
        )

    # -- files

    @property
    def _clicks(self) -> Any:
        return self.shape.source("raw.clicks")

    @property
    def _drawer(self) -> Drawer:
        rules = self._clicks.rules
        return Drawer(
            self.shape.tick,
            rules.tolerance if rules.received else None,
            BROKEN[self._clicks.format],
            self._clicks.columns,
        )

    def _deliver(
        self,
        random: Random,
        send: Callable[[Drawer, Person, Random, int], list[Record]],
        share: float,
    ) -> None:
        files: list[list[Record]] = [[] for _ in range(random.choice((1, 1, 1, 2, 3)))]
        for person in self._people:
            own = Random(random.randrange(2**32))
            if own.random() < share:
                for record in send(self._drawer, person, own, self.world.as_of):
                    own.choice(files).append(record)
        for records in files:
            random.shuffle(records)
            self._write(self._new_path(), tuple(records))
            self._count(records)

    def _count(self, records: Sequence[Record]) -> None:
        """A step for each user that an operation changes; records without one count as one user."""
        self.tally.steps += len({row["user_id"] for row in records if isinstance(row, dict)}) or 1

    def _new_path(self) -> str:
        self._files += 1
        return f"{self._clicks.folder}/{self._files:04}{self._clicks.suffix}"

    def _event_files(self) -> list[str]:
        return sorted(p for p in self.world.files if p.startswith(self._clicks.folder + "/"))

    def _any_file(self, random: Random) -> str | None:
        paths = self._event_files()
        return random.choice(paths) if paths else None

    def _may_have_no_file(self) -> bool:
        """Whether every table of the events' files was built."""
        of = [name for name in self.shape.tables if self.spec(name).source == self._clicks.name]
        return all(name in self.state for name in of)

    def _write(self, path: str, records: tuple[Record, ...]) -> None:
        self.world.files[path] = records
        self._put(path, self._clicks, records)

    def _declare(self, name: str, version: int) -> None:
        self.versions[name] = version
        self._model(name, self.spec(name).text)

    # -- the outside: a folder, the program on Spark, its tables

    def _begin(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "models").mkdir(exist_ok=True)
        for source in self.shape.sources:
            (self.folder / "landing" / source.folder).mkdir(parents=True, exist_ok=True)
        text = project_file(self.name, str(self.warehouse), self.shape)
        (self.folder / "infold.yml").write_text(text, encoding="utf-8")

    def _put(self, path: str, source: SourceSpec, records: Sequence[Record]) -> None:
        write(self.folder / "landing" / path, source, records)

    def _drop(self, path: str) -> None:
        (self.folder / "landing" / path).unlink()

    def _model(self, name: str, text: str) -> None:
        if text:
            for old in (self.folder / "models").glob(f"{name}.*"):
                old.unlink()  # in SQL, where it is in Python now
            (self.folder / model_path(name, text)).write_text(text, encoding="utf-8")

    def _add_entries(self, name: str, entries: Sequence[ManualEntry]) -> None:
        api.ledger_of(self.project).add_entries(name, entries)

    def _erase(self, names: Sequence[str], before: int | None) -> None:
        api.erase(self.project, PERSON, names, before=before)

    def _run(self, window: Interval | None, terms: Sequence[str]) -> RunResult:
        return api.run(
            self.project,
            window=window,
            select=terms,
            as_of=self.world.as_of,
            allow_removals=True,
        )

    def _read(self, name: str) -> Rows:
        rows: Rows = api.lake_of(self.project).rows(table_name(name)).to_pylist()
        return rows

    def _set_aside(self) -> Rows:
        lake = api.lake_of(self.project)
        if lake.metadata(SET_ASIDE) is None:
            return []
        rows: Rows = lake.rows(SET_ASIDE).to_pylist()
        return rows

    def _counts(self, name: str) -> tuple[int, int]:
        """Rows of the table's files that are set aside, and that wait."""
        status = {entry.model: entry for entry in api.status(self.project, self.world.as_of)}
        return status[name].set_aside, status[name].waiting


def _aside(reason: str) -> Aside:
    """The contract's word for a reason as the program words it."""
    for words, found in _REASONS.items():
        if reason.startswith(words):
            return found
    return Aside.UNPARSABLE


_REASONS = {
    "null event time": Aside.NO_TIME,
    "invalid event time": Aside.NO_TIME,
    "null key": Aside.NO_KEY,
    "future": Aside.FUTURE,
}


def usable_rows(spec: TableSpec, records: Iterable[Record], rules: Rules, as_of: int) -> Usable:
    """What a table can use of records that its WHERE keeps; a row without a key never waits."""
    wanted: list[Record] = []
    for record in records:
        if isinstance(record, Broken):
            wanted.append(record)
        elif spec.keeps(record):
            wanted += spec.makes(record)
    found = usable(wanted, rules, as_of)
    for rows in (found.rows, found.waiting):
        keyed = [row for row in rows if all(row[column] is not None for column in spec.key)]
        found.aside[Aside.NO_KEY] += len(rows) - len(keyed)
        rows[:] = keyed
    return found


def _held_back(result: RunResult) -> set[str]:
    """Tables that keep their old definition as a window asked for a part, and readers."""
    return {
        left.model
        for left in result.plans[-1].skipped
        if left.why == HELD_BACK or left.why.endswith("is of an old definition")
    }


def _replaces_table(step: Step, before: Rows | None) -> bool:
    """Whether a step puts the table of another definition in the place of the old one."""
    forward = step.trace is not None and step.trace.earlier
    if forward or (step.action is Action.DERIVE and not before):
        return False
    return any(reason.cause is Cause.DEFINITION for reason in step.reasons)


def _patched(cell: str, before: Rows, after: Rows, window: Interval) -> Rows:
    """Rows of cells in the window as they should be now, of the other cells as they were."""
    return [row for row in before if cell_start(row[cell]) not in window] + [
        row for row in after if cell_start(row[cell]) in window
    ]
