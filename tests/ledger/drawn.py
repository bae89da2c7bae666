"""Drawn values for the ledger's tests: small domains where things collide, wide ones for codecs."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from hypothesis import strategies as st

from infold.core.files import FileCell, FilesOutcome, IngestedFile
from infold.core.interval import DAY, EVER, Interval, Ranges
from infold.core.record import COUNTS, Outcome, QuarantinedSession, Receipt
from infold.core.trace import Cause, CellChange, CellState, Pending, Trace
from infold.core.unchanged import Unchanged

DAYS = tuple(Interval(day * DAY, (day + 1) * DAY) for day in range(-2, 4))

longs = st.integers(-(2**63), 2**63 - 1)
counts = st.integers(0, 2**40)
names = st.text(max_size=8)
cells = st.one_of(st.sampled_from(DAYS), st.just(EVER))
some_ranges = st.lists(st.sampled_from(DAYS), min_size=1, max_size=3).map(Ranges.of)
finite = st.floats(0, 1e6, allow_nan=False)

receipts = st.builds(
    Receipt,
    **{
        entry.name: finite if entry.name == "seconds" else counts
        for entry in fields(Receipt)
        if entry.name not in COUNTS
    },
    **{
        name: st.dictionaries(names, counts, max_size=3).map(lambda by: tuple(by.items()))
        for name in COUNTS
    },
)

pending = st.builds(Pending, cause=st.sampled_from(Cause), ranges=some_ranges)


def traces(models: st.SearchStrategy[str]) -> st.SearchStrategy[Trace]:
    """Traces of any of ``models``."""
    return st.builds(
        Trace,
        model=models,
        fingerprint=names,
        inputs=st.dictionaries(names, counts, max_size=3),
        pending=st.lists(pending, max_size=2).map(tuple),
        applied_entry=st.integers(0, 9),
        definition=names,
    )


def changes(cell: st.SearchStrategy[Interval]) -> st.SearchStrategy[CellChange]:
    """A change of a cell; the numbers need not add up to be kept."""
    return st.builds(
        CellChange,
        cell=cell,
        added=st.integers(0, 9),
        removed=st.integers(0, 9),
        rows_before=st.integers(0, 9),
        rows_after=st.integers(0, 3),
        content_before=longs,
        content_after=longs,
        last=st.none() | longs,
    )


states = st.builds(
    CellState, cell=cells, rows=st.integers(1, 9), content=longs, last=st.none() | longs
)


def distinct_changes(
    cell: st.SearchStrategy[Interval],
) -> st.SearchStrategy[tuple[CellChange, ...]]:
    """Changes of one version: a cell changes once."""
    return st.lists(changes(cell), max_size=5, unique_by=lambda change: change.cell).map(tuple)


def known_files(ids: st.SearchStrategy[int]) -> st.SearchStrategy[IngestedFile]:
    """Files taken in, of any of ``ids``."""
    return st.builds(
        IngestedFile,
        id=ids,
        path=names,
        size=counts,
        fingerprint=names,
        horizon=longs,
        next_due=st.none() | longs,
        rows=counts,
        waiting=counts,
        set_aside=counts,
        dropped=counts,
        received_at=longs,
    )


def file_cells(ids: st.SearchStrategy[int]) -> st.SearchStrategy[FileCell]:
    """Rows of a file in a cell."""
    return st.builds(
        FileCell, file_id=ids, cell=cells, rows=st.integers(0, 9), dropped=st.integers(0, 9)
    )


def _key(entry: FileCell) -> Any:
    return (entry.file_id, entry.cell)


any_files = st.builds(
    FilesOutcome,
    source=names,
    ingested=st.lists(known_files(counts), max_size=3).map(tuple),
    removed=st.lists(counts, max_size=3).map(tuple),
    cells=st.lists(file_cells(counts), max_size=4, unique_by=_key).map(tuple),
    dropped=st.lists(file_cells(counts), max_size=4, unique_by=_key).map(tuple),
)

held_sessions = st.builds(
    QuarantinedSession,
    owner=names,
    start=longs,
    end=longs,
    events=counts,
    user=st.none() | names,
    user_at=st.none() | longs,
)

any_outcomes = st.builds(
    Outcome,
    model=names,
    version=counts,
    trace=traces(names),
    changes=distinct_changes(cells),
    whole=st.booleans(),
    snapshot=st.none() | longs,
    committed=st.booleans(),
    files=st.none() | any_files,
    receipt=receipts,
    quarantined=st.lists(held_sessions, max_size=3, unique_by=lambda held: held.key).map(tuple),
    released=st.lists(st.tuples(names, longs), max_size=2).map(tuple),
    left_out=st.none() | counts,
    unchanged=st.lists(
        st.builds(Unchanged, columns=st.frozensets(names, max_size=3), cells=some_ranges),
        max_size=2,
        unique_by=lambda one: one.columns,
    ).map(tuple),
    cells=st.none() | st.lists(states, max_size=3, unique_by=lambda one: one.cell).map(tuple),
)
