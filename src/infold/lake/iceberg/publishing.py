"""
Tables that readers see only once they are published, all of them at one instant.

A table that is *held back* has two rows in the catalog: infold commits to the one with the longer
name (:func:`unpublished`), and everybody else reads the other. To publish is to let the second
point to what the first points to, for all tables in one transaction of the catalog's database.
Iceberg deletes old metadata files of a table as it commits, so the second row points to a copy of
its own.

A row that infold published has no earlier metadata location. Every commit of an engine sets one: by
that a commit by somebody else is told, and is never overwritten.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from infold.core import write_points
from infold.core.model import UNPUBLISHED
from infold.lake.iceberg.sql_catalog import SqlCatalog
from infold.lake.stores import places
from infold.messages import run_errors

if TYPE_CHECKING:
    from infold.lake.iceberg.table_catalog import Row

_MARK = "-published"


def unpublished(name: str) -> str:
    """The name under which infold commits to a table that is held back."""
    return name + UNPUBLISHED


def held_back(names: Iterable[str]) -> frozenset[str]:
    """The tables of a namespace that are held back, given the names in the catalog."""
    return frozenset(name.removesuffix(UNPUBLISHED) for name in names if name.endswith(UNPUBLISHED))


def hold_back(catalog: SqlCatalog, namespace: str, tables: Iterable[str]) -> None:
    """Hold back these tables, as far as they exist: readers go on seeing them as they are now."""
    from infold.lake.iceberg.table_catalog import Row

    rows = catalog.rows(namespace)
    new = [name for name in tables if name in rows and unpublished(name) not in rows]
    if not new:
        return
    targets = {}
    for name in new:
        _copy(rows[name].location)
        targets[name] = Row(published_location(rows[name].location))
        targets[unpublished(name)] = rows[name]
    _change(catalog, namespace, rows, new, targets)


def refuse_other_commits(catalog: SqlCatalog, namespace: str) -> None:
    """Raise ``published_elsewhere`` where somebody else committed to a table that is held back."""
    _refuse_other_commits(catalog.rows(namespace))


def publish(
    catalog: SqlCatalog, namespace: str, *, keep: bool = True, only: Collection[str] | None = None
) -> tuple[str, ...]:
    """
    Show readers all tables that are held back as they are now; the names of those that changed.

    Not all, but ``only`` some, where these are given. With ``keep`` false no table is held back any
    more. Raises ``published_elsewhere`` where
    somebody else committed to one of them; then nothing is published.
    """
    rows = catalog.rows(namespace)
    every = sorted(held_back(rows))
    names = every if only is None else [name for name in every if name in only]
    _refuse_other_commits(rows)
    own_locations = {name: rows[unpublished(name)].location for name in names}
    shown = {name: rows[name].location for name in names if name in rows}
    changed = [name for name in names if shown.get(name) != published_location(own_locations[name])]
    gone = [
        name for name in rows if unpublished(name) not in rows and _is_copy(rows[name].location)
    ]
    if not changed and not gone and (keep or not names):
        return ()
    from infold.lake.iceberg.table_catalog import Row

    for name in changed if keep else ():
        _copy(own_locations[name])
    write_points.point("publish: before")
    targets: dict[str, Row | None] = dict.fromkeys(gone)
    if keep:
        targets |= {name: Row(published_location(own_locations[name])) for name in changed}
    else:
        targets |= {name: Row(own_locations[name]) for name in names}
        targets |= dict.fromkeys(map(unpublished, names))
    _change(catalog, namespace, rows, (*every, *gone), targets)
    write_points.point("publish: after")
    in_use = {row.location.rpartition("/")[2] for row in catalog.rows(namespace).values()}
    for folder in sorted({own_locations[name].rpartition("/")[0] for name in changed}):
        _delete_old_copies(folder, in_use)
    return tuple(changed)


def is_complete(catalog: SqlCatalog, namespace: str) -> bool:
    """Whether readers see everything that is committed to tables that are held back."""
    rows = catalog.rows(namespace)
    return all(
        name.removesuffix(UNPUBLISHED) in rows
        and rows[name.removesuffix(UNPUBLISHED)].location == published_location(row.location)
        for name, row in rows.items()
        if name.endswith(UNPUBLISHED)
    )


def published_location(location: str) -> str:
    """The copy of a metadata file that readers are given."""
    folder, _, name = location.rpartition("/")
    stem, dot, ending = name.partition(".")
    return f"{folder}/{stem}{_MARK}{dot}{ending}"


def _is_copy(location: str) -> bool:
    """Whether a metadata file is a copy for readers: of a table that has another name since."""
    return location.rpartition("/")[2].partition(".")[0].endswith(_MARK)


def _copy(location: str) -> None:
    """Copy a metadata file to the place that readers are given; half a copy is never there."""
    places.write(published_location(location), places.read(location))


def _delete_old_copies(folder: str, read: Collection[str]) -> None:
    """Delete copies that no row points to, but for the last: a reader may be about to open it."""
    copies = [name for name in places.oldest_first(folder, f"{_MARK}.") if name not in read]
    for name in copies[:-1]:
        places.delete(f"{folder}/{name}")


def _refuse_other_commits(rows: Mapping[str, Row]) -> None:
    for name in sorted(held_back(rows)):
        if name in rows and rows[name].previous is not None:
            raise run_errors.published_elsewhere(table=name)


def _change(
    catalog: SqlCatalog,
    namespace: str,
    rows: Mapping[str, Row],
    tables: Collection[str],
    targets: Mapping[str, Row | None],
) -> None:
    """
    Let names point elsewhere. Raises ``published_elsewhere`` where one of these tables is not as it
    was when its ``rows`` were read. Others in the namespace may be somebody else's.
    """
    both = {*tables, *map(unpublished, tables)}
    expected = {name: rows[name].location if name in rows else None for name in both}
    if moved := catalog.change(namespace, expected, targets):
        raise run_errors.published_elsewhere(table=moved)
