"""A Python file with the project's modules that it imports, none of them executed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.declare.shop import write

from infold.declare.python_sources import read_sources
from infold.messages.errors import InfoldError


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A function that imports a module, which imports another in a package."""
    files = {
        "functions/clean.py": "import re\nfrom lib.text import strip\n",
        "lib/text.py": "from lib.deep import letters\nfrom .deep.letters import VOWELS\n",
        "lib/deep/__init__.py": "",
        "lib/deep/letters.py": "import lib.text\nVOWELS = 'aeiou'\n",
        "lib/unused.py": "raise SystemExit('it is never imported')\n",
    }
    return write(tmp_path, files)


def test_the_file_comes_first_then_what_it_imports(project: Path) -> None:
    """Modules of the project are followed, also in circles; others are not read. The digest is of
    all files.
    """
    found = read_sources(project, "functions/clean.py")

    assert [path for path, _ in found.files] == [
        "functions/clean.py",
        "lib/deep/__init__.py",
        "lib/deep/letters.py",
        "lib/text.py",
    ]
    write(project, {"lib/deep/letters.py": "VOWELS = 'aeiouy'\n"})
    assert read_sources(project, "functions/clean.py").digest != found.digest


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


@pytest.mark.parametrize(
    ("file", "text", "slug", "line"),
    [
        ("functions/clean.py", "import re\nfrom lib.txet import strip\n", "missing-module", 2),
        ("functions/clean.py", "import nowhere_at_all\n", "missing-module", 1),
        ("functions/clean.py", "\n\nfrom . import nothing\n", "missing-module", 3),
        ("functions/clean.py", "def f():\n    return (\n", "bad-python", 2),
        ("functions/clean.py", "x = '\0'\n", "bad-python", 1),
        ("lib/text.py", "x = 1\nimport nowhere_at_all\n", "missing-module", 2),
    ],
)
def test_mistakes_have_a_file_and_a_line(
    project: Path, file: str, text: str, slug: str, line: int
) -> None:
    """A module that is not there, and a file that is not Python, which may be an imported one."""
    write(project, {file: text})

    with pytest.raises(InfoldError) as caught:
        read_sources(project, "functions/clean.py")

    assert (caught.value.slug, str(caught.value.at)) == (slug, f"{file}:{line}")


def test_an_import_that_may_fail_needs_no_module(project: Path) -> None:
    """What stands in a `try` with an `except` has another way."""
    text = "try:\n    import nowhere_at_all\nexcept ImportError:\n    pass\n"
    write(project, {"functions/clean.py": text})

    assert len(read_sources(project, "functions/clean.py").files) == 1
