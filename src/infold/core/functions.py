"""The functions of a project as the models that call them know them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FunctionCode:
    """
    What a session needs to have a Python function: texts alone, none of them executed yet.

    ``registered`` is the name in Spark's queries; it carries the digest of all the rest, so two
    versions of a function can be in one session. Types are Spark's. ``files`` are the function's
    file and the modules of the project that it imports: path and text.
    """

    registered: str
    function: str
    parameters: tuple[str, ...]
    returns: str
    files: tuple[tuple[str, str], ...]
    over: str = "row"
    """What it is called with: ``row``, ``arrow`` or ``pandas``."""
    deterministic: bool = True


@dataclass(frozen=True, slots=True)
class CalledFunction:
    """
    A function that a model calls, by itself or through another one.

    ``digest`` is of what the function says itself; comments and layout do not count. The query of
    the model has it expanded already.
    """

    name: str
    file: str
    digest: str
    python: FunctionCode | None = None


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
