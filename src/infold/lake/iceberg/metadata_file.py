"""The metadata file of a table, read directly: no Iceberg library is needed for that."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

from infold.lake.stores import places
from infold.messages import run_errors


def read_metadata(location: str) -> dict[str, Any]:
    """The metadata file of a table. Raises ``metadata_missing`` where it cannot be read."""
    try:
        raw = places.read(location)
        if raw[:2] == b"\x1f\x8b":
            raw = gzip.decompress(raw)
        found = json.loads(raw)
        if not isinstance(found, dict):
            raise TypeError("it is no JSON object")
    except OSError as error:
        why = error.strerror or str(error)
        raise run_errors.metadata_missing(path=places.shown(location), why=why) from error
    except (EOFError, TypeError, ValueError, zlib.error) as error:
        why = f"it is damaged: {error}"
        raise run_errors.metadata_missing(path=places.shown(location), why=why) from error
    return found
