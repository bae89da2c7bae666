"""The files that draw the page, as they are in the package."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

INDEX = "index.html"

TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
"""What each ending is; a file with another one is no asset."""


@cache
def assets() -> dict[str, bytes]:
    """The bytes of each file by its name. What is asked for is looked up, and no path is made."""
    folder = files(__package__) / "assets"
    return {
        one.name: one.read_bytes()
        for one in folder.iterdir()
        if one.name.rpartition(".")[2] in TYPES
    }


def type_of(name: str) -> str:
    """The media type of an asset."""
    return TYPES[name.rpartition(".")[2]]
