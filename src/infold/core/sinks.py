"""Where a command writes down what its run does, besides the ledger."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Sinks:
    """Files that a command was given (None: not written), and the runs that were told of."""

    metrics: Path | None = None
    """What a run came to, in Prometheus' text format; replaced by each run."""
    log: Path | None = None
    """What happens, a JSON object a line; each run adds to it."""
    told: list[BaseException | None] = field(default_factory=list, compare=False, repr=False)
    """How each run of the command ended that was told of; None: well."""

    def __bool__(self) -> bool:
        return self.metrics is not None or self.log is not None
