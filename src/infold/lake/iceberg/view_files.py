"""
Metadata files of views, where infold writes them itself: for a database, and for a Hive metastore.

The name of a file follows from what the view says. So whether a view is right, and whether infold
made it, is seen by the catalog's entry alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from infold.lake.iceberg.view_metadata import View
from infold.lake.stores import places
from infold.lake.views import FoundView

_OWN, _END = "00000-infold-", ".metadata.json"
"""Around the digest, in the names of files that infold made."""


def file_of(view: View) -> str:
    """Where the metadata file of a view is to be."""
    return places.below(view.folder, "metadata", f"{_OWN}{view.digest}{_END}")


def digest_of(location: str) -> str | None:
    """The digest of the view with this metadata file; None if infold did not make it."""
    name = location.rpartition("/")[2]
    return name.removeprefix(_OWN).removesuffix(_END) if name.startswith(_OWN) else None


def own_view_files(locations: Mapping[str, str]) -> Mapping[str, FoundView]:
    """Those of the entries of a catalog, by their names, that are views that infold made."""
    digests = {name: digest_of(location) for name, location in locations.items()}
    return {
        name: FoundView(digest, locations[name])
        for name, digest in digests.items()
        if digest is not None
    }


def write_view_file(view: View) -> str:
    """Write the metadata file of a view; where it is."""
    location = file_of(view)
    places.make_folder(location.rpartition("/")[0])
    places.write(location, json.dumps(view.dated()).encode())
    return location


def delete_old_view_files(view: View, before: str | None) -> None:
    """
    Delete files of what a view was earlier, but for the last: a reader may be about to open it.

    Whoever died before the catalog named its file left one, which goes as well.
    """
    now = file_of(view)
    folder = now.rpartition("/")[0]
    keep = {now.rpartition("/")[2], (before or "").rpartition("/")[2]}
    old = [name for name in places.names(folder) if name.startswith(_OWN) and name not in keep]
    if old:
        places.delete(*(places.below(folder, name) for name in old))


def delete_all_view_files(folder: str) -> None:
    """Delete what infold wrote for the view in a folder; the folder too if that was all."""
    inside = places.below(folder, "metadata")
    own = [name for name in places.names(inside) if name.startswith(_OWN)]
    if own:
        places.delete(*(places.below(inside, name) for name in own))
    for left in (inside, folder):
        if places.is_folder(left) and not places.names(left):
            places.delete_folder(left)
