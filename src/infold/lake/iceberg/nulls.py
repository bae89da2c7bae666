"""
Lists and maps of structs that are NULL, kept apart from empty ones.

pyiceberg puts what it reads of a list (or map) of structs together anew, by offsets and values
alone, and so the NULL ones become empty. Here they are made NULL again, at the one place where it
does so: its visitor is given methods that ask its own and put back what they lose.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.io.pyarrow import ArrowProjectionVisitor


def keep_null_lists() -> None:
    """Have pyiceberg keep them; more than once is as good as once."""
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
    """The same lists or maps, NULL where the mask says so."""
    offsets = pc.add(found.offsets, 0)  # a copy: Arrow takes no mask beside a slice
    if isinstance(found, pa.MapArray):
        return pa.MapArray.from_arrays(offsets, found.keys, found.items, found.type, mask=mask)
    return type(found).from_arrays(offsets, found.values, found.type, mask=mask)
