"""Unexpected words on the command line, in a project that never ran."""

from __future__ import annotations

from collections.abc import Sequence
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

SAFE = [odd for odd in ODD if odd not in STARTS]
COMMANDS: dict[str, list[tuple[str, Sequence[str]]]] = {
    "plan": [
        *(("plan --select _", ODD), ("plan --exclude _", ODD), ("plan --start _", TIMES)),
        *(("plan --start 2024-03-01 --end _", TIMES), ("plan --as-of _", TIMES)),
        *(("plan --batch-size _", NUMBERS), ("plan _", ["clicks", "--nobody"])),
        ("plan --start _ --end 2024-03-01", ["2024-03-02"]),
        ("plan --auto --start 2024-03-01 --end _", ["2024-03-01"]),
    ],
    "run": [
        ("run --jobs _", ["-1", "1.5", "ten", "", "nan"]),
        ("run --max-rows _", ["-1", "1.5", "ten", ""]),
        *(("run --select _", SAFE), ("run --start _ --end 2024-03-02", ["2024-03-01T00:30"])),
    ],
    "show": [
        *(("show _", ODD), ("show sessions --where _", WHERES), ("show sessions -n _", NUMBERS)),
        *(("show sessions --columns _", ODD), ("show sessions --json _", ["/"])),
        ("show sessions --format csv --output _", ["/nobody/a.csv"]),
    ],
    "explain": [
        *(("explain _", ODD), ("explain daily _", ODD), ("explain daily _", TIMES)),
        ("explain session _", ODD),
    ],
    "others": [
        *(("history -n _", NUMBERS), ("history _", ODD), ("status _", ODD), ("restate _", SAFE)),
        *(("forget --yes _", ODD), ("backbuild _ --dry-run", ODD), ("quarantine list _", ODD)),
        *(("quarantine add _ x", ODD), ("quarantine add sessions _", ODD)),
        ("quarantine release sessions _", ODD),
        ("manifest _", [odd for odd in ODD if odd and "/" not in odd and len(odd) < 99]),
        *(("--target _ check", ODD), ("-C _ check", ODD), ("_", ODD)),
        ("init _", ["", "/dev/null", "/dev/null/x", "models", "infold.yml"]),
        *(("check --json _", ["--json"]), ("check _", ["x"])),
    ],
}
"""Command lines, each with what may be in the place of its ``_``."""


@pytest.mark.parametrize("name", COMMANDS)
def test_unexpected_words(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command with unexpected words is carried out, or a named error says which word is wrong."""
    folder = write(tmp_path / "shop", SHOP)
    (folder / "landing").mkdir()
    (folder / "landing" / "clicks").mkdir()
    (folder / "countries.csv").write_text("code,country\nDE,Germany\n")
    monkeypatch.chdir(folder)
    lines = [
        [odd if word == "_" else word for word in line.split()]
        for line, odds in COMMANDS[name]
        for odd in odds
    ]
    wrong = {f"{words!a}"[:120]: command(Path(), *words) for words in [*lines, []]}

    judged(name, wrong)
