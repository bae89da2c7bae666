"""Tests that passed need not run again while nothing changes that they follow from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.declare import shop
from tests.testing.test_play import TEXT

from infold.core.formats import Format
from infold.core.project import Project
from infold.core.unit_tests import Failure, TestResult, UnitTest
from infold.declare.unit_tests import read_test_file
from infold.messages.errors import Spot
from infold.testing import passed
from infold.testing.passed import PassedTests


def project(root: Path, files: Mapping[str, str] = shop.SHOP) -> Project:
    """The small project at a place."""
    return replace(shop.project(files), root=root)


def read(text: str = TEXT) -> tuple[UnitTest, ...]:
    """The tests of a file."""
    found, errors = read_test_file("tests/shop.md", text)
    assert not errors
    return tuple(found)


def known(
    root: Path, of: Project | None = None, text: str = TEXT, seed: int = 0, shuffles: int = 1
) -> list[str]:
    """The tests that are known to pass."""
    return sorted(PassedTests(of or project(root), seed, shuffles).of(read(text)))


def pass_all(of: Project, text: str = TEXT, shuffles: int = 0) -> None:
    """Keep that all tests of a file passed."""
    tests = read(text)
    results = {test.name: TestResult(test, (), shuffles=shuffles) for test in tests}
    PassedTests(of, 0, 1).add(tests, results)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder in which all tests of the file passed."""
    pass_all(project(tmp_path), shuffles=2)
    return tmp_path


BOTH = ["More clicks", "The first file goes"]


def test_what_passed_is_known(root: Path) -> None:
    """With the orders that it passed in, in a later process too."""
    found = PassedTests(project(root), 0, 1).of(read())

    assert sorted(found) == BOTH
    assert {(one.passed, one.cached, one.shuffles) for one in found.values()} == {(True, True, 2)}


def test_a_row_counts_and_a_place_does_not(root: Path) -> None:
    """Of two tests in a file the other one is as it was, though its lines moved."""
    text = TEXT.replace("| ann     | 2      |", "| ann     | 2      |\n| cid     | 1      |")

    assert known(root, text=text) == ["The first file goes"]
    assert known(root, text=f"Prose.\n\n{TEXT}") == BOTH
    assert known(root, text=TEXT.replace("| a2       | bob", "| a2       | bea")) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "kept"),
    [
        ("models/clicks.sql", "url, amount FROM", "url, 2 * amount AS amount FROM", []),
        ("models/sessions.sql", "gap: 30 minutes", "gap: 31 minutes", []),
        ("models/daily.sql", "AS sessions", "AS visits", BOTH),
        ("infold.yml", "amount: decimal(18,2)", "amount: decimal(20,2)", []),
        ("infold.yml", "start: 2024-01-01", "start: 2024-01-02", []),
    ],
)
def test_what_it_is_made_from_counts(
    root: Path, file: str, old: str, new: str, kept: list[str]
) -> None:
    """The models before those whose rows are expected, and sources; a later model does not."""
    assert known(root, project(root, shop.spoilt(file, old, new))) == kept


def test_how_it_was_tested_counts(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other orders, other settings and other versions of the program were not tried."""
    found = project(root)
    other = replace(found, target=replace(found.target, spark=(("spark.sql.x", "1"),)))

    assert known(root, seed=1) == known(root, shuffles=0) == known(root, other) == []
    monkeypatch.setattr(passed, "program_version", lambda: "infold 99")
    assert known(root) == []


def test_a_failed_one_runs_again(tmp_path: Path) -> None:
    """Also where it passed before by the same key, which a mistake of infold may lead to."""
    failure = Failure("sessions", "arrival 1", Spot("tests/shop.md"))
    results = {test.name: TestResult(test, (failure,)) for test in read()}
    PassedTests(project(tmp_path), 0, 1).add(read(), results)

    assert known(tmp_path) == []


@pytest.mark.parametrize("format_", [Format.ICEBERG, Format.DELTA])
def test_a_table_elsewhere_may_change(tmp_path: Path, format_: Format) -> None:
    """A source that is a table has columns that nothing here says."""
    found = project(tmp_path)
    source = replace(found.sources["raw.countries"], format=format_)
    found = replace(found, sources={**found.sources, "raw.countries": source})
    pass_all(found)

    assert known(tmp_path, found) == []


@pytest.mark.parametrize("by", ["", "[1]", '{"a": "b"}', "the key of somebody else"])
def test_a_file_of_somebody_else_knows_nothing(
    root: Path, by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is made anew: what a stranger, or damage, says that passed did not."""
    (root / passed.FILE).write_text(by)
    if by.startswith("the key"):
        with monkeypatch.context() as other:
            other.setenv("INFOLD_CACHE", str(tmp_path / "other"))
            pass_all(project(root))

    assert known(root) == []
    pass_all(project(root))
    assert known(root) == BOTH


GIVEN = """# Given sessions

## Arrival

sessions:

| user_id | session_start    | revenue |
|---------|------------------|---------|
| ann     | 2024-03-08 09:21 | 1.25    |

expect daily:

| day        | sessions |
|------------|----------|
| 2024-03-08 | 1        |
"""


def test_what_is_before_a_given_model_counts(tmp_path: Path) -> None:
    """It says which columns there are, and of which types."""
    pass_all(project(tmp_path), GIVEN)
    other = shop.spoilt("models/sessions.sql", "sum(amount)", "cast(sum(amount) AS int)")

    assert known(tmp_path, text=GIVEN) == ["Given sessions"]
    assert known(tmp_path, project(tmp_path, other), text=GIVEN) == []


@pytest.mark.parametrize(("module", "kept"), [("math", BOTH), ("numpy", BOTH), ("rates", [])])
def test_a_module_from_anywhere_may_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, kept: list[str]
) -> None:
    """Nothing tells of one that is on Python's path; packages have versions."""
    (tmp_path / "rates.py").write_text("RATE = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    function = f"""
from infold import function

@function(parameters=["string"], returns="string", deterministic=True)
def tax(url):
    import {module}

    return str({module})
"""
    clicks = shop.CLICKS.replace("event_ts, url,", "event_ts, tax(url) AS url,")
    found = project(
        tmp_path, {**shop.SHOP, "functions/tax.py": function, "models/clicks.sql": clicks}
    )
    pass_all(found)

    assert known(tmp_path, found) == kept
