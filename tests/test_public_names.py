"""
The names that other programs may use, with their arguments: they stay within a major version.

``--rewrite`` writes ``tests/public_names.txt`` again. A line that is gone or lacks an argument is a
change for which programs of others have to be changed; a line that is new, or has an argument more
with a default, is not.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import infold
from infold import api
from infold.api import notebook

ROOT = Path(__file__).parents[1]
LISTED = Path(__file__).with_name("public_names.txt")
DOCS = ROOT / "docs"
PAGES = [(DOCS / page).read_text(encoding="utf-8") for page in ("python-api.md", "notebooks.md")]
TEXT = "".join(PAGES)


def named_on_pages() -> list[str]:
    """The names of `infold.api` that its page has."""
    text = PAGES[0]
    imported = re.findall(r"from infold\.api import ([\w, ]+)", text)
    called = re.findall(r"`(\w+)\((?:project|declared)", text)
    return sorted({*re.findall(r"\bapi\.(\w+)", text), *called, *", ".join(imported).split(", ")})


def lines_of(module: ModuleType, names: list[str]) -> Iterator[str]:
    """Each name with its arguments; of a class the members that the pages name."""
    for name in names:
        yield from _described(f"{module.__name__}.{name}", getattr(module, name))


def _described(name: str, value: Any) -> Iterator[str]:
    if inspect.isclass(value):
        yield name
        for member in dir(value):
            if not member.startswith("_") and re.search(rf"\b{member}\b", TEXT):
                yield from _described(f"{name}.{member}", getattr(value, member))
    elif inspect.isroutine(value):
        arguments = inspect.signature(value).parameters.values()
        yield f"{name}({', '.join(map(_argument, arguments))})"
    else:
        yield name


def _argument(one: inspect.Parameter) -> str:
    """An argument: `by name` where it is never given by its place, `=` where it is optional."""
    begun = ""
    if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
        begun = "*" if one.kind is one.VAR_POSITIONAL else "**"
    elif one.kind is one.KEYWORD_ONLY:
        begun = "by name "
    return begun + one.name + ("=" if one.default is not one.empty else "")


def test_the_public_names_are_those_that_are_listed(request: pytest.FixtureRequest) -> None:
    """The list is read by a person whenever it changes."""
    found = [
        *lines_of(infold, ["function", "model", "open", "session_rule"]),
        *lines_of(api, named_on_pages()),
        *lines_of(notebook, sorted(notebook.__all__)),
    ]
    text = "\n".join(found) + "\n"
    if request.config.getoption("--rewrite"):
        LISTED.write_text(text, encoding="utf-8")

    assert text == LISTED.read_text(encoding="utf-8")


def test_each_public_name_is_described() -> None:
    """Functions, classes and methods say what they do, and have types."""
    silent = []
    for module, names in (
        (infold, ["open"]),
        (api, named_on_pages()),
        (notebook, notebook.__all__),
    ):
        for name in names:
            value = getattr(module, name)
            members = vars(value).items() if inspect.isclass(value) else ()
            every = [(name, value), *((f"{name}.{key}", one) for key, one in members)]
            for called, one in every:
                if called.rpartition(".")[2].startswith("_") or not inspect.isroutine(one):
                    continue
                if not inspect.getdoc(one) or "return" not in inspect.get_annotations(one):
                    silent.append(called)

    assert silent == []


def test_everything_of_a_notebook_is_on_its_page() -> None:
    """Each method of a project, and each conversion of a table."""
    page = PAGES[1]
    for kind in (notebook.Project, notebook.Table, notebook.Plan):
        names = [name for name in dir(kind) if not name.startswith("_")]

        assert [name for name in names if name not in page] == []


def test_what_is_typed_is_published_as_typed() -> None:
    """Type checkers of others read the annotations: the marker of PEP 561 is in the package."""
    assert (Path(infold.__file__).parent / "py.typed").is_file()
