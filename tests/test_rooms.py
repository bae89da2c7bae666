"""Texts that are programs, and the Makefile, name what there is."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import infold

PACKAGE = Path(infold.__file__).parent
ROOT = Path(__file__).parents[1]
IMPORTS = re.compile(r"(?:\b|\\n)from (infold[\w.]*) import (\w[\w, ]*)")
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


def test_a_file_is_a_subject() -> None:
    """Of at most 800 lines: what has more is several, and what one neighbour uses is its part."""
    lines = {path: path.read_text(encoding="utf-8").count("\n") for path in PACKAGE.rglob("*.py")}

    assert {path.name: count for path, count in lines.items() if count > 800} == {}


def test_steps_end_in_one_place() -> None:
    """One module tells the ledger of a step before its commit; no kind of table does so."""
    ends = re.compile(r"\b(?:Outcome|\.announce)\(")
    found = {
        path.name
        for path in (PACKAGE / "spark").rglob("*.py")
        if ends.search(path.read_text(encoding="utf-8"))
    }

    assert found == {"step_commit.py"}


@cache
def there(module: str, name: str) -> bool:
    """Whether a module of the package has a name, as far as its text says so."""
    place = PACKAGE.parent / module.replace(".", "/")
    if (place / f"{name}.py").exists() or (place / name).is_dir():
        return True
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    return file.exists() and re.search(rf"\b{name}\b", file.read_text()) is not None
