"""What a run of production tidies up at its end: environments and replaced tables that are over."""

from __future__ import annotations

from collections.abc import Iterator

from infold.core.ports import Lake, Ledger
from infold.running.environments import drop_expired, expiry_note
from infold.running.exchange import drop_kept_over


def drop_what_is_over(
    ledger: Ledger, lake: Lake, run: str, now: int, *, keep_old: int | None
) -> Iterator[str]:
    """Drop the tables that nobody can get back any more; yields notes."""
    yield from map(expiry_note, drop_expired(ledger, lake, run, now))
    yield from drop_kept_over(ledger, lake, run, now=now, keep=keep_old)
