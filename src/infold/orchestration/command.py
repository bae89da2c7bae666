"""
The command ``infold`` in a process of its own: started, followed, stopped.

All that it writes goes to files in a folder of its own, which are read while it runs. So nothing
waits for a reader: if the scheduler's task dies, the command goes on to its end, and the next one
meets its lease.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, Protocol

from infold.messages import command_errors
from infold.orchestration.graph import ProjectGraph
from infold.orchestration.outcome import JsonObject, Outcome, parsed

LOOK_SECONDS = 0.1
"""How often the command is looked at while it runs."""

STOP_SECONDS = 60.0
"""How long a command has to end after SIGTERM, before everything of it is killed."""

KEPT_OF_MESSAGES = 4_000
"""How much of the end of what a command printed to stderr is kept for its error."""

WITH_LOG = ("run", "apply", "restate", "backbuild")
"""Commands with ``--log``: what they do is told while they do it."""


class Telling(Protocol):
    """What lines are given to while a command runs."""

    def __call__(self, line: str, /) -> object:
        """Take a line."""


@dataclass(frozen=True, slots=True)
class InfoldProject:
    """
    A project as a scheduler runs it: its folder, the target, and the command.

    ``infold_command`` is a program, or one with arguments; it may be that of another environment
    of Python. ``env`` is added to the environment of the scheduler. ``graph_file`` has what
    ``infold dag --json`` printed where the project is, for a scheduler that reads the project's
    models often, or has no access to it.
    """

    folder: str | Path
    target: str | None = None
    infold_command: str | Sequence[str] = "infold"
    env: Mapping[str, str] = field(default_factory=dict)
    graph_file: str | Path | None = None

    def line(self, command: str, *words: str) -> tuple[str, ...]:
        """The command line that carries out one of infold's commands."""
        program = self.infold_command
        first = (program,) if isinstance(program, str) else tuple(program)
        of = () if self.target is None else (f"--target={self.target}",)
        return (*first, f"--project={self.folder}", *of, command, *words)

    def with_env(self, env: Mapping[str, str]) -> InfoldProject:
        """The same with more in its environment."""
        return replace(self, env={**self.env, **env})

    def graph(self) -> ProjectGraph:
        """Its sources and models, from the file or by ``infold dag``."""
        if self.graph_file is not None:
            return _graph_in(Path(self.graph_file))
        line = self.line("dag", "--json")
        outcome = RunningCommand().carry_out(self, "dag")
        if outcome.exit_code or "nodes" not in outcome.result:
            raise command_errors.no_graph(command=shlex.join(line), why=outcome.why)
        return ProjectGraph.of(outcome.result)


def _graph_in(file: Path) -> ProjectGraph:
    try:
        document = parsed(file.read_text(encoding="utf-8"))
        return ProjectGraph.of(document)
    except (OSError, KeyError, TypeError, UnicodeDecodeError) as error:
        why = f"{type(error).__name__}: {error}"
        raise command_errors.bad_graph_file(file=str(file), why=why) from None


@dataclass
class RunningCommand:
    """One command from its start to its end; ``stop`` may be called from a signal handler."""

    stop_seconds: float = STOP_SECONDS
    _process: _Process | None = None
    _stopping: bool = False

    def carry_out(
        self,
        project: InfoldProject,
        command: str,
        words: Sequence[str] = (),
        tell: Telling = lambda _: None,
    ) -> Outcome:
        """
        Run a command with ``--json``, give each line to ``tell``, and wait for its end.

        What interrupts the waiting, such as a time limit of the scheduler, leaves the command to
        ``stop``.
        """
        self._stopping = False
        with TemporaryDirectory(prefix="infold-") as name:
            folder = Path(name)
            result, messages, log = (folder / part for part in ("result", "messages", "log"))
            logged = (f"--log={log}",) if command in WITH_LOG else ()
            line = project.line(command, *words, "--json", *logged)
            tell(shlex.join(line))
            self._process = process = _Process(_started(line, project.env, result, messages))
            if self._stopping:  # by a signal that came while it was being started
                self.stop()
            told = [_Followed(messages, tell), _Followed(log, lambda one: _tell_log(one, tell))]
            code = None
            while code is None:
                time.sleep(LOOK_SECONDS)
                code = process.exit_code
                for one in told:
                    one.follow(whole=code is not None)
            text = messages.read_text(encoding="utf-8", errors="replace")
            printed = result.read_text(encoding="utf-8", errors="replace")
            return Outcome(code, parsed(printed), text[-KEPT_OF_MESSAGES:])

    def stop(self) -> None:
        """End the command as SIGTERM does: finished steps stay. Waits, and then kills it."""
        self._stopping = True
        if self._process is not None:
            self._process.stop(self.stop_seconds)


