"""
Versions, changes, traces: what is built, what is stale, and why.

Theory of operation (the words are those of *Build Systems à la Carte*, Mokhov, Mitchell, Peyton
Jones 2018). A table is divided into cells. Each commit to it is a :class:`Version`: a number that
grows by one, with one :class:`CellChange` for each cell it touched. A :class:`Trace` records the
definition and the input versions of a model's last build, and the ranges that it left out. Whether
a cell is stale follows from these three and from nothing else.

The content of a cell is an additive hash: the sum, modulo 2**64 and as a signed number, of a 64-bit
hash of every row in it. It does not depend on the order of rows, and a change updates it from the
changed rows alone. A cell with the same rows and content as before is not a change: early cutoff.

Rules of this file: values and pure functions only; nothing reads a clock, a table or a ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from infold.core.interval import MIN, Granularity, Interval, Ranges

UNKNOWN = "unknown"
"""The fingerprint of a table that a dead run replaced: its content is unknown, so it is rebuilt."""


def signed(content: int) -> int:
    """A sum of row hashes brought back into a signed 64-bit number."""
    return (content + 2**63) % 2**64 - 2**63


@dataclass(frozen=True, slots=True)
class CellState:
    """
    One cell as it is now: its number of rows and the additive hash of its content.

    ``last`` is no earlier than the latest instant that a row of the cell reaches to (the end of
    its longest session; the latest event time), None for a table without a time column.
    """

    cell: Interval
    rows: int
    content: int
    last: int | None = None


@dataclass(frozen=True, slots=True)
class StoredCells:
    """All cells of a table in short: where they are, their rows, and the latest ``last``."""

    covered: Ranges = Ranges()
    rows: int = 0
    last: int | None = None


@dataclass(frozen=True, slots=True)
class CellChange:
    """
    What one version did to one cell: rows added and removed, and its state before and after.

    ``last`` as in :class:`CellState`, after the change.
    """

    cell: Interval
    added: int
    removed: int
    rows_before: int
    rows_after: int
    content_before: int
    content_after: int
    last: int | None = None

    @property
    def changes_rows(self) -> bool:
        """Whether the cell has other rows than before."""
        return (self.rows_before, self.content_before) != (self.rows_after, self.content_after)


def added_up(states: Iterable[CellState], granularity: Granularity) -> tuple[CellState, ...] | None:
    """The states of longer cells, by those of their parts; None if a cell lies in two of them."""
    by_cell: dict[Interval, CellState] = {}
    for part in states:
        cell = granularity.cell(part.cell.start)
        if part.cell.end > cell.end:
            return None
        known = by_cell.get(cell, CellState(cell, 0, 0))
        by_cell[cell] = CellState(
            cell,
            known.rows + part.rows,
            signed(known.content + part.content),
            _later(known.last, part.last),
        )
    return tuple(state for _, state in sorted(by_cell.items()))


def changes_of_rewrite(
    before: Iterable[CellState], after: Iterable[CellState]
) -> tuple[CellChange, ...]:
    """
    Every cell before or after, in order: all its rows are removed, and all its rows
    are added.
    """
    old, new = ({state.cell: state for state in states} for states in (before, after))
    changes = []
    for cell in sorted({*old, *new}):
        old_state, new_state = (states.get(cell, CellState(cell, 0, 0)) for states in (old, new))
        changes.append(
            CellChange(
                cell=cell,
                added=new_state.rows,
                removed=old_state.rows,
                rows_before=old_state.rows,
                rows_after=new_state.rows,
                content_before=old_state.content,
                content_after=new_state.content,
                last=new_state.last,
            )
        )
    return tuple(changes)


def net_changes(changes: Iterable[CellChange]) -> tuple[CellChange, ...]:
    """
    What several versions did together, one change for each cell; cells that are as before left out.

    ``changes`` come in version order. If a table was divided into other cells in between, its rows
    may have changed as rows of these: then a cell does not begin as its last change left it, and
    what came before and after are two changes. A cell that ends as it began is left out rightly all
    the same: contents are sums, so what the others did to its rows amounts to nothing.
    """
    by_cell: dict[Interval, list[CellChange]] = {}
    for change in changes:
        known = by_cell.setdefault(change.cell, [])
        if known and _follows_on(known[-1], change):
            known[-1] = _joined(known[-1], change)
        else:
            known.append(change)
    every = (change for _, several in sorted(by_cell.items()) for change in several)
    return tuple(change for change in every if change.changes_rows)


def _follows_on(first: CellChange, then: CellChange) -> bool:
    """Whether a cell had the same rows after one change and before another."""
    left = first.rows_after, first.content_after
    return left == (then.rows_before, then.content_before)


def _joined(first: CellChange, change: CellChange) -> CellChange:
    return CellChange(
        cell=first.cell,
        added=first.added + change.added,
        removed=first.removed + change.removed,
        rows_before=first.rows_before,
        rows_after=change.rows_after,
        content_before=first.content_before,
        content_after=change.content_after,
        last=_later(first.last, change.last),
    )


def _later(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else max(a, b)


class Cause(StrEnum):
    """Why a cell has to be built. One word each, as plans and receipts show it."""

    MISSING = "missing"
    """It was never built."""
    DEFINITION = "definition"
    """The model's definition changed."""
    REDEFINED = "redefined"
    """Its definition changed, and the table lacks the cell until it is built."""
    ARRIVED = "arrived"
    """Rows were added to its inputs, at times that were not covered before."""
    LATE = "late"
    """Rows were added to its inputs, at times that were covered already."""
    REMOVED = "removed"
    """Rows of its inputs were deleted, replaced or corrected."""
    LOOKUP = "lookup"
    """A lookup that it reads changed."""
    DUE = "due"
    """Rows dated in the future have come due."""
    RESTATED = "restated"
    """Someone asked for it."""
    QUARANTINE = "quarantine"
    """Someone put sessions into quarantine, or released them."""
    ERASED = "erased"
    """Someone asked for persons to be erased."""
    EXPIRED = "expired"
    """Its rows are older than they may be kept."""


