"""The settings of a SQLMesh project, as far as they are in YAML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from infold.importing.project_files import ProjectFiles
from infold.importing.report import Line, left
from infold.importing.yaml_lines import as_mapping, date_of

_READ = {"gateways", "default_gateway", "default_connection", "model_defaults", "variables"}


@dataclass(frozen=True, slots=True)
class Config:
    """Defaults of models, and values of variables; ``file`` is where they are."""

    file: str
    defaults: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, Any] = field(default_factory=dict)

    @property
    def dialect(self) -> str:
        """The dialect of models that do not name one."""
        return str(self.defaults.get("dialect") or "")

    @property
    def start(self) -> str:
        """The start of models, if it is a date."""
        return date_of(self.defaults.get("start")) or ""


def read_config(root: Path, lines: list[Line]) -> Config:
    """The settings in ``root``; those of a program in Python cannot be read."""
    for name in ("config.yaml", "config.yml"):
        if not (root / name).is_file():
            continue
        found = ProjectFiles(root, lines).yaml(name)
        others = [key for key in found if key not in _READ]
        lines += [left(f"setting {key}", name, "infold has none like it") for key in others]
        if found.get("gateways"):
            why = "tables are in the target's warehouse, which infold.yml names"
            lines.append(left("setting gateways", name, why))
        return Config(
            name, as_mapping(found.get("model_defaults")), as_mapping(found.get("variables"))
        )
    why = "settings in Python: dialect by --dialect, and the start in infold.yml"
    lines.append(left("file config.py", "config.py", why))
    return Config("config.py")
