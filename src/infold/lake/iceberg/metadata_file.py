"""The metadata file of a table, read directly: no Iceberg library is needed for that."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from infold.messages import run_errors


def local_path(location: str) -> Path:
    """The file behind a location: a path, or ``file:`` and a path (Hadoop escapes nothing)."""
    if location.startswith("file:"):
        return Path("/" + location.removeprefix("file:").lstrip("/"))
    return Path(location)


def read_metadata(location: str) -> dict[str, Any]:
    """The metadata file of a table."""
    path = local_path(location)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise run_errors.metadata_missing(
            path=str(path), why=error.strerror or str(error)
        ) from error
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    found: dict[str, Any] = json.loads(raw)
    return found
