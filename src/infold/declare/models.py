"""The declaration of one model: its own keys and those of `defaults` in infold.yml, merged."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from infold.core.interval import Granularity
from infold.core.model import (
    DeclaredBound,
    Deduplicate,
    DefinitionChange,
    Incremental,
    Late,
    Materialization,
    Model,
    OnLoss,
    Override,
    Place,
    Strategy,
    Timeseries,
)
from infold.core.queries import ALL_COLUMNS, VersionRules
from infold.core.sessions import (
    Campaign,
    Choose,
    DeclaredCut,
    Keep,
    MaxLength,
    Midnight,
    Nulls,
    Rule,
    Sessions,
    StartEvents,
)
from infold.core.yaml_tree import Value, merge
from infold.declare.audits import read_audits
from infold.declare.keys import Keys
from infold.messages import findings
from infold.messages.errors import InfoldError, Spot

KEYS = (
    "materialization",
    "unique_key",
    "prefer",
    "deduplicate",
    "timeseries",
    "incremental",
    "sessions",
    "scd_type_2",
    "start",
    "retain",
    "on_destructive_change",
    "renamed_from",
    "tags",
    "description",
    "audits",
)
LATER = ("owner",)
TIMESERIES = ("event_time_column", "partition_column", "granularity", "week_start")
INCREMENTAL = (
    "enabled",
    "unique_key",
    "safety_overrides",
    "bounds",
    "batch_size",
    "batch_concurrency",
    "start",
    "exact_start",
    "cron",
    "cron_tz",
    "allow_partials",
    "strategy",
    "backfill_limit",
    "on_definition_change",
    "on_destructive_change",
    "forward_only",
    "late",
)
BOUND = ("before", "after")
INCREMENTAL_TABLE = "incremental"
"""The materialization that other tools have for a table with ``incremental``."""
GRANULARITIES = ("hour", "day", "week", "month", "quarter", "year")
LATER_GRANULARITIES = ("minute",)

_ALWAYS = ("materialization", "tags", "description", "audits")
_STORED = (*_ALWAYS, "on_destructive_change", "renamed_from")
_MEANT_FOR = {
    Materialization.VIEW: _ALWAYS,
    Materialization.TABLE: (*_STORED, "timeseries", "incremental", "retain"),
    Materialization.EVENTS: (
        *_STORED,
        "timeseries",
        "unique_key",
        "prefer",
        "deduplicate",
        "start",
        "retain",
        "forward_only",
    ),
    Materialization.SESSIONS: (*_STORED, "timeseries", "sessions", "start", "forward_only"),
    Materialization.CUMULATIVE_AGGREGATE: _STORED,
    Materialization.SCD_TYPE_2: (*_STORED, "unique_key", "scd_type_2"),
}


@dataclass(frozen=True, slots=True)
class Declared:
    """A model without its SQL, and the places of its keys."""

    model: Model
    places: Mapping[str, Spot]


def read_model(
    name: str,
    file: str,
    own: Value,
    defaults: Value | None,
    errors: list[InfoldError],
    beside: Sequence[str] = (),
) -> Declared | None:
    """
    One model from its own keys and the project's defaults; None when it is too wrong to go on.

    Defaults count where they mean something, so that one set serves all materializations. Keys
    ``beside`` these are the caller's to read; here they are what a misspelt one can mean.
    """
    where = f"model {name}"
    before = len(errors)
    known = {key: entry for key, entry in own.entries.items() if key not in ONLY_INCREMENTAL}
    mine = Keys(replace(own, entries=known), where, errors)
    mine.check((*KEYS, *beside), LATER)
    keys = Keys(merge(own, defaults) or own, where, errors, misspelled=mine.misspelled)
    kind_of = keys.entries.get("materialization")
    if kind_of is not None and kind_of.text == INCREMENTAL_TABLE:
        errors.append(findings.incremental_table(kind_of.at))
        return None
    written = keys.choice("materialization", tuple(Materialization))
    if written is None:
        if "materialization" not in keys.entries:
            keys.missing("materialization", "one of " + ", ".join(Materialization))
        return None
    kind = Materialization(written)
    for key in own.entries:
        if key in KEYS and key not in _MEANT_FOR[kind]:
            at = own.keys[key]
            errors.append(
                findings.needless_key(
                    at,
                    key=key,
                    where=f"materialization {kind}",
                    todo=misplaced_key_hint(kind, key),
                )
            )
    for key, misplaced in ONLY_INCREMENTAL.items():
        if key in own.entries and key not in _MEANT_FOR[kind]:
            errors.append(misplaced(own.keys[key], kind))
    meaningful = {key: value for key, value in keys.entries.items() if key in _MEANT_FOR[kind]}
    default = meaningful.get("timeseries") if "timeseries" not in own.entries else None
    by_time = kind is Materialization.SESSIONS or default is None
    if not by_time and default is not None and "event_time_column" not in default.entries:
        # Defaults say how long cells are; which time a table is by, if any, its model says.
        del meaningful["timeseries"]
    keys.value = replace(keys.value, entries=meaningful)
    section = keys.section("incremental")
    overrides = _overrides(section) if section is not None else ()
    model = Model(
        name=name,
        materialization=kind,
        sql="",
        timeseries=_timeseries(keys, kind),
        incremental=_incremental(section, overrides, own) if section is not None else None,
        sessions=read_sessions(keys) if kind is Materialization.SESSIONS else None,
        versions=read_versions(keys) if kind is Materialization.SCD_TYPE_2 else None,
        unique_key=keys.texts("unique_key"),
        prefer=read_prefer(keys),
        deduplicate=Deduplicate(
            keys.choice("deduplicate", tuple(Deduplicate)) or Deduplicate.SAME_TIME
        ),
        overrides=overrides,
        start=keys.instant("start"),
        retain=keys.retain(),
        on_destructive_change=_destructive_change(keys, section),
        renamed_from=_renamed_from(keys),
        forward_only=keys.flag("forward_only", default=False),
        tags=keys.texts("tags"),
        description=keys.text("description") or "",
        audits=read_audits(keys, name),
        place=Place(file),
    )
    _check_needs(keys, model, own.entries)
    places = dict(_places_of_keys(keys.value, ""))
    return Declared(model, places) if len(errors) == before else None


def _destructive_change(keys: Keys, section: Keys | None) -> OnLoss | None:
    """What is to happen to destructive changes; `incremental` wins."""
    key = "on_destructive_change"
    choice = (section.choice(key, tuple(OnLoss)) if section is not None else None) or keys.choice(
        key, tuple(OnLoss)
    )
    return OnLoss(choice) if choice else None


def _renamed_from(keys: Keys) -> tuple[tuple[str, str], ...]:
    """The new names of columns, each with the earlier one."""
    section = keys.section("renamed_from")
    if section is None:
        return ()
    texts = ((name, section.text(name)) for name in section.entries)
    renamings, first = tuple((new, old) for new, old in texts if old), dict[str, str]()
    for new, old in renamings:
        other = first.setdefault(old.lower(), new)
        if other != new:
            at = section.at(new)
            keys.errors.append(findings.renamed_twice(at, new=new, old=old, other=other))
    return renamings


def _timeseries(keys: Keys, kind: Materialization) -> Timeseries | None:
    section = keys.section("timeseries")
    if kind is Materialization.SESSIONS:
        return _sessions_timeseries(section)
    if section is None:
        return None
    section.check(TIMESERIES)
    time = section.text("event_time_column")
    if "event_time_column" not in section.entries:
        section.missing("event_time_column")
    partition = section.text("partition_column") or time
    if kind is Materialization.EVENTS and partition != time:
        at = section.at("partition_column")
        known = (time or "",)
        name = section.full_name("partition_column")
        section.errors.append(findings.bad_value(at, key=name, value=partition or "", known=known))
    return Timeseries(time or "", partition or "", _granularity(section))


def _sessions_timeseries(section: Keys | None) -> Timeseries:
    """Sessions belong to the cell of their start; nothing else can be declared."""
    start = "session_start"
    if section is None:
        return Timeseries(start, start)
    section.check(TIMESERIES)
    for key in ("event_time_column", "partition_column"):
        text = section.text(key)
        if text is not None and text.lower() != start:
            error = findings.bad_value(
                section.at(key), key=section.full_name(key), value=text, known=(start,)
            )
            section.errors.append(error)
    return Timeseries(start, start, _granularity(section))


def _granularity(section: Keys) -> Granularity:
    written = section.choice("granularity", GRANULARITIES, LATER_GRANULARITIES) or "day"
    week = section.choice("week_start", ("monday", "sunday"))
    if week is not None and written != "week":
        section.needless(("week_start",), f"granularity {written}", full=True)
    return Granularity.SUNDAY_WEEK if week == "sunday" else Granularity(written)


def _incremental(section: Keys, overrides: tuple[Override, ...], own: Value) -> Incremental | None:
    section.check((*INCREMENTAL, "lookback", "allow_downgrade"))
    for key, error in (
        ("lookback", findings.needless_lookback),
        ("allow_downgrade", findings.downgrade_is_an_option),
    ):
        if key in section.entries:
            section.errors.append(error(section.key_at(key)))
    cron = _cron(section)
    incremental = Incremental(
        unique_key=section.texts("unique_key"),
        overrides=overrides,
        bounds=_declared_bounds(section),
        batch_size=section.count("batch_size"),
        batch_concurrency=section.count("batch_concurrency"),
        start=section.instant("start"),
        exact_start=section.flag("exact_start", default=False),
        cron=cron,
        cron_tz=section.zone("cron_tz") or "UTC",
        allow_partials=section.flag("allow_partials", default=False),
        strategy=Strategy(section.choice("strategy", tuple(Strategy)) or Strategy.DELETE_INSERT),
        backfill_limit=section.span("backfill_limit"),
        on_definition_change=DefinitionChange(
            section.choice("on_definition_change", tuple(DefinitionChange))
            or DefinitionChange.COMPLETE
        ),
        forward_only=section.flag("forward_only", default=False),
        late=Late(section.choice("late", tuple(Late)) or Late.EARLIER),
    )
    if section.flag("enabled", default=True):
        return incremental
    mine = own.entries.get("incremental")
    if incremental.forward_only and mine is not None and "forward_only" in mine.entries:
        section.errors.append(no_cells_to_keep(mine.keys["forward_only"]))
    return None


def _overrides(section: Keys) -> tuple[Override, ...]:
    overrides = section.section("safety_overrides")
    if overrides is None:
        return ()
    overrides.check(tuple(Override))
    return tuple(override for override in Override if overrides.flag(override, default=False))


def _declared_bounds(section: Keys) -> tuple[DeclaredBound, ...]:
    bounds = section.section("bounds")
    if bounds is None:
        return ()
    declared = []
    for name in bounds.entries:
        bound = bounds.section(name)
        if bound is not None:
            bound.check(BOUND)
            before, after = bound.length("before", 0), bound.length("after", 0)
            declared.append(DeclaredBound(name, before or 0, after or 0))
    return tuple(declared)


def _cron(section: Keys) -> str | None:
    from infold.planning.cron import normal_cron

    text = section.text("cron")
    if text is None:
        section.needless(("cron_tz", "allow_partials"), "a model without a cron", full=True)
        return None
    try:
        return normal_cron(text)
    except ValueError as error:
        error_found = findings.bad_cron(
            section.at("cron"), key=section.full_name("cron"), text=text, why=str(error)
        )
        section.errors.append(error_found)
        return None


def _check_needs(keys: Keys, model: Model, own: Collection[str]) -> None:
    """Keys that a materialization cannot do without."""
    events = model.materialization is Materialization.EVENTS
    versions = model.materialization is Materialization.SCD_TYPE_2
    if (events or versions) and "unique_key" not in keys.entries:
        why = "it tells copies of an event apart from other events"
        keys.missing("unique_key", why if events else "it says what a row is a version of")
    elif (events or versions) and not model.unique_key:
        keys.empty("unique_key")
    if model.versions is not None:
        check_compared(keys, model.versions, model.unique_key)
    if events and "timeseries" not in keys.entries:
        keys.missing("timeseries", "events are kept by their time: event_time_column")
    if events:
        check_copies(keys, model, own)
    if model.materialization is Materialization.TABLE and not model.incremental:
        todo = "It has what its inputs have. With `incremental` it is built cell by cell."
        keys.needless(("retain",), "a table that is built whole", todo)
    if model.incremental and "timeseries" not in keys.entries:
        keys.missing("timeseries", "an incremental table is built cell by cell of time")


def _places_of_keys(value: Value, prefix: str) -> list[tuple[str, Spot]]:
    places = []
    for key, entry in value.entries.items():
        places.append((prefix + key, entry.at))
        places.extend(_places_of_keys(entry, f"{prefix}{key}."))
        places.extend((f"{prefix}{key}.{i}", item.at) for i, item in enumerate(entry.items))
    return places


_PREFER = re.compile(r"\s*(?P<column>\w+|`[^`]+`)(?:\s+(asc|desc))?\s*\Z", re.IGNORECASE)


def read_prefer(keys: Keys) -> tuple[str, ...]:
    """Columns with their directions, in the order in which they decide."""
    columns = keys.texts("prefer")
    for text in columns:
        if not _PREFER.match(text):
            at, known = keys.at("prefer"), ("column", "column desc")
            keys.errors.append(findings.bad_value(at, key="prefer", value=text, known=known))
    return columns


def check_copies(keys: Keys, model: Model, own: Collection[str]) -> None:
    """
    Note what tells no copies apart.

    ``own`` are the keys that the model has itself: a `prefer` of the project's defaults may decide
    in other models.
    """
    time = model.timeseries.event_time_column.lower() if model.timeseries else ""
    unique, everywhere = {*map(str.lower, model.unique_key)}, Deduplicate.EVERYWHERE
    if model.deduplicate is everywhere and time in unique:
        # Copies at other times have other keys then.
        where = f"a unique_key with the event time, {time!r}, in it"
        keys.errors.append(
            findings.needless_key(keys.at("deduplicate"), key="deduplicate", where=where)
        )
    listed = keys.entries.get("prefer")
    if listed is None or "prefer" not in own:
        return
    for item in listed.items or (listed,):
        match = _PREFER.match(item.text)
        column = match["column"].strip("`").lower() if match else None
        if column in unique:
            where, todo = "`prefer`: copies have one key", "Name a column in which copies differ."
        elif column == time and model.deduplicate is not everywhere:
            where = "`prefer`: copies have one event time"
            todo = f"Rows with one key at other times are copies with `deduplicate: {everywhere}`."
        else:
            continue
        keys.errors.append(findings.needless_key(item.at, key=item.text, where=where, todo=todo))


VERSION_KEYS = ("updated_at", "columns", "invalidate_hard_deletes")


def read_versions(keys: Keys) -> VersionRules:
    """What the key declares; with errors noted, it is not to be used."""
    section = keys.section("scd_type_2")
    if section is None:
        if "scd_type_2" not in keys.entries:
            keys.missing("scd_type_2", "it says which column has the time: updated_at")
        return VersionRules("")
    section.check(VERSION_KEYS)
    if "updated_at" not in section.entries:
        section.missing("updated_at", "the column with the time of each version")
    return VersionRules(
        section.text("updated_at") or "",
        section.texts("columns"),
        section.flag("invalidate_hard_deletes", default=False),
    )


def check_compared(keys: Keys, rules: VersionRules, unique_key: Sequence[str]) -> None:
    """Note ``columns`` that compare nothing, and one beside `*`."""
    section = keys.section("scd_type_2")
    if section is None or "columns" not in section.entries:
        return
    named, listed = section.full_name("columns"), section.entries["columns"]
    same = {name.lower() for name in (*unique_key, rules.updated_at)}
    if not rules.columns and listed.kind == "a list":
        section.empty("columns")
    elif ALL_COLUMNS in rules.columns:
        for item in (one for one in listed.items if one.text != ALL_COLUMNS):
            todo = f"`{ALL_COLUMNS}` is all columns but the key and `updated_at`."
            at, where = item.at, f"{named} with {ALL_COLUMNS!r}"
            keys.errors.append(findings.needless_key(at, key=item.text, where=where, todo=todo))
    elif not rules.invalidate_hard_deletes and {one.lower() for one in rules.columns} <= same:
        # With it these are the stretches of time in which a key is there.
        where = "a list of the key and `updated_at` alone"
        todo = (
            f"Name the columns whose change makes a version, or {ALL_COLUMNS!r} for all. Without "
            "the key every instant is a version."
        )
        at = section.key_at("columns")
        keys.errors.append(findings.needless_key(at, key=named, where=where, todo=todo))


def misplaced_key_hint(kind: Materialization, key: str) -> str:
    """What is meant by a key at the wrong place."""
    if key == "start" and kind is Materialization.TABLE:
        return "A table that is built cell by cell says it in `incremental`, as `start`."
    if key == "incremental" and kind in (Materialization.EVENTS, Materialization.SESSIONS):
        return (
            f"{kind.capitalize()} fold in what comes as it is; their `start` is a key of its own."
        )
    return ""


def _no_backfill_limit(at: Spot, kind: Materialization) -> InfoldError:
    if kind is Materialization.TABLE:
        todo = "A table that is built cell by cell says it in `incremental`, as `backfill_limit`."
        return findings.needless_key(
            at, key="backfill_limit", where="a table as a whole", todo=todo
        )
    return findings.needless_key(
        at, key="backfill_limit", where=f"materialization {kind}", todo=WHOLE
    )


def _no_forward_only(at: Spot, kind: Materialization) -> InfoldError:
    table = kind is Materialization.TABLE
    inside = "A table that is built cell by cell says it in `incremental`, as `forward_only`."
    return findings.needless_key(
        at,
        key="forward_only",
        where="a table as a whole" if table else f"materialization {kind}",
        todo=inside if table else NO_CELLS,
    )


def no_cells_to_keep(at: Spot) -> InfoldError:
    """The error where a table is to keep its earlier cells, and has none."""
    key, where = "incremental.forward_only", "a table as a whole"
    todo = "A changed definition builds it again. Leave out `enabled: false`, or `forward_only`."
    return findings.needless_key(at, key=key, where=where, todo=todo)


ONLY_INCREMENTAL = {"backfill_limit": _no_backfill_limit, "forward_only": _no_forward_only}
"""Keys of ``incremental`` that people look for elsewhere, and what they are told."""

NO_CELLS = (
    "Only events, sessions, and a table that is built cell by cell, can keep earlier cells as they "
    "are. "
    "Leave the key out: a changed definition builds the table again."
)
"""Why another kind of model is never changed forward-only."""

WHOLE = (
    "New files are ingested whole, once: when the rows of a file are is not known before it is "
    "read, and sessions of a part of the events are not the sessions of all. To spread it over "
    "runs, move the files into the landing folder in portions, with `infold run` after each; or "
    "begin late, with `start`."
)
"""Why there is no limit for ingested files, and what to use instead."""


SESSION_KEYS = (
    "user",
    "gap",
    "identifier",
    "choose_user",
    "without_identifier",
    "cuts",
    "max_length",
    "quarantine_after",
    "keep",
    "session_number",
)
CAMPAIGN = ("columns", "nulls", "direct")


def read_sessions(keys: Keys) -> Sessions | None:
    """The mapping's values; None when it is missing or too wrong to go on."""
    section = keys.section("sessions")
    if section is None:
        if "sessions" not in keys.entries:
            keys.missing("sessions", "who has them, and the gap that ends them")
        return None
    before = len(section.errors)
    section.check(SESSION_KEYS)
    identifier = section.texts("identifier")
    sessions = Sessions(
        user=section.text("user"),
        gap=section.span("gap"),
        identifier=identifier,
        choose=Choose(section.choice("choose_user", tuple(Choose)) or Choose.FIRST),
        fallback_gap=_fallback(section),
        cuts=tuple(_cuts(section)),
        quarantine_after=section.span("quarantine_after"),
        keep=Keep(section.choice("keep", tuple(Keep)) or Keep.NOTHING),
        numbered=section.flag("session_number", default=False),
    )
    _check_companions(section, sessions)
    return sessions if len(section.errors) == before else None


