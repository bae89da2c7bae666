"""
What the outside must supply: the ledger, the tables, the engine, the clock.

The only protocols of the program. Adapters live in ``ledger``, ``lake`` and ``spark``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from infold.core.audits import AuditResult, JudgedAudit
from infold.core.definition import Definition
from infold.core.environment import PRODUCTION, Environment, OwnTable
from infold.core.erasure import ErasureRequest, KnownErasures
from infold.core.files import FileCell, IngestedFile, ListedFile
from infold.core.interval import Granularity, Interval, Ranges
from infold.core.plan import ChangedKeyRows, Step
from infold.core.record import (
    Applied,
    Arrival,
    ForwardOnly,
    Outcome,
    QuarantinedSession,
    Receipt,
    RunRecord,
    StepRecord,
)
from infold.core.report import RepairRecords, SetBackTables
from infold.core.sessions import ManualEntry
from infold.core.swap import RenamedTables, SwapRecords
from infold.core.trace import CellChange, CellState, StoredCells, Trace, Unchanged, Version
from infold.core.type_changes import Type
from infold.messages import errors
from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    import pyarrow as pa


class Ledger(SwapRecords, RepairRecords, Protocol):
    """
    Which version was built from which versions.

    Every method is one transaction. Writing methods raise ``errors.lease_lost`` when this process
    no longer has the lease.
    """

    def acquire(self, run: str, *, wait: float = 0.0) -> None:
        """Take the target's lease, or raise ``errors.locked`` naming the holder (exit 3)."""

    def release(self) -> None:
        """Give the lease back; a no-op when it is not held."""

    def begin_run(self, run: str, command: str, as_of: int, detail: Mapping[str, Any]) -> None:
        """Record a run as running; runs of dead holders that say so are marked ``died``."""

    def finish_run(self, run: str, state: str, receipt: Receipt, error: str | None = None) -> None:
        """Record how a run ended (``done``, ``failed``, ``refused``), with its numbers."""

    def begin_step(
        self, run: str, step: str, seq: int, model: str, action: str, detail: Mapping[str, Any]
    ) -> None:
        """Record the intent of a step, before anything of it is written."""

    def prepare_step(self, step: str, outcome: Outcome) -> None:
        """Record the expected outcome just before the table's commit."""

    def finish_step(self, step: str, outcome: Outcome) -> None:
        """The step is done: versions, changes, cells, trace and files move together."""

    def close_step(
        self,
        step: str,
        state: str,
        error: str | None = None,
        audits: Sequence[AuditResult] = (),
    ) -> None:
        """
        Mark a step ``failed`` or ``forgotten``: nothing of it counts. What its audits found is
        kept.
        """

    def record_audits(self, model: str, results: Sequence[AuditResult]) -> None:
        """Record what audits found of a model's stored rows; needs no lease."""

    def audits(self) -> Sequence[JudgedAudit]:
        """What audits found, of the rows that steps write and of stored rows, by model."""

    def step_models(self, steps: Iterable[str]) -> Mapping[str, str]:
        """The models of these steps, for those that are known in any state."""

    def closed_steps(self, steps: Iterable[str]) -> frozenset[str]:
        """Those of these steps that failed or were forgotten: without a commit, as it seemed."""

    def owner(self) -> tuple[str, str] | None:
        """The name of the project of this ledger, and its warehouse; None before its first run."""

    def set_owner(self, project: str, warehouse: str) -> None:
        """From now on this is the ledger of a project with its tables in a warehouse."""

    def unfinished(self) -> Sequence[StepRecord]:
        """Steps of earlier runs in state intent or prepared, oldest first."""

    def register_files(self, source: str, files: Iterable[ListedFile]) -> Mapping[str, int]:
        """Ids for these versions of files (path -> id), given on first sight and kept for good."""

    def files(self, model: str, ids: Iterable[int] | None = None) -> Sequence[IngestedFile]:
        """The files with rows in a model's table, by id; those with ``ids`` if given."""

    def file_versions(self, model: str) -> Mapping[str, tuple[str, int]]:
        """
        The fingerprint and the id of each of these files, by path.

        All that a listing is compared with: a source may have a million files.
        """

    def files_due(self, model: str, until: int) -> tuple[IngestedFile, ...]:
        """Those of these files with rows that wait for an instant up to ``until``, by id."""

    def files_set_aside(self, model: str) -> Sequence[IngestedFile]:
        """Those of these files with rows that are set aside, by id."""

    def file_cells(self, model: str, files: Iterable[int] | None = None) -> Sequence[FileCell]:
        """The cells with rows of files; of all of the model's files when ``files`` is None."""

    def traces(self) -> Mapping[str, Trace]:
        """The trace of every model that was ever built."""

    def newest_versions(self) -> Mapping[str, Version]:
        """The newest version of every table."""

    def versions(self, table: str, since: int = 0) -> Sequence[Version]:
        """Versions of a table newer than ``since``, oldest first."""

    def changes(self, table: str, since: int) -> Sequence[CellChange]:
        """
        Changes by versions newer than ``since``, in version order (not yet netted).

        Without ``last``, which is known of cells as they are now.
        """

    def changes_by_version(self, table: str, since: int) -> Mapping[int, Sequence[CellChange]]:
        """Changes by versions newer than ``since``, by version (not netted)."""

    def unchanged(self, table: str, since: int) -> Mapping[int, Sequence[Unchanged]]:
        """What newer versions left unchanged for readers of some columns, by version."""

    def versions_losing_rows(self, table: str, within: Interval) -> Sequence[int]:
        """The versions that removed rows from cells that overlap ``within``, oldest first."""

    def cells(self, table: str, within: Ranges | None = None) -> Sequence[CellState]:
        """The non-empty cells of a table now, in order; those that overlap ``within`` if given."""

    def stored(self) -> Mapping[str, StoredCells]:
        """The non-empty cells of each table in short; of those that have any."""

    def arrivals(self, model: str, limit: int = 1000) -> Sequence[Arrival]:
        """What arrived when and for which cells, newest first."""

    def runs(
        self,
        limit: int = 10,
        model: str | None = None,
        run: str | None = None,
        command: str | None = None,
    ) -> Sequence[RunRecord]:
        """Past runs with their steps, newest first; failed and died ones too."""

    def quarantined(self, model: str) -> Sequence[QuarantinedSession]:
        """A model's sessions in quarantine, by start."""

    def left_out(self) -> Mapping[str, int]:
        """How many rows each model leaves out, as ``Outcome.left_out`` counts them."""

    def entries(self, model: str) -> Sequence[ManualEntry]:
        """The manual entries of a model's quarantine, by number."""

    def newest_entries(self) -> Mapping[str, int]:
        """The number of the newest manual entry of each model that has any."""

    def add_entries(self, model: str, entries: Iterable[ManualEntry]) -> None:
        """
        Add manual entries, which are numbered here, at the present time.

        Needs no lease: a run applies those that there are when it is planned.
        """

    def known_erasures(self) -> KnownErasures:
        """What is known of requests to erase, without their keys."""

    def erasures(self, after: int = 0) -> Sequence[ErasureRequest]:
        """The requests to erase with a greater number, with their keyed hashes, by number."""

    def add_erasures(
        self,
        requests: Sequence[ErasureRequest],
        columns: Mapping[tuple[str, str], str],
        secret: str,
    ) -> Sequence[ErasureRequest]:
        """
        Add requests to erase; as they were kept.

        Those without a number are numbered here, at the present time; others were lost.

        From now on all requests are about ``columns`` (by erasure and source), with keys hashed by
        the secret with that fingerprint. Needs no lease: a run applies those that there are when it
        is planned.
        """

    def replace_file(self, source: str, path: str, before: str, after: str) -> None:
        """
        Record that a file has another listed fingerprint and is the file that it was.

        What was ingested of it counts as it did.
        """

    def note_purged(self, number: int) -> None:
        """Record that rows of requests up to a number are in no file of a table any more."""

    def forget_texts(self) -> None:
        """
        Take out texts in which values of rows may be: why runs and steps failed, and the rows that
        audits show. Audits show some again once they judge rows again.
        """

    def locations(self) -> Mapping[str, str]:
        """Where the metadata of stored tables was when a run last ended, and of source tables."""

    def keep_definitions(
        self,
        definitions: Mapping[str, Definition],
        applied: Mapping[str, str],
        adopted: Mapping[str, str],
        forward_only: Mapping[str, ForwardOnly] = ...,
        environment: str = PRODUCTION,
    ) -> None:
        """
        Keep definitions by their digests. All that are used from now on are ``applied``. Traces of
        tables with the same rows by an ``adopted`` one name it, and others end ``forward_only``.
        """

    def forward_only(self) -> Mapping[str, ForwardOnly]:
        """The forward-only changes that are yet to be carried out, by model."""

    def definitions(self, digests: Iterable[str]) -> Mapping[str, Definition]:
        """The definitions with these digests, as far as they were kept."""

    def kept_at(self, digest: str) -> int | None:
        """When a definition was first kept."""

    def applied(self, environment: str = PRODUCTION) -> Mapping[str, Applied]:
        """The definition that runs use for each model, and since when."""

    def environments(self) -> Mapping[str, Environment]:
        """All environments with their tables, by name; what is built apart is none of them."""

    def own_tables(self) -> Mapping[str, tuple[OwnTable, ...]]:
        """
        The tables with keys of their own, by the environment that they are of.

        Those that are built apart are ``BUILT_APART``'s.
        """

    def put_own_tables(self, owner: str, tables: Iterable[OwnTable]) -> None:
        """
        Record which tables an environment has now, or which are built apart.

        What is known of tables that it had and has no longer is erased.
        """

    def put_environment(self, environment: Environment) -> None:
        """Record an environment as it is now, with its tables; see :meth:`put_own_tables`."""

    def remove_environment(self, name: str) -> None:
        """Forget an environment, with all that is known of its tables."""

    def advance(self, inputs: Mapping[str, Mapping[str, int]]) -> None:
        """Record that tables are right for newer versions of inputs too, by model and input."""

    def move_snapshot(self, table: str, number: int, snapshot: int) -> None:
        """
        Record that the newest version of a table has its rows in another snapshot.

        All of its readers are right for that version; they read it from now on.
        """

    def remember_locations(self, locations: Mapping[str, str]) -> None:
        """Keep where metadata is now, for names as :meth:`locations` gives them."""

    def forget(self, model: str, *, step: str | None = None) -> None:
        """
        Drop a model's trace, cells and files: its table is to be rebuilt.

        With ``step``, that step drops the table: an empty version is written, so that readers see
        the rows that go and those that come back. Its files stay known.
        """

    def destroy(self) -> None:
        """Remove the ledger itself; nothing may be written to it afterwards but ``release``."""


