"""Where a target sends events of lineage, in the form of OpenLineage."""

from __future__ import annotations

from dataclasses import dataclass

from infold.core.interval import SECOND


@dataclass(frozen=True, slots=True)
class Lineage:
    """
    A ``url`` that gets a request for each event, or a ``file`` with one a line.

    ``url`` and ``headers`` have references to secrets.
    """

    url: str = ""
    file: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    namespace: str = "infold"
    """The namespace of its jobs."""
    timeout: int = 10 * SECOND
    """How long an answer is waited for, and at the end of a run all that is left to send."""
