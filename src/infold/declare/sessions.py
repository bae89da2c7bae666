"""The ``sessions`` mapping of a model: what a session is of, and where it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from infold.core.session_cuts import (
    Campaign,
    DeclaredCut,
    MaxLength,
    Midnight,
    Nulls,
    Rule,
    StartEvents,
)
from infold.core.session_rules import Choose, Keep, Sessions
from infold.declare.keys import Keys

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
    found = Sessions(
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
    _check_companions(section, found)
    return found if len(section.errors) == before else None


_COLUMNS = "a column or a list of them"


def _check_companions(section: Keys, found: Sessions) -> None:
    """Keys that need others, or that mean nothing beside others."""
    if "identifier" not in section.entries:
        for key in ("user", "gap"):
            if key not in section.entries:
                section.missing(key, "or identifier: what a session is of")
        section.needless(
            ("choose_user", "without_identifier"), "sessions without identifier", full=True
        )
    elif not found.identifier and section.entries["identifier"].kind in ("a list", "text"):
        section.empty("identifier", _COLUMNS)
    elif "user" not in section.entries:
        section.needless(("choose_user",), "sessions without user", full=True)
        if found.fallback_gap is not None:
            section.missing("user", "the user of events without identifier")
        if found.numbered:
            section.missing("user", "the user that sessions are numbered for")
    if any(isinstance(cut, Rule) for cut in found.cuts):
        section.needless(
            ("max_length",), "sessions with cuts.rule, which sees how long one is", full=True
        )
    _check_quarantine(section, found)


def _check_quarantine(section: Keys, found: Sessions) -> None:
    """Keys of the quarantine that mean nothing without its limit, or beside a cut."""
    if "quarantine_after" not in section.entries:
        section.needless(("keep",), "sessions without quarantine_after", full=True)
    for cut in found.cuts:
        longest, limit = cut.longest, found.quarantine_after
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
