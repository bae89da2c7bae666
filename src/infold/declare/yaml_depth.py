"""How deep YAML is nested, found before it is read: deep texts take minutes, or the process."""

from __future__ import annotations

from typing import Any

import yaml

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""What reads without making anything but plain values, in C where that is installed."""

MOST = 50
"""Nothing that is written for infold, or for the tools that it imports from, is that deep."""

_BEGINS = (yaml.SequenceStartEvent, yaml.MappingStartEvent)
_ENDS = (yaml.SequenceEndEvent, yaml.MappingEndEvent)


def deep_place(text: str) -> tuple[int, int] | None:
    """The 0-based line and column at which a text is too deep; None if it never is."""
    depth = 0
    try:
        for event in yaml.parse(text, Loader=LOADER):
            depth += isinstance(event, _BEGINS) - isinstance(event, _ENDS)
            mark = event.start_mark
            if depth > MOST and mark is not None:
                return mark.line, mark.column
    except yaml.YAMLError:  # whoever reads it says what is wrong
        return None
    return None
