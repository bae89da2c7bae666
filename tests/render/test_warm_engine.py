"""What `infold engine status` prints."""

from __future__ import annotations

from dataclasses import replace

from infold.core.engines import WarmEngine
from infold.render.warm_engine import warm_engine_json, warm_engine_screen

FOUND = WarmEngine("dev", 12, 13, 0, 3, False, 120, 600, 812_000_000)


def test_the_screen() -> None:
    """What it does, takes, and when it ends; programs get the same facts."""
    assert warm_engine_json(None) == {"engine": None}
    assert warm_engine_json(FOUND)["engine"]["memory_bytes"] == 812_000_000
    assert warm_engine_screen(FOUND) == (
        "The engine of the target dev is ready; its last command was 2 minutes ago.\n"
        "\n"
        "  carried out:  3 commands\n"
        "  memory:       812 MB, in Java\n"
        "  processes:    12, and Java's 13\n"
        "  ends:         when no command came for 10 minutes, or by `infold engine stop`"
    )
    assert "carries out a command." in warm_engine_screen(replace(FOUND, busy=True))
    assert "No engine is running" in warm_engine_screen(None)
