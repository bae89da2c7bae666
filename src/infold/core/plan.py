"""
What a plan is made of: what was observed, steps with their reasons, and what is left alone.

Values only; :mod:`infold.planning.planner` makes plans from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from infold.core.definition import Derivation, Loss, Redefinition
from infold.core.erasure import ErasureRequest
from infold.core.files import FileCell, FilesOutcome, IngestedFile, ListedFile, lasting_path
from infold.core.interval import Interval, Ranges
from infold.core.model import OnLoss
from infold.core.project import Stretch
from infold.core.queries import SessionsQuery, VersionedQuery
from infold.core.trace import Cause, CellChange, CellState, Trace
from infold.messages.errors import InfoldError


@dataclass(frozen=True, slots=True)
class FileDiff:
    """
    The difference between a source's listing and the files that a model has ingested.

    ``new`` are files (or new versions of files) not ingested yet. ``removed`` are versions that are
    no longer there, including those that ``new`` replaces. ``come_due`` have rows with event times
    that were in the future and are not any more. ``estimate`` are rows by cell, read in-process
    from the event times of small new files; None when that was not done. ``future_rows`` are rows
    beside these with event times in the future.
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
    """
    All files that were ingested before. None where all that makes it due are other files: there may
    be a million of them.
    """
    reingest: tuple[IngestedFile, ...] = ()
    """Those of them that may give other rows now, as a lookup changed."""
    redefined: tuple[IngestedFile, ...] = ()
    """Those of them with rows in cells that a changed definition is in force in."""
    lost: tuple[IngestedFile, ...] = ()
    """Those of ``removed`` that are missing or empty now, and that no other file replaces."""
    row_counts: Mapping[str, int] = field(default_factory=dict)
    """How many rows new files have at most, by path, as far as that is known."""
    removals_allowed: bool = False
    """Whether this run may remove any part of the source."""
    new_columns_of: tuple[IngestedFile, ...] = ()
    """Those of ``ingested`` that are read for columns that a changed definition has."""
    cells: tuple[FileCell, ...] = ()
    """The rows of the ingested files by cell, where stored rows may follow another definition."""
    of_table: bool = False
    """Whether the source is a table, whose writers move rows from file to file."""
    folders: int = 0
    """How many dated folders were listed."""
    folders_left_out: int = 0
    """How many were there and were not listed: their files count as they were taken in."""

    def __bool__(self) -> bool:
        return bool(self.new or self.removed or self.come_due)

    @property
    def replaced(self) -> int:
        """How many of the new files are new versions of ingested files."""
        return len(
            {lasting_path(file.path) for file in self.new}
            & {lasting_path(file.path) for file in self.removed}
        )


