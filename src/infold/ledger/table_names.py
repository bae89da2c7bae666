"""
Which table has which name, in the ledger: tables with keys of their own, and swaps of names.

Functions over a :class:`Query` inside one transaction. With a swap the rows of tables get other
keys, and a model's versions are numbered on, as traces of its readers name them: one version drops
the table, the next has the rows of the other one. So readers see what differs in the end, and that
no earlier snapshot is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from infold.core.environment import BUILT_APART, PRODUCTION, Environment, OwnTable
from infold.core.interval import Interval
from infold.core.model import table_name
from infold.core.record import FILES, FULL_LISTING, LISTED
from infold.core.swap import DoneSwap, Swap, SwapKind, SwappedTable
from infold.core.trace import CellState, changes_of_rewrite
from infold.ledger.database import SQL, Query

MOVED = tuple(name for name in SQL if name.startswith("move_") and name != "move_trace_input")
"""The statements that give another key to what describes one table as it is now."""


def own_tables(query: Query) -> Mapping[str, tuple[OwnTable, ...]]:
    """The tables with keys of their own, by environment, and those that are built apart."""
    tables: dict[str, list[OwnTable]] = {}
    for owner, key, model, identity, definition, base, current in query.all("environment_tables"):
        table = OwnTable(model, key, identity, definition, base, bool(current))
        tables.setdefault(owner, []).append(table)
    return {owner: tuple(entries) for owner, entries in tables.items()}


def put_own_tables(query: Query, owner: str, tables: Iterable[OwnTable]) -> None:
    """Record which tables an owner has now. What is known of others that it had is erased."""
    tables = tuple(tables)
    keys = {table.key for table in tables}
    for table in own_tables(query).get(owner, ()):
        if table.key not in keys:
            erase(query, table.key)
    query.run("drop_environment_tables", environment=owner)
    query.many(
        "add_environment_table",
        [
            {
                "environment": owner,
                "table_key": table.key,
                "model": table.model,
                "identity": table.identity,
                "definition": table.definition,
                "base": table.base,
                "current": table.current,
            }
            for table in tables
        ],
    )


def environments(query: Query) -> Mapping[str, Environment]:
    """All environments with their tables, by name; what is built apart is none of them."""
    tables = own_tables(query)
    return {
        row[0]: replace(Environment(*row), tables=tables.get(row[0], ()))
        for row in query.all("environments")
        if row[0] != BUILT_APART  # ledgers had a row for it as long as it was an environment
    }


def put_environment(query: Query, environment: Environment) -> None:
    """Record an environment as it is now, with its tables."""
    query.run("drop_environment", name=environment.name)
    query.run(
        "add_environment",
        name=environment.name,
        owner=environment.owner,
        created_at=environment.created_at,
        expires_at=environment.expires_at,
        last_run_at=environment.last_run_at,
        built_at=environment.built_at,
    )
    put_own_tables(query, environment.name, environment.tables)


def remove_environment(query: Query, name: str) -> None:
    """Forget an environment, and everything that is known of its tables."""
    put_own_tables(query, name, ())
    query.run("drop_environment_applied", environment=name)
    query.run("drop_environment", name=name)


def erase(query: Query, key: str) -> None:
    """Remove everything that is known of a table but the runs that built it."""
    erase_rows(query, key)
    query.run("erase_entries", model=key)


def erase_rows(query: Query, key: str) -> None:
    """The same, but for what people entered."""
    from infold.ledger.apply_outcome import drop_trace

    drop_trace(query, key)
    for name in ("drop_cells", "erase_versions", "erase_changes", "erase_unchanged"):
        query.run(name, table_name=key)
    for name in (
        "drop_all_quarantined",
        "drop_left_out",
        "drop_ingests",
        "drop_file_cells",
        "erase_arrivals",
        "erase_audits",
    ):
        query.run(name, model=key)
    locations = (LISTED.format(key), FULL_LISTING.format(key))
    for name in (table_name(key), FILES.format(table_name(key)), *locations):
        query.run("drop_location", name=name)


@dataclass(frozen=True, slots=True)
class _Head:
    """A table as its newest version made it; None and 0 where nothing was ever stored."""

    number: int = 0
    snapshot: int | None = None
    step: str = ""
    run: str = ""


def apply_swap(query: Query, swap: Swap, *, id_: str, run: str, now: int) -> None:
    """Record that tables were swapped, and which are kept."""
    (last,) = query.one("last_swap_number")
    query.run(
        "add_swap",
        id=id_,
        number=(last or 0) + 1,
        kind=swap.kind.value,
        environment=swap.environment,
        made_at=now,
    )
    for table in swap.tables:
        _keep_replaced(query, table, _Head(0, None, id_, run), now)
    numbers = {
        table.own: _take_place(query, table, now) for table in swap.tables if table.own is not None
    }
    for table in swap.tables:
        for other in swap.tables:
            if other.own is not None:
                query.run(
                    "move_trace_input",
                    of_model=table.model,
                    of_input=other.own,
                    new_input=other.model,
                    new_version=numbers[other.own],
                )
    _apply_definitions(query, swap, id_, now)
    if swap.undoes is not None:
        _forget_replaced(query, swap.undoes)


def swaps(query: Query) -> tuple[DoneSwap, ...]:
    """The swaps that are remembered, newest first."""
    done = []
    for id_, _, kind, environment, at in query.all("swaps"):
        tables = query.all("kept_tables", swap=id_)
        done.append(
            DoneSwap(
                id_,
                SwapKind(kind),
                environment,
                at,
                {row[1]: row[2] for row in tables},
                frozenset(row[1] for row in tables if row[4] is not None),
                {m: (old, new) for _, m, old, new in query.all("swap_definitions", swap=id_)},
            )
        )
    return tuple(done)


def forget_swap(query: Query, id_: str) -> None:
    """Forget a swap, and all that is known of the tables which it replaced."""
    for _, _, key, *_ in query.all("kept_tables", swap=id_):
        if key is not None:
            erase(query, key)
    _forget_replaced(query, id_)


def _forget_replaced(query: Query, id_: str) -> None:
    query.run("drop_kept_tables", swap=id_)
    query.run("drop_swap_definitions", swap=id_)
    query.run("drop_swap", id=id_)


def _keep_replaced(query: Query, table: SwappedTable, by: _Head, now: int) -> None:
    """The model's present table is dropped, as its readers see it, and kept under its own key."""
    head, trace = _head(query, table.model), query.one("trace", model=table.model)
    cells = _cells(query, table.model)
    if head.snapshot is not None:
        emptied = replace(by, number=head.number + 1)
        _add_version(query, table, emptied, now, cells, ())
    if table.kept is not None:
        for name in MOVED:
            query.run(name, of_key=table.model, new_key=table.kept)
        query.run("drop_trace", model=table.model)
    stored_name = table_name(table.model)
    listings = (LISTED.format(table.model), FULL_LISTING.format(table.model))
    for name in (stored_name, FILES.format(stored_name), *listings):
        query.run("drop_location", name=name)
    query.run(
        "add_kept_table",
        swap=by.step,
        model=table.model,
        table_key=table.kept,
        fingerprint=None if trace is None else trace[0],
        snapshot=head.snapshot,
        step=head.step,
        run=head.run,
    )


