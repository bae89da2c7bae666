"""
Which stored table has which name and is where: names that move, and tables that lost theirs.

A name moves by a swap, whoever asks for it (promote, rollback, tables built apart): intent in the
ledger → new names in the catalog → the ledger's rows. The catalog's transaction is the instant at
which readers see all of it. A table that no name points to any more is dropped by a step, too: the
ledger forgets it first, so it never vouches for a table that is not there.

What a death leaves: an intent whose names moved is finished, any other never happened. A table that
the ledger has forgotten is dropped; one that it still knows is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from infold.core.environment import BUILT_APART, PRODUCTION, Environment, OwnTable, set_aside_of
from infold.core.interval import Interval, Ranges
from infold.core.model import table_name
from infold.core.ports import FORBIDDEN, Lake, Ledger
from infold.core.project import Project
from infold.core.record import FILES, StepRecord
from infold.core.swap import DoneSwap, Swap, SwapKind, SwappedTable, is_swap, renamings
from infold.core.trace import Unchanged
from infold.messages import environment_errors
from infold.running.ledger_consistency import foreign_tables

KEEP_REPLACED = 60 * 60 * 1_000_000
"""
How long a table is kept that another one built apart took the place of: queries may still read it.
"""

DROP_KEPT = "drop kept"
"""The action of a step that drops tables which were replaced."""

FORGET = "forget"
"""
The action of a step that forgets a model; once the ledger has forgotten it, its table is dropped.
"""

LOSE = "lose"
"""The action of a step that forgets a model without a table: nothing is left to drop."""

DROPS = (DROP_KEPT, FORGET, LOSE)


_SHORTEST_KEY, _LONGEST_KEY = 8, 64
"""Hex digits in the key of a table: more where a shorter one is taken."""


def free_key(
    model: str, digits: str, ledger: Ledger, lake: Lake, names: Collection[str] = ()
) -> str:
    """
    A key for a table beside that of its model: the model's name with some of the hex ``digits``.

    No table or file has it, nor what the ledger knows, nor one of some ``names``, in any case of
    its letters.
    """
    known = {*names, *ledger.newest_versions(), *ledger.traces(), *table_keys(ledger)}
    taken = {table_name(name).lower() for name in known}
    keys = (f"{model}__{digits[:n]}" for n in range(_SHORTEST_KEY, _LONGEST_KEY + 1, 8))
    tables = ((key, table_name(key)) for key in keys)
    return next(key for key, table in tables if table.lower() not in taken and lake.is_free(table))


def swap_tables(ledger: Ledger, lake: Lake, run: str, swap: Swap) -> None:
    """Give the tables their new names, and let the ledger follow; raises ``tables_moved``."""
    step = f"{run}-swap"
    ledger.begin_step(run, step, 1, swap.environment, swap.kind.value, _detail_of_swap(swap))
    if not lake.rename(renamings(swap)):
        ledger.close_step(step, "failed", "a table moved")
        raise environment_errors.tables_moved(command=swap.kind.value)
    ledger.finish_swap(step, swap)
    built = {table.model for table in swap.tables if table.own is not None}
    built |= {table.kept for table in swap.tables if table.kept is not None}
    ledger.remember_locations(locations_and_files(lake, sorted(built)))


def drop_replaced(ledger: Ledger, lake: Lake, run: str, swap: DoneSwap) -> None:
    """Drop the tables that a swap replaced."""
    step = f"{run}-kept_{swap.id}"
    tables = {key: lake.location(table_name(key)) for key in swap.kept.values() if key is not None}
    detail = {"swap": swap.id, "tables": tables}
    ledger.begin_step(run, step, 0, swap.environment, DROP_KEPT, detail)
    ledger.forget_swap(swap.id)
    _drop_tables(lake, tables)
    ledger.close_step(step, "done")


def drop_replaced_long_ago(
    ledger: Ledger, lake: Lake, run: str, *, now: int, keep: int | None
) -> Iterator[str]:
    """Drop the replaced tables that were kept long enough; yields notes."""
    for swap in ledger.swaps():
        until = KEEP_REPLACED if swap.kind is SwapKind.BUILT_APART else keep
        if until is not None and swap.made_at + until <= now:
            drop_replaced(ledger, lake, run, swap)
            models = ", ".join(sorted(name for name, key in swap.kept.items() if key is not None))
            what = f"the tables that the {swap.kind} of {swap.environment} replaced"
            yield f"{what} were dropped: {models}"


def forget_table(
    ledger: Ledger, lake: Lake | None, *, run: str, step: str, seq: int, model: str
) -> None:
    """
    Forget a model by a step, so that its readers see what goes; then drop its table.

    ``lake`` is None where the table is gone already. The step knows where the table is: a run that
    dies between catalog and files leaves a folder that no catalog names.
    """
    tables: dict[str, str | None] = {}
    if lake is None:
        ledger.begin_step(run, step, seq, model, LOSE, {})
    else:
        tables[model] = lake.location(table_name(model))
        ledger.begin_step(run, step, seq, model, FORGET, {"location": tables[model]})
    ledger.forget(model, step=step)
    if lake is not None:
        lake.drop(table_name(model))
    ledger.close_step(step, "done")


def drop_own_tables(
    ledger: Ledger, lake: Lake, run: str, owner: str, tables: Iterable[OwnTable]
) -> None:
    """
    Drop tables of an environment, or such as are built apart.

    The ledger knows that they are the owner's until the last of them is gone, so that it can be
    done again.
    """
    dropped = [*tables]
    if not dropped:
        return
    for table in dropped:
        step = f"{run}-drop_{table.key}"
        forget_table(ledger, lake, run=run, step=step, seq=0, model=table.key)
    stay = [table for table in ledger.own_tables().get(owner, ()) if table not in dropped]
    ledger.put_own_tables(owner, stay)


def drop_left_tables(ledger: Ledger, lake: Lake, run: str, owner: str) -> Iterator[str]:
    """Drop the tables that an owner has no use for any more; yields notes."""
    tables = ledger.own_tables().get(owner, ())
    unused = [table for table in tables if not table.current]
    drop_own_tables(ledger, lake, run, owner, unused)
    used = {table.model for table in tables if table.current}
    for model in dict.fromkeys(one.model for one in unused):
        if owner == BUILT_APART:
            yield f"{model}: what was built apart of it was dropped, as another table is wanted"
        elif model in used:
            yield f"{model}: its table by an earlier definition was dropped"
        else:
            yield f"{model}: its table was dropped, as production's has the same rows"


def drop_environment(ledger: Ledger, lake: Lake, run: str, name: str) -> Environment:
    """Drop an environment with its tables."""
    environment = ledger.environments()[name]
    drop_own_tables(ledger, lake, run, name, environment.tables)
    lake.drop(set_aside_of(name))
    ledger.remove_environment(name)
    return environment


def drop_expired(ledger: Ledger, lake: Lake, run: str, now: int) -> Iterator[Environment]:
    """Drop the environments with a time to live that is over."""
    for name, environment in ledger.environments().items():
        if environment.is_over(now):
            yield drop_environment(ledger, lake, run, name)


def expiry_note(dropped: Environment) -> str:
    """What a run of production says of an environment that it dropped."""
    return f"the environment {dropped.name} of {dropped.owner} had expired, and was dropped"


def moves_names(record: StepRecord) -> bool:
    """Whether a step is about several tables at once: a swap, or the end of what one replaced."""
    return record.action == DROP_KEPT or is_swap(record)


def recover_swap(ledger: Ledger, lake: Lake, record: StepRecord) -> str:
    """Finish a swap that a dead run began, or find that it never happened; which, in words."""
    swap = _swap_of_detail(record.detail)
    moves = renamings(swap)
    if not moves or lake.was_renamed(moves):
        ledger.finish_swap(record.id, swap)
        return f"the {record.action} of {record.model}, which a dead run had begun, was finished"
    ledger.close_step(record.id, "forgotten")
    return f"a run died before the {record.action} of {record.model}"


def recover_drop(ledger: Ledger, lake: Lake, record: StepRecord) -> str:
    """Finish a drop that a dead run began, or find that it never happened; which, in words."""
    several = record.action == DROP_KEPT
    if several:
        known = any(swap.id == record.detail["swap"] for swap in ledger.swaps())
    else:
        known = record.model in ledger.traces() or _has_gone_on(ledger, lake, record.model)
    if known:
        ledger.close_step(record.id, "forgotten")
        return f"a run died before it {'dropped replaced tables' if several else 'forgot it'}"
    if several:
        _drop_tables(lake, record.detail["tables"])
    elif record.action == FORGET:
        _drop_tables(lake, {record.model: record.detail.get("location")})
    ledger.close_step(record.id, "done")
    if several:
        return "replaced tables, which a dead run had begun to drop, were dropped"
    return "forgetting it, which a dead run had begun, was finished"


def _has_gone_on(ledger: Ledger, lake: Lake, model: str) -> bool:
    """
    Whether a table has commits that the ledger does not know.

    Then the ledger is an older one: the table was dropped long ago, and built again since.
    """
    head = lake.metadata(table_name(model))
    return head is not None and not ledger.step_models(head.steps).keys() >= {*head.steps}


def _drop_tables(lake: Lake, tables: Mapping[str, str | None]) -> None:
    """Drop tables by their keys; with them the folders where they were, if nothing lies there."""
    for key, location in tables.items():
        lake.drop(table_name(key))
        if location is not None:  # its folder may have another name than the table
            lake.delete_folder(location)


def _detail_of_swap(swap: Swap) -> dict[str, Any]:
    """A swap as the detail of its step."""
    return {
        "kind": swap.kind.value,
        "environment": swap.environment,
        "tables": [
            {
                "model": table.model,
                "own": table.own,
                "kept": table.kept,
                "own_location": table.own_location,
                "kept_location": table.kept_location,
                "unchanged": [
                    [sorted(part.columns), [[cell.start, cell.end] for cell in part.cells]]
                    for part in table.unchanged
                ],
            }
            for table in swap.tables
        ],
        "applied": dict(swap.applied),
        "undoes": swap.undoes,
    }


def _swap_of_detail(detail: Mapping[str, Any]) -> Swap:
    """The swap that :func:`_detail_of_swap` wrote."""
    return Swap(
        SwapKind(detail["kind"]),
        detail["environment"],
        tuple(
            SwappedTable(**{**one, "unchanged": tuple(_unchanged(*x) for x in one["unchanged"])})
            for one in detail["tables"]
        ),
        detail["applied"],
        detail["undoes"],
    )


def _unchanged(columns: list[str], cells: list[list[int]]) -> Unchanged:
    return Unchanged(frozenset(columns), Ranges(tuple(Interval(*cell) for cell in cells)))


_NO_LOCATIONS = (None, FORBIDDEN)


def locations_and_files(lake: Lake, models: Iterable[str]) -> Mapping[str, str]:
    """
    What a run records about tables at its end: where they are, and a hash of their
    file names.
    """
    locations = table_locations(lake, models)
    return {**locations, **{FILES.format(table): lake.file_list_id(table) for table in locations}}


def table_locations(lake: Lake, models: Iterable[str]) -> Mapping[str, str]:
    """Table -> where its metadata is now, for those of the models' tables that are there."""
    moved = lake.moved_tables(dict.fromkeys(map(table_name, models), ""))
    return {table: location for table, location in moved.items() if location not in _NO_LOCATIONS}


def remember_locations(
    project: Project, ledger: Ledger, lake: Lake, damaged: Collection[str]
) -> None:
    """
    Record where the tables of a project or of an environment are, as the next run does not look at
    those again: not of damaged ones, nor of those with commits of others, up to this moment.
    """
    heads, known = ledger.newest_versions(), ledger.locations()
    sound = heads.keys() - set(damaged)
    if project.environment == PRODUCTION:
        sound -= table_keys(ledger) - project.apart.keys()
    else:
        sound &= {node.name for node in project} - project.shared
    locations = locations_and_files(lake, sound)
    # Read after the locations: what is committed from now on moves the table away from them.
    moved = lake.moved_tables({table: known.get(table, "") for table in map(table_name, heads)})
    for table in map(table_name, foreign_tables(project, ledger, lake, heads, moved)):
        locations = {
            name: at for name, at in locations.items() if name not in (table, FILES.format(table))
        }
    ledger.remember_locations(locations)


def table_keys(ledger: Ledger) -> frozenset[str]:
    """The keys of all tables with keys of their own, which production knows nothing of."""
    return frozenset(one.key for tables in ledger.own_tables().values() for one in tables)
