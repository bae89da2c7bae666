"""
What commands report, as frozen values: results of runs and verifications, the state of models.

``api`` makes them, ``render`` draws them; nothing here computes, reads or prints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Protocol

from infold.core.audits import JudgedAudit
from infold.core.definition import Redefinition
from infold.core.erasure import ErasureRequest, LandingFile, ProvenRequest
from infold.core.interval import Granularity, Interval, Ranges
from infold.core.model import Kind
from infold.core.plan import Plan, Step
from infold.core.project import Bound
from infold.core.record import Arrival, Receipt, StepRecord
from infold.core.swap import Swap
from infold.core.trace import CellState, Pending, Trace
from infold.messages import findings
from infold.messages.errors import ExitCode, InfoldError, InfoldErrors


@dataclass(frozen=True, slots=True)
class Failure:
    """
    A model that a run did not bring up to date, and why; without a ``model``, the error ended the
    run.

    ``batches`` is how many there were to build when it failed, with those of this run before it.
    """

    model: str
    error: InfoldError
    batches: int = 1

    @property
    def refused(self) -> bool:
        """Whether it was not tried, on purpose."""
        return self.error.exit_code == ExitCode.REFUSED

    @property
    def misdefined(self) -> bool:
        """Whether the project is wrong, as is found before any step: a definition, or a path."""
        return self.error.slug in findings.MISDEFINED or self.error.slug == "no-file-matches"

    @property
    def reason(self) -> str:
        """In one line: the slug, and what is wrong in as few words as there are."""
        why = dict(self.error.facts).get("why")
        return f"{self.error.slug}: {why or self.error.what}"


@dataclass(frozen=True, slots=True)
class RunResult:
    """
    What one run did.

    A run is a loop: ``plans`` are the plans of its rounds in order, the last one empty when
    everything that was asked for is up to date. ``state`` is ``done``, ``failed`` or ``refused``
    (then nothing was written). ``seconds`` is the time of the whole run, the start of Spark
    included; ``receipt`` adds up the steps.
    """

    run: str
    state: str
    plans: tuple[Plan, ...] = ()
    steps: tuple[tuple[Step, Receipt], ...] = ()
    receipt: Receipt = field(default_factory=Receipt)
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    error: str = ""
    model_states: tuple[ModelState, ...] = ()
    """The models that were asked for, with the limits that were processed."""
    failures: tuple[Failure, ...] = ()
    not_tried: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """
    Models that were not tried, each with the failed models that it reads; none: the run was ended.
    """
    up_to_date: tuple[str, ...] = ()
    """The models that were asked for and are up to date now."""
    unapplied: tuple[str, ...] = ()
    """The models with changes in the files that are not applied."""


def together(results: Sequence[RunResult]) -> RunResult:
    """Runs that follow from each other, as one; where one wrote, not all of it was refused."""
    last = results[-1]
    steps = tuple(step for one in results for step in one.steps)
    states: dict[str, ModelState] = {}
    for state in (state for one in results for state in one.model_states):
        states.setdefault(state.model, state)
    return replace(
        last,
        state="failed" if last.state == "refused" and steps else last.state,
        plans=tuple(plan for one in results for plan in one.plans),
        steps=steps,
        receipt=sum((one.receipt for one in results[1:]), results[0].receipt),
        notes=tuple(dict.fromkeys(note for one in results for note in one.notes)),
        seconds=sum(result.seconds for result in results),
        model_states=tuple(states.values()),
    )


class RunFailed(InfoldErrors):
    """
    A run that did not bring everything up to date; ``result`` is what it did all the same.

    The exit code is 3 when everything that was to be done was refused, so that nothing was
    written; 2 when nothing but the project is wrong; else 1.
    """

    def __init__(self, result: RunResult) -> None:
        super().__init__(failure.error for failure in result.failures)
        self.result = result
        self.exit_code = ExitCode.REFUSED if result.state == "refused" else ExitCode.FAILED
        if all(failure.misdefined for failure in result.failures):
            self.exit_code = ExitCode.WRONG

    @property
    def record(self) -> dict[str, object]:
        """One error as it is, several as a list; with the exit code of the run."""
        [*others, first] = [error.record for error in self.errors]
        record = {"errors": [*others, first]} if others else first
        return record | {"exit_code": self.exit_code}


@dataclass(frozen=True, slots=True)
class Verdict:
    """
    One model, compared with a full rebuild.

    ``differing`` are (cell, rows stored, rows rebuilt). ``sample`` are a few rows that only one
    side has, as (``stored`` or ``rebuilt``, row). ``key`` are the columns that identify a row,
    where they are known. ``note`` says what was not compared, or how. ``left_out`` are columns that
    were not compared, as ``allow_nondeterministic`` lets them have any value; ``ALL_COLUMNS``: its
    rows were not.
    """

    model: str
    kind: Kind
    rows: int
    cells: int
    content: int
    equal: bool
    differing: tuple[tuple[Interval, int, int], ...] = ()
    sample: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    note: str = ""
    built: bool = True
    """Whether there is a table to compare."""
    key: tuple[str, ...] = ()
    beyond_bounds: bool = False
    """
    Whether it differs in what rows beyond its declared bounds would change alone: ``differing`` and
    ``sample`` are then what is stored beside what the query gives over all rows.
    """
    left_out: tuple[str, ...] = ()
    moved: bool = False
    """
    Whether runs changed it whenever it was compared: it is neither known to be equal nor to differ.
    """


@dataclass(frozen=True, slots=True)
class VerificationReport:
    """The verdicts on all models that were asked for, in dependency order."""

    models: tuple[Verdict, ...]
    as_of: int = 0
    seconds: float = 0.0

    @property
    def equal(self) -> bool:
        """Whether every model equals its rebuild."""
        return all(verdict.equal for verdict in self.models)

    @property
    def different(self) -> bool:
        """Whether a model does not, whatever runs changed meanwhile."""
        return any(not verdict.equal and not verdict.moved for verdict in self.models)


@dataclass(frozen=True, slots=True)
class Forgotten:
    """
    The models that were forgotten, their tables dropped; and unknown names.

    ``entries`` is how many manual entries were deleted with the ledger, ``requests`` how many
    requests to erase.
    """

    models: tuple[str, ...]
    missing: tuple[str, ...] = ()
    entries: int = 0
    requests: int = 0


class State(StrEnum):
    """The state of a model before a run, in Snowplow's words."""

    FIRST_RUN = "first run"
    """Nothing of the project was ever built."""
    NEW_MODEL = "new model"
    """Others were built, this one never."""
    OUT_OF_SYNC = "out of sync"
    """
    It lags behind existing data: built by another definition, partly unbuilt, or its inputs have
    versions (or other models have files) that it has not read.
    """
    STANDARD_RUN = "standard run"
    """It has read all that its inputs have; a run adds what is new."""
    VIEW = "view"
    """Nothing is stored."""


