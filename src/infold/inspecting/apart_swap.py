"""How far tables are that are built apart, and the swap of those that are complete."""

from __future__ import annotations

from collections.abc import Iterator

from infold.core.model import table_name
from infold.core.plan import Observations
from infold.core.ports import Lake, Ledger
from infold.core.project import Project
from infold.core.report import BuiltApart
from infold.core.swap import Swap, SwapKind, SwappedTable
from infold.inspecting.environments import Production, Variant
from infold.inspecting.own_models import OwnModels
from infold.inspecting.promotion import UnchangedColumns, free_key
from infold.inspecting.tables_apart import TablesApart
from infold.planning.built_apart import built_part, complete


def swap_of_complete(
    found: TablesApart,
    observed: Observations,
    ledger: Ledger,
    lake: Lake,
    selected: frozenset[str] | None = None,
) -> Swap:
    """The swap of all tables that are complete, of ``selected`` models; of none, perhaps."""
    project = found.project
    cells = {model: ledger.cells(model) for model in project.apart.values()}
    keys = complete(project, observed, cells)
    # Readers have the tables of this project, and by its definitions.
    stretched = {name: trace for name, trace in ledger.traces().items() if trace.earlier}
    readable = Production(project, {}, stretched)
    as_variant = Variant(project, found.wanted, {}, readable, OwnModels({}), found.tables)
    kept = UnchangedColumns(as_variant, ledger)
    tables = tuple(
        _swapped(project.apart[key], key, ledger, lake, kept)
        for key in keys
        if selected is None or project.apart[key] in selected
    )
    return Swap(SwapKind.BUILT_APART, ", ".join(sorted(one.model for one in tables)), tables)


def _swapped(
    model: str, key: str, ledger: Ledger, lake: Lake, kept: UnchangedColumns
) -> SwappedTable:
    there = lake.location(table_name(model))
    return SwappedTable(
        model,
        key,
        free_key(ledger, lake, model, there),
        lake.location(table_name(key)),
        there,
        kept.of(model),
    )


def progress_apart(
    project: Project, observed: Observations, ledger: Ledger, lake: Lake
) -> Iterator[BuiltApart]:
    """How far each table is that is built apart."""
    for key, model in project.apart.items():
        node, seen = project[key], observed.models[key]
        built, cells = built_part(node, seen, ledger.cells(model))
        size = lake.size(table_name(key)) if seen.trace is not None else 0
        yield BuiltApart(model, key, built, cells, node.model.granularity, size)