_COLUMNS = "a column or a list of them"


def _check_companions(section: Keys, sessions: Sessions) -> None:
    """Keys that need others, or that mean nothing beside others."""
    if "identifier" not in section.entries:
        for key in ("user", "gap"):
            if key not in section.entries:
                section.missing(key, "or identifier: what a session is of")
        section.needless(
            ("choose_user", "without_identifier"), "sessions without identifier", full=True
        )
    elif not sessions.identifier and section.entries["identifier"].kind in ("a list", "text"):
        section.empty("identifier", _COLUMNS)
    elif "user" not in section.entries:
        section.needless(("choose_user",), "sessions without user", full=True)
        if sessions.fallback_gap is not None:
            section.missing("user", "the user of events without identifier")
        if sessions.numbered:
            section.missing("user", "the user that sessions are numbered for")
    for cut in sessions.cuts:
        if cut.sees_length:
            section.needless(
                ("max_length",), f"sessions with {cut.key}, which sees how long one is", full=True
            )
    _check_quarantine(section, sessions)


def _check_quarantine(section: Keys, sessions: Sessions) -> None:
    """Keys of the quarantine that mean nothing without its limit, or beside a cut."""
    if "quarantine_after" not in section.entries:
        section.needless(("keep",), "sessions without quarantine_after", full=True)
    for cut in sessions.cuts:
        longest, limit = cut.longest, sessions.quarantine_after
        if longest is not None and limit is not None and longest <= limit:
            section.needless(
                ("quarantine_after",), f"sessions that {cut.key} keeps shorter", full=True
            )