# -- storage, read without a JVM -----------------------------------------------------------------


class Lake(RenamedTables, SetBackTables, Protocol):
    """The stored tables, read in-process from catalog and files, without a JVM."""

    def drop(self, table: str) -> bool:
        """Take a table out of the catalog and delete its files; whether there was one."""

    def stored_name(self, table: str) -> str:
        """The storage's own name for a table that is read and written as ``table``."""

    def hold_back(self, tables: Iterable[str]) -> None:
        """
        From now on readers see commits to these tables only once they are published.

        Raises ``run_errors.published_elsewhere`` where somebody else committed to a table that is
        held back.
        """

    def publish(self, *, hold_back: bool, tables: Collection[str] | None = None) -> Sequence[str]:
        """
        Show readers all tables that are held back as they are, at one instant; those that changed.

        Not all of them, but some ``tables``, where these are given. They go on being held back, or
        not. Raises as :meth:`hold_back`, and publishes nothing then.
        """

    def is_free(self, table: str) -> bool:
        """Whether no table has this name, and no files are where one would be."""

    def size(self, table: str) -> int:
        """The bytes of all files of a table; 0 when there is no such table."""

    def file_sizes(self, table: str, times: Ranges) -> Sequence[int]:
        """
        The bytes of each data file in a partition that some times are in; none without the table.

        Of a table that is not partitioned by time, and any times, all of its data files.
        """

    def moved_tables(self, known: Mapping[str, str]) -> Mapping[str, str | None]:
        """Tables with another metadata location than the known one -> where it is, or FORBIDDEN."""

    def metadata(self, table: str) -> TableMetadata | None:
        """The table's newest metadata, or None when there is no such table."""

    def file_list_id(self, table: str) -> str:
        """A hash of the names of all files of a table; empty when there is no such table."""

    def lost_files(self, table: str) -> Sequence[str]:
        """The files that the newest snapshot of a table needs and that are not there."""

    def layout(self, table: str) -> StoredLayout | None:
        """How the table lies on disk; None when there is no such table."""

    def columns(self, table: str, snapshot: int | None = None) -> Mapping[str, Type]:
        """
        The columns that a table has now, or had in a snapshot, with types, but infold's own.

        None without a table, or without the snapshot.
        """

    def has_file(self, table: str, path: str) -> bool:
        """Whether a path is in the table's folder."""

    def history(self, table: str) -> History:
        """What has gathered in the table's metadata; all zero when there is no such table."""

    def rows(
        self,
        table: str,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        limit: int | None = None,
    ) -> pa.Table:
        """Rows of the current snapshot; technical columns (leading underscore) left out."""

    def rows_matching(
        self,
        table: str,
        tests: Mapping[str, str],
        *,
        by: str,
        beside: Sequence[str] = (),
        limit: int | None = None,
    ) -> pa.Table:
        """
        Rows for which one of some predicates is true; the column ``by`` has the names of those.

        Raises ValueError if a predicate needs Spark to be evaluated. Technical columns are left
        out, except those ``beside``.
        """

    def column_times(self, table: str, column: str, snapshot: int) -> Sequence[int]:
        """The values of a column of dates or timestamps in a snapshot, NULLs left out."""

    def string_values(self, table: str, column: str, snapshot: int, limit: int) -> pa.Array | None:
        """
        The distinct values of a column of strings at a snapshot, without NULL; maybe more.

        If there are more than ``limit``, more than that many of them. None if the files do not have
        them listed.
        """


