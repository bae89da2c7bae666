"""
What users read when something is wrong: lists with one entry a message, and no other place.

A list is imported when one of its messages is asked for: most commands word none, and each list
makes dozens of values.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any


class _Unread:
    """A list that was not imported yet; whoever asks for one of its messages has it imported."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


globals().update(
    (each.name, _Unread(f"{__name__}.{each.name}"))
    for each in iter_modules(__path__)
    if each.name != "errors"
)