def _fallback(section: Keys) -> int | None:
    """``without_identifier``: set_aside, or the gap of sessions by user."""
    value = section.entries.get("without_identifier")
    if value is None or value.text == "set_aside":
        return None
    fallback = section.section("without_identifier")
    if fallback is None:
        return None
    fallback.check(("gap",))
    if "gap" not in fallback.entries:
        fallback.missing("gap", "the silence that ends a session by user")
    return fallback.span("gap")


def _cuts(section: Keys) -> Iterator[DeclaredCut]:
    """The cuts that are declared, in the order of ``CUTS``; ``max_length`` last."""
    below = section.section("cuts")
    if below is not None:
        below.check(CUTS)
        for key, read in CUTS.items():
            if (cut := read(below, key)) is not None:
                yield cut
    length = section.span("max_length")
    if length is not None:
        yield MaxLength(length)


def _midnight(cuts: Keys, key: str) -> Midnight | None:
    zone = cuts.zone(key)
    return Midnight(zone) if zone else None


def _start_events(cuts: Keys, key: str) -> StartEvents | None:
    sql = cuts.text(key)
    return StartEvents(sql) if sql else None


def _rule(cuts: Keys, key: str) -> Rule | None:
    call = cuts.text(key)
    return Rule(call) if call else None


def _campaign(cuts: Keys, key: str) -> Campaign | None:
    value = cuts.entries.get(key)
    if value is None:
        return None
    if value.kind in ("text", "a list"):
        return Campaign(_event_columns(cuts, key))
    campaign = cuts.section(key)
    if campaign is None:
        return None
    campaign.check(CAMPAIGN)
    if "columns" not in campaign.entries:
        campaign.missing("columns", "what tells one campaign from another")
    nulls = Nulls(campaign.choice("nulls", tuple(Nulls)) or Nulls.IGNORE)
    return Campaign(_event_columns(campaign, "columns"), nulls, campaign.texts("direct"))


def _event_columns(section: Keys, key: str) -> tuple[str, ...]:
    """One or several of them; that there is none is noted."""
    value = section.entries.get(key)
    if value is not None and value.kind == "a list" and not value.items:
        section.empty(key, _COLUMNS)
    return section.texts(key)


CUTS: Mapping[str, Callable[[Keys, str], DeclaredCut | None]] = {
    "midnight": _midnight,
    "campaign": _campaign,
    "start_events": _start_events,
    "rule": _rule,
}
"""The keys below ``cuts``, each with the function that reads it."""
