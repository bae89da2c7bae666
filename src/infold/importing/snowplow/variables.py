"""What became of each variable of Snowplow's packages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from infold.importing.report import Line, came, changed, left

_LATE = "a late event finds its session however old that is, so there is no lookback"
_WAREHOUSE = "a setting of the warehouse that infold does not read"
_STITCHED = (
    "stitching: join a lookup of users in a view before the sessions (cookbook, stitched users)"
)
_CONTEXT = "a column of its own in infold: take its fields from contexts or derived_contexts"
_OWN = "write it as a column of the model's SELECT"

_GONE = {
    "allow_null_dvce_tstamps": "rows without the event time are set aside, and counted",
    "allow_refresh": "`infold run --allow-refresh`, for one run",
    "conversion_events": "write each as count_if(…) in models/sessions.sql",
    "custom_sql": _OWN,
    "cwv_days_to_measure": "core web vitals: a model of your own",
    "cwv_percentile": "core web vitals: a model of your own",
    "dev_target_name": "dev_target in infold.yml; here is one target, dev",
    "license_accepted": "infold has a license of its own",
    "page_view_stitching": _STITCHED,
    "session_stitching": _STITCHED,
    "view_stitching": _STITCHED,
    "conversion_stitching": _STITCHED,
    "user_stitching_id": _STITCHED,
    "ua_bot_filter": "a condition on useragent in models/events.sql; the packages' list of names "
    "is theirs",
}
_NOT_NEEDED = {
    "days_late_allowed": "a late event counts; one dated in the future is set aside "
    "(received_column, future_tolerance)",
    "lookback_window_hours": _LATE,
    "session_lookback_days": _LATE,
    "upsert_lookback_days": _LATE,
    "limit_page_views_to_session": "events of a session are all of its own",
    "enable_initial_checks": "`infold check`, and every run, check the project",
}
_ENDINGS = {
    "_context": _CONTEXT,
    "_context_2": _CONTEXT,
    "_events": _CONTEXT,
    "_passthroughs": _OWN,
    "_aggregations": _OWN,
    "_seed": "put the file into seeds/",
}
_OF_WAREHOUSE = (
    "atomic_schema", "cmp_visible", "consent_", "database", "databricks_catalog",
    "derived_tstamp_partitioned", "enable_load_tstamp", "entities_or_sdes", "events",
    "events_table", "grant_", "query_tag", "sessions_table", "snowflake_lakeloader",
)  # fmt: skip

USED = {
    "app_id", "backfill_limit_days", "enable_mobile", "enable_web", "heartbeat",
    "max_session_days", "min_visit_length", "session_identifiers", "session_sql",
    "session_timestamp", "start_date", "user_identifiers", "user_sql",
}  # fmt: skip
"""Variables that the project is made by."""

_PREFIX = "snowplow__"


def values(found: Mapping[str, Any]) -> dict[str, Any]:
    """The variables by their names without ``snowplow__``."""
    return {
        key.removeprefix(_PREFIX): value for key, value in found.items() if key.startswith(_PREFIX)
    }


def line_of(name: str, value: Any, at: str) -> Line:
    """What is said of a variable that the project is not made by."""
    what = f"variable {_PREFIX}{name}"
    if name in _NOT_NEEDED:
        return came(what, at, f"not needed: {_NOT_NEEDED[name]}")
    if name in _GONE:
        return left(what, at, _GONE[name])
    if value in (False, None, "", []):
        return came(what, at, "it is off")
    if name.startswith("enable_"):
        return left(what, at, "the models of this module are not made: write those that you need")
    if name.startswith(_OF_WAREHOUSE):
        return left(what, at, _WAREHOUSE)
    for ending, why in _ENDINGS.items():
        if name.endswith(ending):
            return left(what, at, why)
    return left(what, at, "infold has none like it")


def used(name: str, at: str, why: str) -> Line:
    """A variable that means the same in the project."""
    return came(f"variable {_PREFIX}{name}", at, why)


def other(name: str, at: str, why: str) -> Line:
    """A variable that came over, and means something else."""
    return changed(f"variable {_PREFIX}{name}", at, why)


def not_used(name: str, at: str, why: str) -> Line:
    """A variable whose value cannot come over."""
    return left(f"variable {_PREFIX}{name}", at, why)
