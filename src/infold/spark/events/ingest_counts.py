"""
What an ingest did, in numbers: rows by file and cell, changes of cells, the receipt's counts.

It adds up the rows that the step's few Spark actions collect, and makes the ledger's values of
them. Nothing here calls Spark.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from infold.core.files import FileCell, FilesOutcome, IngestedFile, ListedFile
from infold.core.interval import Interval
from infold.core.trace import CellChange, CellState, signed
from infold.spark.events.arrivals import RowCount, RowState

FileAndCell = tuple[int, Interval]
"""A file and a cell."""


@dataclass(slots=True)
class CellCounts:
    """What enters one cell and leaves it."""

    added: int = 0
    removed: int = 0
    content: int = 0
    last: int | None = None


@dataclass(slots=True)
class IngestCounts:
    """
    The sums of one ingest.

    ``rows`` and ``dropped`` are by file and cell. For files that were ingested before they are
    differences to what the ledger has.
    """

    rows: dict[FileAndCell, int] = field(default_factory=lambda: defaultdict(int))
    dropped: dict[FileAndCell, int] = field(default_factory=lambda: defaultdict(int))
    cells: dict[Interval, CellCounts] = field(default_factory=lambda: defaultdict(CellCounts))
    waiting: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    next_due: dict[int, int] = field(default_factory=dict)
    aside: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    reasons: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    reingested: frozenset[int] = frozenset()
    arrived: int = 0
    before: int = 0
    copies: int = 0
    conflicting: int = 0
    elsewhere: int = 0
    keys_scanned: int = 0
    written: int = 0
    removed: int = 0

    def arrive(
        self,
        counts: Collection[RowCount],
        new_files: Iterable[int],
        rows_of_new_files: int | None = None,
        again: Iterable[int] = (),
    ) -> None:
        """
        Add the rows of files: all of ``new_files``, of others those that came due or still wait.

        ``rows_of_new_files`` is how many rows these have, where WHERE leaves some out. All rows of
        files ingested ``again`` are judged again, and none of them arrived.
        """
        new, self.reingested = frozenset(new_files), frozenset(again)
        for count in counts:
            if count.state is RowState.ADMITTED and count.cell is not None:
                self.rows[count.file, count.cell] += count.rows
            elif count.state is RowState.WAITING:
                self.waiting[count.file] += count.rows
                if count.first is not None:
                    self.next_due[count.file] = min(
                        count.first, self.next_due.get(count.file, count.first)
                    )
            elif count.state is RowState.SET_ASIDE and count.file in new | self.reingested:
                self.aside[count.file] += count.rows
                self.reasons[count.reason or ""] += count.rows
            elif count.state is RowState.BEFORE_START and count.file in new:
                self.before += count.rows
        counted = sum(count.rows for count in counts if count.file in new)
        self.arrived = counted if rows_of_new_files is None else rows_of_new_files

    def rows_by_file(self) -> Counter[int]:
        """How many rows each file has; rows that wait count too."""
        counts = Counter(self.waiting)
        for (file, _), rows in self.rows.items():
            counts[file] += rows
        return counts

    def add(self, cell: Interval, rows: int, content: int, last: int | None) -> None:
        """Rows that enter a cell."""
        entry = self.cells[cell]
        entry.added += rows
        entry.content += content
        if last is not None:
            entry.last = last if entry.last is None else max(last, entry.last)

    def remove(self, cell: Interval, rows: int, content: int) -> None:
        """Rows that leave a cell."""
        entry = self.cells[cell]
        entry.removed += rows
        entry.content -= content

    @property
    def touched(self) -> tuple[Interval, ...]:
        """The cells that rows enter or leave, in order, also where their content stays."""
        return tuple(sorted(self.cells))

    def changes(self, before: Iterable[CellState]) -> tuple[CellChange, ...]:
        """One change for each touched cell, real or not, in order."""
        known = {state.cell: state for state in before}
        return tuple(
            _cell_change(known.get(cell, CellState(cell, 0, 0)), entry)
            for cell, entry in sorted(self.cells.items())
        )

    def files(
        self,
        source: str,
        taken: Mapping[int, ListedFile | IngestedFile],
        known: Iterable[FileCell],
        removed: Iterable[int],
        *,
        horizon: int,
        received_at: int,
    ) -> FilesOutcome:
        """What the ledger records of files; ``known`` are the cells of those ingested before."""
        removed_ids = frozenset(removed)
        spots: dict[FileAndCell, tuple[int, int]] = {
            (entry.file_id, entry.cell): (entry.rows, entry.dropped) for entry in known
        }
        elsewhere = []
        for spot in sorted({*self.rows, *self.dropped}):
            rows, dropped = self.rows.get(spot, 0), self.dropped.get(spot, 0)
            if spot[0] in taken:
                counts_before = spots.get(spot, (0, 0))
                spots[spot] = (counts_before[0] + rows, counts_before[1] + dropped)
            elif dropped and spot[0] not in removed_ids:
                elsewhere.append(FileCell(spot[0], spot[1], 0, dropped))
        cells = [FileCell(id_, cell, *pair) for (id_, cell), pair in sorted(spots.items())]
        sums: dict[int, list[int]] = defaultdict(lambda: [0, 0])
        for cell in cells:
            sums[cell.file_id][0] += cell.rows
            sums[cell.file_id][1] += cell.dropped
        files = tuple(
            IngestedFile(
                id=id_,
                path=file.path,
                size=file.size,
                fingerprint=file.fingerprint,
                horizon=horizon,
                next_due=self.next_due.get(id_),
                rows=sums[id_][0],
                waiting=self.waiting.get(id_, 0),
                set_aside=file.set_aside
                if isinstance(file, IngestedFile) and id_ not in self.reingested
                else self.aside.get(id_, 0),
                dropped=sums[id_][1],
                received_at=file.received_at if isinstance(file, IngestedFile) else received_at,
            )
            for id_, file in sorted(taken.items())
        )
        return FilesOutcome(
            source=source,
            ingested=files,
            removed=tuple(sorted(removed_ids)),
            cells=tuple(cells),
            dropped=tuple(elsewhere),
        )


def _cell_change(old: CellState, entry: CellCounts) -> CellChange:
    last = entry.last
    if old.last is not None and (last is None or old.last > last):
        last = old.last
    return CellChange(
        cell=old.cell,
        added=entry.added,
        removed=entry.removed,
        rows_before=old.rows,
        rows_after=old.rows + entry.added - entry.removed,
        content_before=old.content,
        content_after=signed(old.content + entry.content),
        last=last,
    )
