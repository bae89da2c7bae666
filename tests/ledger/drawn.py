"""Drawn values for the ledger's tests: small domains where things collide, wide ones for codecs."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

from hypothesis import strategies as st

from infold.core.files import FileCell, FilesOutcome, IngestedFile
from infold.core.interval import DAY, EVER, Interval, Ranges
from infold.core.record import COUNTS, Outcome, QuarantinedSession, Receipt
from infold.core.trace import Cause, CellChange, CellState, Pending, Trace, Unchanged

T = TypeVar("T")
DAYS = tuple(Interval(day * DAY, (day + 1) * DAY) for day in range(-2, 4))

longs = st.integers(-(2**63), 2**63 - 1)
counts = st.integers(0, 2**40)
names = st.text(max_size=8)
cells = st.one_of(st.sampled_from(DAYS), st.just(EVER))
some_ranges = st.lists(st.sampled_from(DAYS), min_size=1, max_size=3).map(Ranges.of)
_KINDS: dict[Any, st.SearchStrategy[Any]] = {
    "int": counts,
    "int | None": st.none() | longs,
    "str": names,
    "str | None": st.none() | names,
    "bool": st.booleans(),
    "float": st.floats(0, 1e6, allow_nan=False),
    "Interval": cells,
    "Trace": st.deferred(lambda: traces(names)),
    "Receipt": st.deferred(lambda: receipts),
}


def made(of: type[T], **own: st.SearchStrategy[Any]) -> st.SearchStrategy[T]:
    """Values of a class: each field as given, or as its type says, or with its default."""
    typed = {
        one.name: _KINDS[str(one.type)]
        for one in fields(of)  # type: ignore[arg-type]
        if one.type in _KINDS
    }
    return st.builds(of, **(typed | own))


def several(of: st.SearchStrategy[T], most: int = 3, by: Any = None) -> st.SearchStrategy[Any]:
    """A few of them, different by a key."""
    return st.lists(of, max_size=most, unique_by=by).map(tuple)


receipts: st.SearchStrategy[Receipt] = made(
    Receipt,
    **{
        name: st.dictionaries(names, counts, max_size=3).map(lambda by: tuple(by.items()))
        for name in COUNTS
    },
)


def traces(models: st.SearchStrategy[str]) -> st.SearchStrategy[Trace]:
    """Traces of any of ``models``."""
    return made(
        Trace,
        model=models,
        inputs=st.dictionaries(names, counts, max_size=3),
        pending=several(made(Pending, cause=st.sampled_from(Cause), ranges=some_ranges), 2),
    )


def distinct_changes(cell: st.SearchStrategy[Interval]) -> st.SearchStrategy[Any]:
    """Changes of one version: a cell changes once; the numbers need not add up to be kept."""
    change = made(
        CellChange,
        cell=cell,
        rows_after=st.integers(0, 3),
        content_before=longs,
        content_after=longs,
    )
    return several(change, 5, lambda one: one.cell)


def known_files(ids: st.SearchStrategy[int]) -> st.SearchStrategy[IngestedFile]:
    """Files taken in, of any of ``ids``."""
    return made(IngestedFile, id=ids, horizon=longs, received_at=longs)


def file_cells(ids: st.SearchStrategy[int]) -> st.SearchStrategy[FileCell]:
    """Rows of a file in a cell."""
    return made(FileCell, file_id=ids)


_some_cells = several(file_cells(counts), 4, lambda one: (one.file_id, one.cell))
any_files = made(
    FilesOutcome,
    ingested=several(known_files(counts)),
    removed=several(counts),
    cells=_some_cells,
    dropped=_some_cells,
)
_states = made(CellState, rows=st.integers(1, 9), content=longs)
_unchanged = made(Unchanged, columns=st.frozensets(names, max_size=3), cells=some_ranges)
any_outcomes = made(
    Outcome,
    changes=distinct_changes(cells),
    files=st.none() | any_files,
    quarantined=several(made(QuarantinedSession, start=longs, end=longs), 3, lambda one: one.key),
    released=several(st.tuples(names, longs), 2),
    unchanged=several(_unchanged, 2, lambda one: one.columns),
    cells=st.none() | several(_states, 3, lambda one: one.cell),
)
