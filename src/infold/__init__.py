"""
Keeps tables derived from event data equal to a rebuild, at a cost proportional to the new data.

Nothing of the program is imported here: a command pays only for what it uses.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Any, TypeVar

    from infold.api.notebook import Project

    Function = TypeVar("Function", bound=Callable[..., Any])

__version__ = "0.1.0"

__all__ = ["function", "model", "session_rule"]
"""Not ``open``: a star would put it in the place of Python's own."""


def open(root: str | Path = ".", target: str | None = None) -> Project:  # noqa: A001 (infold.open)
    """
    The project of a folder, for a notebook: its methods return what shows itself.

    Raises all mistakes in its files at once.
    """
    from infold.api.notebook import Project

    return Project(root, target)


def function(
    *, parameters: Sequence[str], returns: str, deterministic: bool = False, over: str = "row"
) -> Callable[[Function], Function]:
    """
    Declare the function of a file ``functions/NAME.py``, which queries call as NAME.

    ``parameters`` and ``returns`` are types of Spark. A function that is ``deterministic`` gives
    the same value for the same arguments whenever and wherever it is called. ``over`` says what it
    is called with: the values of one ``row``, or columns of ``arrow`` or ``pandas``. The
    declaration is read from the file's text, so all of it is written out; the function itself
    stays as it is.
    """
    del parameters, returns, deterministic, over

    return _unchanged


def session_rule(*, parameters: Mapping[str, str]) -> Callable[[Function], Function]:
    """
    Declare the rule of a file ``functions/NAME.py``, which `cuts.rule` of sessions calls as NAME.

    ``parameters`` are names and types of Spark: what the rule is given of each event. The function
    is a generator: it takes the events of a session in their order, and yields for each, before it
    takes the next one, whether that begins another session. The declaration is read from the file's
    text, so all of it is written out; the function itself stays as it is.
    """
    del parameters

    return _unchanged


def model(**_declaration: object) -> Callable[[Function], Function]:
    """
    Declare the function below as a model: its rows are those of a table or view.

    The keys are those of a SQL model's front matter, and `columns` (name: type) and `inputs`
    (table: {before, after, columns}). They are read from the text of the file, so they have to be
    written out; at run time the function is returned as it is.
    """
    return _unchanged


def _unchanged(declared: Function) -> Function:
    return declared
