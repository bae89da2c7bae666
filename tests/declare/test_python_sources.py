"""A Python file with the project's modules that it imports, none of them executed."""

from __future__ import annotations

from pathlib import Path

import pytest

from infold.declare.python_sources import read_sources
from infold.messages.errors import InfoldError


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A function that imports a module, which imports another in a package."""
    write(
        tmp_path,
        {
            "functions/clean.py": "import re\nfrom lib.text import strip\n",
            "lib/text.py": "from lib.deep import letters\nfrom .deep.letters import VOWELS\n",
            "lib/deep/__init__.py": "",
            "lib/deep/letters.py": "import lib.text\nVOWELS = 'aeiou'\n",
            "lib/unused.py": "raise SystemExit('it is never imported')\n",
        },
    )
    return tmp_path


def write(root: Path, files: dict[str, str]) -> None:
    """Write files of a project."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def test_the_file_comes_first_then_what_it_imports(project: Path) -> None:
    """Modules of the project are followed, also in circles; others are not read."""
    found = read_sources(project, "functions/clean.py")

    assert [path for path, _ in found.files] == [
        "functions/clean.py",
        "lib/deep/__init__.py",
        "lib/deep/letters.py",
        "lib/text.py",
    ]


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("x = 1\n", "# a comment\nx  =  1\n", True),
        ('def f():\n    "Says."\n    return 1\n', "def f():\n    return 1\n", True),
        ('class A:\n    "Says."\n    x = 1\n', 'class A:\n    "Else."\n    x = 1\n', True),
        ("x = 1\n", "x = 1.0\n", False),
        ("x = 1\n", "x = True\n", False),
        ("x = None\n", "x = 0\n", False),
        ('x = "a"\n', "x = b'a'\n", False),
        ("x = 'a'\n", 'x = "a"\n', True),
        ("def f(a): return a\n", "def f(*, a): return a\n", False),
    ],
)
def test_comments_layout_and_docstrings_do_not_count(
    tmp_path: Path, before: str, after: str, same: bool
) -> None:
    """Two texts are one if their trees are."""
    write(tmp_path, {"functions/a.py": before})
    first = read_sources(tmp_path, "functions/a.py").digest
    write(tmp_path, {"functions/a.py": after})

    assert (read_sources(tmp_path, "functions/a.py").digest == first) is same


def test_a_change_in_an_imported_module_counts(project: Path) -> None:
    """The digest is of all files."""
    before = read_sources(project, "functions/clean.py").digest
    write(project, {"lib/deep/letters.py": "VOWELS = 'aeiouy'\n"})

    assert read_sources(project, "functions/clean.py").digest != before


@pytest.mark.parametrize(
    ("text", "slug", "line"),
    [
        ("import re\nfrom lib.txet import strip\n", "missing-module", 2),
        ("import nowhere_at_all\n", "missing-module", 1),
        ("\n\nfrom . import nothing\n", "missing-module", 3),
        ("def f():\n    return (\n", "bad-python", 2),
        ("x = '\0'\n", "bad-python", 1),
    ],
)
def test_mistakes_have_a_file_and_a_line(project: Path, text: str, slug: str, line: int) -> None:
    """A module that is not there, and a file that is not Python."""
    write(project, {"functions/clean.py": text})

    with pytest.raises(InfoldError) as caught:
        read_sources(project, "functions/clean.py")

    assert caught.value.slug == slug
    assert caught.value.at is not None
    assert (caught.value.at.file, caught.value.at.line) == ("functions/clean.py", line)


def test_a_mistake_in_an_imported_module_is_shown_there(project: Path) -> None:
    """File and line are those of the module."""
    write(project, {"lib/text.py": "x = 1\nimport nowhere_at_all\n"})

    with pytest.raises(InfoldError) as caught:
        read_sources(project, "functions/clean.py")

    assert str(caught.value.at) == "lib/text.py:2"


def test_an_import_that_may_fail_needs_no_module(project: Path) -> None:
    """What stands in a `try` with an `except` has another way."""
    text = "try:\n    import nowhere_at_all\nexcept ImportError:\n    pass\n"
    write(project, {"functions/clean.py": text})

    assert len(read_sources(project, "functions/clean.py").files) == 1
