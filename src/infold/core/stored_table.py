"""What is known of a stored table without reading its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from infold.core.interval import Granularity

FORBIDDEN = "forbidden"
"""In place of a table's location, where the catalog does not say it: who asks for it is told."""


@dataclass(frozen=True, slots=True)
class TableMetadata:
    """
    A stored table as its metadata shows it now.

    ``steps`` maps the step ids found in snapshot properties to their snapshots, newest last.
    ``foreign`` is the newest snapshot of its history that is neither ours nor a pure rewrite.
    ``state`` is the name of the first field of its column ``_state``, empty if it has none.
    """

    table: str
    location: str
    snapshot: int | None
    steps: Mapping[str, int]
    foreign: int | None = None
    state: str = ""


@dataclass(frozen=True, slots=True)
class History:
    """
    What gathered in a table: snapshots kept, the oldest one's time, commits since rewrite.

    ``steady`` of these, the newest, surely left no partition with more files than it had.
    """

    snapshots: int = 0
    oldest_at: int = 0
    since_rewrite: int = 0
    steady: int = 0
    main: tuple[int, ...] = ()
    """The snapshots of the main branch, newest first, as far back as they are kept."""


@dataclass(frozen=True, slots=True)
class StoredLayout:
    """
    How a table lies on disk, as it was made.

    ``storage`` is the table format with its version, for people. ``column`` is of type ``type``
    (``timestamp`` or ``date``) and partitions the rows by ``partition``; None: one partition.
    """

    storage: str
    column: str | None = None
    partition: Granularity | None = None
    type: str = "timestamp"