@dataclass(frozen=True, slots=True)
class ModelState:
    """
    The state of one model before a run, and what the run means for it.

    ``lower`` and ``upper`` bound the event time that is processed, half-open; None where that is
    not known. ``cells`` (of ``granularity``) are the cells between them that are processed, where
    they are known. ``work``: there is something to do. ``empty``: the inputs, ``reads``, have no
    rows for it. ``why`` says why a model is out of sync.
    """

    model: str
    state: State
    why: str = ""
    lower: int | None = None
    upper: int | None = None
    work: bool = False
    empty: bool = False
    reads: tuple[str, ...] = ()
    cells: Ranges = Ranges()
    granularity: Granularity | None = None


@dataclass(frozen=True, slots=True)
class BuiltApart:
    """
    A table that is built apart, to replace that of ``model``.

    ``built`` of its ``cells`` with rows are there. ``bytes`` is the size of its files.
    """

    model: str
    key: str
    built: int
    cells: int
    granularity: Granularity | None
    bytes: int


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """
    What is known of one model.

    ``covered`` is the event time of its stored rows' cells. ``stale`` is what a run would build, as
    far as that is known before (``partly`` where it is only some of an endless range), and
    ``pending`` the part of it that earlier runs left out. ``set_aside`` and ``waiting`` count rows
    of its source's files.
    """

    model: str
    kind: Kind
    state: State
    rows: int = 0
    covered: Ranges = Ranges()
    stale: Ranges = Ranges()
    partly: bool = False
    pending: tuple[Pending, ...] = ()
    version: int = 0
    last_built_at: int | None = None
    last_event: int | None = None
    set_aside: int = 0
    waiting: int = 0
    next_due: int | None = None
    """The first tick of its cron after the clock; None without a cron."""
    model_state: ModelState | None = None
    """Its state, and the limits of the next run; None for a view."""
    refused: InfoldError | None = None
    """Why it must not be built, nor what reads it."""
    waits_for: tuple[str, ...] = ()
    """The refused models that it reads."""
    apart: BuiltApart | None = None
    """The table that is to replace it, where that is built apart."""
    audits: tuple[JudgedAudit, ...] = ()
    """What its audits found last."""
    cells: tuple[CellState, ...] = ()
    """The cells of its table that have rows, if they were asked for."""
    erasures: tuple[ErasureRequest, ...] = ()
    """The requests to erase that a run is yet to apply to it."""


