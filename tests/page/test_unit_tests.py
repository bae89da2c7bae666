"""The unit tests on the page of a model."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.page.history import lay_out

from infold import api
from infold.core.unit_tests import SHUFFLES, TestResult
from infold.page.documents import Documents
from infold.testing.passed import PassedTests
from infold.testing.run_tests import read_project_tests

TESTS = """\
# a click counts

## Arrival

raw.clicks:
| event_id | event_ts         |
|----------|------------------|
| a        | 2024-03-01 10:00 |

expect daily:
| day        | clicks |
|------------|--------|
| 2024-03-01 | 1      |

# nothing comes of nothing

## Arrival

raw.clicks: no rows

expect daily: no rows
expect clicks: no rows
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with two tests."""
    root = lay_out(tmp_path / "shop")
    (root / "tests").mkdir()
    (root / "tests" / "clicks.md").write_text(TESTS, encoding="utf-8")
    return root


def test_each_model_has_its_tests(root: Path) -> None:
    """Those that expect rows of it, and which of them passed and are as they were."""
    project = api.open_project(root, declared=True)
    first, _ = tests = read_project_tests(project)
    PassedTests(project, seed=0, shuffles=SHUFFLES).add(
        [first], {first.name: TestResult(first, (), shuffles=SHUFFLES)}
    )

    one = {"test": "a click counts", "file": "tests/clicks.md:1", "passed": True}
    two = {"test": "nothing comes of nothing", "file": "tests/clicks.md:15", "passed": False}
    assert len(tests) == 2
    assert Documents(root)("tests") == {"models": {"daily": [one, two], "clicks": [two]}}


def test_a_changed_model_is_not_known_to_pass(root: Path) -> None:
    """What a test follows from decides, not when it was run."""
    project = api.open_project(root, declared=True)
    tests = read_project_tests(project)
    results = {test.name: TestResult(test, (), shuffles=SHUFFLES) for test in tests}
    PassedTests(project, seed=0, shuffles=SHUFFLES).add(tests, results)
    model = root / "models" / "daily.sql"
    model.write_text(model.read_text(encoding="utf-8").replace("count(*)", "count(event_ts)"))

    found = Documents(root)("tests")

    assert found is not None
    assert {one["test"] for one in found["models"]["daily"] if one["passed"]} == set()


def test_a_project_without_tests_and_one_with_a_mistake(root: Path) -> None:
    """The first has none, the second says what is wrong."""
    (root / "tests" / "clicks.md").write_text("# x\n\nexpcet daily: no rows\n", encoding="utf-8")
    wrong = Documents(root)("tests")
    (root / "tests" / "clicks.md").unlink()

    assert wrong is not None
    assert "bad-test" in wrong["error"]["text"]
    assert Documents(root)("tests") == {"models": {}}
