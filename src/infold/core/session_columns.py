"""The columns that every stored session has, by name."""

from __future__ import annotations

ID, FIRST, LAST, STATE = "session_id", "session_start", "session_end", "_state"
