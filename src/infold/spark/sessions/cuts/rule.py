"""
Rules: a session ends where a function of the project says so, which is given the session's events.

The function sees the events of a session in their order and answers for each before it sees the
next one. It starts again with each session. So an answer depends on the session's events up to it,
and a fold can begin at any stored session, as it does where campaigns end them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.session_cuts import Rule
from infold.spark.python_functions.session_rules import rule_function
from infold.spark.sessions.cuts.base import InnerCut, by_session, in_pieces
from infold.spark.sessions.frames import GIVEN, TIME

_EVENTS, _BEGINS = "__session_events", "__event_begins"
"""Of a session: its events in order, and of each whether it begins another session."""


@dataclass(frozen=True, slots=True)
class RuleCut(InnerCut):
    """Divides what all other cuts leave whole, so it starts again where these end a session."""

    declared: Rule
    merges = False

    def event_columns(self) -> Sequence[Column]:
        """What the function is given of the event."""
        return [F.expr(self.declared.sql).alias(GIVEN)]

    def pieces(
        self, rows: DataFrame, session: Sequence[str], order: Sequence[str]
    ) -> tuple[DataFrame, Sequence[str]]:
        """Sessions in pieces, as the function divides them."""
        assert self.declared.code is not None, "a rule that was found"
        given = rows.schema[GIVEN].dataType
        assert isinstance(given, T.StructType), "a struct of the rule's parameters"
        fields = ", ".join(f"'{name}', e.{GIVEN}.`{name}`" for name in given.fieldNames())
        ordered = F.array_sort(F.collect_list(F.struct(*order, GIVEN)))
        sessions = rows.groupBy(*by_session(session)).agg(ordered.alias(_EVENTS))
        asked = F.expr(
            f"transform({_EVENTS}, e -> named_struct('time', timestamp_micros(e.{TIME}), {fields}))"
        )
        several = sessions.where(F.size(_EVENTS) > 1)
        answered = several.withColumn(_BEGINS, rule_function(self.declared.code)(asked))
        return in_pieces(rows, session, answered, F.expr(_STARTS))

    def leaves_whole(self) -> Column | None:
        """Nobody knows before it is asked again."""
        return F.lit(False)


_STARTS = f"""array_distinct(transform(
    filter(arrays_zip({_EVENTS}, {_BEGINS}), e -> e.{_BEGINS}), e -> e.{_EVENTS}.{TIME}
))"""
