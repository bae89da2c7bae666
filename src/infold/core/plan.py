"""
What a plan is made of: what was observed, steps with their reasons, and what is left alone.

Values only; :mod:`infold.planning.planner` makes plans from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from infold.core.files import IngestedFile, ListedFile
from infold.core.interval import Interval, Ranges
from infold.core.trace import Cause, CellChange, CellState, Trace
from infold.messages.errors import InfoldError


@dataclass(frozen=True, slots=True)
class FileDiff:
    """
    What a listing shows of one model's source against the files that the model has taken in.

    ``new`` are files (or new versions of files) not taken in; ``removed`` versions that are no
    longer there, those that ``new`` replaces among them; ``come_due`` hold rows whose time has
    come. ``estimate`` is what reading just the event times of small new files in-process showed:
    rows by cell; None when it was not done. ``future_rows`` are rows beside these that are dated in
    the future.
    """

    source: str
    new: tuple[ListedFile, ...] = ()
    removed: tuple[IngestedFile, ...] = ()
    come_due: tuple[IngestedFile, ...] = ()
    settling: int = 0
    unchanged: int = 0
    estimate: tuple[CellState, ...] | None = None
    future_rows: int = 0
    as_of: int = 0
    ingested: tuple[IngestedFile, ...] = ()
    """All files that were taken in before."""
    reingest: tuple[IngestedFile, ...] = ()
    """Those of them that may say something else now, as a lookup changed."""
    lost: tuple[IngestedFile, ...] = ()
    """Those of ``gone`` that are there no longer, or empty now, and that no others stand for."""
    row_counts: Mapping[str, int] = field(default_factory=dict)
    """Of new files how many rows they hold at most, by path, as far as that is known."""
    removals_allowed: bool = False
    """Whether any part of the source may go in this run."""

    def __bool__(self) -> bool:
        return bool(self.new or self.removed or self.come_due)

    @property
    def replaced(self) -> int:
        """How many of the new files are new versions of files taken in before."""
        return len({file.path for file in self.new} & {file.path for file in self.removed})


@dataclass(frozen=True, slots=True)
class ChangedKeyRows:
    """
    Where rows are that have one of the keys which changed in a lookup, as the engine found.

    ``by_input`` are inputs with such rows, the cells that these are in, and how many they are.
    Where changes cannot be told row by row, they are ``everywhere``. ``scanned`` is what was looked
    through. Of a source that is taken in they are in ``files``, by id.
    """

    by_input: tuple[tuple[str, Ranges, int], ...] = ()
    scanned: int = 0
    everywhere: bool = False
    files: tuple[int, ...] = ()

    @property
    def rows(self) -> int:
        """How many rows have changed keys."""
        return sum(rows for _, _, rows in self.by_input)


@dataclass(frozen=True, slots=True)
class InputDiff:
    """
    One input of a model: the version its trace read, the newest, and what changed between.

    ``changes`` are net, one for each cell whose content differs. ``cells`` are the input's cells
    now; loaded only when something changed or the model has to be built.
    """

    name: str
    read_version: int
    newest_version: int
    changes: tuple[CellChange, ...] = ()
    cells: tuple[CellState, ...] = ()
    dropped_since: bool = False
    """Whether it was dropped since: what is gone cannot be compared with what is there."""
    changed_keys: ChangedKeyRows | None = None
    """Of a changed lookup: where its changed keys are; None until somebody has looked."""


@dataclass(frozen=True, slots=True)
class ModelObservation:
    """What was observed of one model: its trace, its newest version, its files and inputs."""

    trace: Trace | None = None
    version: int = 0
    files: FileDiff | None = None
    inputs: tuple[InputDiff, ...] = ()
    cells: tuple[CellState, ...] = ()
    rows: int = 0
    as_of: int | None = None
    """The clock of the run that committed its newest version; known of models with a cron."""
    newest_entry: int = 0
    """The number of the newest manual entry of its quarantine."""


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """
    What a plan is asked for, besides all that is stale.

    ``window`` bounds the cells of models that are recomputed cell by cell; ``selected`` None means
    all models. ``batch_size`` (in cells) goes before the models' own; ``ignore_cron`` takes every
    model for due, and cells that are not over for over. ``restated`` are models to build again,
    with the cells (all, where none can be told); of those in ``build_missing_in``, cells that were
    never built are built there and nowhere else. ``jobs`` is how many steps may be carried out at
    the same time; None: one model's, as many batches of it as it says itself.
    """

    window: Interval | None = None
    selected: frozenset[str] | None = None
    batch_size: int | None = None
    ignore_cron: bool = False
    backfill_ends: Mapping[str, int] = field(default_factory=dict)
    """Models with a limit that this run has begun to backfill -> the event time it ends at."""
    restated: Mapping[str, Ranges] = field(default_factory=dict)
    build_missing_in: Mapping[str, Ranges] = field(default_factory=dict)
    jobs: int | None = None


@dataclass(frozen=True, slots=True)
class Observations:
    """Everything a plan follows from, besides the project."""

    as_of: int
    models: Mapping[str, ModelObservation]
    notes: tuple[str, ...] = ()
    refused: Mapping[str, InfoldError] = field(default_factory=dict)
    """Models that must not be built upon, and why: a table or a source is not what it should be."""


UP_TO_DATE = "up to date"
"""Why a model without anything to do is left alone."""


class Action(StrEnum):
    """What a step does."""

    INGEST = "ingest"
    """Take in new files, take out the rows of files that are gone."""
    BUILD = "build"
    """Compute the whole table."""
    FOLD = "fold"
    """Merge the input's changed rows into the stored ones."""
    RECOMPUTE = "recompute"
    """Compute the stale cells again and replace exactly these."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why cells are built: the cause, what it was, where, and about how many rows that reads."""

    cause: Cause
    detail: str
    cells: Ranges = Ranges()
    rows: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """
    One thing to do to one model's table, committed once.

    ``inputs`` maps each input to (version of the trace, version to read). ``version`` is the
    number the commit will have. ``pending`` is what stays stale afterwards. ``expected`` steps
    follow from others in the same plan and are planned again before they are carried out.
    """

    model: str
    action: Action
    cells: Ranges
    reasons: tuple[Reason, ...]
    inputs: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    files: FileDiff | None = None
    version: int = 1
    trace: Trace | None = None
    """The trace that will hold once the step is done."""
    previous_trace: Trace | None = None
    expected: bool = False
    batches: int = 1
    """Into how many steps the stale cells are cut; this is the first of them."""
    concurrent_batches: tuple[Ranges, ...] = ()
    """The cells of the batches after it that may be built at the same time."""
    scanned: int = 0
    """Rows that were looked through to find the cells."""
    pieces: tuple[Ranges, ...] = ()
    """The parts of its cells, where each is computed by itself and all are committed at once."""
    changed_key_rows: tuple[tuple[str, Ranges, int], ...] = ()
    """Inputs with rows of changed keys of lookups, the cells that these are in, and how many."""
    backfill_end: int | None = None
    """The event time at which this run's backfill of the model ends; None without a limit."""

    @property
    def stale_cells(self) -> Ranges:
        """All cells that have reasons to be built, those of later batches among them."""
        if self.batches == 1:
            return self.cells
        return Ranges.of(part for reason in self.reasons for part in reason.cells)

    @property
    def rows_to_read(self) -> int:
        """About how many rows the step reads, with its later batches."""
        return sum(reason.rows for reason in self.reasons)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A model with nothing to do, or left alone on purpose, and why."""

    model: str
    why: str
    stale: Ranges = Ranges()


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in the order to carry them out, and what is left alone."""

    steps: tuple[Step, ...]
    skipped: tuple[Skipped, ...] = ()
    as_of: int = 0
    notes: tuple[str, ...] = ()
    refused: Mapping[str, InfoldError] = field(default_factory=dict)
    """Models that must not be built upon; neither they nor what reads them has a step."""

    def __bool__(self) -> bool:
        return bool(self.steps)

    @property
    def rows_to_read(self) -> int:
        """About how many rows all steps read."""
        return sum(step.rows_to_read for step in self.steps)
