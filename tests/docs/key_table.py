"""The keys of infold.yml and front matter as docs/reference/keys.md describes them."""

from __future__ import annotations

import re
from typing import NamedTuple

from tests.docs.pages import DOCS

PAGE = (DOCS / "reference" / "keys.md").read_text(encoding="utf-8")


class Row(NamedTuple):
    """One key of the page; ``key`` may have the mapping that it is in: ``catalog.type``."""

    section: str
    key: str
    type: str
    default: str
    meaning: str


def rows() -> list[Row]:
    """All keys with their types and defaults; the table of model keys has one column more."""
    found = []
    for part in re.split(r"^#{2,4} ", PAGE, flags=re.MULTILINE)[1:]:
        section, _, text = part.partition("\n")
        for line in re.findall(r"^\| (`[\w.]+` \|.*) \|$", text, re.MULTILINE):
            key, *cells = line.split(" | ")
            kind, default, meaning = cells[-3:]
            found.append(Row(section, key.strip("`"), kind, default, meaning))
    return found
