"""A warm engine, as text and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from infold.core.engines import WarmEngine
from infold.core.interval import SECOND, show_duration
from infold.render.formatting import count

NONE = "No engine is running. A command that needs Spark may leave one."


def warm_engine_screen(found: WarmEngine | None) -> str:
    """What an engine does, for how long it stays, and what it takes."""
    if found is None:
        return NONE
    waited = show_duration(found.idle_seconds * SECOND)
    state = (
        "carries out a command" if found.busy else f"is ready; its last command was {waited} ago"
    )
    ends = show_duration(found.ends_after_seconds * SECOND)
    return "\n".join(
        (
            f"The engine of the target {found.target} {state}.",
            "",
            f"  carried out:  {count(found.commands, 'command')}",
            f"  memory:       {found.memory_bytes / 1e6:,.0f} MB, in Java",
            f"  processes:    {found.process}, and Java's {found.jvm}",
            f"  ends:         when no command came for {ends}, or by `infold engine stop`",
        )
    )


def warm_engine_json(found: WarmEngine | None) -> dict[str, Any]:
    """The same for programs."""
    return {"engine": None if found is None else asdict(found)}