# -- the engine ----------------------------------------------------------------------------------


Announce = Callable[[Outcome], Outcome]
"""
Called with the expected outcome just before the commit; returns it as it will be after all others.
"""


class Engine(Protocol):
    """What carries out one step on the stored tables."""

    @property
    def models_at_once(self) -> int:
        """How many models are built side by side, if nobody says how many steps are."""

    def carry_out(self, step: Step, step_id: str, announce: Announce) -> Outcome:
        """
        Compute the step, call ``announce`` with the expected outcome, commit once, return the
        outcome.

        ``announce`` waits until other batches of the model that were computed at the same time are
        committed, and returns the outcome as it is after them. Only then may the table's present
        rows be read, or the table be written.

        A step that replaces a whole table may commit before it knows its outcome. It does not call
        ``announce`` then, and after a crash it is simply done again.
        """

    def find_changed_keys(self, model: str, lookup: str, since: int, upto: int) -> ChangedKeyRows:
        """
        Where a model's inputs have rows with keys that changed in one of its lookups.

        The lookup's versions ``since`` and ``upto`` are compared. The other inputs are searched as
        they are now. Writes nothing.
        """

    def analyse(self, models: Sequence[str]) -> Mapping[str, InfoldError]:
        """
        The errors in the definitions of some models, before anything is built from them.

        A model that reads a model with a wrong definition cannot be analysed, and has no error of
        its own.
        """

    def column_types(self, models: Sequence[str]) -> Mapping[str, Mapping[str, Type]]:
        """The columns of models by their definitions, with the types that are stored, by model."""

    def derives_exactly(self, step: Step) -> bool:
        """Whether a step's rows follow exactly, with their types, from those stored; reads none."""

    def concurrent(self, number: int) -> Engine:
        """An engine for a step that runs at the same time as others, on a thread of its own."""

    def maintain(self, models: Sequence[str]) -> Sequence[str]:
        """Expire snapshots and compact files within a budget; notes on tables where that fails."""


