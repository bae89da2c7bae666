"""Columns that declarations name are found in any case."""

from __future__ import annotations

from tests.declare.shop import CLICKS, DAILY, SHOP, project


def test_declared_names_are_spelled_as_the_table_has_them() -> None:
    """A declared column name is spelled as the table's, so that readers by name find it."""
    clicks = CLICKS.replace(
        "SELECT event_id, user_id, event_ts", "SELECT Event_Id, user_id, event_ts AS AT"
    )
    clicks = clicks.replace("column: event_ts", "column: at").replace("[event_id]", "[EVENT_ID]")
    daily = DAILY.replace("AS day,", "AS Day,").replace("{}", "{unique_key: [DAY]}")
    found = project({**SHOP, "models/clicks.sql": clicks, "models/daily.sql": daily})
    events, days = found["clicks"].model, found["daily"].model

    assert events.timeseries is not None
    assert (events.timeseries.event_time_column, events.unique_key) == ("AT", ("Event_Id",))
    assert days.timeseries is not None
    assert days.timeseries.partition_column == "Day"
    assert days.incremental is not None
    assert days.incremental.unique_key == ("Day",)
    assert found["sessions"].query is not None
    assert found["sessions"].query.time_column == "AT"
    assert found["daily"].input("sessions").time_column == "session_start"
