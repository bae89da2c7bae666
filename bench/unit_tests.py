"""How long unit tests take: fifty small ones, ten files of five that begin alike."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from bench.measure import Line, Size

TESTS = 50
WARM_SECONDS, COLD_SECONDS = 10.0, 25.0
_OF_A_FILE = 5
_TITLE = re.compile(r"^# (?!Given)(.*)$", re.MULTILINE)


def write_tests(folder: Path, number: int) -> None:
    """The starter with tests of late clicks, each file about users of its own."""
    from infold.cli.init import write_project

    write_project(folder)
    starter = (files("infold") / "starter" / "tests" / "sessions.md").read_text(encoding="utf-8")
    head, *cases = re.split(r"(?=^# (?!Given))", starter, flags=re.MULTILINE)
    cases += [
        _later(cases[-1]),
        cases[1].replace("09:23", "09:29").replace("within", "at the end of"),
    ]
    for path in (folder / "tests").glob("*.md"):
        path.unlink()
    for at in range(-(-number // _OF_A_FILE)):
        text = "\n".join([head, *cases[: min(_OF_A_FILE, number - at * _OF_A_FILE)]])
        text = text.replace("ann ", f"u{at:02} ")
        text = _TITLE.sub(rf"# \1 of u{at:02}", text)
        (folder / "tests" / f"of_u{at:02}.md").write_text(text, encoding="utf-8")


def _later(case: str) -> str:
    """A click far from all sessions, after the last."""
    return case.replace("far from", "long after").replace("11:15", "15:15")


def fifty_tests(size: Size) -> list[Line]:
    """Fifty unit tests of three models, in a fresh process and in a warm one."""
    number = max(_OF_A_FILE, round(TESTS * size.scale))
    lines = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "shop"
        write_tests(folder, number)
        for words in (("--no-shuffle",), ()):
            spent = _process(folder, words)
            what = f"{number} tests in a fresh process" + (", in order only" if words else "")
            lines.append(Line(what, spent, COLD_SECONDS, "s", _note(spent, number)))
        lines.append(Line("the same again, nothing changed", _process(folder), WARM_SECONDS, "s"))
        changed = folder / "tests" / "of_u00.md"
        changed.write_text(changed.read_text(encoding="utf-8").replace("u00 ", "v00 "))
        what = f"the same again, {min(_OF_A_FILE, number)} of them changed"
        lines.append(Line(what, _process(folder), WARM_SECONDS, "s"))
        for shuffles in (0, 1):
            spent, runs = _warm(folder, shuffles)
            what = f"{number} tests in a warm process" + ("" if shuffles else ", in order only")
            note = f"{runs} runs of three models, {spent / runs:.2f} s each"
            lines.append(Line(what, spent, WARM_SECONDS, "s", note))
    return lines


def _process(folder: Path, words: Sequence[str] = ()) -> float:
    """Seconds of a fresh process that runs the tests."""
    began = time.monotonic()
    command = [sys.executable, "-m", "infold", "-C", str(folder), "test", *words]
    subprocess.run(command, check=True, capture_output=True)
    return time.monotonic() - began


def _note(spent: float, number: int) -> str:
    return f"{spent / number:.2f} s a test"


def _warm(folder: Path, shuffles: int) -> tuple[float, int]:
    """Seconds of all tests in this process, after some of them; and how many runs there were."""
    from infold.api import open_project
    from infold.testing.run_tests import read_project_tests, run_tests

    project = open_project(folder)
    tests = read_project_tests(project)
    run_tests(project, tests[:_OF_A_FILE], shuffles=1)
    report = run_tests(project, tests, shuffles=shuffles)
    assert report.passed
    return report.seconds, report.runs
