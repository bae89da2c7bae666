"""A project of infold from the variables of Snowplow's dbt packages: events, sessions and users."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from infold.importing.draft import (
    Draft,
    DraftModel,
    DraftSource,
    Line,
    Way,
    came,
    changed,
    left,
    project_name,
    to_fill,
)
from infold.importing.project_files import Lined, ProjectFiles, as_list, as_mapping, date_of

_WHY_NO_LOOKBACK = "a late event finds its session however old that is, so there is no lookback"
_WAREHOUSE = "a setting of the warehouse that infold does not read"
_STITCHED = (
    "stitching: join a lookup of users in a view before the sessions (cookbook, stitched users)"
)
_CONTEXT = "a column of its own in infold: take its fields from contexts or derived_contexts"
_AS_COLUMN = "write it as a column of the model's SELECT"

_GONE = {
    "allow_null_dvce_tstamps": "rows without the event time are set aside, and counted",
    "allow_refresh": "`infold run --allow-refresh`, for one run",
    "conversion_events": "write each as count_if(…) in models/sessions.sql",
    "custom_sql": _AS_COLUMN,
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
    "lookback_window_hours": _WHY_NO_LOOKBACK,
    "session_lookback_days": _WHY_NO_LOOKBACK,
    "upsert_lookback_days": _WHY_NO_LOOKBACK,
    "limit_page_views_to_session": "events of a session are all of its own",
    "enable_initial_checks": "`infold check`, and every run, check the project",
}
_ENDINGS = {
    "_context": _CONTEXT,
    "_context_2": _CONTEXT,
    "_events": _CONTEXT,
    "_passthroughs": _AS_COLUMN,
    "_aggregations": _AS_COLUMN,
    "_seed": "put the file into seeds/",
}
_OF_WAREHOUSE = (
    "atomic_schema", "cmp_visible", "consent_", "database", "databricks_catalog",
    "derived_tstamp_partitioned", "enable_load_tstamp", "entities_or_sdes", "events",
    "events_table", "grant_", "query_tag", "sessions_table", "snowflake_lakeloader",
)  # fmt: skip

VARIABLES_USED = {
    "app_id", "backfill_limit_days", "enable_mobile", "enable_web", "heartbeat",
    "max_session_days", "min_visit_length", "session_identifiers", "session_sql",
    "session_timestamp", "start_date", "user_identifiers", "user_sql",
}  # fmt: skip
"""Variables that the project is made by."""

_PREFIX = "snowplow__"


def variable_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """The variables by their names without ``snowplow__``."""
    return {
        key.removeprefix(_PREFIX): value for key, value in values.items() if key.startswith(_PREFIX)
    }


def variable_line(name: str, value: Any, at: str) -> Line:
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


def variable_used(name: str, at: str, why: str) -> Line:
    """A variable that means the same in the project."""
    return came(f"variable {_PREFIX}{name}", at, why)


def other_variable(name: str, at: str, why: str) -> Line:
    """A variable that came over, and means something else."""
    return changed(f"variable {_PREFIX}{name}", at, why)


def variable_not_used(name: str, at: str, why: str) -> Line:
    """A variable whose value cannot come over."""
    return left(f"variable {_PREFIX}{name}", at, why)


_NAMES = """
app_id platform etl_tstamp collector_tstamp dvce_created_tstamp event event_id txn_id name_tracker
v_tracker v_collector v_etl user_id user_ipaddress user_fingerprint domain_userid domain_sessionidx
network_userid geo_country geo_region geo_city geo_zipcode geo_latitude geo_longitude
geo_region_name ip_isp ip_organization ip_domain ip_netspeed page_url page_title page_referrer
page_urlscheme page_urlhost page_urlport page_urlpath page_urlquery page_urlfragment refr_urlscheme
refr_urlhost refr_urlport refr_urlpath refr_urlquery refr_urlfragment refr_medium refr_source
refr_term mkt_medium mkt_source mkt_term mkt_content mkt_campaign contexts se_category se_action
se_label se_property se_value unstruct_event tr_orderid tr_affiliation tr_total tr_tax tr_shipping
tr_city tr_state tr_country ti_orderid ti_sku ti_name ti_category ti_price ti_quantity
pp_xoffset_min pp_xoffset_max pp_yoffset_min pp_yoffset_max useragent br_name br_family br_version
br_type br_renderengine br_lang br_features_pdf br_features_flash br_features_java
br_features_director br_features_quicktime br_features_realplayer br_features_windowsmedia
br_features_gears br_features_silverlight br_cookies br_colordepth br_viewwidth br_viewheight
os_name os_family os_manufacturer os_timezone dvce_type dvce_ismobile dvce_screenwidth
dvce_screenheight doc_charset doc_width doc_height tr_currency tr_total_base tr_tax_base
tr_shipping_base ti_currency ti_price_base base_currency geo_timezone mkt_clickid mkt_network
etl_tags dvce_sent_tstamp refr_domain_userid refr_dvce_tstamp derived_contexts domain_sessionid
derived_tstamp event_vendor event_name event_format event_version event_fingerprint true_tstamp
"""

_WHOLE = {
    "txn_id", "domain_sessionidx", "page_urlport", "refr_urlport", "ti_quantity",
    "pp_xoffset_min", "pp_xoffset_max", "pp_yoffset_min", "pp_yoffset_max", "br_viewwidth",
    "br_viewheight", "dvce_screenwidth", "dvce_screenheight", "doc_width", "doc_height",
}  # fmt: skip
_MONEY = {
    "tr_total", "tr_tax", "tr_shipping", "ti_price", "tr_total_base", "tr_tax_base",
    "tr_shipping_base", "ti_price_base",
}  # fmt: skip
_FLAGS = ("br_features_", "br_cookies", "dvce_ismobile")


def _type(name: str) -> str:
    if name.endswith("_tstamp"):
        return "timestamp"
    if name in _WHOLE:
        return "int"
    if name in _MONEY:
        return "decimal(18,2)"
    if name in {"geo_latitude", "geo_longitude", "se_value"}:
        return "double"
    return "boolean" if name.startswith(_FLAGS) else "string"


COLUMNS: Mapping[str, str] = {name: _type(name) for name in _NAMES.split()}
"""Column → type. There are 131, as in a line of enriched events without a header."""


_FILE = "dbt_project.yml"
_PACKAGES = (
    "snowplow_unified", "snowplow_web", "snowplow_mobile", "snowplow_normalize",
    "snowplow_media_player", "snowplow_ecommerce", "snowplow_fractribution",
)  # fmt: skip
_NOT_HERE = _PACKAGES[2:]


def read_snowplow(root: Path, dialect: str) -> Draft:
    """The project that the variables of the dbt project in ``root`` describe."""
    del dialect
    lines: list[Line] = []
    files = ProjectFiles(root, lines)
    project = files.yaml(_FILE)
    values, places = _variables(project, lines)
    reader = _Reader(values, places, lines)
    models = reader.models()
    for name, value in values.items():
        if name not in VARIABLES_USED:
            lines.append(variable_line(name, value, places[name]))
    lines += _models_of(files, project)
    return Draft(
        project_name(str(project.get("name") or root.resolve().name)),
        models,
        (_SOURCE,),
        keys=reader.keys,
        lines=tuple(lines),
    )


_SOURCE = DraftSource(
    "atomic.events",
    "",
    COLUMNS,
    {
        "path": "landing/enriched/**/*.tsv",
        "format": "csv",
        "header": False,
        "quote": "none",
        "delimiter": "\t",
        "event_time_column": "collector_tstamp",
    },
)


def _variables(project: Lined, lines: list[Line]) -> tuple[dict[str, Any], dict[str, str]]:
    """The values of variables, and where they are; the root's own go before a package's."""
    declared = as_mapping(project.get("vars"))
    levels = [(as_mapping(declared.get(name)), name) for name in _PACKAGES if name in declared]
    levels.append((declared, ""))
    values: dict[str, Any] = {}
    places: dict[str, str] = {}
    for level, package in levels:
        for name, value in variable_values(level).items():
            values[name] = value
            places[name] = f"{_FILE}:{level.line}"
        if package == "snowplow_mobile":
            why = "sessions of mobile events are told by a field of contexts: take it out in "
            why += "models/events.sql; domain_sessionid, as written, is the web's"
            lines.append(left(f"package {package}", f"{_FILE}:{level.line}", why))
        elif package in _NOT_HERE:
            why = "only events, sessions and users are made of it"
            lines.append(changed(f"package {package}", f"{_FILE}:{level.line}", why))
    return values, places


class _Reader:
    """Makes the models of the values, and says of each value what became of it."""

    def __init__(self, values: dict[str, Any], places: dict[str, str], lines: list[Line]) -> None:
        self.keys: dict[str, Any] = {"state_messages": "snowplow"}
        self._variables = values
        self._places = places
        self._lines = lines

    def models(self) -> tuple[DraftModel, ...]:
        """Events without copies, their sessions, and the users of these."""
        self._project_keys()
        return (self._events(), self._sessions(), self._users())

    def _say(self, name: str, why: str, make_line: Any = variable_used) -> None:
        self._lines.append(make_line(name, self._places[name], why))

    def _project_keys(self) -> None:
        if "start_date" in self._variables:
            start = date_of(self._variables["start_date"])
            if start:
                self.keys["start"] = start
                self._say("start_date", f"start: {start}")
            else:
                self._say("start_date", "it is no date", variable_not_used)
        if "backfill_limit_days" in self._variables:
            days = str(self._variables["backfill_limit_days"])
            if days.isdigit():
                self.keys["backfill_limit"] = f"{days} days"
                why = f"backfill_limit: {days} days, for tables that are built cell by cell"
                self._say("backfill_limit_days", why, other_variable)
            else:
                self._say("backfill_limit_days", "it is no number", variable_not_used)

    def _time(self) -> str:
        time = str(self._variables.get("session_timestamp") or "collector_tstamp")
        if time not in COLUMNS:
            self._say("session_timestamp", f"{time} is no field of events", variable_not_used)
            return "collector_tstamp"
        if "session_timestamp" in self._variables:
            self._say("session_timestamp", f"event_time_column: {time}, in models/events.sql")
        return time

    def _events(self) -> DraftModel:
        time = self._time()
        ids = [str(one) for one in as_list(self._variables.get("app_id"))]
        where = ""
        if ids:
            listed = ", ".join("'" + one.replace("'", "''") + "'" for one in ids)
            where = f"\nWHERE app_id IN ({listed})"
        if "app_id" in self._variables:
            self._say("app_id", "a condition in models/events.sql" if ids else "it is off")
        keys = {
            "materialization": "events",
            "description": "One row per event, however often it was delivered.",
            "unique_key": ["event_id"],
            "deduplicate": "everywhere",
            "prefer": ["collector_tstamp"],
            "timeseries": {"event_time_column": time, "granularity": "day"},
        }
        query = f"SELECT\n  {self._columns()}\nFROM atomic.events{where}"
        return DraftModel("events", _FILE, query, (Way(keys),))

    @staticmethod
    def _columns() -> str:
        return ",\n  ".join(COLUMNS)

    def _sessions(self) -> DraftModel:
        sessions: dict[str, Any] = {"identifier": self._identifier("session", ["domain_sessionid"])}
        sessions["user"] = (self._identifier("user", ["domain_userid"]) or ["domain_userid"])[0]
        days = str(self._variables.get("max_session_days", "3"))
        if days.isdigit() and int(days):
            sessions["quarantine_after"] = f"{days} days"
            sessions["keep"] = "head"
        if "max_session_days" in self._variables:
            self._say("max_session_days", f"quarantine_after: {days} days, keep: head")
        sessions["session_number"] = True
        keys = {
            "materialization": "sessions",
            "description": "One row per session.",
            "sessions": sessions,
        }
        return DraftModel("sessions", _FILE, self._measures(), (Way(keys),))

    def _identifier(self, subject: str, default: list[str]) -> list[str]:
        """The SQL by which sessions or users are told apart."""
        sql, listed = f"{subject}_sql", f"{subject}_identifiers"
        if text := str(self._variables.get(sql) or ""):
            bare = re.sub(r"\be\.", "", text)
            self._say(sql, f"{bare}, in models/sessions.sql")
            if listed in self._variables:
                self._say(listed, f"snowplow__{sql} is used in its place")
            return [bare]
        if sql in self._variables:
            self._say(sql, "it is off")
        fields: list[str] = []
        gone: list[str] = []
        for identifier in as_list(self._variables.get(listed)):
            entry = as_mapping(identifier)
            field = str(entry.get("field", ""))
            inside = str(entry.get("schema", "atomic")).lower() == "atomic" and field in COLUMNS
            (fields if inside else gone).append(field)
        if gone:
            why = f"{', '.join(gone)}: fields of contexts: take them out in models/events.sql"
            self._say(listed, why, variable_not_used)
        elif listed in self._variables:
            self._say(listed, f"{', '.join(fields or default)}, in models/sessions.sql")
        return fields or default

    def _measures(self) -> str:
        beat = str(self._variables.get("heartbeat", "10"))
        visit = str(self._variables.get("min_visit_length", "5"))
        for name, text in (("heartbeat", beat), ("min_visit_length", visit)):
            if name in self._variables:
                why = f"{text} seconds, in engaged_time_in_s of models/sessions.sql"
                make_line = variable_used
                if name == "min_visit_length":
                    why = "engaged time is the slots with a heartbeat; it adds nothing for a view"
                    make_line = other_variable
                self._say(name, why, make_line)
        if self._variables.get("enable_mobile"):
            why = "sessions of mobile events: their identifier is a field of contexts; events "
            why += "without domain_sessionid are set aside, and counted"
            self._say("enable_mobile", why, variable_not_used)
        if "enable_web" in self._variables:
            self._say("enable_web", "measures of pages, in models/sessions.sql")
        beat = beat if beat.isdigit() else "10"
        view = "FILTER (WHERE event_name = 'page_view')"
        return f"""SELECT
  count(*) AS total_events,
  count_if(event_name = 'page_view') AS page_views,
  first(app_id) AS app_id,
  first(platform) AS platform,
  first(user_id) AS user_id,
  first(page_url) {view} AS first_page_url,
  last(page_url) {view} AS last_page_url,
  first(page_referrer) {view} AS referrer,
  first(refr_medium) {view} AS refr_medium,
  first(refr_source) {view} AS refr_source,
  first(mkt_medium) {view} AS mkt_medium,
  first(mkt_source) {view} AS mkt_source,
  first(mkt_campaign) {view} AS mkt_campaign,
  first(geo_country) AS geo_country,
  first(useragent) AS useragent,
  count(DISTINCT CASE WHEN event_name = 'page_ping'
    THEN floor(unix_seconds({self._seconds()}) / {beat}) END) * {beat} AS engaged_time_in_s,
  unix_seconds(session_end) - unix_seconds(session_start) AS absolute_time_in_s,
  count_if(event_name = 'page_view') = 1 AS is_bounced
