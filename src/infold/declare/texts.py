"""Files of a project as texts."""

from __future__ import annotations

from pathlib import PurePosixPath

from infold.messages import findings
from infold.messages.errors import Spot

MOST_BYTES = {".yml": 10_000_000, ".sql": 2_000_000, ".py": 2_000_000}
"""The most of a file by its ending: some seconds of reading. Seeds have a limit of their own."""


def decoded(file: str, content: bytes) -> str:
    """The text of a file. Raises InfoldError: it is too large, or a line is not UTF-8."""
    most = MOST_BYTES.get(PurePosixPath(file).suffix, len(content))
    if len(content) > most:
        raise findings.large_file(Spot(file), found=f"{len(content):,}", most=f"{most:,}")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise findings.not_utf8(Spot(file, line), byte=error.start) from None
