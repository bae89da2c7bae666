"""
The progress of a run: a line for each step as it ends; on a terminal a moving line meanwhile.

Rich draws the moving line and is imported only when a step begins on a terminal, so a run with
nothing to do does not pay for it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from infold.cli.process_exit import ReaderGone
from infold.core.plan import Step
from infold.core.ports import SilentProgress
from infold.core.record import Receipt
from infold.messages.errors import InfoldError
from infold.render.formatting import count
from infold.render.run import failed_line, name_width, step_line

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from infold.core.project import Node


class NoLines(SilentProgress):
    """Prints nothing."""

    def close(self) -> None:
        """Nothing."""


class Lines(NoLines):
    """One line a step, as it ends."""

    def __init__(self, *, verbose: bool = False, width: int = 0) -> None:
        self.verbose = verbose
        self.width = width
        self.index = 0
        self.heard = True

    def step(self, index: int, total: int | None, step: Step) -> None:
        """Remember its number; with ``-v`` print why it is done."""
        del total
        self.index = index
        if self.verbose:
            for reason in step.reasons:
                self.say(f"     {step.model}: {reason.cause.value}, {reason.detail}")

    def done(self, step: Step, receipt: Receipt) -> None:
        """The step's line."""
        self.say(step_line(self.index, step, receipt, self.width))

    def failed(self, step: Step, error: InfoldError) -> None:
        """The step's line; the whole error comes at the end."""
        self.say(failed_line(self.index, step, error, self.width))

    def note(self, text: str) -> None:
        """The text, on a line of its own."""
        self.say(f"     {text}")

    def say(self, line: str) -> None:
        """Print a line now, also into a pipe; where nobody reads on, the work goes on."""
        if self.heard:
            try:
                click.echo(line)
                sys.stdout.flush()
            except (OSError, ReaderGone):
                self.heard = False


class Moving(Lines):
    """The same lines, and below them what goes on now, how far it is and how long it takes."""

    def __init__(self, *, verbose: bool = False, width: int = 0) -> None:
        super().__init__(verbose=verbose, width=width)
        self.bars: Bars | None = None
        self.task: TaskID | None = None

    def step(self, index: int, total: int | None, step: Step) -> None:
        """Show the step; ``total`` may change as the run plans again."""
        super().step(index, total, step)
        about = f", about {count(step.rows_to_read, 'row')}" if step.rows_to_read else ""
        text = f"{step.model}: {step.action.value}{about}"
        bars = self._bars()
        if self.task is None:
            self.task = bars.add_task(text, total=total, completed=index - 1)
        else:
            bars.update(self.task, description=text, total=total, completed=index - 1)

    def say(self, line: str) -> None:
        """Print above the moving line."""
        if self.bars is None:
            super().say(line)
        else:
            self.bars.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def note(self, text: str) -> None:
        """What goes on inside a long step is shown in passing; a note between steps is kept."""
        if self.bars is not None and self.task is not None and not self.verbose:
            self.bars.update(self.task, description=text)
        else:
            super().note(text)

    def close(self) -> None:
        """Take the moving line away."""
        if self.bars is not None:
            self.bars.stop()

    def _bars(self) -> Bars:
        if self.bars is None:
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                Progress,
                SpinnerColumn,
                TextColumn,
                TimeElapsedColumn,
                TimeRemainingColumn,
            )

            self.bars = Progress(
                SpinnerColumn(),
                MofNCompleteColumn(),
                BarColumn(bar_width=20),
                TextColumn("{task.description}", markup=False),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                transient=True,
            )
            self.bars.start()
        return self.bars


@contextmanager
def progress(
    project: Iterable[Node] = (), *, quiet: bool = False, verbose: bool = False
) -> Iterator[NoLines]:
    """
    The progress of a command on a terminal, in a file, or nowhere; always ended properly.

    Lines of steps have room for the names in a ``project``.
    """
    shown: NoLines
    width = name_width(node.name for node in project)
    if quiet:
        shown = NoLines()
    elif sys.stdout.isatty():
        shown = Moving(verbose=verbose, width=width)
    else:
        shown = Lines(verbose=verbose, width=width)
    try:
        yield shown
    finally:
        shown.close()
