"""Errors have one shape, one place where they are built, and a page that explains them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from infold.messages import errors
from infold.messages.errors import InfoldError, InfoldErrors, Spot

SOURCE = Path(errors.__file__).parent
PAGE = SOURCE.parents[2] / "docs" / "errors.md"


def built(module: str) -> dict[str, str]:
    """Each function of a module that builds an error -> the slug of it."""
    tree = ast.parse((SOURCE / module).read_text())
    found = {}
    for function in tree.body:
        for node in ast.walk(function) if isinstance(function, ast.FunctionDef) else ():
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "InfoldError":
                assert isinstance(node.args[0], ast.Constant)
                assert isinstance(function, ast.FunctionDef)
                found[function.name] = str(node.args[0].value)
    return found


MODULES = sorted(path.name for path in SOURCE.glob("*.py"))
SLUGS = sorted({slug for module in MODULES for slug in built(module).values()})


@pytest.mark.parametrize("slug", SLUGS)
def test_every_message_has_a_section(slug: str) -> None:
    """Under its slug, with something to read."""
    sections = re.split(r"^### ", PAGE.read_text(), flags=re.MULTILINE)
    (section,) = [text for text in sections if text.startswith(f"{slug}\n")]

    assert len(section.removeprefix(slug).strip()) > 40


def test_every_section_is_about_a_message() -> None:
    """Once, and about one that exists."""
    titles = re.findall(r"^### (.+)$", PAGE.read_text(), re.MULTILINE)

    assert sorted(titles) == SLUGS


def test_errors_are_built_in_few_places_only() -> None:
    """So that the tone is one: no other module makes an InfoldError."""
    others = [
        path
        for path in SOURCE.parent.rglob("*.py")
        if path.parent != SOURCE and re.search(r"\bInfoldError\(\s*\"", path.read_text())
    ]

    assert others == []


class TestDrawing:
    """Slug and what is wrong, aligned facts, the line with a caret, what to do."""

    def test_the_parts_stand_below_each_other(self) -> None:
        """With empty lines between them."""
        at = Spot("models/a.sql", 3, 8, "\tSELECT lag(x) over (y)", 6)
        error = InfoldError("slug", "what is wrong", (("window", "lag"),), "Do this.", 3, at)

        assert str(error) == (
            "slug: what is wrong\n"
            "\n"
            "  at:      models/a.sql:3\n"
            "  window:  lag\n"
            "\n"
            "    SELECT lag(x) over (y)\n"
            "          ^^^^^^\n"
            "\n"
            "Do this."
        )

    def test_what_is_not_there_leaves_no_gap(self) -> None:
        """No facts, no place, nothing to do."""
        assert str(InfoldError("slug", "what is wrong")) == "slug: what is wrong"

    @pytest.mark.parametrize(
        ("column", "width", "caret"),
        [(1, 1, "^"), (3, 2, "^^"), (5, 99, "^^^"), (40, 3, "^")],
    )
    def test_the_caret_stays_under_the_line(self, column: int, width: int, caret: str) -> None:
        """However far the place reaches."""
        drawn = Spot("a", 1, column, "  ab cd", width).caret.splitlines()[1]

        assert drawn.strip() == caret.strip()

    def test_an_error_is_plain_values_too(self) -> None:
        """For machines that read along."""
        error = InfoldError("slug", "what", (("a", "b"),), "Do.", at=Spot("m.sql", 2, 5))

        assert error.record == {
            "slug": "slug",
            "what": "what",
            "facts": {"at": "m.sql:2", "a": "b"},
            "file": "m.sql",
            "line": 2,
            "column": 5,
            "todo": "Do.",
            "exit_code": 2,
        }

    def test_several_are_counted(self) -> None:
        """And one alone is as it is."""
        one, two = InfoldError("a", "first"), InfoldError("b", "second", exit_code=3)

        assert str(InfoldErrors([one])) == "a: first"
        assert str(InfoldErrors([one, two])) == "a: first\n\n\nb: second\n\n\n2 errors."
        assert [InfoldErrors(found).exit_code for found in ([one], [two], [one, two])] == [2, 3, 2]
        assert InfoldErrors([one, two]).record == {
            "errors": [one.record, two.record],
            "exit_code": 2,
        }
