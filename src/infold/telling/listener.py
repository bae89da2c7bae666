"""What is told of a run, its beginning, steps and end; and the one place that tells it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from infold.core.interval import datetime_of, now
from infold.core.plan import Step
from infold.core.ports import Progress, SilentProgress
from infold.core.project import Project
from infold.core.record import Receipt
from infold.core.report import Failure, RunFailed, RunResult
from infold.messages.errors import ExitCode, InfoldError
from infold.system import failures, signals


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


# A listener is never a reason why a run fails: what it raises becomes a note. Notes are in the
# result of the run, or, where it has none, beside the error that it ends with.


def tell(
    project: Project,
    command: str,
    shown: Progress,
    listeners: Sequence[Listener],
    carry_out: Callable[[Progress], RunResult],
    *,
    environment: str = "",
) -> RunResult:
    """
    Carry a run out, and tell listeners of it; the result is that of the run, with their notes.

    Who stops a run (Ctrl-C, a signal) waits until everyone was told; a second signal ends that.
    """
    everyone = _Everyone(shown, listeners)
    start = RunStart(project, command, now(), environment)
    everyone.began(start)
    try:
        with signals.before_errors():
            result = carry_out(everyone)
    except RunFailed as failed:
        notes = everyone.ended(RunEnd(start, now(), failed.result, failed))
        failed.result = _with_notes(failed.result, notes)
        raise
    except Exception as error:
        known = failures.as_user_error(error, project.root)
        notes = everyone.ended(RunEnd(start, now(), error=known))
        if isinstance(error, InfoldError):
            first = error.each[0]
            first.facts = (*first.facts, *(("note", note) for note in notes))
        else:
            for note in notes:
                shown.note(note)
        raise
    except BaseException as error:
        if signals.exit_code() is not None:
            signals.print_stopped()
        for note in everyone.ended(RunEnd(start, now(), stopped=signals.stopped_by(error))):
            shown.note(note)
        raise
    return _with_notes(result, everyone.ended(RunEnd(start, now(), result)))


def _with_notes(result: RunResult, notes: Iterable[str]) -> RunResult:
    return replace(result, notes=(*result.notes, *notes))


@dataclass
class _Everyone:
    """What a run calls: its own progress, and after it each listener."""

    shown: Progress
    listeners: Sequence[Listener]
    notes: list[str] = field(default_factory=list)

    def began(self, start: RunStart) -> None:
        self._each(lambda one: one.began(start))

    def step(self, index: int, total: int | None, step: Step) -> None:
        self.shown.step(index, total, step)
        self._each(lambda one: one.step(index, total, step))

    def done(self, step: Step, receipt: Receipt) -> None:
        self.shown.done(step, receipt)
        self._each(lambda one: one.done(step, receipt))

    def failed(self, step: Step, error: InfoldError) -> None:
        self.shown.failed(step, error)
        self._each(lambda one: one.failed(step, error))

    def note(self, text: str) -> None:
        self.shown.note(text)
        self._each(lambda one: one.note(text))

    def ended(self, end: RunEnd) -> Sequence[str]:
        """The notes of all, each once."""
        self._each(lambda one: self.notes.extend(one.ended(end)))
        return tuple(dict.fromkeys(self.notes))

    def _each(self, call: Callable[[Listener], None]) -> None:
        for one in self.listeners:
            try:
                call(one)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is not the run's
                # The kind alone: a text may have what the listener was told to keep secret.
                self.notes.append(f"{one.name} failed: {type(error).__name__}")
