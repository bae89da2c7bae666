"""Two targets of a project that would have the same tables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from infold.core.catalogs import SQLITE_FILE, CatalogType
from infold.core.object_store import SCHEMES, scheme_of, split
from infold.core.storages import Storage
from infold.core.target import Target
from infold.messages import catalog_errors, delta_errors
from infold.messages.errors import InfoldError, Spot


def shared_tables(
    project: str, root: Path, targets: Mapping[str, Target], places: Mapping[str, Spot]
) -> Iterator[InfoldError]:
    """An error for each target that cannot have the tables of one before it as it would."""
    yield from _same_namespace(project, root, targets, places)
    yield from _other_storage(root, targets, places)
    yield from _same_warehouse(project, root, targets, places)


def _same_namespace(
    project: str, root: Path, targets: Mapping[str, Target], places: Mapping[str, Spot]
) -> Iterator[InfoldError]:
    """Targets with the namespace and the catalog of one before them."""
    seen: dict[tuple[str, str, str], str] = {}
    for name, target in targets.items():
        catalog = target.catalog
        if catalog.is_in_warehouse:
            continue
        namespace, uri = catalog.namespace or project, catalog.uri
        if catalog.type is CatalogType.SQLITE:  # a file has several names
            uri = str(_real(root / uri.removeprefix(SQLITE_FILE)))
        if catalog.type is CatalogType.HIVE:  # which knows no capital letters
            namespace = namespace.lower()
        other = seen.setdefault((uri, catalog.warehouse, namespace), name)
        if other != name:
            yield catalog_errors.same_tables(
                places[name], one=other, other=name, namespace=namespace
            )


def _other_storage(
    root: Path, targets: Mapping[str, Target], places: Mapping[str, Spot]
) -> Iterator[InfoldError]:
    """Targets with the warehouse of one before them, in another storage."""
    seen: dict[object, str] = {}
    for name, target in targets.items():
        other = seen.setdefault(_warehouse(root, target), name)
        if targets[other].storage is not target.storage:
            iceberg = other if target.storage is Storage.DELTA else name
            what = f"the warehouse of target {iceberg}, which is in another storage,"
            yield delta_errors.not_with_delta(
                places[name], what=what, todo="Name another folder: both would use the same ones."
            )


def _same_warehouse(
    project: str, root: Path, targets: Mapping[str, Target], places: Mapping[str, Spot]
) -> Iterator[InfoldError]:
    """
    Targets with the tables of one before them that are protected otherwise.

    They may compute elsewhere and share a ledger, such as one for this machine and one for a
    cluster. A run of the one that is free would rebuild what the other one guards. Two addresses of
    servers may be one ledger, by two roles: whether they are is found out by a run.
    """
    seen: dict[object, str] = {}
    for name, target in targets.items():
        if not target.by_folders and not target.catalog.is_in_warehouse:
            continue
        other = targets[seen.setdefault((_warehouse(root, target), target.storage), name)]
        one, two = (_ledger(project, root, each) for each in (other, target))
        if one == two:
            what = _guarded_otherwise(other, target)
        else:
            files = isinstance(one, Path) and isinstance(two, Path)
            what = "each a ledger of its own" if files else ""
        if what:
            yield catalog_errors.same_warehouse(
                places[name], one=other.name, other=name, what=what, warehouse=target.warehouse
            )


def _guarded_otherwise(one: Target, other: Target) -> str:
    """In which of the keys that guard tables two targets differ; empty if in none."""
    if one.protected != other.protected:
        return f"only {(one if one.protected else other).name} is protected"
    if one.apply is not other.apply:
        return f"`apply` is {one.apply} in {one.name} and {other.apply} in {other.name}"
    return ""


def _warehouse(root: Path, target: Target) -> object:
    """Where the tables of a target are; equal for two names of one place."""
    if not target.in_store:
        return _real(root / target.warehouse)
    scheme = scheme_of(target.warehouse)
    return SCHEMES.get(scheme, scheme), *split(target.warehouse)


def _ledger(project: str, root: Path, target: Target) -> object:
    """Where the ledger of a target is: a file, or a schema by the address of its server."""
    if target.ledger.startswith(SQLITE_FILE):
        return _real(root / target.ledger.removeprefix(SQLITE_FILE))
    return target.ledger, target.ledger_schema or f"infold_{project}_{target.name}"


def _real(path: Path) -> Path:
    """A path without links; one in a circle, which `Path.resolve` raises an error for, as it is."""
    return Path(os.path.realpath(path))
