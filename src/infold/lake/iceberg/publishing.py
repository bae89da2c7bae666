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

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager

from infold.core import write_points
from infold.core.model import UNPUBLISHED
from infold.lake.iceberg.sql_catalog import SqlCatalog, Statements, TakenError
from infold.lake.iceberg.table_catalog import Row
from infold.lake.stores import places
from infold.messages import run_errors

_MARK = "-published"


def unpublished(name: str) -> str:
    """The name under which infold commits to a table that is held back."""
    return name + UNPUBLISHED


def held_back(names: Iterable[str]) -> frozenset[str]:
    """The tables of a namespace that are held back, given the names in the catalog."""
    return frozenset(name.removesuffix(UNPUBLISHED) for name in names if name.endswith(UNPUBLISHED))


def hold_back(catalog: SqlCatalog, namespace: str, tables: Iterable[str]) -> None:
    """Hold back these tables, as far as they exist: readers go on seeing them as they are now."""
    rows = catalog.rows(namespace)
    new = [name for name in tables if name in rows and unpublished(name) not in rows]
    if not new:
        return
    for name in new:
        _copy(rows[name].location)
    with _transaction(catalog, namespace, rows, new) as statements:
        for name in new:
            statements.change(
                _another_row(catalog, "previous_metadata_location"),
                (unpublished(name), namespace, name),
            )
            _point(statements, catalog, namespace, name, published_location(rows[name].location))


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
    now = {name: rows[unpublished(name)].location for name in names}
    shown = {name: rows[name].location for name in names if name in rows}
    changed = [name for name in names if shown.get(name) != published_location(now[name])]
    gone = [
        name for name in rows if unpublished(name) not in rows and _is_copy(rows[name].location)
    ]
    if not changed and not gone and (keep or not names):
        return ()
    for name in changed if keep else ():
        _copy(now[name])
    write_points.point("publish: before")
    with _transaction(catalog, namespace, rows, (*every, *gone)) as statements:
        for name in changed if keep else names:
            if name not in shown:
                statements.change(
                    _another_row(catalog, "NULL"),
                    (name, namespace, unpublished(name)),
                )
            location = published_location(now[name]) if keep else now[name]
            _point(statements, catalog, namespace, name, location)
        for name in (*gone, *(() if keep else map(unpublished, names))):
            statements.change(
                f"DELETE FROM iceberg_tables WHERE {catalog.own}"
                " AND table_namespace = ? AND table_name = ?",
                (namespace, name),
            )
    write_points.point("publish: after")
    read = {row.location.rpartition("/")[2] for row in catalog.rows(namespace).values()}
    for folder in sorted({now[name].rpartition("/")[0] for name in changed}):
        _delete_old_copies(folder, read)
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
    stem, dot, rest = name.partition(".")
    return f"{folder}/{stem}{_MARK}{dot}{rest}"


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


def _another_row(catalog: SqlCatalog, previous: str) -> str:
    """A row for a second name of a table; the values are that name, namespace and first name."""
    return (
        "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location,"
        " previous_metadata_location, iceberg_type) SELECT catalog_name, table_namespace, ?,"
        f" metadata_location, {previous}, iceberg_type FROM iceberg_tables WHERE {catalog.own}"
        " AND table_namespace = ? AND table_name = ?"
    )


def _point(
    statements: Statements, catalog: SqlCatalog, namespace: str, name: str, location: str
) -> None:
    statements.change(
        "UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = NULL"
        f" WHERE {catalog.own} AND table_namespace = ? AND table_name = ?",
        (location, namespace, name),
    )


@contextmanager
def _transaction(
    catalog: SqlCatalog, namespace: str, expected: Mapping[str, Row], tables: Collection[str]
) -> Iterator[Statements]:
    """
    A transaction on the catalog, all or nothing.

    Raises ``published_elsewhere`` where a row of one of these tables is not as ``expected`` any
    more. Others in the namespace may be somebody else's.
    """
    with catalog.database.write(namespace) as statements:
        now = {} if statements is None else catalog.rows_in(statements, namespace)
        for name in sorted({*tables, *map(unpublished, tables)}):
            if now.get(name) != expected.get(name):
                raise run_errors.published_elsewhere(table=name)
        assert statements is not None
        try:
            yield statements
        except TakenError as error:  # another one has been made meanwhile
            raise run_errors.published_elsewhere(table=str(error)) from error
