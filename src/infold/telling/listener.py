"""What is told of a run: that it begins, its steps, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from infold.core.interval import datetime_of
from infold.core.ports import SilentProgress
from infold.core.project import Project
from infold.core.report import Failure, RunResult
from infold.messages.errors import ExitCode, InfoldError


@dataclass(frozen=True, slots=True)
class RunStart:
    """A run that begins ``at`` an instant, by a command; ``environment`` is empty: production's."""

    project: Project
    command: str
    at: int
    environment: str = ""


@dataclass(frozen=True, slots=True)
class RunEnd:
    """
    What came of a run.

    A run that wrote something, or found that nothing was to be done, has a ``result``. One that
    was refused or ended before that has only an ``error``; one that did a part has both. Of one
    that was ``stopped`` it is known by what: the name of a signal.
    """

    start: RunStart
    at: int
    result: RunResult | None = None
    error: InfoldError | None = None
    stopped: str = ""

    @property
    def state(self) -> str:
        """``done``, ``failed``, ``refused`` or ``stopped``."""
        if self.stopped:
            return "stopped"
        if self.result is not None:
            return self.result.state
        refused = self.error is not None and self.error.exit_code == ExitCode.REFUSED
        return "refused" if refused else "failed"

    @property
    def succeeded(self) -> bool:
        """Whether the command ends with 0."""
        return self.error is None and not self.stopped

    @property
    def seconds(self) -> float:
        """How long it took, the start of Spark included."""
        return (self.at - self.start.at) / 1e6

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Each model that failed, or without a model what ended the run."""
        if self.result is not None:
            return self.result.failures
        return tuple(Failure("", one) for one in self.error.each) if self.error else ()

    @property
    def why(self) -> str:
        """Why it failed, in one line; empty if it did not."""
        if self.stopped:
            return f"stopped by {self.stopped}"
        return "; ".join(failure.reason for failure in self.failures)


def written(at: int) -> str:
    """An instant for programs: ``2024-03-09T00:00:00Z``."""
    return datetime_of(at).isoformat().replace("+00:00", "Z")


class Listener(SilentProgress):
    """Somebody who is told of a run; does nothing with it but what is overridden."""

    name = "listener"
    """What it is called in notes."""

    def began(self, start: RunStart) -> None:
        """A run begins."""

    def ended(self, end: RunEnd) -> Iterable[str]:
        """A run has ended; what could not be told is returned as notes."""
        del end
        return ()
