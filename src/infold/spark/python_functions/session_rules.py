"""
Calls of a project's session rules, in Spark's Python workers.

A rule is a generator. It is handed one event and has to answer before it is handed the next, so an
answer cannot depend on what comes later. With each session it starts again, so an answer does not
depend on what was before. Events of one instant are never parted: if a rule ends the session
at any of them, the next one begins with the first of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa
from pyspark.sql.types import ArrayType, BooleanType

from infold.core.functions import FunctionCode
from infold.spark.python_functions.author_code import AuthorCode, FunctionFailedError
from infold.spark.python_functions.register import scalar_function
from infold.spark.python_functions.values import shown, values_of

Event = Mapping[str, Any]
"""``time``, an instant in UTC, and the parameters of the rule."""


def rule_function(code: FunctionCode) -> Any:
    """
    The rule as a function of Spark's: the events of a session -> which of them begin another.

    The former is an array of structs in order, with ``time`` first; the latter an array of booleans
    as long.
    """
    return session_function(RuleCall(code).__call__)


def session_function(call: Callable[[pa.Array], pa.Array]) -> Any:
    """A function of Spark's that has answers for the events of sessions."""
    return scalar_function(call, ArrayType(BooleanType()))


@dataclass(frozen=True)
class RuleCall:
    """A rule as Spark calls it, for a batch of sessions."""

    code: FunctionCode

    def __call__(self, column: pa.Array) -> pa.Array:
        """Which events begin a session."""
        author = AuthorCode.of(self.code)
        rule = author.loaded()
        answers = [self._begins_of_session(author, rule, session) for session in values_of(column)]
        return pa.array(answers, pa.list_(pa.bool_()))

    def _begins_of_session(
        self, author: AuthorCode, rule: Callable[..., Any], session: Sequence[Event]
    ) -> list[bool]:
        flags: list[bool] = []
        run = _RuleRun(author, rule)
        for number, (_, instant) in enumerate(groupby(session, key=lambda event: event["time"])):
            events = list(instant)
            answers = [run.begins(event) for event in events]
            begins = number > 0 and any(answers)
            if begins:
                run.close()
                run = _RuleRun(author, rule)
                for event in events:
                    run.begins(event)
            flags += [begins, *([False] * (len(events) - 1))]
        run.close()
        return flags


class _RuleRun:
    """One run of a rule: over the events of one session, from its first."""

    def __init__(self, author: AuthorCode, rule: Callable[..., Any]) -> None:
        self._author = author
        self._given: list[Event] = []
        self._answers: Any = self._call_author(lambda: iter(rule(self._handed_out())))

    def begins(self, event: Event) -> bool:
        """What the rule answers for the next event."""
        self._given.append(event)
        answer = self._call_author(lambda: next(self._answers, _NOTHING), event)
        if answer is _NOTHING:
            raise self._author.wrong("ended before the last event", shown(event))
        if self._given:
            raise self._author.wrong("yielded twice for one event, or before the first", "")
        if not isinstance(answer, bool):
            raise self._author.wrong(f"yielded {shown(answer)}, which is no bool", shown(event))
        return answer

    def close(self) -> None:
        """No more events: the rule is left where it is."""
        close = getattr(self._answers, "close", None)
        if close is not None:
            self._call_author(close)

    def _handed_out(self) -> Iterator[Event]:
        while True:
            if not self._given:
                raise self._author.wrong(
                    "took the next event before it yielded for the one before", ""
                )
            yield self._given.pop()

    def _call_author(self, call: Callable[[], Any], event: Event | None = None) -> Any:
        try:
            return call()
        except FunctionFailedError:
            raise
        except BaseException as error:  # noqa: BLE001 (also an exit: the worker would be lost)
            raise self._author.failed(error, "" if event is None else shown(event)) from None


_NOTHING = object()
