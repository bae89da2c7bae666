"""
Environments as values: named variants of a target, with tables of their own where they differ.

A table of production has the name of its model as its key. A table of an environment has another
one, ``model__<hex digits>``. The key is what the ledger and the storage know the table by.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from hashlib import sha256
from typing import Any, TypeVar

from infold.core.model import SET_ASIDE
from infold.messages import environment_errors
from infold.messages.errors import InfoldError

PRODUCTION = ""
"""The environment of the tables that everybody reads."""

BUILT_APART = "built apart"
"""
Whose tables those are that are built to replace production's. It is no environment, and none can
be called so.
"""

_KEY = re.compile(r"(?P<model>.+)__[0-9a-f]{8,64}\Z")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,39}\Z")


def checked_name(name: str) -> str:
    """The name of an environment, or ``bad_environment_name``."""
    if not _NAME.match(name):
        raise environment_errors.bad_environment_name(name=repr(name))
    return name


def command_of_run(environment: str) -> str:
    """The command of an environment's runs, as the history of runs has it."""
    return f"run --env {environment}"


def model_of_key(key: str) -> str:
    """The model of the table of an environment; any other name as it is."""
    match = _KEY.match(key)
    return match.group("model") if match else key


def set_aside_of(environment: str) -> str:
    """The storage name of the table of rows that an environment's models could not use."""
    if environment == PRODUCTION:
        return SET_ASIDE
    return f"{SET_ASIDE}__{sha256(environment.encode()).hexdigest()[:8]}"


@dataclass(frozen=True, slots=True)
class OwnTable:
    """
    A table with a key of its own: of an environment, or built apart to replace production's.

    ``identity`` is the hash of everything that the table follows from: the fingerprint of its
    definition, and the keys of the inputs that are the environment's own. ``definition`` is the
    digest of the definition, ``base`` of that which had built production's table then (empty: none
    had). One that is not ``current`` is to be dropped: no name points to it.
    """

    model: str
    key: str
    identity: str
    definition: str
    base: str = ""
    current: bool = True


def tables_from_now_on(
    identities: Mapping[str, str],
    before: Iterable[OwnTable],
    definitions: Mapping[str, str],
    bases: Mapping[str, str],
    new_key: Callable[[str, str], str],
    waiting: Collection[str] = (),
) -> tuple[OwnTable, ...]:
    """
    The tables of models by the ``identities`` that they have to have, and those before that go.

    A table that was there is kept with its key, any other gets a ``new_key``. As long as a model is
    ``waiting``, it keeps its table. ``definitions`` and ``bases`` are digests by model.
    """
    left = {own.identity: own for own in before}
    tables = []
    for model, identity in identities.items():
        own = left.pop(identity, None)
        key = own.key if own is not None else new_key(model, identity)
        tables.append(OwnTable(model, key, identity, definitions[model], bases.get(model, "")))
    return (
        *tables,
        *(replace(own, current=own.current and own.model in waiting) for own in left.values()),
    )


@dataclass(frozen=True, slots=True)
class Environment:
    """
    A named variant of a target.

    ``owner`` is who made it, ``user@host``. ``expires_at`` None: never. ``built_at`` is the end of
    the last run that built all of its tables; None while one is going on, or after one failed.
    """

    name: str
    owner: str
    created_at: int
    expires_at: int | None = None
    last_run_at: int | None = None
    built_at: int | None = None
    tables: tuple[OwnTable, ...] = ()

    @property
    def own(self) -> Mapping[str, str]:
        """The keys of the tables that are its own now, by model."""
        return {table.model: table.key for table in self.tables if table.current}

    def is_over(self, now: int) -> bool:
        """Whether its time to live is over."""
        return self.expires_at is not None and self.expires_at <= now


@dataclass(frozen=True, slots=True)
class EnvironmentSize:
    """An environment, with the rows of each of its tables, and the bytes of all of them."""

    environment: Environment
    rows: Mapping[str, int]
    bytes: int


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
    renamed: T = _Names(models, pattern).changed(value)
    return renamed


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
        copied = copy(value)
        error = isinstance(value, InfoldError)
        names = vars(value) if error else (field.name for field in fields(value))
        for name in tuple(names):
            object.__setattr__(copied, name, self.changed(getattr(value, name)))
        return copied