class _Process:
    """
    A process, and the thread that waits for its end, which is its ``exit_code``.

    A signal's handler that stops it may interrupt whoever follows it at any point, so the two share
    no lock, and neither waits by Popen, which has one.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.exit_code: int | None = None
        self._process = process
        Thread(target=self._wait, daemon=True).start()

    def stop(self, seconds: float) -> None:
        """End it by SIGTERM, and all of its group by SIGKILL once the time is over."""
        # infold ends its own Java; a signal to all would take that from it.
        self._signal(os.kill, signal.SIGTERM)
        until = time.monotonic() + seconds
        while self.exit_code is None and time.monotonic() < until:
            time.sleep(LOOK_SECONDS / 2)
        self._signal(os.killpg, signal.SIGKILL)
        while self.exit_code is None:
            time.sleep(LOOK_SECONDS / 2)

    def _signal(self, send: Callable[[int, int], None], number: int) -> None:
        if self.exit_code is None:
            with suppress(ProcessLookupError):
                send(self._process.pid, number)

    def _wait(self) -> None:
        self.exit_code = self._process.wait()


def _started(
    line: Sequence[str], env: Mapping[str, str], result: Path, messages: Path
) -> subprocess.Popen[bytes]:
    with result.open("wb") as out, messages.open("wb") as err:
        try:
            return subprocess.Popen(
                line,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env={**os.environ, "NO_COLOR": "1", **env},
                # A signal to the scheduler's group is for the scheduler, which then stops this.
                start_new_session=True,
            )
        except OSError as error:
            why = error.strerror or str(error)
            raise command_errors.command_missing(command=line[0], why=why) from None


def _tell_log(line: str, tell: Telling) -> None:
    shown = log_line(line)
    if shown:
        tell(shown)


@dataclass
class _Followed:
    """A file that grows, and what each whole line of it is given to."""

    file: Path
    tell: Telling
    _read: int = 0

    def follow(self, *, whole: bool) -> None:
        """Give on what is new; with ``whole`` also a last line without an end."""
        for line in self._new(whole=whole):
            self.tell(line)

    def _new(self, *, whole: bool) -> Iterator[str]:
        if not self.file.exists():
            return
        with self.file.open("rb") as file:
            file.seek(self._read)
            new = file.read()
        if not whole:
            new = new[: new.rfind(b"\n") + 1]
        self._read += len(new)
        yield from new.decode("utf-8", "replace").splitlines()


def summary(result: JsonObject) -> JsonObject:
    """What of a result is worth keeping with a task: not the states of all models, and no file."""
    kept = {name: value for name, value in result.items() if name != "states"}
    if "steps" in kept:
        steps = kept["steps"]
        kept["steps"] = [{k: v for k, v in step.items() if k != "files"} for step in steps]
    return kept


_SHOWN = {
    "arrived": "rows arrived",
    "read": "read",
    "written": "written",
    "removed": "removed",
    "set_aside": "set aside",
    "cells_built": "cells built",
    "cells_cut_off": "cut off early",
}


def log_line(line: str) -> str:
    """What a line says, or nothing if it says nothing to a person, or is none of that log."""
    event = parsed(line)
    kind = event.get("event")
    if kind == "step_began":
        of = f"/{event['of']}" if event.get("of") else ""
        reasons = "; ".join(event.get("reasons") or ())
        return f"[{event.get('step')}{of}] {_what(event)}: {reasons}"
    if kind == "step_done":
        return f"{_what(event)}: {_counts(event.get('receipt') or {})}"
    if kind == "step_failed":
        error = event.get("error") or {}
        return f"{_what(event)} failed: {error.get('slug')}: {error.get('what')}"
    if kind == "note":
        return str(event.get("text", ""))
    return ""


def _what(event: dict[str, Any]) -> str:
    return f"{event.get('action')} {event.get('model')}"


def _counts(receipt: dict[str, Any]) -> str:
    counts = [f"{receipt[name]:,} {words}" for name, words in _SHOWN.items() if receipt.get(name)]
    return ", ".join([*counts, f"{receipt.get('seconds', 0)} s"])


WAIT_SECONDS = 600
"""How long a run waits for another one of the target, where nothing else is said."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """
    What a run is asked for; each field is the option of its name, and ``flags`` are others.

    A text that is empty, as a template may be, is an option that is left out.
    """

    select: str | Sequence[str] = ()
    exclude: str | Sequence[str] = ()
    start: str | None = None
    end: str | None = None
    wait: float | str | None = WAIT_SECONDS
    max_rows: int | str | None = None
    jobs: int | str | None = None
    environment: str | None = None
    flags: Sequence[str] = ()

    def words(self) -> tuple[str, ...]:
        """The words after ``infold run``."""
        return (
            *(f"--select={term}" for term in terms(self.select)),
            *(f"--exclude={term}" for term in terms(self.exclude)),
            *_option("start", self.start),
            *_option("end", self.end),
            *_option("wait", self.wait),
            *_option("max-rows", self.max_rows),
            *_option("jobs", self.jobs),
            *_option("env", self.environment),
            *self.flags,
        )


RUN_OPTIONS = tuple(one.name for one in fields(RunOptions))
"""Their names, by which operators have them too."""


def terms(given: str | Sequence[str]) -> Iterator[str]:
    """Terms of a list, or of a text with commas, as on the command line."""
    listed = given.split(",") if isinstance(given, str) else given
    yield from (term.strip() for term in listed if term.strip())


def _option(name: str, value: object) -> Iterator[str]:
    if value is not None and value != "":
        yield f"--{name}={value}"
