"""
Takes a ledger to another place, where its target goes on with it: all of it or nothing.

The rows are read and written in one transaction on each side. That of the original lets nobody else
write, not even what needs no lease, and ends by closing it: see :func:`lease.refuse_moved`. The
copy is committed first. If that is all that happened, the same command finds its own copy and
closes the original.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from infold.core.report import LedgerCopy
from infold.ledger import whole_tables
from infold.ledger.database import ID_ROW, MOVED_ROW, Query
from infold.ledger.lease import NAME
from infold.ledger.store import SqlLedger
from infold.ledger.whole_tables import TABLES, Checksum, Row, Sums, WholeTable, line
from infold.messages import ledger_errors

Rows = Iterator[tuple[WholeTable, Iterable[list[Row]]]]
"""All tables, in order, each with its rows some at a time."""


def copy_ledger(
    original: SqlLedger, to: SqlLedger, *, at: str, place: str, run: str, wait: float = 0.0
) -> LedgerCopy:
    """
    Copy a ledger to where none is, and close it.

    ``at`` is what people call the original, and ``place`` what they call the copy. Raises
    ``ledger_errors.not_empty``; ``run_errors.locked`` while a run is at work.
    """
    _refuse_another(to, place, original)
    original.acquire(run, wait=wait)
    try:
        _refuse_same(to, place, run)
        with original.writing("move") as query:

            def awake() -> object:
                return query.one("lease", name=NAME)

            sums = _copy_made_before(query, to, awake)
            was_made = sums is not None
            if sums is None:
                rows = ((table, whole_tables.batches(query, table)) for table in TABLES)
                token = query.one("lease", name=NAME)[1]
                sums = fill(to, rows, place=place, run=run, token=token, point="copy", awake=awake)
            query.run("add_meta", name=MOVED_ROW, value=place)
    finally:
        original.release()
    return LedgerCopy(at, place, {name: checksum.rows for name, checksum in sums.items()}, was_made)


def fill(
    to: SqlLedger,
    tables: Rows,
    *,
    place: str,
    run: str,
    token: int,
    point: str,
    awake: Callable[[], object] = bool,
) -> Sums:
    """
    Write all rows of a ledger where none is, read them back, and keep them if they are the same.

    The tokens of its lease go on from ``token``.
    """
    with to.database.read() as query:
        _refuse_full(query, place)
    to.acquire(run)
    try:
        with to.writing(point) as query:
            _refuse_full(query, place)
            query.run("drop_meta", name=ID_ROW)
            sums = {}
            for table, batches in tables:
                checksum = sums[table.name] = Checksum()
                for rows in batches:
                    checksum.add(map(line, rows))
                    whole_tables.add_rows(query, table, rows)
            stored = whole_tables.sums_of(query, awake)
            if differing := [name for name in stored if stored[name] != sums.get(name)]:
                raise ledger_errors.copy_differs(place=place, tables=differing)
            _give_back(query, token)
    finally:
        to.release()
    return sums


def _refuse_full(query: Query, place: str) -> None:
    if not whole_tables.is_empty(query):
        raise ledger_errors.not_empty(place=place)


def _refuse_another(to: SqlLedger, place: str, original: SqlLedger) -> None:
    """Raise where something other than a copy of this ledger is, before anything is written."""
    with to.database.read() as query:
        if whole_tables.is_empty(query):
            return
        own_id = query.one("meta", name=ID_ROW)
    with original.database.read() as query:
        if own_id != query.one("meta", name=ID_ROW):
            raise ledger_errors.not_empty(place=place)


def _refuse_same(to: SqlLedger, place: str, run: str) -> None:
    """Raise where both are one ledger, by whatever names: the lease was just taken in it."""
    with to.database.read() as query:
        lease = query.one("lease", name=NAME)
    if lease is not None and lease[2] == run:
        raise ledger_errors.not_empty(place=place)


def _copy_made_before(original: Query, to: SqlLedger, awake: Callable[[], object]) -> Sums | None:
    """
    What is in a copy that is as the original is now: only its closing is left to do.

    None where there is no copy. Another state of it is met as a ledger that is no copy.
    """
    with to.database.read() as query:
        if whole_tables.is_empty(query) or query.one("meta", name=MOVED_ROW) is not None:
            return None
        sums = whole_tables.sums_of(query, awake)
        is_equal = sums == whole_tables.sums_of(original, lambda: query.one("lease", name=NAME))
    return sums if is_equal else None


def _give_back(query: Query, token: int) -> None:
    """Nobody has the lease of the copy, and tokens are greater than any that was given out."""
    last_token = query.one("lease", name=NAME)[1]
    nobody = dict.fromkeys(("run", "host", "place", "pid", "process", "since", "heartbeat_at"))
    query.run(
        "take_lease",
        of_name=NAME,
        of_token=last_token,
        new_token=max(last_token, token),
        **{f"new_{name}": value for name, value in nobody.items()},
    )
