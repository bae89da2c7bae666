"""A model written in Python, as a value that suffices to run it: its code, inputs and columns."""

from __future__ import annotations

from dataclasses import dataclass

PROJECT_PACKAGE = "lib"
"""The folder of a project with modules that models import, and the name of that package."""


@dataclass(frozen=True, slots=True)
class PythonModule:
    """A module of a project: its dotted name, its file relative to the project, and its text."""

    name: str
    file: str
    source: str


@dataclass(frozen=True, slots=True)
class PythonInput:
    """
    A table that a function is given, as the argument ``parameter``.

    ``columns`` are those that it is given; None for all.
    """

    table: str
    parameter: str
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class PythonCode:
    """
    The function of a model with all project code that it needs.

    ``modules`` has the model's own file first, then what it imports from the project. ``columns``
    are the declared names and Spark SQL types of its rows. ``digest`` is the same for two codes
    that differ in comments, layout and docstrings only.
    """

    function: str
    modules: tuple[PythonModule, ...]
    inputs: tuple[PythonInput, ...]
    columns: tuple[tuple[str, str], ...]
    digest: str
    of_each_row: bool = False
    """Whether the function is given the rows of its input one by one."""
    group_by: tuple[str, ...] = ()
    """
    The columns of the input that say which rows the function is given together; empty unless it
    makes one row for each key.
    """

    @property
    def files(self) -> tuple[str, ...]:
        """The files of its modules, the model's own first."""
        return tuple(module.file for module in self.modules)
