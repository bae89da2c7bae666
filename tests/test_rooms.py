"""The package's folders are its architecture: few rooms, each with its purpose, small files."""

from __future__ import annotations

import ast
from pathlib import Path
from statistics import median

import infold

PACKAGE = Path(infold.__file__).parent
FILES = {path.relative_to(PACKAGE): path for path in PACKAGE.rglob("*.py")}


def lines(path: Path) -> int:
    """How long a file is."""
    return len(path.read_text(encoding="utf-8").splitlines())


def test_there_are_few_rooms() -> None:
    """Folders and modules at the top of the package."""
    rooms = {path.parts[0] for path in FILES}

    assert len(rooms) <= 20


def test_every_room_says_what_it_is_for() -> None:
    """In the first line of its package."""
    silent = [
        str(path)
        for path, file in FILES.items()
        if path.name == "__init__.py" and not ast.get_docstring(ast.parse(file.read_text()))
    ]

    assert silent == []


def test_files_can_be_read_in_a_sitting() -> None:
    """Half of them in minutes; lists of messages may be as long as there are messages."""
    sizes = {path: lines(file) for path, file in FILES.items() if path.parts[0] != "messages"}

    assert median(sizes.values()) <= 150
    assert len([path for path, size in sizes.items() if size > 400]) <= 3
