"""Hooks: what a target tells others at the end of a run, as infold.yml declares it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from infold.core.interval import SECOND

PLACE = re.compile(r"(?<!\$)\{([A-Za-z_]\w*)\}")
"""A fact's place in a template: ``{state}``. A reference to a secret begins with a dollar."""


class Fact(StrEnum):
    """What a hook can tell of a run; in templates, as JSON, and as variables of a command."""

    PROJECT = "project"
    TARGET = "target"
    COMMAND = "command"
    RUN = "run"
    STATE = "state"
    ERROR = "error"
    MODELS = "models"
    STEPS = "steps"
    ROWS_READ = "rows_read"
    ROWS_WRITTEN = "rows_written"
    SECONDS = "seconds"


class When(StrEnum):
    """The keys of hooks: after which runs they are told."""

    FAILURE = "on_failure"
    """After a run that ends with another exit code than 0."""
    SUCCESS = "on_success"
    """After every other, also where nothing was to be done."""


@dataclass(frozen=True, slots=True)
class Hook:
    """
    One hook: a ``command`` for the shell, or a ``webhook`` that a request is sent to.

    ``body`` is the request's template as JSON, where it is not empty; a JSON text is sent as plain
    text. ``webhook``, ``headers`` and the texts of ``body`` have references to secrets.
    """

    when: When
    name: str
    """What it is called in notes: its key, and its number where the key has several."""
    command: str = ""
    webhook: str = ""
    body: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    timeout: int = 10 * SECOND
    """How long it may take, in microseconds."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """
    A ``url`` that gets a request for each event, or a ``file`` with one a line.

    ``url`` and ``headers`` have references to secrets.
    """

    url: str = ""
    file: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    namespace: str = "infold"
    """The namespace of its jobs."""
    timeout: int = 10 * SECOND
    """How long an answer is waited for, and at the end of a run all that is left to send."""


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