class Clock(Protocol):
    """Now, in microseconds since the epoch, UTC."""

    def now(self) -> int:
        """The present instant."""


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """
    Rows that share an instant with a range of time, both ends included.

    A row reaches from its column ``first`` to its column ``last`` (the same one for an event).
    """

    first: str
    last: str
    start: int
    end: int


class SnapshotReader(Protocol):
    """Stored tables as they are and as they were, read in-process and narrowly."""

    def kept_snapshots(self, table: str) -> frozenset[int]:
        """The snapshots that a table still has."""

    def rows_equal_to(
        self,
        table: str,
        any_of: Sequence[Mapping[str, Any]],
        *,
        columns: Sequence[str] | None = None,
        near: TimeSpan | None = None,
        where: str | None = None,
        snapshot: int | None = None,
    ) -> pa.Table | None:
        """
        The rows of a snapshot (None: the current one) that equal one of ``any_of``.

        ``where`` is a predicate as :meth:`Lake.rows` takes it; ValueError when it needs Spark.
        ``columns`` that are not there are left out (None: all but technical ones). None where the
        snapshot, or a column to compare, is not there.
        """


class Progress(Protocol):
    """Is called while a run goes on."""

    def step(self, index: int, total: int | None, step: Step) -> None:
        """A step begins; ``total`` is how many are foreseen, itself included."""

    def done(self, step: Step, receipt: Receipt) -> None:
        """The step ended well."""

    def failed(self, step: Step, error: errors.InfoldError) -> None:
        """The step did not succeed; the run goes on with what does not need it."""

    def note(self, text: str) -> None:
        """Something worth a line."""