def _take_place(query: Query, table: SwappedTable, now: int) -> int:
    """The other table becomes the model's; the number of the model's newest version then."""
    assert table.own is not None
    replaced = query.one("kept_table", table_key=table.own)
    if replaced is None:
        trace, head = query.one("trace", model=table.own), _head(query, table.own)
        fingerprint = None if trace is None else trace[0]
    else:
        fingerprint, head = replaced[3], _Head(0, *replaced[4:7])
    for name in MOVED:
        query.run(name, of_key=table.own, new_key=table.model)
    erase(query, table.own)
    query.run("drop_environment_table", table_key=table.own)
    if fingerprint is not None:
        query.run("add_trace", model=table.model, fingerprint=fingerprint)
    if table.own_location is not None:
        query.run("add_location", name=table_name(table.model), location=table.own_location)
    newest = _head(query, table.model).number
    if head.snapshot is None:
        return newest
    # Rows carry the number of the version that added them: the new one must not be below it.
    number = max(newest + 1, head.number)
    version = _Head(number, head.snapshot, head.step, head.run)
    _add_version(query, table, version, now, (), _cells(query, table.model))
    return number


def _add_version(
    query: Query,
    table: SwappedTable,
    head: _Head,
    now: int,
    before: tuple[CellState, ...],
    after: tuple[CellState, ...],
) -> None:
    from infold.ledger.apply_outcome import add_changes, add_unchanged

    query.run(
        "add_version",
        table_name=table.model,
        number=head.number,
        snapshot=head.snapshot,
        step=head.step,
        run=head.run,
        committed_at=now,
        rows=sum(cell.rows for cell in after),
        whole=True,
    )
    add_changes(query, table.model, head.number, changes_of_rewrite(before, after))
    add_unchanged(query, table.model, head.number, table.unchanged)


def _apply_definitions(query: Query, swap: Swap, id_: str, now: int) -> None:
    before = {name: digest for name, digest, _ in query.all("applied", environment=PRODUCTION)}
    after = {**before, **swap.applied}
    for model, digest in after.items():
        was = before.get(model, "")
        query.run("add_swap_definition", swap=id_, model=model, before=was, after=digest)
    for model, digest in swap.applied.items():
        query.run("drop_applied", environment=PRODUCTION, model=model)
        if digest:
            query.run(
                "add_applied",
                environment=PRODUCTION,
                model=model,
                digest=digest,
                applied_at=now,
            )


def _head(query: Query, table: str) -> _Head:
    row = query.one("head", table_name=table)
    return _Head() if row is None else _Head(*row[1:5])


def _cells(query: Query, table: str) -> tuple[CellState, ...]:
    return tuple(
        CellState(Interval(start, end), *rest)
        for start, end, *rest in query.all("cells", table_name=table)
    )
