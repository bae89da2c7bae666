"""
Session rules from scratch: what the fold's way of asking a rule is compared with.

The rule runs over all that is left of the events, and its first answer that begins a session
counts; then it runs again from there. It is only asked, and not watched: that is for the fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa

from infold.core.functions import FunctionCode
from infold.spark.python_functions.author_code import AuthorCode
from infold.spark.python_functions.values import values_of


@dataclass(frozen=True)
class ReplayedRule:
    """A rule over the events of sessions, each a list of structs in order."""

    code: FunctionCode

    def __call__(self, column: pa.Array) -> pa.Array:
        """Which events begin a session."""
        author = AuthorCode.of(self.code)
        rule = author.loaded()
        try:
            found = [_replayed(rule, events) for events in values_of(column)]
        except BaseException as error:  # noqa: BLE001 (also an exit: the worker would be lost)
            raise author.failed(error) from None
        return pa.array(found, pa.list_(pa.bool_()))


def _replayed(rule: Any, events: Sequence[Any]) -> list[bool]:
    begins = [False] * len(events)
    start: int | None = 0
    while start is not None:
        start = _next_start(rule, events, start)
        if start is not None:
            begins[start] = True
    return begins


def _next_start(rule: Any, events: Sequence[Any], start: int) -> int | None:
    """The first event of the instant at which the session that begins at ``start`` ends."""
    answers = chain(rule(iter(events[start:])), iter(lambda: False, True))
    for event, answer in zip(events[start:], answers, strict=False):
        if answer and event["time"] != events[start]["time"]:
            return next(at for at, one in enumerate(events) if one["time"] == event["time"])
    return None
