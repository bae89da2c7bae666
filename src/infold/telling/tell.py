"""
The one place that tells listeners what happens in a run.

A listener is never a reason why a run fails: what it raises becomes a note. Notes are in the
result of the run, or, where it has none, beside the error that it ends with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from infold.core.interval import now
from infold.core.plan import Step
from infold.core.ports import Progress
from infold.core.project import Project
from infold.core.record import Receipt
from infold.core.report import RunFailed, RunResult
from infold.messages.errors import InfoldError
from infold.system import failures, signals
from infold.telling.listener import Listener, RunEnd, RunStart


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
