"""Midnight in a time zone: a session ends with the local day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from infold.core.session_cuts import Midnight
from infold.spark.sessions.cuts.base import PairwiseCut
from infold.spark.sessions.frames import TIME


@dataclass(frozen=True, slots=True)
class MidnightCut(PairwiseCut):
    """Parts two events of different local days."""

    declared: Midnight

    def parts(self, before: Column, after: Column) -> Column:
        """Whether a midnight lies between two events."""
        zone = self.declared.zone
        return local_day(before, zone) != local_day(after, zone)

    def bucket_columns(self) -> Sequence[Column]:
        """The local day: a bucket may lie around midnight."""
        return [local_day(F.col(TIME), self.declared.zone)]


def local_day(at: Column, zone: str) -> Column:
    """
    The day of an instant in a time zone, such that later instants have no earlier days.

    A clock set back over midnight shows the day before once more. That hour is of the new day
    here: a day begins once, when it first begins.
    """
    when, name = F.timestamp_micros(at), F.lit(zone)
    day = F.to_date(F.from_utc_timestamp(when, name))
    following = F.date_add(day, 1)
    begins = F.to_utc_timestamp(following.cast("timestamp"), name)
    return F.when(begins <= when, following).otherwise(day)
