"""Cases in which sessions of Snowplow's packages lose or repeat data.

Each case is one identifier whose events arrive in three runs. All cases run at once: sessions
by identifier, quarantined after three days except for their head. Sources of the cases: the
packages' issues on late loads, returning identifiers, limited upserts and the arbitrary user.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from tests.reference.drawn import at, drawn
from tests.reference.tables import Ends
from tests.spark.sessions.folding import USER, FoldedSessions
from tests.spark.sessions.random_folds import COUNT

from infold.core.interval import DAY
from infold.core.session_rules import Keep

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Case:
    """Events of one identifier by run: instants, or an instant and the user that it names."""

    claim: str
    runs: Sequence[Sequence[str]]
    then: str
    """Its session: ``start - end user (events)``."""
    held: tuple[str, str, int] | None = None
    """First and last instant and number of events of what is in quarantine."""


CASES = (
    Case(
        "a session loaded days after everything newer is there",
        ([], [], ["02 10:00", "02 10:20"]),
        "02 10:00 - 02 10:20 None (2)",
    ),
    Case(
        "a late event of a session that gets nothing new is not lost",
        (["05 10:00", "05 10:20"], [], ["05 10:10"]),
        "05 10:00 - 05 10:20 None (3)",
    ),
    Case(
        "an earlier first event moves the start back, in the run in which it comes",
        (["05 10:00"], ["05 09:00 bob"], ["05 08:00"]),
        "05 08:00 - 05 10:00 bob (3)",
    ),
    Case(
        "the user is the first that events name, whichever run brought them",
        (["05 10:00 zoe"], ["05 09:00 ann"], ["05 11:00 zzz"]),
        "05 09:00 - 05 11:00 ann (3)",
    ),
    Case(
        "an identifier that returns after months is one session, held as soon as it returns",
        (["2019-07-01T10:00"], [], ["05 10:00"]),
        "2019-07-01 10:00 - 2019-07-01 10:00 None (1)",
        held=("2019-07-01T10:00", "05 10:00", 2),
    ),
    Case(
        "an event exactly at the limit is kept, and holds nothing",
        (["05 10:00"], ["08 10:00"], []),
        "05 10:00 - 08 10:00 None (2)",
    ),
    Case(
        "what lies past the limit is counted though it is not kept",
        (["05 10:00"], ["08 10:00"], ["08 11:00", "20 11:00"]),
        "05 10:00 - 08 10:00 None (2)",
        held=("05 10:00", "20 11:00", 4),
    ),
    Case(
        "an earlier start moves the limit: what it cuts off leaves, and is counted still",
        (["05 10:00", "08 09:00"], ["04 10:00"], []),
        "04 10:00 - 05 10:00 None (2)",
        held=("04 10:00", "08 09:00", 3),
    ),
    Case(
        "a start that moves back by months leaves no second row behind",
        (["20 10:00"], ["2019-09-30T10:00"], []),
        "2019-09-30 10:00 - 2019-09-30 10:00 None (1)",
        held=("2019-09-30T10:00", "20 10:00", 2),
    ),
    Case(
        "a run without anything new leaves everything as it is",
        (["05 10:00"], [], []),
        "05 10:00 - 05 10:00 None (1)",
    ),
)


def test_cases(spark: SparkSession) -> None:
    """After three runs table and quarantine have the sessions that each case draws."""
    shop = FoldedSessions(
        spark,
        COUNT,
        user="session_identifier",
        owner_sql="url",
        gap=None,
        quarantine_after=3 * DAY,
        keep=Keep.HEAD,
        chosen_user=USER,
        ends=Ends(whose=lambda row: row["url"], limit=3 * DAY, head=True),
    )
    for run in range(3):
        shop.arrive(
            {
                "event_id": f"{number}.{run}.{n}",
                "user_id": text.split(" ")[2] if len(text.split(" ")) > 2 else None,
                "event_ts": at(" ".join(text.split(" ")[:2])),
                "url": f"case {number}",
            }
            for number, case in enumerate(CASES)
            for n, text in enumerate(case.runs[run])
        ).run()

    rows = shop.rows()
    for number, case in enumerate(CASES):
        of = f"case {number}"
        own = [row for row in rows if row["session_identifier"] == of]
        [(start, end, user, count)] = drawn(own, "user_id", "events")
        assert f"{start} - {end} {user} ({count})" == case.then, case.claim
        held = [(o.start, o.end, o.events) for o in shop.ledger.held.values() if o.owner == of]
        first, last, events = case.held or ("", "", 0)
        assert held == ([(at(first), at(last), events)] if case.held else []), case.claim
