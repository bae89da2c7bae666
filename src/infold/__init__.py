"""
Keeps tables derived from event data equal to a rebuild, at a cost proportional to the new data.

Nothing of the program is imported here: a command pays only for what it uses.
"""

from collections.abc import Callable
from typing import TypeVar

__version__ = "0.1.0"

Function = TypeVar("Function", bound=Callable[..., object])


def model(**_declaration: object) -> Callable[[Function], Function]:
    """
    Declare the function below as a model: its rows are those of a table or view.

    The keys are those of a SQL model's front matter, and `columns` (name: type) and `inputs`
    (table: {before, after, columns}). They are read from the text of the file, so they have to be
    written out; at run time the function is returned as it is.
    """

    def unchanged(function: Function) -> Function:
        return function

    return unchanged
