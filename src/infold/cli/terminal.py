"""What the terminal shows: how wide a picture may be, and whether with colours."""

from __future__ import annotations

import codecs
import os
import shutil
import sys

from infold.render.formatting import WIDTH
from infold.render.pictures.look import NARROWEST, Look

_NO_COLOUR = "NO_COLOR"


def terminal_look() -> Look:
    """
    How a picture may look where standard output goes.

    It is plain, which is ASCII without colours, without a terminal, with ``NO_COLOR``, in a
    terminal that can do nothing, and where the encoding is not UTF-8.
    """
    terminal = sys.stdout.isatty()
    capable = os.environ.get("TERM") != "dumb" and _is_utf8(sys.stdout.encoding)
    coloured = terminal and capable and not os.environ.get(_NO_COLOUR)
    width = shutil.get_terminal_size((WIDTH, 24)).columns
    return Look(width=max(NARROWEST, min(width, _WIDEST)), plain=not coloured)


_WIDEST = 160
"""Nobody reads a wider picture."""


def _is_utf8(encoding: str | None) -> bool:
    try:
        return codecs.lookup(encoding or "ascii").name == "utf-8"
    except LookupError:
        return False
