"""What a run calls while it goes on: a protocol, and an implementation that prints nothing."""

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


class SilentProgress:
    """A progress that prints nothing: only the result of the run is wanted."""

    def step(self, index: int, total: int | None, step: Step) -> None:
        """Nothing."""

    def done(self, step: Step, receipt: Receipt) -> None:
        """Nothing."""

    def failed(self, step: Step, error: errors.InfoldError) -> None:
        """Nothing: the run raises it in the end."""

    def note(self, text: str) -> None:
        """Nothing."""
