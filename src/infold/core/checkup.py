"""What `infold doctor` says of a target: one entry for each thing that was checked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from infold.messages.errors import InfoldError


class Verdict(StrEnum):
    """How a check came out."""

    OK = "ok"
    FAILED = "failed"
    LEFT_OUT = "left out"
    """What it needs has failed."""


@dataclass(frozen=True, slots=True)
class Check:
    """
    One thing that was checked, in ``seconds``; ``found`` says what there is.

    Those that failed have their errors, several where a project has several mistakes.
    """

    name: str
    verdict: Verdict
    found: str
    seconds: float = 0.0
    errors: tuple[InfoldError, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether it was tried and does not work."""
        return self.verdict is Verdict.FAILED
