"""What becomes of the variables of Snowplow's packages."""

from __future__ import annotations

from tests.importing.conftest import Import

from infold.importing.draft import Outcome
from infold.importing.snowplow.project import COLUMNS


def project(**variables: str) -> dict[str, str]:
    """A dbt project with these variables of the unified package."""
    lines = "\n".join(f"    snowplow__{name}: {value}" for name, value in variables.items())
    return {"dbt_project.yml": f"name: web\nvars:\n  snowplow_unified:\n{lines}\n"}


def test_what_becomes_of_each_variable(imported: Import) -> None:
    """Each is in a key or a query, as the report says; a lookback is not needed."""
    found = imported(
        "snowplow",
        project(
            start_date="'2024-03-01'", app_id="[shop, 'it''s']", session_timestamp="derived_tstamp",
            max_session_days="5", heartbeat="15", user_sql="e.network_userid",
            session_lookback_days="730", enable_consent="true", enable_cwv="false",
        ),
    )  # fmt: skip

    assert "start: '2024-03-01'" in found.text("infold.yml")
    assert "WHERE app_id IN ('shop', 'it''s')" in found.query("events")
    assert "timeseries: {event_time_column: derived_tstamp, granularity: day}" in found.front(
        "events"
    )
    (sessions,) = [line for line in found.front("sessions") if line.startswith("sessions:")]
    assert "identifier: [domain_sessionid], user: network_userid" in sessions
    assert "quarantine_after: 5 days" in sessions
    assert "/ 15) END) * 15" in found.query("sessions")
    assert "GROUP BY network_userid" in found.query("users")
    assert found.outcomes("variable snowplow__user_sql") == {Outcome.CAME}
    assert "no lookback" in found.why("variable snowplow__session_lookback_days", Outcome.CAME)
    assert found.outcomes("variable snowplow__enable_consent") == {Outcome.LEFT}
    assert found.outcomes("variable snowplow__enable_cwv") == {Outcome.CAME}


def test_identifiers_in_contexts_have_no_place(imported: Import) -> None:
    """The columns of a context are not those of enriched events."""
    found = imported("snowplow", project(session_identifiers="[{schema: a_1, field: id}]"))

    assert found.outcomes("variable snowplow__session_identifiers") == {Outcome.LEFT}


def test_a_line_of_enriched_events_has_131_fields() -> None:
    """Without a header the number and the order of the columns are the file's."""
    assert len(COLUMNS) == 131
    assert list(COLUMNS)[:3] == ["app_id", "platform", "etl_tstamp"]
    assert list(COLUMNS)[-1] == "true_tstamp"
