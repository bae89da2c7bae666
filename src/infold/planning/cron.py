"""
When a model is due: cron expressions in a time zone, read by the library cronsim.

Cron says *when*, never which data: cells are UTC in any zone. The library handles days with 23 or
25 hours: a skipped time runs at the hour after, a repeated one runs once.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from infold.core.interval import datetime_of, micros_of

_NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


def normal_cron(text: str) -> str:
    """The five fields of an expression, nicknames (``@daily``) spelt out. Raises ValueError."""
    fields = _NICKNAMES.get(text.strip().lower(), text.strip())
    from cronsim import CronSim, CronSimError

    if len(fields.split()) != 5:
        raise ValueError("five fields: minute, hour, day of the month, month, day of the week")
    try:
        CronSim(fields, datetime(2024, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        raise ValueError(str(error)) from error
    return " ".join(fields.split())


def time_zone(name: str) -> ZoneInfo:
    """A time zone by its name. Raises ValueError."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError, ValueError) as error:
        raise ValueError(name) from error


@lru_cache(maxsize=1024)
def last_tick(cron: str, cron_tz: str, at: int) -> int:
    """The newest tick that is not after the instant ``at``."""
    from cronsim import CronSim

    here = datetime_of(at).astimezone(time_zone(cron_tz))
    simulated = CronSim(cron, here, reverse=True)
    # Going back, the library leaves out the minute that it starts in.
    minute = here.replace(second=0, microsecond=0)
    if _is_tick(cron, minute):
        return micros_of(minute.astimezone(UTC))
    return micros_of(next(simulated).astimezone(UTC))


@lru_cache(maxsize=1024)
def next_tick(cron: str, cron_tz: str, at: int) -> int:
    """The first tick after the instant ``at``."""
    from cronsim import CronSim

    here = datetime_of(at).astimezone(time_zone(cron_tz))
    return micros_of(next(CronSim(cron, here)).astimezone(UTC))


def _is_tick(cron: str, minute: datetime) -> bool:
    from datetime import timedelta

    from cronsim import CronSim

    before = (minute.astimezone(UTC) - timedelta(minutes=1)).astimezone(minute.tzinfo)
    return next(CronSim(cron, before)) == minute
