"""The options of ``infold run`` as words of a command line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

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