@dataclass(frozen=True, slots=True)
class ChangedKeyRows:
    """
    Where the rows with changed keys of a lookup are, as the engine found.

    ``by_input`` are inputs with such rows, the cells of these rows, and how many there are. Where
    changes cannot be found row by row, they may be ``everywhere``. ``scanned`` is how many rows
    were searched. For a source that is ingested they are in ``files``, by id.
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
    One input of a model: a version that it has read, the newest, and the changes between them.

    ``read_version`` is the version of the trace, or a newer one up to which nothing changed in the
    columns that the model reads. ``changes`` are net, one for each cell with other content.
    ``cells`` are the input's cells now, loaded only when something changed or the model has to be
    built.
    """

    name: str
    read_version: int
    newest_version: int
    changes: tuple[CellChange, ...] = ()
    cells: tuple[CellState, ...] = ()
    dropped_since: bool = False
    """Whether it was dropped since: then its old rows cannot be compared with its new ones."""
    changed_keys: ChangedKeyRows | None = None
    """
    Of a changed lookup: where its changed keys are; None until they were searched. Of one that was
    dropped since they may be everywhere: what it was cannot be compared.
    """


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
    """
    Of a model with a cron: the clock of the run that committed its newest version. None if that
    version is of stored rows alone, and the run is not done.
    """
    unfinished: bool = False
    """Whether that run is not done: it goes on, or failed, or died."""
    newest_entry: int = 0
    """The number of the newest manual entry of its quarantine, or of events request to erase."""
    erasures: tuple[ErasureRequest, ...] = ()
    """The requests to erase rows of its table that it has not applied; none before it is built."""
    redefined: Redefinition | None = None
    """The change of its definition since its table was built; None where no row can change."""
    inputs_kept: frozenset[str] = frozenset()
    """Inputs whose changed definitions are proven to keep all columns that it reads."""
    earlier: tuple[Stretch, ...] = ()
    """The cells that keep the rows of earlier definitions; none ordinarily."""
    snapshots: tuple[IngestedFile, ...] = ()
    """Of an ``scd_type_2`` table: the files without rows that are snapshots of all keys."""
    snapshots_read: tuple[IngestedFile, ...] = ()
    """Those of its last build."""
    has_states: bool = False
    """Whether the rows of a cumulative aggregate have the states of its definition."""
    expired: tuple[CellState, ...] = ()
    """
    The cells with rows that are older than it keeps them; of sessions, that begin before their
    events are kept.
    """


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """
    What a plan is asked for, besides all that is stale.

    ``window`` bounds the cells of models that are recomputed cell by cell. ``selected`` None means
    all models. ``batch_size`` (in cells) overrides the models' own. ``ignore_cron`` builds every
    model, including incomplete intervals. ``restated`` are models to build again, with the cells
    (all of them for a model without cells). A model in ``build_missing_in`` gets cells that were
    never built only there. ``jobs`` is how many steps may run at the same time; None: as many
    models as the engine likes, or one with as many batches as it declares.
    """

    window: Interval | None = None
    selected: frozenset[str] | None = None
    batch_size: int | None = None
    ignore_cron: bool = False
    backfill_ends: Mapping[str, int] = field(default_factory=dict)
    """
    Models with a backfill limit that this run has begun to backfill -> where the backfill ends.
    """
    restated: Mapping[str, Ranges] = field(default_factory=dict)
    build_missing_in: Mapping[str, Ranges] = field(default_factory=dict)
    jobs: int | None = None
    forward_only: Mapping[str, int | None] = field(default_factory=dict)
    """
    Models with changed definitions that hold from an instant on; None: from the first cell that is
    not built.
    """
    not_derived: frozenset[str] = frozenset()
    """Models with rows that do not follow from the stored ones to the letter, as was found."""
    allow_destructive: frozenset[str] = frozenset()
    """Models whose tables may lose columns, types and keys, or that may be removed."""
    full_listing: bool = False
    """Whether all dated folders of sources are listed."""


@dataclass(frozen=True, slots=True)
class Observations:
    """Everything a plan follows from, besides the project."""

    as_of: int
    models: Mapping[str, ModelObservation]
    notes: tuple[str, ...] = ()
    refused: Mapping[str, InfoldError] = field(default_factory=dict)
    """Models that must not be built upon, and why: a table or a source is not as expected."""
    redefinitions: tuple[Redefinition, ...] = ()
    """All definitions that changed since they were applied, where that was asked for."""


UP_TO_DATE = "up to date"
"""Why a model with nothing to do is skipped."""

HELD_BACK = "its definition changed: all of it is built at once, by a run without a window"
"""Why a run with a window skips a table with a changed definition."""

NOT_EMPTIED = "its definition changed, and there are no rows where it is to be built: it stays"
"""Why a window without rows does not replace a table with a changed definition."""

READS_NO_CHANGE = "reads no changed column of {}"
"""Why a model is left alone although the table that it reads is built again."""


