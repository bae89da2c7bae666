"""Unexpected words on the command line, in a project that never ran."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.declare.shop import SHOP, write
from tests.hostile.outcome import command, judged

pytestmark = pytest.mark.deep

ODD = [
    *("", " ", "-", "--", "*", "nobody", "clicks,daily", "CLICKS", "+", "+nobody+", "tag:"),
    *("tag:nobody", "../clicks", "\U0001f600", "a" * 5_000, "'; DROP TABLE clicks; --"),
    *("\udcff", "0"),
]
TIMES = [
    *("", "yesterday", "2024-02-30", "2024-03-01T25:00", "0001-01-01", "9999-12-31"),
    *("10000-01-01", "-1", "1e9", "2024-03-01T00:00:00+99:00", "2024-03-01 10:00:30", "2024-W10"),
    *("\u0662\u0660\u0662\u0664-03-01", "2024-03-01\n", "now"),
]
NUMBERS = ["-1", "0", "1.5", "ten", "9" * 30, "", "nan", "\u0663"]
WHERES = [
    *("", "nobody = 1", "events", "events = 'a' OR", "events = 1; DROP TABLE sessions", "(" * 500),
    *("events IN ()", "events = (SELECT 1)", "session_start > 'soon'", "true", "1 = 1", "NULL"),
    "events = 1 OR " * 300 + "true",
]
STARTS = ("*", "CLICKS", "clicks,daily", "--", "-")
"""Terms that mean models: a command that builds them would start Spark."""

COMMANDS: dict[str, list[list[str]]] = {
    "plan": [
        *[["plan", "--select", odd] for odd in ODD],
        *[["plan", "--exclude", odd] for odd in ODD],
        *[["plan", "--start", time] for time in TIMES],
        *[["plan", "--start", "2024-03-01", "--end", time] for time in TIMES],
        *[["plan", "--as-of", time] for time in TIMES],
        *[["plan", "--batch-size", number] for number in NUMBERS],
        ["plan", "--auto", "--start", "2024-03-01", "--end", "2024-03-01"],
        ["plan", "--start", "2024-03-02", "--end", "2024-03-01"],
        ["plan", "clicks"],
        ["plan", "--nobody"],
    ],
    "run": [
        *[["run", "--jobs", number] for number in ("-1", "1.5", "ten", "", "nan")],
        *[["run", "--max-rows", number] for number in ("-1", "1.5", "ten", "")],
        *[["run", "--select", odd] for odd in ODD if odd not in STARTS],
        ["run", "--start", "2024-03-01T00:30", "--end", "2024-03-02"],
    ],
    "show": [
        *[["show", odd] for odd in ODD],
        *[["show", "sessions", "--where", where] for where in WHERES],
        *[["show", "sessions", "-n", number] for number in NUMBERS],
        *[["show", "sessions", "--columns", odd] for odd in ODD],
        ["show", "sessions", "--format", "csv", "--output", "/nobody/a.csv"],
        ["show", "sessions", "--json", "/"],
    ],
    "explain": [
        *[["explain", odd] for odd in ODD],
        *[["explain", "daily", odd] for odd in ODD],
        *[["explain", "daily", time] for time in TIMES],
        *[["explain", "session", odd] for odd in ODD],
    ],
    "others": [
        *[["history", "-n", number] for number in NUMBERS],
        *[["history", odd] for odd in ODD],
        *[["status", odd] for odd in ODD],
        *[["forget", "--yes", odd] for odd in ODD],
        *[["restate", odd] for odd in ODD if odd not in STARTS],
        *[["backbuild", odd, "--dry-run"] for odd in ODD],
        *[["quarantine", "add", odd, "x"] for odd in ODD],
        *[["quarantine", "add", "sessions", odd] for odd in ODD],
        *[["quarantine", "release", "sessions", odd] for odd in ODD],
        *[["quarantine", "list", odd] for odd in ODD],
        *[["manifest", odd] for odd in ODD if odd and "/" not in odd and len(odd) < 99],
        *[["--target", odd, "check"] for odd in ODD],
        *[["-C", odd, "check"] for odd in ODD],
        *[[odd] for odd in ODD],
        *[["init", path] for path in ("", "/dev/null", "/dev/null/x", "models", "infold.yml")],
        ["check", "--json", "--json"],
        ["check", "x"],
        [],
    ],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_unexpected_words(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command with unexpected words is carried out, or a named error says which word is wrong."""
    folder = write(tmp_path / "shop", SHOP)
    (folder / "landing").mkdir()
    (folder / "landing" / "clicks").mkdir()
    (folder / "countries.csv").write_text("code,country\nDE,Germany\n")
    monkeypatch.chdir(folder)
    wrong = {f"{words!a}"[:120]: command(Path(), *words) for words in COMMANDS[name]}

    judged(name, wrong)
