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