class SilentProgress:
    """A progress that prints nothing: only the result of the run is wanted."""

    def step(self, index: int, total: int | None, step: Step) -> None:
        """Nothing."""

    def done(self, step: Step, receipt: Receipt) -> None:
        """Nothing."""

    def failed(self, step: Step, error: errors.InfoldError) -> None:
        """Nothing: the run raises it in the end."""

    def note(self, text: str) -> None:
        """Nothing."""


FORBIDDEN = "forbidden"
"""In place of a table's location, where the catalog does not say it: who asks for it is told."""


@dataclass(frozen=True, slots=True)
class TableMetadata:
    """
    A stored table as its metadata shows it now.

    ``steps`` maps the step ids found in snapshot properties to their snapshots, newest last.
    ``foreign`` is the newest snapshot of its history that is neither ours nor a pure rewrite.
    ``state`` is the name of the first field of its column ``_state``, empty if it has none.
    """

    table: str
    location: str
    snapshot: int | None
    steps: Mapping[str, int]
    foreign: int | None = None
    state: str = ""


@dataclass(frozen=True, slots=True)
class History:
    """
    What gathered in a table: snapshots kept, the oldest one's time, commits since rewrite.

    ``steady`` of these, the newest, surely left no partition with more files than it had.
    """

    snapshots: int = 0
    oldest_at: int = 0
    since_rewrite: int = 0
    steady: int = 0
    main: tuple[int, ...] = ()
    """The snapshots of the main branch, newest first, as far back as they are kept."""


@dataclass(frozen=True, slots=True)
class StoredLayout:
    """
    How a table lies on disk, as it was made.

    ``storage`` is the table format with its version, for people. ``column`` is of type ``type``
    (``timestamp`` or ``date``) and partitions the rows by ``partition``; None: one partition.
    """

    storage: str
    column: str | None = None
    partition: Granularity | None = None
    type: str = "timestamp"
