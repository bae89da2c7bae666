"""
Where the Delta table of a source is: a folder, or a place in a store of the target's.

``path`` names it, or the entry of a Hive metastore that ``table`` names. Of the metastore nothing
but that is taken: the columns and the rows of a table are what its log says. Who drops a table and
makes another one under its name has made other files, wherever these are.
"""

from __future__ import annotations

import re
from os.path import normpath
from typing import Any

from infold.core.model import Source
from infold.core.object_store import (
    SCHEMES,
    StoreKind,
    bucket_url,
    is_url,
    kind_of,
    scheme_of,
    split,
)
from infold.core.project import Project
from infold.lake.delta.log import Newest, newest
from infold.lake.delta.metastore import PROVIDER, entry_of
from infold.lake.hive_client import HiveClient
from infold.lake.refused import RefusedError
from infold.lake.stores import places
from infold.messages import delta_errors, run_errors
from infold.messages.errors import InfoldError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")


def newest_version(project: Project, source: Source) -> Newest:
    """
    The newest version of a source's table.

    Raises ``no_source_table`` where none is, ``source_in_hdfs``, and what ``delta_errors`` has of
    entries.
    """
    if source.path is not None:
        url = is_url(source.path)
        folder = _url(source.path) if url else _folder(project, source.path)
    else:
        folder = _of_entry(project, source)
    if is_url(folder) and kind_of(folder) is StoreKind.HDFS:
        raise delta_errors.source_in_hdfs(source=source.name, at=folder)
    if places.in_store(folder):
        places.use(project, folder)
    found = newest(folder)
    if found is None:
        raise _no_table(source, folder)
    return found


def _folder(project: Project, path: str) -> str:
    return normpath(project.root.absolute() / path)


def _url(url: str) -> str:
    """A place by the one of its names that no other has: ``s3a`` is ``s3``."""
    return f"{bucket_url(url)}/{split(url)[1]}".rstrip("/")


def _no_table(source: Source, folder: str) -> InfoldError:
    there = places.is_folder(folder)
    why = "it has no _delta_log" if there else "it does not exist"
    if source.path is not None:
        return delta_errors.no_source_table(source=source.name, folder=folder, why=why)
    return delta_errors.no_table_of_entry(
        source=source.name, table=source.table or "", folder=folder, why=why
    )


def _of_entry(project: Project, source: Source) -> str:
    """Where the entry of a metastore leads to."""
    assert source.catalog is not None, "a name without a metastore is refused"
    client = HiveClient(source.catalog, project.root, f"catalog of source {source.name}")
    table = source.table or ""
    namespace, _, name = table.partition(".")
    try:
        found = next(iter(client.tables(namespace, [name])), None)
    except RefusedError:  # there is no such namespace
        found = None
    if found is None:
        raise run_errors.no_such_table(source=source.name, table=table, catalog=client.place)
    kind, entry = str(found.tableType), entry_of(found)
    if "VIEW" in kind or not entry.is_delta:
        raise delta_errors.other_entry(
            source=source.name, table=table, catalog=client.place, kind=_kind(found)
        )
    return _location(project, source, entry.location)


def _kind(table: Any) -> str:
    """What an entry is of that is of no table of Delta Lake."""
    if "VIEW" in str(table.tableType):
        return "a view"
    parameters = table.parameters or {}
    provider = parameters.get(PROVIDER) or parameters.get("table_type")
    return f"a table of {provider.lower()}" if provider else "a table of Hive"


def _location(project: Project, source: Source, location: str) -> str:
    """The place that an entry has. Raises ``source_elsewhere``."""
    scheme, why = _SCHEME.match(location), ""
    if location.startswith(("/", "file:/")):
        return normpath(places.local_path(location))
    if is_url(location) and scheme_of(location) in SCHEMES:
        found = _url(location)
        if kind_of(found) is StoreKind.HDFS:
            return found  # and refused, as by a path
        if _is_reached(project, found):
            return found
        why = f"target {project.target.name} does not say how {bucket_url(found)} is reached"
    elif scheme is not None:
        why = f"infold does not read {scheme[1]}:"
    raise delta_errors.source_elsewhere(
        source=source.name,
        table=source.table or "",
        at=location,
        why=why or "it is no absolute path, nor a URL",
    )


def _is_reached(project: Project, url: str) -> bool:
    """
    Whether the target says how a bucket is reached: by naming it, or another one of such a store.

    In Azure each account has a server and a key of its own, so there it has to be named.
    """
    kinds = {kind_of(bucket) for bucket in project.buckets} - {StoreKind.AZURE}
    return bucket_url(url) in project.buckets or kind_of(url) in kinds
