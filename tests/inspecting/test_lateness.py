"""Lateness by the times of rows, compared with counting them one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import cast

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.page.history import FIRST, day, history, lay_out

from infold import api
from infold.core.interval import DAY, HOUR, micros_of
from infold.core.ports import Lake
from infold.core.report import How
from infold.core.trace import CellState
from infold.inspecting.lateness import (
    LOOKBACKS,
    MOST_ROWS,
    _newest,
    lateness_of,
    measures_of,
    received_column,
)

START = datetime(1969, 12, 20, tzinfo=UTC)  # before 1970: days are counted down there
MICRO = timedelta(microseconds=1)


@dataclass
class StoredRows:
    """A lake with one table."""

    table: pa.Table

    def rows(self, table: str, *, columns: Sequence[str], where: str | None) -> pa.Table:
        """Its columns."""
        assert (table, where) == ("clicks", None)
        return self.table.select(list(columns))


minutes = st.integers(0, 60 * 24 * 60)


@given(st.lists(st.tuples(minutes, st.integers(-90, 60 * 24 * 400)), min_size=1, max_size=60))
def test_counts_are_those_of_the_rows(drawn: list[tuple[int, int]]) -> None:
    """Ages, lookbacks and the picture have each row once, where plain Python puts it."""
    events = [START + timedelta(minutes=at) for at, _ in drawn]
    received = [at + timedelta(minutes=late) for at, (_, late) in zip(events, drawn, strict=True)]
    ages = [(b - a) // MICRO for a, b in zip(events, received, strict=True)]
    days = [(b.date() - a.date()).days for a, b in zip(events, received, strict=True)]

    columns = {"age": ages, "late": days, "rows": [1] * len(ages)}
    times = {"event": events, "received": received}
    found = measures_of(
        pa.table(
            {
                name: pa.array([at.replace(tzinfo=None) for at in some], pa.timestamp("us"))
                for name, some in times.items()
            }
            | {name: pa.array(some, pa.int64()) for name, some in columns.items()}
        )
    )

    assert found.rows == len(drawn)
    assert [rows for _, rows in found.ages] == [
        sum(low <= age < high for age in ages) for low, high in BOUNDS
    ]
    assert {one.days: (one.rows, one.event_days) for one in found.lookbacks} == {
        length: (
            sum(late > length for late in days),
            len({at.date() for at, late in zip(events, days, strict=True) if late > length}),
        )
        for length in LOOKBACKS
    }
    assert found.longest_days == max(days)
    assert found.heat.event_unit is found.heat.received_unit
    assert sum(rows for _, _, rows in found.heat.cells) == len(drawn)
    worst = Counter(at.date() for at, late in zip(events, days, strict=True) if late > 1)
    assert [rows for _, rows in found.worst] == sorted(worst.values(), reverse=True)[:10]


EDGES = [-(10**18), HOUR, DAY, 3 * DAY, 7 * DAY, 30 * DAY, 365 * DAY, 10**18]
BOUNDS = list(pairwise(EDGES))


def with_received(root: Path, select: str) -> Path:
    """The project with a source that says when rows were received, and another SELECT."""
    text = (root / "infold.yml").read_text(encoding="utf-8")
    text = text.replace(
        "event_time_column: event_ts\n",
        "event_time_column: event_ts\n    received_column: seen_at\n",
    )
    (root / "infold.yml").write_text(
        text.replace("event_ts: timestamp,", "event_ts: timestamp, seen_at: timestamp,"),
        encoding="utf-8",
    )
    model = root / "models" / "clicks.sql"
    before, _, _ = model.read_text(encoding="utf-8").rpartition("SELECT")
    model.write_text(f"{before}{select}\n", encoding="utf-8")
    return root


def test_the_received_column_is_found_under_its_name_in_the_table(tmp_path: Path) -> None:
    """A column is the received time where the query passes it on as it is, also by another name."""
    plain = "SELECT event_id, user_id, event_ts, seen_at{} FROM raw.clicks"
    other = "SELECT event_id, user_id, event_ts, event_ts AS seen_at FROM raw.clicks"
    columns = []
    for number, select in enumerate((plain.format(""), plain.format(" AS came_at"), other)):
        project = api.open_project(with_received(lay_out(tmp_path / str(number)), select))
        columns.append(received_column(project, project["clicks"]))

    assert columns == ["seen_at", "came_at", None]


def test_rows_of_the_table_tell_themselves(tmp_path: Path) -> None:
    """Both times are read; rows without one, or with one that no calendar has, are left out."""
    root = with_received(
        history(tmp_path / "shop"), "SELECT event_id, user_id, event_ts, seen_at FROM raw.clicks"
    )
    at = datetime(2024, 3, 1, 12, tzinfo=UTC)
    far = 10**18  # microseconds: the year 33,658, where seconds were taken for milliseconds
    times = [(at, micros_of(at)), (at, micros_of(at + timedelta(days=2))), (at, None), (at, far)]
    table = pa.table(
        {
            "event_ts": pa.array([a for a, _ in times], pa.timestamp("us", "UTC")),
            "seen_at": pa.array([b for _, b in times], pa.timestamp("us", "UTC")),
        }
    )
    project = api.open_project(root)

    found = lateness_of(project, api.ledger(project), cast("Lake", StoredRows(table)), "clicks")

    assert found.measures is not None
    assert (found.how, found.column, found.measures.rows) == (How.RECEIVED, "seen_at", 2)
    assert [one.rows for one in found.measures.lookbacks] == [1, 0, 0, 0]


def test_the_newest_cell_is_read_whatever_its_size() -> None:
    """Cells are read from the newest on up to a number of rows, and always one that has some."""

    def since(*rows: int) -> int | None:
        found = _newest([CellState(day(at), of, 0, 0) for at, of in enumerate(rows)])
        return None if found is None else (found - FIRST) // DAY

    assert since(1, MOST_ROWS + 1) == 1
    assert since(1, MOST_ROWS + 1, 0) == 1
    assert since(1, 1, MOST_ROWS) == 2
    assert since(2, 1, MOST_ROWS - 1) == 1
    assert since(1, 1, MOST_ROWS - 2) is None
