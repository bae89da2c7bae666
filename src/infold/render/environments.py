"""Environments as text and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from infold.core.environment import Environment, EnvironmentSize
from infold.core.interval import DAY, HOUR, MINUTE
from infold.render import formatting


def environments_screen(target: str, found: Sequence[EnvironmentSize], now: int) -> str:
    """All environments of a target, a line each."""
    if not found:
        return f"{target} has no environment; `infold run --env NAME` makes one."
    rows: list[tuple[str, ...]] = [
        ("environment", "owner", "age", "last run", "expires", "own tables", "rows", "MB")
    ]
    rows += [_row(one, now) for one in found]
    return "\n".join(formatting.columns(rows, right=(6, 7), indent=0))


def _row(one: EnvironmentSize, now: int) -> tuple[str, ...]:
    of = one.environment
    ran = "never" if of.last_run_at is None else f"{_length(now - of.last_run_at)} ago"
    if of.built_at is None:
        ran += ", not finished"
    expires = "never" if of.expires_at is None else f"in {_length(of.expires_at - now, up=True)}"
    if of.is_over(now):
        expires = "now"
    size = f"{one.bytes / 1_000_000:,.1f}"
    own = formatting.names(of.own) if of.own else "none"
    age = _length(now - of.created_at)
    return (of.name, of.owner, age, ran, expires, own, f"{sum(one.rows.values()):,}", size)


def _length(micros: int, *, up: bool = False) -> str:
    """A length of time in its largest unit, rounded down, or ``up``."""
    for unit, name in ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute")):
        if micros >= unit:
            return formatting.count(-(-micros // unit) if up else micros // unit, name)
    return "under a minute"


def environments_json(found: Sequence[EnvironmentSize]) -> dict[str, Any]:
    """The same for programs."""
    return {
        "environments": [
            {
                "name": one.environment.name,
                "owner": one.environment.owner,
                "created_at": formatting.iso(one.environment.created_at),
                "expires_at": _iso(one.environment.expires_at),
                "last_run_at": _iso(one.environment.last_run_at),
                "built_at": _iso(one.environment.built_at),
                "tables": [
                    {"model": model, "table": key, "rows": one.rows[model]}
                    for model, key in one.environment.own.items()
                ],
                "bytes": one.bytes,
            }
            for one in found
        ]
    }


def _iso(at: int | None) -> str | None:
    return None if at is None else formatting.iso(at)


def tables_text(environment: Environment) -> str:
    """The tables that an environment has of its own, in words."""
    if not environment.own:
        return "which has no table of its own"
    many = formatting.count(len(environment.own), "table")
    return f"with {many} of its own: {formatting.names(environment.own)}"


def dropped_text(environment: Environment) -> str:
    """What was dropped."""
    return f"Dropped the environment {environment.name}, {tables_text(environment)}."
