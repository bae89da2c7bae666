"""What happens in a run as a log: a JSON object a line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from infold.core.interval import now
from infold.core.plan import Step
from infold.core.record import COUNTS, Receipt
from infold.messages.errors import InfoldError
from infold.telling.hooks import facts_of
from infold.telling.listener import Listener, RunEnd, RunStart, written

INFO, WARNING, ERROR = "info", "warning", "error"


@dataclass
class JsonLog(Listener):
    """
    Adds lines to a file, each in one write to its end.

    The file is opened for each line, so one that is put aside meanwhile is begun again. Lines of
    runs at the same time do not mix.
    """

    path: Path
    of_run: dict[str, str] = field(default_factory=dict)
    name = "the log"
    _open: set[str] = field(default_factory=set)

    def began(self, start: RunStart) -> None:
        """A run begins; its project and target are in every line."""
        self.of_run = {"project": start.project.name, "target": start.project.target.name}
        if start.environment:
            self.of_run["environment"] = start.environment
        self._line(INFO, "run_began", command=start.command)

    def step(self, index: int, total: int | None, step: Step) -> None:
        """A step begins; one of several at a time is told again before its end."""
        if step.model in self._open:
            return
        self._open.add(step.model)
        reasons = [f"{reason.cause.value}, {reason.detail}" for reason in step.reasons]
        self._line(
            INFO,
            "step_began",
            model=step.model,
            action=step.action.value,
            step=index,
            of=total,
            reasons=reasons,
        )

    def done(self, step: Step, receipt: Receipt) -> None:
        """A step ended well; of its receipt, what is not zero."""
        self._open.discard(step.model)
        counts = {name: one for name, one in asdict(receipt).items() if one and name not in COUNTS}
        self._line(INFO, "step_done", model=step.model, action=step.action.value, receipt=counts)

    def failed(self, step: Step, error: InfoldError) -> None:
        """A step failed."""
        self._open.discard(step.model)
        self._line(
            ERROR, "step_failed", model=step.model, action=step.action.value, error=error.record
        )

    def note(self, text: str) -> None:
        """Something worth a line."""
        self._line(INFO, "note", text=text)

    def ended(self, end: RunEnd) -> Iterator[str]:
        """The run ended: its notes, all errors, and the facts that hooks get."""
        for note in end.result.notes if end.result else ():
            self._line(WARNING, "note", text=note)
        facts: dict[str, Any] = {str(fact): value for fact, value in facts_of(end).items()}
        left = {name: value for name, value in facts.items() if name not in self.of_run}
        errors = [failure.error.record for failure in end.failures]
        self._line(INFO if end.succeeded else ERROR, "run_ended", **left, errors=errors)
        yield from ()

    def _line(self, level: str, event: str, **more: Any) -> None:
        record = {"time": written(now()), "level": level, "event": event, **self.of_run, **more}
        text = json.dumps(record, ensure_ascii=False, default=str) + "\n"
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            os.write(file, text.encode())
        finally:
            os.close(file)
