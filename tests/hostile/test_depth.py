"""
What is nested very deeply, or very long, is refused by its name before it is read.

Each case took from half a minute to for ever, or ended the process, where its size is read as it
comes. The limit of time is far from what a slow machine takes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from tests.declare.shop import SHOP, read

from infold.core.type_changes import is_type
from infold.importing.dbt.templates import macros_in
from infold.importing.project_files import read_yaml
from infold.messages.other_tools import find_template

pytestmark = pytest.mark.deep

SECONDS = 30
MODEL = "---\nmaterialization: table\n---\n"
MANY = 100_000


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    """No case takes long."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < SECONDS


YAML = {
    "lists": "[" * MANY,
    "lists that end": "[" * MANY + "]" * MANY,
    "mappings": "{a: " * MANY,
    "items": "- " * MANY,
    "questions": "? " * MANY,
    "lines": "".join(f"{' ' * depth}a:\n" for depth in range(1_000)),
}


@pytest.mark.parametrize("deep", YAML)
def test_deep_yaml(deep: str) -> None:
    """In infold.yml, in front matter, and in files of other tools."""
    wanted = {
        "infold.yml": f"x:\n {YAML[deep]}",
        "models/daily.sql": f"---\nx:\n {YAML[deep]}\n---\n",
    }
    for file, text in wanted.items():
        errors = read({**SHOP, file: text})[1]

        assert ("bad-yaml", file, "it is nested too deeply") in {
            (error.slug, error.at.file, dict(error.facts).get("why"))
            for error in errors
            if error.at is not None
        }
    with pytest.raises(ValueError, match="nested too deeply"):
        read_yaml(YAML[deep])


@pytest.mark.parametrize(
    ("file", "text", "slug"),
    [
        ("models/m.sql", MODEL + "{{" * 50_000, "too-deep"),
        ("models/m.sql", MODEL + "{{}}" * 10_000, "too-deep"),
        ("models/m.sql", f"{MODEL}SELECT {'1,' * MANY} AS a FROM clicks", "too-deep"),
        ("models/m.sql", f"{MODEL}SELECT '{'x' * 3_000_000}' AS a FROM clicks", "too-deep"),
        ("models/m.py", "x = 1\n" * 400_000, "too-deep"),
        ("infold.yml", "#" * 11_000_000, "too-deep"),
        ("infold.yml", "".join(f"a{n}: 1\n" for n in range(50_000)), "unknown-key"),
        ("seeds/s.csv", "," * 900_000, "bad-seed"),
    ],
)
def test_long_files(file: str, text: str, slug: str) -> None:
    """Of each kind that a project has."""
    errors = read({**SHOP, file: text})[1]

    assert slug in {
        error.slug for error in errors if error.at is not None and error.at.file == file
    }
    assert len(errors) < 300


def test_long_queries_that_are_read() -> None:
    """Programs write lists of ten thousand values, and that many words of any kind."""
    values = ", ".join(f"'{number}'" for number in range(10_000))
    text = f"{MODEL}SELECT event_id FROM clicks WHERE url IN ({values})"

    assert read({**SHOP, "models/m.sql": text})[1] == []


def test_deep_types() -> None:
    """Thousands of arrays in arrays are no type, and forty are one."""
    assert not is_type("array<" * MANY + "int" + ">" * MANY)
    assert not is_type("array<" * MANY)
    assert is_type("array<" * 40 + "int" + ">" * 40)


def test_templates_that_never_end() -> None:
    """Each letter is looked at once or twice, however many blocks begin."""
    assert find_template("{{" * MANY + "{%" * MANY) is None
    assert find_template("{%" * MANY + "{{ ref('a') }}") == (
        2 * MANY,
        2 * MANY + 14,
        "name the model itself in FROM",
    )
    assert macros_in("m.sql", "{% macro a(" * MANY) == []
    assert len(macros_in("m.sql", "{% macro a() %}1{% endmacro %}" * 10)) == 10