@dataclass(frozen=True, slots=True)
class Pending:
    """Ranges of a model that were found stale and left unbuilt (a window was asked for)."""

    cause: Cause
    ranges: Ranges


def merge_pending(pending: Iterable[Pending]) -> tuple[Pending, ...]:
    """One entry for each cause."""
    by_cause: dict[Cause, Ranges] = {}
    for entry in pending:
        by_cause[entry.cause] = Ranges.of((*by_cause.get(entry.cause, Ranges()), *entry.ranges))
    return tuple(Pending(cause, ranges) for cause, ranges in by_cause.items())


@dataclass(frozen=True, slots=True)
class EarlierCells:
    """Cells that keep the rows of an earlier definition: which, and its digest."""

    cells: Ranges
    definition: str


@dataclass(frozen=True, slots=True)
class Retention:
    """
    What a table lacks as rows are kept for so long, up to three instants; ``MIN``: nothing.

    No row is from before ``start``, whatever the files and inputs have: its own ``retain`` says so.
    Before ``lost_until`` the rows that it has are not all that there ever were, as it or an input
    has a start. Cells that begin before ``frozen_until`` keep the rows that they have, as rows are
    lost that they were made from.
    """

    start: int = MIN
    lost_until: int = MIN
    frozen_until: int = MIN

    @property
    def frozen(self) -> Ranges:
        """The times that are frozen."""
        return Ranges((Interval(MIN, self.frozen_until),)) if self.frozen_until > MIN else Ranges()


