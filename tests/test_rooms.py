"""The package's folders are its architecture: few rooms, each with its purpose, small files."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from statistics import median

import infold

PACKAGE = Path(infold.__file__).parent
ROOT = Path(__file__).parents[1]
IMPORTS = re.compile(r"(?:\b|\\n)from (infold[\w.]*) import (\w[\w, ]*)")
FILES = {path.relative_to(PACKAGE): path for path in PACKAGE.rglob("*.py")}


def lines(path: Path) -> int:
    """How long a file is."""
    return len(path.read_text(encoding="utf-8").splitlines())


def test_there_are_few_rooms() -> None:
    """The package has at most twenty folders at its top."""
    rooms = {path.parts[0] for path in FILES if len(path.parts) > 1}

    assert len(rooms) <= 20


def test_every_room_says_what_it_is_for() -> None:
    """The first line of every package says what the room is for."""
    silent = [
        str(path)
        for path, file in FILES.items()
        if path.name == "__init__.py" and not ast.get_docstring(ast.parse(file.read_text()))
    ]

    assert silent == []


def test_files_can_be_read_in_a_sitting() -> None:
    """At most three files have more than 400 lines, and half
    of them 150 or fewer; lists of messages may be long.
    """
    sizes = {path: lines(file) for path, file in FILES.items() if path.parts[0] != "messages"}

    assert median(sizes.values()) <= 150
    assert len([path for path, size in sizes.items() if size > 400]) <= 3


TEXTS = [path for folder in ("tests", "bench") for path in (ROOT / folder).rglob("*.py")]


def test_code_for_other_processes_imports_what_is_there() -> None:
    """Programs in the texts of tests, which no type checker reads, import existing modules."""
    missing = {
        (str(path.relative_to(ROOT)), module, name)
        for path in TEXTS
        for module, names in IMPORTS.findall(path.read_text(encoding="utf-8"))
        for name in names.split(",")
        if not there(module, name.split(" as ")[0].strip())
    }

    assert missing == set()


def test_tests_with_servers_are_where_make_runs_them() -> None:
    """`make test-servers` looks into two folders, and finds all that need a server."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (folders,) = re.findall(r"-m servers ((?:tests/\w+ )+)", makefile)
    mark = re.compile(r"mark\.servers\b")
    marked = {
        str(path.parent.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("*.py")
        if mark.search(path.read_text(encoding="utf-8"))
    }

    assert marked == set(folders.split())


@cache
def there(module: str, name: str) -> bool:
    """Whether a module of the package has a name, as far as its text says so."""
    place = PACKAGE.parent / module.replace(".", "/")
    if (place / f"{name}.py").exists() or (place / name).is_dir():
        return True
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    return file.exists() and re.search(rf"\b{name}\b", file.read_text()) is not None
