"""
Runs that the page starts, where ``infold ui --allow-runs`` lets it: commands, one at a time.

A run from the page is ``infold run`` in a process of its own. So it is what somebody would have
typed, with the same lease, checks and messages, and an end of the page leaves no half of it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from collections.abc import Collection, Sequence
from pathlib import Path
from threading import Lock, Thread

from infold.page.project_documents import JsonObject

LINES = 400
"""How many of the last lines that a run printed are kept."""


class PageRuns:
    """The runs of one page: ``start`` begins one, and ``document`` says how the last one goes."""

    def __init__(self, command: Sequence[str]) -> None:
        """``command`` is that of a run (:func:`run_command`); which models, is added to it."""
        self._command = tuple(command)
        self._lock = Lock()
        self._process: subprocess.Popen[str] | None = None
        self._reader: Thread | None = None
        self._lines: deque[str] = deque(maxlen=LINES)
        self._models: Sequence[str] = ()

    def start(self, models: Sequence[str]) -> bool:
        """Run models, and what they read; all for none. False while an earlier run goes on."""
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                return False
            self._lines, self._models = deque(maxlen=LINES), tuple(models)
            self._process = subprocess.Popen(
                [*self._command, *(f"--select=+{model}" for model in models)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
                errors="replace",
                env={**os.environ, "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"},
                # Ctrl-C is for the page, which then stops its run itself.
                start_new_session=True,
            )
            self._reader = Thread(target=self._read, args=(self._process, self._lines), daemon=True)
            self._reader.start()
            return True

    def document(self) -> JsonObject:
        """Whether a run goes on, of which models, what it printed, and its exit code."""
        with self._lock:
            process = self._process
            code = process.poll() if process is not None else None
            if self._reader is not None and code is not None:
                self._reader.join(1)  # its last lines are on their way
            return {
                "allowed": True,
                "running": process is not None and code is None,
                "models": list(self._models),
                "lines": list(self._lines),
                "exit_code": code,
            }

    def end(self) -> None:
        """
        Stop a run that goes on: what is committed stays. Waits for it.

        By SIGTERM: a script's background job, and what that starts, ignore SIGINT from the start.
        """
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                self._process.terminate()
                self._process.wait()

    @staticmethod
    def _read(process: subprocess.Popen[str], lines: deque[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.rstrip("\n"))


def run_command(root: Path, target: str | None) -> Sequence[str]:
    """``infold run`` of a project and target, by the Python that serves the page."""
    of = [] if target is None else [f"--target={target}"]
    return [sys.executable, "-m", "infold", f"--project={root.absolute()}", *of, "run"]


def asked_models(body: object, known: Collection[str]) -> Sequence[str] | None:
    """The models that a request asks to run; None if it is none, or names another model."""
    if not isinstance(body, dict) or body.keys() != {"models"}:
        return None
    models = body["models"]
    if not isinstance(models, list) or not all(isinstance(one, str) for one in models):
        return None
    return models if set(models) <= set(known) else None
