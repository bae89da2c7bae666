"""The declaration of one model: its own keys and those of `defaults` in infold.yml, merged."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
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
from infold.declare.audits import read_audits
from infold.declare.copies import check_copies, read_prefer
from infold.declare.keys import Keys
from infold.declare.misplaced_keys import ONLY_INCREMENTAL, misplaced_key_hint, no_cells_to_keep
from infold.declare.sessions import read_sessions
from infold.declare.tree import Value, merge
from infold.declare.versions import check_compared, read_versions
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
    Materialization.TABLE: (*_STORED, "timeseries", "incremental"),
    Materialization.EVENTS: (
        *_STORED,
        "timeseries",
        "unique_key",
        "prefer",
        "deduplicate",
        "start",
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
    meant = {key: value for key, value in keys.entries.items() if key in _MEANT_FOR[kind]}
    default = meant.get("timeseries") if "timeseries" not in own.entries else None
    by_time = kind is Materialization.SESSIONS or default is None
    if not by_time and default is not None and "event_time_column" not in default.entries:
        # Defaults say how long cells are; which time a table is by, if any, its model says.
        del meant["timeseries"]
    keys.value = replace(keys.value, entries=meant)
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
        on_destructive_change=_on_loss(keys, section),
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


def _on_loss(keys: Keys, section: Keys | None) -> OnLoss | None:
    """What is to happen to destructive changes; `incremental` wins."""
    key = "on_destructive_change"
    found = (section.choice(key, tuple(OnLoss)) if section is not None else None) or keys.choice(
        key, tuple(OnLoss)
    )
    return OnLoss(found) if found else None


def _renamed_from(keys: Keys) -> tuple[tuple[str, str], ...]:
    """The new names of columns, each with the earlier one."""
    section = keys.section("renamed_from")
    if section is None:
        return ()
    texts = ((name, section.text(name)) for name in section.entries)
    found, first = tuple((new, old) for new, old in texts if old), dict[str, str]()
    for new, old in found:
        other = first.setdefault(old.lower(), new)
        if other != new:
            at = section.at(new)
            keys.errors.append(findings.renamed_twice(at, new=new, old=old, other=other))
    return found


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
    found = Incremental(
        unique_key=section.texts("unique_key"),
        overrides=overrides,
        bounds=_declared_bounds(section),
        batch_size=section.count("batch_size"),
        batch_concurrency=section.count("batch_concurrency"),
        start=section.instant("start"),
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
        return found
    mine = own.entries.get("incremental")
    if found.forward_only and mine is not None and "forward_only" in mine.entries:
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
    found = []
    for name in bounds.entries:
        bound = bounds.section(name)
        if bound is not None:
            bound.check(BOUND)
            before, after = bound.length("before", 0), bound.length("after", 0)
            found.append(DeclaredBound(name, before or 0, after or 0))
    return tuple(found)


def _cron(section: Keys) -> str | None:
    from infold.planning.cron import normal_cron

    text = section.text("cron")
    if text is None:
        section.needless(("cron_tz", "allow_partials"), "a model without a cron", full=True)
        return None
    try:
        return normal_cron(text)
    except ValueError as error:
        found = findings.bad_cron(
            section.at("cron"), key=section.full_name("cron"), text=text, why=str(error)
        )
        section.errors.append(found)
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
    if model.incremental and "timeseries" not in keys.entries:
        keys.missing("timeseries", "an incremental table is built cell by cell of time")


def _places_of_keys(value: Value, prefix: str) -> list[tuple[str, Spot]]:
    found = []
    for key, entry in value.entries.items():
        found.append((prefix + key, entry.at))
        found.extend(_places_of_keys(entry, f"{prefix}{key}."))
        found.extend((f"{prefix}{key}.{i}", item.at) for i, item in enumerate(entry.items))
    return found
