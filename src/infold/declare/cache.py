"""
A compiled project kept beside it, so that an unchanged one costs neither YAML nor SQL parsing.

It is JSON, so reading it calls nothing but the classes of ``infold.core``: a value is an object
with the name of its class, and the fields that differ from their defaults. A file with anything
wrong is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import cache as once
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any

from infold import __version__
from infold.core.project import Project
from infold.declare.folder import Folder
from infold.system.kept_files import keep, kept

FILE = PurePosixPath(".infold/project.json")

_PACKAGE = Path(__file__).parents[1]

_VALUES = "infold.core."
"""Where the classes of a project's values are: none of them does anything when it is made."""

_CLASS, _ENUM_VALUE = "", "="
"""The key that says of which class a value is, and the key of the value of an enumeration."""


def load_kept(folder: Folder) -> dict[str, Any] | None:
    """The fields of the project that was kept last, and the digests of its files; or None."""
    content = kept(folder.root / FILE)
    if content is None:
        return None
    version, _, text = content.partition(b"\n")
    return json.loads(text, object_hook=_value) if version.decode() == program_version() else None


FILES = "files"


def cache(folder: Folder, project: Project, default: str) -> None:
    """Keep a project for these files; a folder that cannot be written to is no mistake."""
    fields_kept = {
        "name": project.name,
        "start": project.start,
        "sources": project.sources,
        "nodes": project.nodes,
        "targets": project.targets,
        "erased_columns": project.erased_columns,
        "erasure_requests": project.erasure_requests,
        "default": default,
        FILES: folder.digests,
    }
    text = json.dumps(_plain(fields_kept), separators=(",", ":"))
    keep(folder.root / FILE, f"{program_version()}\n{text}".encode())


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, StrEnum):
        return {_CLASS: _name(type(value)), _ENUM_VALUE: str(value)}
    if not is_dataclass(value) or isinstance(value, type):
        return value
    fields_changed = {_CLASS: _name(type(value))}
    for name, default in _defaults(type(value)).items():
        if (part := getattr(value, name)) != default:
            fields_changed[name] = _plain(part)
    return fields_changed


@once
def _defaults(class_: type) -> Mapping[str, Any]:
    """The fields of a class that it is made of, and their defaults."""
    return {
        one.name: one.default if one.default_factory is MISSING else one.default_factory()
        for one in fields(class_)
        if one.init
    }


def _name(class_: type) -> str:
    return f"{class_.__module__.removeprefix(_VALUES)}.{class_.__name__}"


def _value(raw: dict[str, Any]) -> Any:
    """The value of an object of JSON, whose parts are values already."""
    name = raw.pop(_CLASS, None)
    if name is None:
        return {key: _tuples(value) for key, value in raw.items()}
    if _ENUM_VALUE in raw:
        return _class(name)(raw[_ENUM_VALUE])
    return _class(name)(**{key: _tuples(value) for key, value in raw.items()})


def _tuples(value: Any) -> Any:
    return tuple(_tuples(one) for one in value) if isinstance(value, list) else value


@once
def _class(name: str) -> type:
    module, _, name = name.partition(".")
    class_ = getattr(import_module(_VALUES + module), name)
    assert isinstance(class_, type)
    return class_


def program_version() -> str:
    """What tells this program from others, and from itself before a file of it changed."""
    return f"infold {__version__} {_code_version(_PACKAGE)}"


@once
def _code_version(package: Path) -> int:
    """
    When a file of the package last changed: a checkout changes without a new version.

    Any file counts. A list of the modules that decide would go stale with the next import. Asked
    once: a process goes on by the code that it began with, whatever the files are by then.
    """
    return max(file.stat().st_mtime_ns for file in package.rglob("*.py"))