@dataclass(frozen=True, slots=True)
class ExplainedInput:
    """
    One input of an explained model.

    ``mapping`` says in words which cells of the input a cell of the model depends on. ``built`` is
    the version its trace read, ``now`` the newest. ``bound`` is how far around its cell an
    incremental model reads the input by ``partition_col``; None for a lookup. ``columns`` are those
    that it reads of the ``width`` columns of a table; None for all, and for a source.
    """

    name: str
    mapping: str
    built: int | None
    now: int | None
    bound: Bound | None = None
    partition_col: str | None = None
    columns: tuple[str, ...] | None = None
    width: int = 0


@dataclass(frozen=True, slots=True)
class AppliedDefinition:
    """The definition that runs use: its digest, since when, and whether the files have it."""

    digest: str
    at: int
    same: bool


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything that is known about one model, or about one cell of it when ``cell`` is set."""

    model: str
    kind: Kind
    place: str
    sql: str
    granularity: str
    fingerprint: str
    inputs: tuple[ExplainedInput, ...]
    trace: Trace | None
    layout: str
    version: int
    rows: int
    cells: int
    step: Step | None = None
    """The step that a run would carry out now; None when the model is up to date."""
    why_left: str = ""
    cell: Interval | None = None
    state: CellState | None = None
    """The cell as it is; None when it has no rows."""
    arrivals: tuple[Arrival, ...] = ()
    built_by: tuple[tuple[int, StepRecord], ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
    """How it is built cell by cell: batches, strategy, cron, overrides; each with its name."""
    applied: AppliedDefinition | None = None
    """None before the first run, and after one of an infold that kept no definitions."""


@dataclass(frozen=True, slots=True)
class LedgerCopy:
    """A ledger that was copied, exported or imported; places as people may see them."""

    from_: str
    to: str
    rows: Mapping[str, int]
    """How many rows were copied of each table of the ledger."""
    again: bool = False
    """Whether the copy was there already, and only the original was closed."""
    working: str = ""
    """The run that had the lease of an exported ledger."""


Row = Mapping[str, Any]


def key_values(row: Row, key: Sequence[str]) -> Row:
    """What a row has in the columns of a key, as far as it has these."""
    return {name: row[name] for name in key if name in row}


@dataclass(frozen=True, slots=True)
class RowDiff:
    """A row that one table has and the other has not; with both, the same row with other values."""

    key: Row
    before: Row | None
    after: Row | None


@dataclass(frozen=True, slots=True)
class TableDiff:
    """
    An environment's table of a model (``after``) against production's (``before``).

    ``columns`` are those with another type or on one side only: name, type before, type after
    (empty: none). Rows are compared in the columns that both have; ``sample`` are some of them.
    ``cells`` are those with other rows. One that production has not is not ``compared``.
    """

    model: str
    rows: tuple[int, int]
    columns: tuple[tuple[str, str, str], ...] = ()
    cells: Ranges = Ranges()
    added: int = 0
    removed: int = 0
    changed: int = 0
    sample: tuple[RowDiff, ...] = ()
    compared: bool = True

    @property
    def equal(self) -> bool:
        """Whether both have the same rows in the same columns."""
        return self.compared and not (self.columns or self.cells)


@dataclass(frozen=True, slots=True)
class EnvironmentDiff:
    """An environment against production: definitions, and the tables of its own."""

    environment: str
    definitions: tuple[Redefinition, ...]
    tables: tuple[TableDiff, ...]

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return not self.definitions and all(table.equal for table in self.tables)


@dataclass(frozen=True, slots=True)
class TablePreview:
    """
    A model whose name will point to another table: rows now and then, and cells that differ.

    None where there is no table.
    """

    model: str
    rows_before: int | None
    rows_after: int | None
    cells: int
    cells_differing: int


@dataclass(frozen=True, slots=True)
class SwapPreview:
    """
    A swap, and what it means.

    ``definitions`` are models that get another definition and keep their table. ``removed`` are
    models that the environment does not have, and that stay. ``readers`` are models that the next
    run brings up to date, as they read something that changes. ``rewritten`` are models with cells
    of earlier definitions, and the end of these: they get rows of the newest one. With
    ``takes_files`` the next run takes the definitions in the files, whatever is applied.
    """

    swap: Swap
    tables: tuple[TablePreview, ...]
    definitions: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    readers: tuple[str, ...] = ()
    takes_files: bool = False
    rewritten: tuple[tuple[str, int], ...] = ()
    at_once: bool = True
    """Whether the target's catalog can give all tables their names at one instant."""

    @property
    def changes(self) -> bool:
        """Whether it would do anything."""
        return bool(self.tables or self.definitions)


