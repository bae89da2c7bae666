"""What an exchange of tables means: which cells differ, who reads them, what names are free."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256

from infold.core.model import Kind, table_name
from infold.core.ports import Lake, Ledger
from infold.core.project import Project
from infold.core.promotion import ExchangedTable
from infold.core.record import FILES
from infold.core.swap import SwappedTable
from infold.core.trace import CellChange, CellState, changes_of_rewrite
from infold.core.unchanged import changes_of_columns
from infold.messages import mismatches, promote_errors
from infold.messages.errors import InfoldErrors
from infold.running.read_columns import ReadColumns
from infold.running.table_keys import table_keys

_SHORTEST, _LONGEST = 8, 64
"""Hex digits in the key of a table that is kept: more where a shorter one is taken."""


def exchanged_table(ledger: Ledger, one: SwappedTable) -> ExchangedTable:
    """How a model's table differs from the one that takes its place."""
    before, after = _cells(ledger, one.model), _cells(ledger, one.own)
    return ExchangedTable(
        one.model,
        None if one.kept is None else sum(cell.rows for cell in before),
        None if one.own is None else sum(cell.rows for cell in after),
        len({cell.cell for cell in (*before, *after)}),
        len(_differences(ledger, one)),
    )


def readers_that_follow(
    project: Project, ledger: Ledger, tables: Sequence[SwappedTable], reads: ReadColumns
) -> Iterator[str]:
    """The models that read something that differs, and are not exchanged themselves."""
    exchanged = {one.model: one for one in tables}
    differing = {name: _differences(ledger, one) for name, one in exchanged.items()}
    for node in project:
        if node.name in exchanged or node.model.kind is Kind.VIEW:
            continue
        for name in {entry.name for entry in node.stored_inputs} & exchanged.keys():
            columns = reads(node.name, name) if exchanged[name].unchanged else None
            unchanged = {0: exchanged[name].unchanged}
            if columns is None:
                seen = bool(differing[name])
            else:
                seen = bool(changes_of_columns(columns, {0: differing[name]}, unchanged))
            if seen:
                yield node.name
                break


def free_key(ledger: Ledger, lake: Lake, model: str, location: str | None) -> str:
    """A key for the table of a model that is kept; the same one for the same state of it."""
    taken = {*ledger.newest_versions(), *ledger.traces(), *table_keys(ledger)}
    digits = sha256(f"{model} {location}".encode()).hexdigest()
    keys = (f"{model}__{digits[:n]}" for n in range(_SHORTEST, _LONGEST + 1, 8))
    return next(k for k in keys if k not in taken and lake.location(table_name(k)) is None)


def lost_file(ledger: Ledger, lake: Lake, table: str) -> str:
    """A file that a table has lost; empty if it has all, as far as nothing changed since a run."""
    if lake.file_list_id(table) == ledger.locations().get(FILES.format(table)):
        return ""
    return next(iter(lake.lost_files(table)), "")


def refuse_taken(ledger: Ledger, lake: Lake, model: str) -> None:
    """Raise ``table_name_taken`` where a new model's name is that of somebody else's table."""
    found = lake.metadata(table_name(model))
    if found is not None and not found.steps and model not in ledger.newest_versions():
        raise mismatches.table_name_taken(model=model, table=found.table, location=found.location)


def _differences(ledger: Ledger, one: SwappedTable) -> Sequence[CellChange]:
    changes = changes_of_rewrite(_cells(ledger, one.model), _cells(ledger, one.own))
    return [change for change in changes if change.changes_rows]


def _cells(ledger: Ledger, key: str | None) -> Sequence[CellState]:
    return () if key is None else ledger.cells(key)


def refuse_misfits(project: Project, ledger: Ledger, applied: Mapping[str, str]) -> None:
    """Raise ``promote_incomplete`` where these definitions cannot be applied all together."""
    from infold.declare.from_definitions import project_of_definitions

    kept = ledger.definitions(applied.values())
    definitions = {name: kept[digest] for name, digest in applied.items() if digest in kept}
    try:
        project_of_definitions(project, definitions, {})
    except InfoldErrors as error:
        facts = [("model", one.what) for one in error.errors]
        raise promote_errors.promote_incomplete(facts) from error
