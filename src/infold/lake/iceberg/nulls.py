"""
Lists and maps of structs that are NULL, kept apart from empty ones.

pyiceberg rebuilds each list (or map) of structs that it reads from offsets and values alone, so
that NULL ones become empty. Here they are made NULL again: the methods of its visitor are wrapped
by ones that restore the NULLs.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.io.pyarrow import ArrowProjectionVisitor


def keep_null_lists() -> None:
    """Make pyiceberg keep NULL lists and maps; calling it again changes nothing."""
    for name in ("list", "map"):
        own = getattr(ArrowProjectionVisitor, name)
        if not hasattr(own, "__wrapped__"):
            setattr(ArrowProjectionVisitor, name, _keeping_nulls(own))


def _keeping_nulls(own: Any) -> Any:
    @wraps(own)
    def method(self: Any, kind: Any, before: Any, *parts: Any) -> Any:
        after = own(self, kind, before, *parts)
        if after is None or before is None or after.null_count == before.null_count:
            return after
        return _with_nulls(after, before.is_null())

    return method


def _with_nulls(found: Any, mask: pa.Array) -> pa.Array:
    """The same lists or maps, NULL where the mask is true."""
    offsets = pc.add(found.offsets, 0)  # a copy: Arrow takes no mask beside a slice
    if isinstance(found, pa.MapArray):
        return pa.MapArray.from_arrays(offsets, found.keys, found.items, found.type, mask=mask)
    return type(found).from_arrays(offsets, found.values, found.type, mask=mask)
