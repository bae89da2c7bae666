"""Every key of a declaration either changes the fingerprint or changes no row.

A key that is in none of the lists below fails here: whoever
adds one says which it is, and how the fingerprint includes it. That it does is tested with the
categories of changes (definitions/test_categories.py).
"""

from __future__ import annotations

from infold.declare import models, project, sessions, sources, versions

DEFINES: dict[str, tuple[str, str, str]] = {
    # A model's keys.
    "model.unique_key": ("clicks", "[event_id]", "[event_id, url]"),
    "model.prefer": ("clicks", "unique_key", "prefer: [url]\nunique_key"),
    "model.deduplicate": ("clicks", "unique_key", "deduplicate: everywhere\nunique_key"),
    "model.start": ("clicks", "unique_key", "start: 2024-03-01\nunique_key"),
    "timeseries.event_time_column": ("daily", "column: session_start", "column: day"),
    "timeseries.granularity": ("daily", "granularity: day", "granularity: month"),
    "timeseries.week_start": ("daily", "granularity: day", "granularity: week, week_start: sunday"),
    "incremental.enabled": ("daily", "incremental: {}", "incremental: {enabled: false}"),
    "incremental.start": ("daily", "incremental: {}", "incremental: {start: 2024-03-01}"),
    "sessions.user": ("sessions", "user: user_id", "user: url"),
    "sessions.gap": ("sessions", "30 minutes", "31 minutes"),
    "sessions.identifier": ("sessions", "user: user_id", "user: user_id, identifier: url"),
    "sessions.max_length": ("sessions", "30 minutes", "30 minutes, max_length: 1 day"),
    "sessions.quarantine_after": ("sessions", "30 minutes", "30 minutes, quarantine_after: 1 day"),
    "sessions.session_number": ("sessions", "30 minutes", "30 minutes, session_number: true"),
    "cuts.midnight": ("sessions", "30 minutes", "30 minutes, cuts: {midnight: UTC}"),
    "cuts.start_events": ("sessions", "30 minutes", "30 minutes, cuts: {start_events: url}"),
    "scd_type_2.updated_at": ("plans", "updated_at: event_ts", "updated_at: seen_at"),
    "scd_type_2.columns": ("plans", "updated_at: event_ts", "updated_at: event_ts, columns: url"),
    "scd_type_2.invalidate_hard_deletes": (
        "plans",
        "updated_at: event_ts",
        "updated_at: event_ts, invalidate_hard_deletes: true",
    ),
    "campaign.columns": ("sessions", "30 minutes", "30 minutes, cuts: {campaign: url}"),
    # A source's.
    "source.format": ("infold.yml", "format: json", "format: csv"),
    "source.event_time_column": ("infold.yml", "column: event_ts", "column: sent_at"),
    "source.received_column": ("infold.yml", "    received_column: seen_at\n", ""),
    "source.file_time_column": ("infold.yml", "format: json", "file_time_column: at"),
    "source.future_tolerance": ("infold.yml", "format: json", "future_tolerance: 2 hours"),
    "source.timestamp_format": ("infold.yml", "format: json", "timestamp_format: epoch_millis"),
    "source.on_drift": ("infold.yml", "format: json", "on_drift: set_aside"),
    "source.delimiter": ("infold.yml", "format: json", "format: csv\n    delimiter: ;"),
    "source.header": ("infold.yml", "format: json", "format: csv\n    header: false"),
    "source.quote": ("infold.yml", "format: json", "format: csv\n    quote: none"),
    "source.multiline": ("infold.yml", "format: json", "multiline: true"),
    "source.columns": ("infold.yml", "url: string", "url: int"),
    "project.start": ("infold.yml", "start: 2024-01-01", "start: 2024-01-02"),
}
"""Key -> a change of it: the file, what stands there, and what stands there then."""

ELSEWHERE = {
    "model.materialization",
    "timeseries.partition_column",
    "model.timeseries",
    "model.incremental",
    "model.sessions",
    "model.scd_type_2",
    "sessions.cuts",
    "cuts.campaign",
    "cuts.rule",  # tests/declare/test_session_rules.py: it calls a function
    "incremental.bounds",  # test_fingerprint.py, as far as they matter
    "incremental.safety_overrides",
    "sessions.choose_user",  # these mean something beside another key only
    "sessions.without_identifier",
    "sessions.keep",
    "campaign.nulls",
    "campaign.direct",
    "project.sources",
    "project.seeds",  # a seed's rows and types are in its query: tests/declare/test_seeds.py
    "project.models",
    "project.defaults",
}
"""Sections, whose keys are here one by one; and what other tests show."""

CHANGES_NO_ROW = {
    "model.tags",
    "model.audits",  # they judge rows
    "model.description",
    "model.on_destructive_change",
    "model.renamed_from",  # how a table gets another definition, not what it has by it
    "incremental.unique_key",  # verify says how many stand twice
    "incremental.batch_size",
    "incremental.batch_concurrency",
    "incremental.cron",  # when, and which cells wait until then
    "incremental.cron_tz",
    "incremental.allow_partials",
    "incremental.strategy",
    "incremental.backfill_limit",
    "incremental.on_definition_change",  # which cells wait, and what is there meanwhile
    "incremental.on_destructive_change",
    "incremental.forward_only",  # of changes to come
    "incremental.late",
    "source.removal_limit",
    "source.may_be_empty",
    "source.path",  # files that are not named any more have gone, as others have
    "source.table",  # its snapshots are of another table, whose rows are all new
    "source.catalog",
    *("source.url", "source.key", "source.corrections"),  # what runs extract into files from now on
    "source.settle",
    "source.full_listing",
    "source.listing_window",
    "source.on_new_columns",  # what becomes of files to come: those taken in are not read again
    "source.on_unreadable",
    "project.name",
    "project.backfill_limit",
    "project.targets",
    "project.default_target",
    "project.dev_target",
    "project.state_messages",
}


def every_key() -> set[str]:
    """All keys that a declaration may have, each with its mapping."""
    of = {
        "model": models.KEYS,
        "timeseries": models.TIMESERIES,
        "incremental": models.INCREMENTAL,
        "sessions": sessions.KEYS,
        "cuts": sessions.CUTS,
        "campaign": sessions.CAMPAIGN,
        "scd_type_2": versions.KEYS,
        "source": sources.KEYS,
        "project": project.KEYS,
    }
    return {f"{where}.{key}" for where, keys in of.items() for key in keys}


def test_every_key_is_known_to_define_or_not() -> None:
    """Every key is in exactly one of the two lists, and the lists have no other key."""
    lists = (set(DEFINES), ELSEWHERE, CHANGES_NO_ROW)

    assert set().union(*lists) == every_key()
    assert sum(map(len, lists)) == len(every_key())
