"""Files of a project as texts."""

from __future__ import annotations

from infold.messages import findings
from infold.messages.errors import Spot


def decoded(file: str, content: bytes) -> str:
    """The text of a file. Raises InfoldError with the line that is not UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise findings.not_utf8(Spot(file, line), byte=error.start) from None