class Action(StrEnum):
    """What a step does."""

    INGEST = "ingest"
    """Read new files, take out the rows of removed files."""
    BUILD = "build"
    """Compute the whole table."""
    FOLD = "fold"
    """Merge the input's changed rows into the stored ones."""
    RECOMPUTE = "recompute"
    """Compute the stale cells again and replace exactly these."""
    DERIVE = "derive"
    """Replace the table by rows that follow from its stored rows; no input is read."""
    REBUCKET = "rebucket"
    """Divide the table's rows into other cells, in the ledger alone; no row is written."""
    EVOLVE = "evolve"
    """Give stored columns other names or wider types; no row is written."""
    REFOLD = "refold"
    """Make those sessions again that a changed definition ends elsewhere, and no others."""
    EXPIRE = "expire"
    """Take out the cells that are older than the table may keep them; nothing is read."""

    @property
    def of_own_rows(self) -> bool:
        """Whether it is about the rows that the table has, whatever its inputs have."""
        own = (Action.DERIVE, Action.REBUCKET, Action.EVOLVE, Action.REFOLD, Action.EXPIRE)
        return self in own


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
    """The trace once the step is done."""
    previous_trace: Trace | None = None
    expected: bool = False
    batches: int = 1
    """How many steps build the stale cells; this is the first of them."""
    concurrent_batches: tuple[Ranges, ...] = ()
    """The cells of later batches that may be built at the same time."""
    scanned: int = 0
    """Rows that were searched to find the cells."""
    pieces: tuple[Ranges, ...] = ()
    """The parts of its cells, where each is computed by itself and all are committed at once."""
    changed_key_rows: tuple[tuple[str, Ranges, int], ...] = ()
    """
    Inputs with rows of changed keys of lookups, the cells of these rows, and how many there are.
    """
    backfill_end: int | None = None
    """The event time at which this run's backfill of the model ends; None without a limit."""
    derivation: Derivation | None = None
    """How the new rows follow from the stored ones: of all steps ``of_own_rows``."""
    snapshots: tuple[IngestedFile, ...] = ()
    """Of an ``scd_type_2`` table: the files without rows at whose times all keys end."""

    @property
    def stored_by(self) -> SessionsQuery | None:
        """The earlier definition, which the stored sessions follow, where that is another one."""
        return self.derivation.sessions if self.derivation is not None else None

    @property
    def replaces_all(self) -> bool:
        """
        Whether nothing stays of what the table holds.

        Also where the ledger has no trace of it: a dead run may have made it, with other cells.
        """
        return self.action is Action.BUILD or self.previous_trace is None

    @property
    def stale_cells(self) -> Ranges:
        """All cells that have reasons to be built, including those of later batches."""
        if self.batches == 1:
            return self.cells
        return Ranges.of(part for reason in self.reasons for part in reason.cells)

    def snapshots_read(
        self, query: VersionedQuery, before: Iterable[IngestedFile]
    ) -> FilesOutcome | None:
        """The files without rows that a table is made of, for the ledger; it has those before."""
        new = {file.id for file in self.snapshots}
        gone = tuple(file.id for file in before if file.id not in new)
        source = query.snapshot_files.source if query.snapshot_files is not None else ""
        return FilesOutcome(source, self.snapshots, gone, recounted=True) if new or gone else None

    @property
    def rows_to_read(self) -> int:
        """About how many rows the step reads, with its later batches."""
        return sum(reason.rows for reason in self.reasons)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A model with nothing to do, or skipped on purpose, and why."""

    model: str
    why: str
    stale: Ranges = Ranges()


@dataclass(frozen=True, slots=True)
class Destroyed:
    """What a plan takes from one stored table, and whether it may."""

    model: str
    losses: tuple[Loss, ...]
    on: OnLoss


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in the order of execution, and the models that are skipped."""

    steps: tuple[Step, ...]
    skipped: tuple[Skipped, ...] = ()
    as_of: int = 0
    notes: tuple[str, ...] = ()
    refused: Mapping[str, InfoldError] = field(default_factory=dict)
    """Models that must not be built upon; neither they nor what reads them has a step."""
    redefinitions: tuple[Redefinition, ...] = ()
    """The definitions that changed since they were applied, also those without a step."""
    unapplied: tuple[str, ...] = ()
    """The models with changes that `infold run` leaves alone: only `infold apply` applies them."""
    destroyed: tuple[Destroyed, ...] = ()
    """The tables that lose something."""

    def __bool__(self) -> bool:
        return bool(self.steps)

    @property
    def rows_to_read(self) -> int:
        """About how many rows all steps read."""
        return sum(step.rows_to_read for step in self.steps)
