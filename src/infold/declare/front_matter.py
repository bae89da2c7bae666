"""The front matter of a model's file: text between lines of ``---`` above the query."""

from __future__ import annotations

from dataclasses import dataclass

from infold.declare.tree import Page
from infold.messages import findings
from infold.messages.errors import Spot


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The front matter's text, the line above it, and where the SQL begins in the file."""

    text: str
    above: int
    sql_start: int
    at: Spot


def split_front_matter(file: str, source: str) -> FrontMatter:
    """
    Front matter between ``---`` lines at the head of a file, blank lines and comments before it.

    A file without any has an empty one.
    """
    lines = source.split("\n")
    first = next((i for i, line in enumerate(lines) if not _is_blank_or_comment(line)), len(lines))
    page = Page(file, tuple(line.rstrip("\r") for line in lines))
    if first == len(lines) or lines[first].strip() != "---":
        return FrontMatter("", 0, 0, page.spot(0, 0))
    last = next((i for i in range(first + 1, len(lines)) if lines[i].strip() == "---"), None)
    if last is None:
        raise findings.no_front_matter(page.spot(first, 0))
    start = sum(len(line) + 1 for line in lines[: last + 1])
    text = "\n".join(lines[first + 1 : last])
    return FrontMatter(text, first + 1, min(start, len(source)), page.spot(first, 0))


def _is_blank_or_comment(line: str) -> bool:
    line = line.strip()
    return not line or (line.startswith("--") and line != "---")
