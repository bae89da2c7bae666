"""YAML whose mappings know the line they begin in."""

from __future__ import annotations

import re
from typing import Any

import yaml

from infold.declare.tree import LOADER, deep_place


class Lined(dict[str, Any]):
    """A mapping of YAML, and its 1-based line in the file."""

    line: int = 0


# In C it is what dbt reads with, and it takes tabs that the loader in Python refuses.
_Base: Any = LOADER


class _Loader(_Base):  # type: ignore[misc]
    """The safe loader, but for mappings."""


def _mapping(loader: Any, node: yaml.MappingNode) -> Lined:
    loader.flatten_mapping(node)
    found = Lined({str(k): v for k, v in loader.construct_mapping(node, deep=True).items()})
    found.line = node.start_mark.line + 1
    return found


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def read_yaml(text: str) -> Lined:
    """The mapping of a file; an empty one if there is none. Raises yaml.YAMLError, ValueError."""
    deep = deep_place(text)
    if deep is not None:
        raise ValueError(f"line {deep[0] + 1} is nested too deeply")
    found = yaml.load(text, Loader=_Loader)  # noqa: S506 (it is a SafeLoader)
    return found if isinstance(found, Lined) else Lined()


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
