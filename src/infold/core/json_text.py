"""
Values as JSON text that loses nothing: times in ISO 8601, decimals as texts, bytes as hex.

JSON has no number for what is none, and for the infinite: ``"NaN"``, ``"Infinity"``.
"""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from math import isfinite
from typing import Any

from infold.core.arrow_values import FarTime


def text(value: Any) -> str:
    """A value of a table's row, or a whole row, as JSON."""
    try:
        return json.dumps(value, default=_plain, ensure_ascii=False, allow_nan=False)
    except ValueError:  # there is one of those
        return json.dumps(_finite(value), default=_plain, ensure_ascii=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not isfinite(value):
        return json.dumps(value)
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, datetime | FarTime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        return value.hex()
    return str(value)
