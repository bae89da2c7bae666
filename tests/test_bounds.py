"""What is collected to the driver or sent to every task has its bound beside it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import infold

SPARK = Path(infold.__file__).parent / "spark"
OF_SAMPLES = {"jvm/warm_up.py", "tables/iceberg/samples.py"}
"""What runs over a few rows of its own, to warm up a JVM."""
TO_DRIVER = {"collect", "toArrow", "toPandas", "toLocalIterator", "head", "tail", "broadcast"}
BOUND = re.compile(r"# .*\b(at most|one row)\b", re.IGNORECASE)
ABOVE = 2
"""A comment may stand so many lines above the statement."""


def of_frames(node: ast.AST, begins: int = 0) -> Iterator[tuple[int, int]]:
    """The statements that collect or broadcast a frame: from their line to that of the call."""
    for child in ast.iter_child_nodes(node):
        first = child.lineno if isinstance(child, ast.stmt) else begins
        if isinstance(child, ast.Call) and isinstance(child.func, ast.Attribute):
            broadcast = child.func.attr == "broadcast"
            if child.func.attr in TO_DRIVER and bool(child.args) == broadcast:
                yield first, child.end_lineno or child.lineno
        yield from of_frames(child, first)


def test_every_bound_is_said() -> None:
    """
    By a comment with "at most" or "one row": nothing that grows with the data comes to the driver.

    That a comment is true is for its reader to see. It names what there are so many of (cells,
    files of a step, sessions in quarantine), or the constant that limits it.
    """
    found = {}
    for file in sorted(SPARK.rglob("*.py")):
        name = file.relative_to(SPARK).as_posix()
        if name in OF_SAMPLES:
            continue
        text = file.read_text(encoding="utf-8")
        lines = text.splitlines()
        for first, last in of_frames(ast.parse(text)):
            near = lines[max(0, first - 1 - ABOVE) : last]
            found[f"{name}:{last}"] = any(map(BOUND.search, near))

    assert [place for place, said in found.items() if not said] == []
    assert len(found) > 50
