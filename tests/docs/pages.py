"""Projects on the pages: a file's name on a line by itself, and its text in the block below it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *sorted(DOCS.rglob("*.md")),
    *sorted((ROOT / "bench").glob("*.md")),
]
"""All that people read."""

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"^`([\w./-]+)`\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_STEP = re.compile(_FILE.pattern + r"|^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def code(page: Path | str, language: str) -> list[str]:
    """The examples of a page, or of a part of one, in one language."""
    text = page if isinstance(page, str) else page.read_text(encoding="utf-8")
    return [block for name, block in FENCE.findall(text) if name == language]


def files_of(page: Path) -> dict[str, str]:
    """Each file that a page shows, by its path in the project."""
    return dict(_FILE.findall(page.read_text(encoding="utf-8")))


def texts_of(folder: Path) -> dict[str, str]:
    """The files of a project on the disk, but those that land."""
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.suffix in (".sql", ".yml", ".csv", ".py") and "landing" not in path.parts
    }


def write_project(page: Path, folder: Path) -> Path:
    """The project that a page shows, as a folder."""
    for name, text in files_of(page).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def steps_of(page: Path) -> list[tuple[str, str]]:
    """What a page asks for, in order: files with their names, and commands of a shell without."""
    return [
        (name, text or commands)
        for name, text, commands in _STEP.findall(page.read_text(encoding="utf-8"))
    ]


def query_of(text: str) -> str:
    """A model's SELECT, without its front matter."""
    return text.split("---\n", 2)[2]