class How(StrEnum):
    """By what it is known when a row was received."""

    RECEIVED = "received"
    """A column of the row says it."""
    NOTHING = "nothing"
    """No column says it, or no row has both times."""


@dataclass(frozen=True, slots=True)
class Missed:
    """What a job that processes the last ``days`` again each day would have left wrong."""

    days: int
    rows: int
    event_days: int


@dataclass(frozen=True, slots=True)
class Heat:
    """
    Rows by when they happened and when they were received: ``(event, received, rows)``.

    Both are starts of cells, of ``event_unit`` and ``received_unit``. The oldest rows, before
    ``since``, are left out: one wrong clock would make all others a single dot.
    """

    event_unit: Granularity
    received_unit: Granularity
    cells: tuple[tuple[int, int, int], ...]
    left_out: int
    since: int


@dataclass(frozen=True, slots=True)
class Measures:
    """What the two times of all measured rows say."""

    rows: int
    ages: tuple[tuple[str, int], ...]
    """Names of ages at receipt, from the youngest on, each with its rows."""
    lookbacks: tuple[Missed, ...]
    longest_days: int
    worst: tuple[tuple[int, int], ...]
    """The event days with most rows that came over a day late: ``(day, rows)``."""
    heat: Heat


@dataclass(frozen=True, slots=True)
class Lateness:
    """The lateness of the rows of one table of events."""

    model: str
    source: str | None
    how: How
    column: str | None = None
    """The column of the table with the received time, if there is one."""
    since: int | None = None
    """Rows that happened before this were not read."""
    measures: Measures | None = None
    """None where no row has both times."""


