"""The files of a project of another tool: those in its folder, and none to which links lead."""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import normpath
from typing import Any

import yaml

from infold.core.yaml_tree import LOADER, deep_place
from infold.importing.draft import Line, left

LISTED = "all"

_OUTSIDE = "it leads out of the project's folder: nothing there is read"


class ProjectFiles:
    """Finds and reads files by their names in the project; ``lines`` name what it does not read."""

    def __init__(self, root: Path, lines: list[Line]) -> None:
        self._root = root.resolve()
        self._lines = lines

    def found(self, folder: str, *endings: str) -> list[str]:
        """The files below a folder whose names end so, in the order of their names."""
        start = self._root / normpath(folder)
        if not self.is_inside(start):
            self._lines.append(left(f"folder {folder}", "", _OUTSIDE))
            return []
        names = []
        for path in sorted(start.rglob("*")):
            name = path.relative_to(self._root).as_posix()
            if path.is_symlink() and path.is_dir():
                self._lines.append(left(f"folder {name}", name, "a link to a folder"))
            elif path.is_file() and name.endswith(endings):
                if self.is_inside(path):
                    names.append(name)
                else:
                    self._lines.append(left(f"file {name}", name, _OUTSIDE))
        return names

    def is_inside(self, path: Path) -> bool:
        """Whether a path is in the project's folder, links followed."""
        return path.resolve().is_relative_to(self._root)

    def text(self, name: str) -> str | None:
        """A file; None if it cannot be read."""
        path = self._root / name
        try:
            if path.is_file() and self.is_inside(path):
                return path.read_text(encoding="utf-8-sig").replace("\r\n", "\n")
            why = _OUTSIDE if path.is_file() else "it is no file"
        except (OSError, UnicodeDecodeError) as error:
            why = f"it cannot be read: {error}"
        self._lines.append(left(f"file {name}", name, why))
        return None

    def yaml(self, name: str, *, listed: bool = False) -> Lined:
        """
        The mapping of a file of YAML; an empty one if it cannot be read.

        A file with a list is read as one under ``LISTED``, a line further down.
        """
        text = self.text(name)
        if listed and text is not None:
            text = f"{LISTED}:\n" + "\n".join(f"  {row}" for row in text.split("\n"))
        try:
            return Lined() if text is None else read_yaml(text)
        except (ValueError, yaml.YAMLError) as error:
            why = " ".join(f"it cannot be read: {error}".split())
            self._lines.append(left(f"file {name}", name, why[:200]))
            return Lined()


class Lined(dict[str, Any]):
    """A mapping of YAML, and its 1-based line in the file."""

    line: int = 0


# In C it is what dbt reads with, and it takes tabs that the loader in Python refuses.
_Base: Any = LOADER


class _Loader(_Base):  # type: ignore[misc]
    """The safe loader, but for mappings."""


def _mapping(loader: Any, node: yaml.MappingNode) -> Lined:
    loader.flatten_mapping(node)
    mapping = Lined({str(k): v for k, v in loader.construct_mapping(node, deep=True).items()})
    mapping.line = node.start_mark.line + 1
    return mapping


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def read_yaml(text: str) -> Lined:
    """The mapping of a file; an empty one if there is none. Raises yaml.YAMLError, ValueError."""
    deep = deep_place(text)
    if deep is not None:
        raise ValueError(f"line {deep[0] + 1} is nested too deeply")
    document = yaml.load(text, Loader=_Loader)  # noqa: S506 (it is a SafeLoader)
    return document if isinstance(document, Lined) else Lined()


def line_of(value: Any) -> int:
    """The line of a mapping, 0 for anything else."""
    return value.line if isinstance(value, Lined) else 0


def as_list(value: Any) -> list[Any]:
    """A list as it is, one value as a list of it, nothing as an empty one."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def as_mapping(value: Any) -> Lined:
    """A mapping as it is, anything else as an empty one."""
    return value if isinstance(value, Lined) else Lined()


def date_of(value: Any) -> str | None:
    """A date as infold writes it; None of a time relative to now."""
    text = str(value or "").strip("'\"")[:10]
    return text if _DATE.match(text) else None


_DATE = re.compile(r"\d{4}-\d\d-\d\d\Z")
