"""
Sessions whose definitions change forward-only: a shape, and plays that know the borders.

The reference evaluates each version of the query over the events of its stretch alone, so that a
border ends sessions, and puts the stretches together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from tests.arrivals.ends import campaign
from tests.arrivals.forward import DryForward
from tests.arrivals.shape import Rows, Shape, TableSpec, by_cells, day_of, during, sessions_table
from tests.arrivals.shapes import FOLD
from tests.reference import aggregates as agg
from tests.reference.aggregates import Aggregate
from tests.reference.tables import Ends
from tests.reference.world import Row

from infold.core.interval import HOUR, MINUTE


def _url_is_known(row: Row) -> bool:
    return row["url"] is not None


def _sessions(
    front: str,
    gap: int,
    columns: Mapping[str, Aggregate],
    ends: Ends | None = None,
    where: str = "",
) -> TableSpec:
    keeps = _url_is_known if where else (lambda row: True)
    found = sessions_table(
        "sessions",
        "clicks",
        f"user: user_id, {front}",
        columns,
        gap,
        keys="forward_only: true\n",
        where=(where, keeps),
        ends=ends,
        granularity=None,
        keeps=keeps,
    )
    COLUMNS[found.text] = tuple(columns)
    return found


COLUMNS: dict[str, tuple[str, ...]] = {}
"""The columns of the SELECT, by the text of a version."""

_COUNT = {"events": agg.count()}
_VERSIONS = (
    _sessions("gap: 30 minutes", 30 * MINUTE, _COUNT),
    _sessions(
        "gap: 2 hours, cuts: {campaign: {columns: url, direct: [/]}}, max_length: 5 hours",
        2 * HOUR,
        {"entry": agg.first("url"), **_COUNT},
        Ends(campaign=campaign, most=5 * HOUR),
    ),
    _sessions(
        "gap: 1 day, quarantine_after: 3 hours, keep: head",
        24 * HOUR,
        {"events": agg.count(), "entry": agg.last("url"), "amount": agg.total("amount")},
        Ends(limit=3 * HOUR, head=True),
        where=" WHERE url IS NOT NULL",
    ),
    _sessions(
        "gap: 30 minutes, cuts: {midnight: Asia/Kolkata}",
        30 * MINUTE,
        {**_COUNT, "amount": agg.total("amount"), "entry": agg.least("url")},
        Ends(zone="Asia/Kolkata"),
    ),
)


def _by_day(given: Mapping[str, Rows]) -> Rows:
    days = Counter(day_of(row["session_start"]) for row in given["sessions"])
    return [{"day": day, "n": number} for day, number in days.items()]


FORWARD_SESSIONS = Shape(
    "forward_sessions",
    sources=(FOLD.source("raw.clicks"),),
    tables={
        "clicks": FOLD.tables["clicks"][:1],
        "sessions": _VERSIONS,
        "by_day": (
            by_cells(
                "by_day",
                "SELECT cast(session_start AS date) AS day, count(*) AS n FROM sessions GROUP BY 1",
                ("sessions",),
                _by_day,
                time="session_start",
            ),
        ),
    },
    windows=True,
)


@dataclass
class DryForwardSessions(DryForward):
    """A play in which a border ends sessions."""

    def _by_parts(self, spec: TableSpec) -> Rows:
        return [
            row
            for by, part in self._parts(spec.name)
            if by.rows is not None
            for row in by.rows(during(self.state, "clicks", part.parts[0]))
        ]

    def _evaluate(self, spec: TableSpec) -> Rows:
        if spec.name != "sessions":
            return super()._evaluate(spec)
        trace = self._book().traces()[spec.name]
        if trace.fingerprint == self.project[spec.name].fingerprint:
            self._carry_out(spec)
        columns = ("user_id", "session_start", "session_end", *self._columns())
        return [{name: row.get(name) for name in columns} for row in self._by_parts(spec)]

    def _columns(self) -> list[str]:
        """The columns of the newest definition that is carried out."""
        fixed = {"session_id", "user_id", "session_start", "session_end"}
        newest = self.held["sessions"][-1][1]
        return [name for name in COLUMNS[newest.text] if name not in fixed]
