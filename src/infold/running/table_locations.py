"""Where stored tables are, and what a run records of that at its end."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from infold.core.environment import PRODUCTION
from infold.core.model import table_name
from infold.core.ports import FORBIDDEN, Lake, Ledger
from infold.core.project import Project
from infold.core.record import FILES
from infold.running.ledger_consistency import foreign_tables

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
