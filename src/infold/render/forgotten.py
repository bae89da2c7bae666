"""
What ``infold forget`` and ``infold teardown`` print: the deleted models, and those not found.

The sentences about the manifest are those of Snowplow's packages, which users know.
"""

from __future__ import annotations

from infold.core.report import Forgotten
from infold.render import formatting


def forgotten_screen(done: Forgotten) -> str:
    """What ``infold forget`` did."""
    parts = []
    if done.models:
        parts.append(f"Deleted {_models_text(done.models)} from the manifest, and what was stored.")
        parts.append("The next run builds what is still in the project again.")
    if done.missing:
        verb = "does" if len(done.missing) == 1 else "do"
        parts.append(f"{formatting.names(done.missing)} {verb} not exist in the manifest.")
    return "\n".join(parts)


def torn_down_screen(target: str, done: Forgotten) -> str:
    """What ``infold teardown`` did."""
    what = f": {formatting.names(done.models)}" if done.models else ""
    entries = f"{entries_text(done.entries)} went with it.\n" if done.entries else ""
    return (
        f"Dropped {formatting.count(len(done.models), 'table')} and the ledger of {target}{what}.\n"
        f"{entries}The next run is a first run."
    )


def entries_text(number: int) -> str:
    """How many manual entries there are."""
    return formatting.count(number, "manual entry for sessions", "manual entries for sessions")


def _models_text(models: tuple[str, ...]) -> str:
    return f"{'model' if len(models) == 1 else 'models'} {formatting.names(models)}"