@dataclass(frozen=True, slots=True)
class Point:
    """The lowest and the highest value of some rows that have their time in one cell."""

    cell: Interval
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Series:
    """
    One picture over time.

    ``adds_up``: values are numbers of rows, whose sum tells of a longer time. ``groups`` are the
    same by the values of another column, where there are several rows of a time.
    """

    name: str
    points: tuple[Point, ...]
    adds_up: bool = False
    groups: tuple[tuple[str, tuple[Point, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class OverTime:
    """
    Pictures of columns over the time that a column of the table says.

    ``by`` is the column whose values are groups. ``left_out`` counts rows without a time in the
    years 1 to 9999; ``not_drawn`` are further columns of numbers.
    """

    time: str
    finest: Granularity
    series: tuple[Series, ...]
    by: str = ""
    left_out: int = 0
    not_drawn: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RowByRow:
    """Bars for each row: its label, and the values of columns of numbers (None: no number)."""

    label: str
    labels: tuple[str, ...]
    columns: tuple[tuple[str, tuple[float | None, ...]], ...]
    not_drawn: tuple[str, ...] = ()


class CheckVerdict(StrEnum):
    """How a check came out."""

    OK = "ok"
    FAILED = "failed"
    LEFT_OUT = "left out"
    """What it needs has failed."""


@dataclass(frozen=True, slots=True)
class Check:
    """
    One thing that was checked, in ``seconds``; ``found`` says what there is.

    Those that failed have their errors, several where a project has several mistakes.
    """

    name: str
    verdict: CheckVerdict
    found: str
    seconds: float = 0.0
    errors: tuple[InfoldError, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether it was tried and does not work."""
        return self.verdict is CheckVerdict.FAILED


# A ledger may be lost, older than the tables (a backup of it was put back), newer (one of the
# warehouse was), or damaged. What it is right about stays. A table that has more than it knows is
# set back to what it knows, where the storage still has that. Every other table is built again.


class Repair(StrEnum):
    """What is done about a table."""

    KEEP = "keep"
    """It is as the ledger says."""
    SET_BACK = "set back"
    """It gets the rows again that it had when the ledger last knew it."""
    BUILD = "build"
    """The ledger forgets what it knew of its rows, and the next run builds it."""
    LEAVE = "leave"
    """Somebody else made or wrote it, or it cannot be read: it stays refused."""


WRITTEN = "somebody else wrote to it"
"""Why a table is left alone that the ledger knows."""


@dataclass(frozen=True, slots=True)
class CheckedTable:
    """
    A table, by its model or by its key, with what is done and why.

    ``unknown`` are the steps of its history that the ledger does not know. ``snapshot`` is the one
    that it is set back to. With ``forget``, the ledger knows it and forgets it; with ``erase``, its
    versions too, as what is known of them is not whole. With ``drop``, the table itself goes.
    """

    table: str
    repair: Repair
    why: str
    unknown: tuple[str, ...] = ()
    snapshot: int | None = None
    forget: bool = False
    erase: bool = False
    drop: bool = False


@dataclass(frozen=True, slots=True)
class Purged:
    """
    The tables that have no file with an erased row any more, and those of which that is not known.

    ``left`` says why; ``dropped`` are tables that had been replaced, and were kept until then.
    """

    tables: tuple[str, ...]
    left: tuple[tuple[str, str], ...] = ()
    dropped: tuple[str, ...] = ()
    files: tuple[LandingFile, ...] = ()
    """The files of sources that had erased rows, as far as they were looked into."""


@dataclass(frozen=True, slots=True)
class ErasureProof:
    """
    What was looked for of erased persons, where, and what was found.

    Of ``conditional`` requests rows may be there rightly. ``looked`` counts what was looked at,
    ``found`` values by place. ``by_value``: keys were looked for inside of texts, and in bytes.
    ``landing`` are files of sources with such rows, which infold reads and does not change.
    """

    at: int
    requests: tuple[ProvenRequest, ...]
    conditional: tuple[ProvenRequest, ...]
    looked: tuple[tuple[str, int], ...]
    found: tuple[tuple[str, int], ...]
    by_value: bool
    landing: tuple[LandingFile, ...] = ()


@dataclass(frozen=True, slots=True)
class RepairReport:
    """
    What a ledger and its tables need to fit each other again.

    ``orphans`` are tables that infold made and nothing points to. ``lost`` are sentences: what
    nobody can know any more. ``aside`` is where a damaged ledger was put. ``done`` is false where
    it was only looked at.
    """

    ledger: str
    tables: tuple[CheckedTable, ...]
    orphans: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    aside: str = ""
    damage: str = ""
    """Why the ledger cannot be read; empty where it can."""
    entries: int | None = None
    """How many manual entries could be taken out of a damaged ledger; None: they are lost."""
    swaps: tuple[str, ...] = ()
    """The swaps that are forgotten, as nothing can be rolled back to what they replaced."""
    dropped: tuple[str, ...] = ()
    """The orphans that are dropped, as somebody asked for it."""
    shared: str = ""
    """The namespace of the tables, where other projects may have theirs in it, too."""
    misnamed: tuple[str, ...] = ()
    """The names of tables in a metastore that are missing, lead elsewhere, or are of no table."""
    requests: int = 0
    """How many requests to erase the ledger lacks, and gets back from their table."""
    done: bool = False

    @property
    def changes(self) -> bool:
        """Whether there is anything to do besides dropping orphans."""
        wrong = any(one.forget or one.erase or one.repair is Repair.SET_BACK for one in self.tables)
        return wrong or bool(self.damage or self.aside or self.swaps or self.requests)

    @property
    def unrecorded(self) -> bool:
        """Whether tables have steps that the ledger does not know, and will not lose them."""
        return any(table.unknown for table in self.tables)

    @property
    def written(self) -> tuple[str, ...]:
        """The tables that somebody else wrote to: runs refuse them."""
        return tuple(table.table for table in self.tables if table.why == WRITTEN)

    def of(self, repair: Repair) -> tuple[CheckedTable, ...]:
        """The tables that this is done about."""
        return tuple(table for table in self.tables if table.repair is repair)


class RepairRecords(Protocol):
    """The part of a ledger that is about its own repair."""

    def know_steps(self, steps: Mapping[str, str]) -> None:
        """
        Record steps, with their models, that are in the tables' history and were not known.

        Nothing is known of what they did.
        """

    def erase_tables(self, tables: Iterable[str]) -> None:
        """Remove what is known of tables, also their versions; what people entered stays."""

    def contradictions(self) -> Mapping[str, str]:
        """The tables with rows in the ledger that contradict each other: what is wrong."""


class SetBackTables(Protocol):
    """The part of a storage that is about its tables as they were."""

    def made_tables(self) -> Sequence[str]:
        """
        The names of all tables that infold made and reads by a name of its own, in order.

        Tables in the folder of another warehouse are none of them.
        """

    def can_set_back(self, table: str, snapshot: int) -> bool:
        """Whether a table still has a snapshot, with the columns it has now."""

    def set_back(self, table: str, snapshot: int) -> None:
        """
        Let a table have the rows of an earlier snapshot again.

        Raises ``run_errors.foreign_write`` where somebody else commits to it meanwhile.
        """
