"""What tests cost is read from what pytest records."""

from __future__ import annotations

from pathlib import Path

from tests.times import LONGEST, read_longest, read_times, report_times

TESTS = Path(__file__).parent
RECORDED = """
<testsuites><testsuite name="pytest">
  <testcase classname="tests.planning.test_planner.TestLateRows" name="test_late" time="0.9" />
  <testcase classname="tests.test_rooms" name="test_dies[1]" time="2.0" />
</testsuite></testsuites>
"""


def test_tests_and_folders_by_their_seconds(tmp_path: Path) -> None:
    """The most expensive comes first; a class is no file."""
    file = tmp_path / "fast.xml"
    file.write_text(RECORDED)

    assert [*report_times(read_times([file]))] == [
        "2 tests, 3 s",
        "",
        " seconds  test",
        "     2.0  test_rooms::test_dies[1]",
        "     0.9  planning/test_planner::test_late",
        "",
        " seconds   tests  folder",
        "     2.0       1  tests/",
        "     0.9       1  tests/planning",
    ]


def test_the_longest_files_exist() -> None:
    """The files that are tried first are there, so that a renamed one is written down again."""
    assert [file for file in read_longest() if not (TESTS / file).is_file()] == []
    assert LONGEST.is_file()
