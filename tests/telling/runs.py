"""A project, and runs of it that end as a test wants, told to its hooks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tests.cli import sample
from tests.declare.shop import INFOLD, SHOP
from tests.declare.shop import read as read_shop

from infold.api.run_and_tell import run_and_tell
from infold.core.hooks import Sinks
from infold.core.ports import Progress, SilentProgress
from infold.core.project import Project
from infold.core.report import RunFailed, RunResult

TARGET = "  dev: {warehouse: warehouse}\n"


def project(root: Path, hooks: str) -> Project:
    """The shop in a folder, with a target that has these keys, each a line or several."""
    lines = "".join(f"    {line}\n" for line in hooks.splitlines())
    text = INFOLD.replace(TARGET, "  dev:\n    warehouse: warehouse\n" + lines)
    found, errors = read_shop({**SHOP, "infold.yml": text})
    assert errors == []
    assert found is not None
    return replace(found, root=root)


def good(_: Progress) -> RunResult:
    """A run that built tables."""
    return sample.result()


def bad(result: RunResult) -> Callable[[Progress], RunResult]:
    """A run in which models failed."""
    return raising(RunFailed(result))


def raising(error: BaseException) -> Callable[[Progress], RunResult]:
    """A run that does not begin, or ends, by an error."""

    def run(_: Progress) -> RunResult:
        raise error

    return run


def end(
    of: Project,
    run: Callable[[Progress], RunResult] = good,
    sinks: Sinks | None = None,
    environment: str = "",
) -> RunResult:
    """Tell of a run; its result."""
    return run_and_tell(of, "run", SilentProgress(), run, sinks=sinks, environment=environment)
