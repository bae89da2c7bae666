"""A Python function of a project, read from its file's syntax tree: the file is not executed."""

from __future__ import annotations

from pathlib import Path

from infold.analysis.sql.expand import ProjectFunction


def read_python_function(root: Path, file: str) -> ProjectFunction:
    """The function of a file ``functions/NAME.py``. Raises InfoldError."""
    raise NotImplementedError
