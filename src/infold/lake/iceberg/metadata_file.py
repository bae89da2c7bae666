"""The metadata file of a table, read directly: no Iceberg library is needed for that."""

from __future__ import annotations

import gzip
import json
from typing import Any

from infold.lake.stores import places
from infold.messages import run_errors


def read_metadata(location: str) -> dict[str, Any]:
    """The metadata file of a table."""
    try:
        raw = places.read(location)
    except OSError as error:
        raise run_errors.metadata_missing(
            path=places.shown(location), why=error.strerror or str(error)
        ) from error
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    found: dict[str, Any] = json.loads(raw)
    return found
