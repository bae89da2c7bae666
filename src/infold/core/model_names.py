"""The names of models in place of the keys of an environment's tables, in whatever is shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import copy
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, TypeVar

from infold.messages.errors import InfoldError

T = TypeVar("T")


def with_model_names(value: T, models: Mapping[str, str]) -> T:
    """
    A value with all texts in it changed: each key becomes the name of its model.

    Values of a kind that has no text in it are returned as they are.
    """
    if not models:
        return value
    keys = sorted(models, key=len, reverse=True)
    pattern = re.compile("|".join(rf"{re.escape(key)}(?!\w)" for key in keys))
    found: T = _Names(models, pattern).changed(value)
    return found


class _Names:
    def __init__(self, models: Mapping[str, str], pattern: re.Pattern[str]) -> None:
        self._models, self._pattern = models, pattern

    def changed(self, value: Any) -> Any:
        """The value with other texts; itself if it has none of these keys."""
        if isinstance(value, Enum):
            return value
        if isinstance(value, str):
            return self._pattern.sub(lambda found: self._models[found.group()], value)
        if isinstance(value, tuple | list | frozenset | set):
            return type(value)(self.changed(one) for one in value)
        if isinstance(value, Mapping):
            return {self.changed(key): self.changed(one) for key, one in value.items()}
        if isinstance(value, InfoldError) or (is_dataclass(value) and not isinstance(value, type)):
            return self._copied(value)
        return value

    def _copied(self, value: Any) -> Any:
        """A copy of a value with fields."""
        found = copy(value)
        error = isinstance(value, InfoldError)
        names = vars(value) if error else (field.name for field in fields(value))
        for name in tuple(names):
            object.__setattr__(found, name, self.changed(getattr(value, name)))
        return found
