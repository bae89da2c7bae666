"""
The records of runs: receipts, outcomes of steps, rows of the ledger.

Values only; the ledger stores them, commands show them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from infold.core.audits import AuditResult
from infold.core.files import FilesOutcome
from infold.core.interval import Interval
from infold.core.trace import CellChange, CellState, Trace, Unchanged

COUNTS = ("set_aside_by", "set_aside_also")
"""The parts of a receipt that are counts by a name."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """
    What a step did, in numbers that add up over a run.

    ``read`` are rows evaluated to build the result (new rows, rows of touched sessions, rows of
    stale cells); ``scanned`` rows were searched to find them. ``arrived`` are parsed rows of new
    files before anything is left out; ``before_start`` rows of files and (for sessions) events
    before a start, and ``erased`` rows of files and stored events are those of persons who were
    asked to be erased. ``clamped`` rows came out of a query and belong to other cells than were
    built. ``deduplicated`` are copies of events that were left out; ``conflicting`` of them differ
    from the kept one in more than the event time, and ``elsewhere`` of them are at another time.
    The keys of ``keys_scanned`` of the scanned rows were compared to find such copies. Times are
    seconds.
    """

    arrived: int = 0
    read: int = 0
    scanned: int = 0
    written: int = 0
    removed: int = 0
    set_aside: int = 0
    before_start: int = 0
    erased: int = 0
    waiting: int = 0
    deduplicated: int = 0
    conflicting: int = 0
    elsewhere: int = 0
    keys_scanned: int = 0
    cells_built: int = 0
    cells_cut_off: int = 0
    clamped: int = 0
    sessions_new: int = 0
    sessions_extended: int = 0
    sessions_merged: int = 0
    sessions_split: int = 0
    sessions_removed: int = 0
    sessions_quarantined: int = 0
    files_new: int = 0
    files_removed: int = 0
    folders_listed: int = 0
    """Dated folders of the source that were listed; see ``running.source_listings``."""
    folders_left_out: int = 0
    commits: int = 0
    seconds: float = 0.0
    audits: int = 0
    """How many audits were judged; most are judged while the rows are written."""
    audits_failed: int = 0
    """How many of them failed, of severity warn: the rows are written."""
    audit_seconds: float = 0.0
    """The time of the passes that audits have of their own."""
    set_aside_by: tuple[tuple[str, int], ...] = ()
    """Set-aside rows by reason."""
    set_aside_also: tuple[tuple[str, int], ...] = ()
    """
    Those of them that other models set aside as well, by these models' names.

    The names are joined by commas, so that each row is in one number.
    """

    def __add__(self, other: Receipt) -> Receipt:
        values: dict[str, Any] = {}
        for entry in fields(self):
            if entry.name in COUNTS:
                counts = dict(getattr(self, entry.name))
                for key, rows in getattr(other, entry.name):
                    counts[key] = counts.get(key, 0) + rows
                values[entry.name] = tuple(sorted(counts.items()))
            else:
                values[entry.name] = getattr(self, entry.name) + getattr(other, entry.name)
        return Receipt(**values)


@dataclass(frozen=True, slots=True)
class QuarantinedSession:
    """
    A session in quarantine: its owner (as text), its first and last instant, its events.

    ``user`` is the session's user in sessions by identifier, named by an event at ``user_at``.
    Where changes of campaign end sessions, ``carried`` is the campaign in force before the first
    event and ``campaign`` the one in force from then on, both as JSON; None means no campaign.
    """

    owner: str
    start: int
    end: int
    events: int
    user: str | None = None
    user_at: int | None = None
    carried: str | None = None
    campaign: str | None = None

    @property
    def key(self) -> tuple[str, int]:
        """What tells a model's sessions apart."""
        return self.owner, self.start


@dataclass(frozen=True, slots=True)
class Outcome:
    """
    All that the ledger records when a step is done, in one transaction.

    ``snapshot`` None with no changes means that nothing had to be committed (everything was cut
    off): then no version is written, and only the trace and the files are updated. ``whole`` means
    that the commit replaced all content, so cells not in ``changes`` are empty now.

    New cells are computed and written in one pass. Recorded before such a commit, ``changes`` have
    the cells alone; ``cell_column`` is then the column that places a row in a cell.
    """

    model: str
    version: int
    trace: Trace
    changes: tuple[CellChange, ...] = ()
    whole: bool = False
    snapshot: int | None = None
    committed: bool = True
    files: FilesOutcome | None = None
    receipt: Receipt = field(default_factory=Receipt)
    quarantined: tuple[QuarantinedSession, ...] = ()
    """Sessions that are in quarantine from now on, or longer than they were."""
    released: tuple[tuple[str, int], ...] = ()
    """Sessions that left quarantine or changed: their owner, and their first instant."""
    cell_column: str | None = None
    left_out: int | None = None
    """
    How many rows that a sessions model reads are in no session from now on.

    Of events with a key how many copies were left out that may differ from the one that was kept,
    since the table was built; None: it stays as it was, or is not known.
    """
    unchanged: tuple[Unchanged, ...] = ()
    """Of a version that replaced the table: what it left unchanged for readers of some columns."""
    cells: tuple[CellState, ...] | None = None
    """The same rows in other cells, if nothing else was done."""
    audits: tuple[AuditResult, ...] = ()
    """What the audits of the model found of the rows that were written."""


@dataclass(frozen=True, slots=True)
class StepRecord:
    """A step as the ledger keeps it. ``state``: intent, prepared, done, failed or forgotten."""

    id: str
    run: str
    seq: int
    model: str
    action: str
    state: str
    detail: Mapping[str, Any]
    outcome: Outcome | None
    started_at: int
    finished_at: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run as the ledger keeps it. ``state``: running, done, failed, refused or died."""

    id: str
    command: str
    state: str
    as_of: int
    started_at: int
    finished_at: int | None = None
    receipt: Receipt = field(default_factory=Receipt)
    error: str | None = None
    steps: tuple[StepRecord, ...] = ()


FILES = "files of {0}"
"""The name of an entry of the ledger's locations: the hash of a table's file names after a run."""


LISTED = "listing of {0}"
"""
The name of an entry of the ledger's locations: the hash of a listing that was compared with the
files of a model, and had the same. It goes when files of the model come or go.
"""


REQUESTS_OF = "requests of {0} to erase {1}"
"""
The name of an entry of the ledger's locations: the hash of the listing of a source whose requests
were taken, and after it, on a line of its own, what is to be told of that source.
"""


FULL_LISTING = "full listing of {0}"
"""
The name of an entry of the ledger's locations: when all dated folders of a model's source were
listed last (``FullListing``). It goes when the files become those of another table.
"""


@dataclass(frozen=True, slots=True)
class Applied:
    """The definition that runs use for a model: its digest, and since when."""

    digest: str
    at: int


@dataclass(frozen=True, slots=True)
class ForwardOnly:
    """
    A change to the definition with this ``digest`` that leaves earlier cells as they are.

    ``effective_from`` is where the cells begin that it holds for; None: after those with rows.
    """

    digest: str
    effective_from: int | None = None


@dataclass(frozen=True, slots=True)
class Arrival:
    """Rows of one ingest: received in ``received`` (of the run), with event times in ``cell``."""

    model: str
    version: int
    received: Interval
    cell: Interval
    rows: int