FROM events"""

    def _seconds(self) -> str:
        time = str(self._variables.get("session_timestamp") or "collector_tstamp")
        return time if time in COLUMNS else "collector_tstamp"

    def _users(self) -> DraftModel:
        keys = {
            "materialization": "cumulative_aggregate",
            "description": "One row per user, of all of their sessions.",
        }
        query = """SELECT
  {user},
  count(*) AS sessions,
  sum(page_views) AS page_views,
  sum(engaged_time_in_s) AS engaged_time_in_s,
  min(session_start) AS start_tstamp,
  max(session_end) AS end_tstamp,
  min_by(first_page_url, struct(session_start, session_id)) AS first_page_url,
  max_by(last_page_url, struct(session_start, session_id)) AS last_page_url
FROM sessions
GROUP BY {user}"""
        text = str(self._variables.get("user_sql") or "")
        bare = re.sub(r"\be\.", "", text)
        user = bare if re.fullmatch(r"\w+", bare) else ("user_identifier" if bare else "")
        user = user or self._first_user()
        return DraftModel("users", _FILE, query.format(user=user), (Way(keys),))

    def _first_user(self) -> str:
        for identifier in as_list(self._variables.get("user_identifiers")):
            entry = as_mapping(identifier)
            field = str(entry.get("field", ""))
            if str(entry.get("schema", "atomic")).lower() == "atomic" and field in COLUMNS:
                return field
        return "domain_userid"


def _models_of(files: ProjectFiles, project: Lined) -> Iterator[Line]:
    """What is said of the packages' other tables, and of the project's own models."""
    why = "sessions, users and events are made; write page views as a table over events"
    yield left("model snowplow views", _FILE, why)
    yield to_fill(
        "path of atomic.events", "", "where enriched events land, as TSV without a header"
    )
    names = [str(one).strip("/") for one in as_list(project.get("model-paths") or ["models"])]
    if any(files.found(name, ".sql") for name in names):
        why = "`infold import dbt` reads the project's own models"
        yield left("models of the project", names[0], why)
    else:
        yield came("models of the project", "", "there are none beside the packages'")