@dataclass(frozen=True, slots=True)
class Trace:
    """
    The definition and the input versions of a table's last build.

    ``fingerprint`` is that of the definition. ``inputs`` maps each input to the version read.
    Everything outside ``pending`` is up to date with them. ``applied_entry`` is the number of the
    newest entry that was applied, 0 for none: in the quarantine of sessions by hand, or of events
    a request to erase.
    """

    model: str
    fingerprint: str
    inputs: dict[str, int] = field(default_factory=dict)
    pending: tuple[Pending, ...] = ()
    applied_entry: int = 0
    definition: str = ""
    """The digest of the definition that built the rows; empty where it was not kept."""
    earlier: tuple[EarlierCells, ...] = ()
    """The cells that ``definition`` does not hold for, each with the one in force there."""
    retention: Retention = Retention()

    @property
    def earlier_ranges(self) -> Ranges:
        """All cells with the rows of earlier definitions as one set."""
        return Ranges.of(part for entry in self.earlier for part in entry.cells)

    @property
    def keeps_cells(self) -> bool:
        """Whether cells keep rows that the newest definition does not build, so none builds all."""
        return bool(self.earlier) or self.retention.frozen_until > self.retention.start

    @property
    def mixed(self) -> bool:
        """
        Whether rows of two definitions are there without a record of which are where.

        A version of infold left a part pending for its definition. After a forward-only change that
        means no more than that cells are to be built by the newest one.
        """
        return not self.earlier and any(one.cause is Cause.DEFINITION for one in self.pending)

    @property
    def pending_ranges(self) -> Ranges:
        """The cells left stale by the last build, whatever the cause."""
        return Ranges.of(part for entry in self.pending for part in entry.ranges)

    @property
    def frozen_ranges(self) -> Ranges:
        """The times whose cells keep their rows; cells that were never built are not among them."""
        never = (entry.ranges for entry in self.pending if entry.cause is Cause.MISSING)
        return self.retention.frozen - Ranges.of(part for ranges in never for part in ranges)

    def with_built(self, built: Ranges) -> Trace:
        """The trace once these cells are built too."""
        pending = (Pending(entry.cause, entry.ranges - built) for entry in self.pending)
        return replace(self, pending=tuple(entry for entry in pending if entry.ranges))

    def redefined_from(self, at: int, definition: str) -> tuple[EarlierCells, ...]:
        """The cells of earlier definitions once ``definition`` holds from an instant on."""
        newest = EarlierCells(Ranges.ever() - self.earlier_ranges, self.definition)
        return merge_earlier(
            (
                EarlierCells(entry.cells & Ranges((Interval(MIN, at),)), entry.definition)
                for entry in (*self.earlier, newest)
            ),
            definition,
        )

    def built_anew(self, cells: Ranges) -> tuple[EarlierCells, ...]:
        """The cells of earlier definitions once the newest one has built some of them."""
        earlier = (EarlierCells(one.cells - cells, one.definition) for one in self.earlier)
        return merge_earlier(earlier, self.definition)


def merge_earlier(entries: Iterable[EarlierCells], newest: str = "") -> tuple[EarlierCells, ...]:
    """One entry for each definition with cells, but for the ``newest``; the first cells first."""
    ranges: dict[str, Ranges] = {}
    for entry in entries:
        ranges[entry.definition] = ranges.get(entry.definition, Ranges()) | entry.cells
    ranges.pop(newest, None)
    entries = (EarlierCells(cells, digest) for digest, cells in ranges.items() if cells)
    return tuple(sorted(entries, key=lambda entry: entry.cells.parts[0]))


def with_readers(
    reasons: Mapping[str, str], traces: Mapping[str, Trace], why: Callable[[str], str]
) -> dict[str, str]:
    """Tables with a reason each, and all that read them; ``why`` says it of what a table reads."""
    every = dict(reasons)
    while more := {
        name: why(given)
        for name, trace in traces.items()
        for given in trace.inputs
        if given in every and name not in every
    }:
        every |= more
    return every


@dataclass(frozen=True, slots=True)
class Version:
    """One committed change to a table."""

    table: str
    number: int
    snapshot: int | None
    step: str
    run: str
    committed_at: int
    rows: int
    """Rows in the table after it."""
    whole: bool = False
    """Whether it replaced all content: cells that its changes do not name became empty."""


def was_dropped(versions: Iterable[Version]) -> bool:
    """Whether one of a table's versions is that it was dropped: no snapshot before it is left."""
    return any(version.whole and version.snapshot is None for version in versions)


# A version that replaces a table gives every cell other content once a column is added, removed or
# computed in another way. A reader of other columns has the same rows as before. Such columns are
# compared by value when the version is committed, and these functions find what is left to build.


@dataclass(frozen=True, slots=True)
class Unchanged:
    """
    The ``cells`` that have the same rows as before in some ``columns``, named in lower case.

    So they have in any of these columns.
    """

    columns: frozenset[str]
    cells: Ranges


def changes_of_columns(
    columns: frozenset[str],
    changes: Mapping[int, Sequence[CellChange]],
    unchanged: Mapping[int, Sequence[Unchanged]],
) -> dict[int, tuple[CellChange, ...]]:
    """
    The changes that a reader of some columns may see, by version; versions without any left out.

    ``changes`` and ``unchanged`` are by version.
    """
    noticed = {}
    for version in sorted(changes):
        wide = [one.cells for one in unchanged.get(version, ()) if columns <= one.columns]
        changed = tuple(
            change
            for change in changes[version]
            if all(Ranges((change.cell,)) - cells for cells in wide)
        )
        if changed:
            noticed[version] = changed
    return noticed
