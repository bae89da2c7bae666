"""What is called while a run goes on."""

from __future__ import annotations

from typing import Protocol

from infold.core.plan import Step
from infold.core.record import Receipt
from infold.messages import errors


class Progress(Protocol):
    """Is called while a run goes on."""

    def step(self, index: int, total: int | None, step: Step) -> None:
        """A step begins; ``total`` is how many are foreseen, itself included."""

    def done(self, step: Step, receipt: Receipt) -> None:
        """The step ended well."""

    def failed(self, step: Step, error: errors.InfoldError) -> None:
        """The step did not succeed; the run goes on with what does not need it."""

    def note(self, text: str) -> None:
        """Something worth a line."""
