"""Which changes of the granularity alone are proven to change no row."""

from __future__ import annotations

import pytest
from tests.analysis.definitions.test_derived_models import HEAD, ROWS, redefined
from tests.analysis.fingerprints import redefinitions
from tests.declare.shop import SHOP

from infold.core.definition import Category, How

MONTHLY = HEAD.replace("granularity: day", "granularity: month")
WEEKLY = HEAD.replace("granularity: day", "granularity: week, week_start: sunday")
EVERY = frozenset({"day", "user_id", "revenue"})


@pytest.mark.parametrize(("before", "after"), [(HEAD, MONTHLY), (MONTHLY, HEAD), (WEEKLY, MONTHLY)])
def test_another_granularity(before: str, after: str) -> None:
    """Longer, shorter or other cells of the same rows: no column changes, and none is lost."""
    found = redefined(before + ROWS, after + ROWS.replace(" AS day", "  AS  day"))

    assert (found.category, found.how) == (Category.METADATA, How.REBUCKET)
    assert (found.columns_kept, found.losses) == (EVERY, ())
    assert [one.part for one in found.differences] == ["granularity", "layout"]


@pytest.mark.parametrize(
    "after",
    [
        MONTHLY + ROWS.replace(", revenue", ""),
        MONTHLY + ROWS.replace("user_id, revenue", "revenue, user_id"),
        MONTHLY + ROWS + " WHERE revenue > 0",
        MONTHLY.replace("incremental: {}", "incremental: {start: 2024-01-05}") + ROWS,
    ],
    ids=["column", "order", "where", "start"],
)
def test_anything_else_beside_it(after: str) -> None:
    """Only the granularity may differ."""
    assert redefined(HEAD + ROWS, after).how is How.REBUILD


def test_what_somebody_vouches_for_is_no_proof() -> None:
    """A query that may give other rows by other cells is built again."""
    rows = f"{ROWS} LIMIT 3"
    vouched = "incremental: {safety_overrides: {allow_limit: true}}"
    before, after = (head.replace("incremental: {}", vouched) for head in (HEAD, MONTHLY))
    found = redefined(before + rows, after + rows)

    assert found.how is How.REBUILD


def test_events_and_sessions() -> None:
    """Their rows do not depend on their cells either."""
    series = "timeseries: {event_time_column: session_start, granularity: day}"
    files = {**SHOP, "models/sessions.sql": f"---\n{series}" + SHOP["models/sessions.sql"][3:]}
    longer = {
        name: text.replace("granularity: day", "granularity: month")
        for name, text in files.items()
        if name in ("models/clicks.sql", "models/sessions.sql")
    }
    found = redefinitions(files, {**files, **longer})

    assert {name: one.how for name, one in found.items()} == {
        "clicks": How.REBUCKET,
        "sessions": How.REBUCKET,
    }
