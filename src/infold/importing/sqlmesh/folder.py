"""The files of a SQLMesh project: models and audits by their blocks, tests and external tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from infold.importing.report import Line, left
from infold.importing.sqlmesh.audits import OwnAudit
from infold.importing.sqlmesh.blocks import Statement, properties, statements, unquoted
from infold.importing.yaml_lines import Lined, as_list, read_yaml


@dataclass(frozen=True, slots=True)
class SqlModel:
    """A model: its block, and the statements after it."""

    name: str
    file: str
    block: Mapping[str, str]
    rest: tuple[Statement, ...]


@dataclass
class MeshFolder:
    """What is in the folder."""

    root: Path
    models: list[SqlModel] = field(default_factory=list)
    audits: dict[str, OwnAudit] = field(default_factory=dict)
    tests: list[tuple[str, str, Lined]] = field(default_factory=list)
    external: list[tuple[str, Lined]] = field(default_factory=list)


def read_folder(root: Path, dialect: str, lines: list[Line]) -> MeshFolder:
    """The project in ``root``."""
    found = MeshFolder(root)
    for folder in ("models", "audits"):
        for path in sorted((root / folder).rglob("*.sql")):
            file = path.relative_to(root).as_posix()
            try:
                text = path.read_text(encoding="utf-8-sig")
                _take(found, file, statements(text, dialect), lines)
            except (OSError, ValueError) as error:
                lines.append(left(f"file {file}", file, f"it cannot be read: {error}"[:200]))
    for path in sorted((root / "models").rglob("*.py")):
        if path.name != "__init__.py":
            file = path.relative_to(root).as_posix()
            why = "a model in Python: infold's are functions of DataFrames"
            lines.append(left(f"model {path.stem}", file, why))
    for path in sorted((root / "macros").rglob("*.py")):
        if path.name != "__init__.py":
            file = path.relative_to(root).as_posix()
            lines.append(left(f"macros {path.stem}", file, "macros in Python are not run"))
    _yaml_files(found, lines)
    return found


def _take(found: MeshFolder, file: str, parts: list[Statement], lines: list[Line]) -> None:
    """Sort the statements of a file into models and audits."""
    heads = [i for i, part in enumerate(parts) if part.begins("MODEL", "AUDIT")]
    for head, end in zip(heads, [*heads[1:], len(parts)], strict=True):
        block = properties(parts[head].text)
        rest = tuple(parts[head + 1 : end])
        name = unquoted(block.get("name", ""))
        if parts[head].begins("MODEL"):
            found.models.append(SqlModel(name, file, block, rest))
        elif rest:
            at = f"{file}:{parts[head].line}"
            found.audits[name.lower()] = OwnAudit(name, at, rest[-1].text, block)
    if not heads and parts:
        lines.append(left(f"file {file}", file, "it has no MODEL and no AUDIT"))


def _yaml_files(found: MeshFolder, lines: list[Line]) -> None:
    root = found.root
    external = [root / "external_models.yaml", root / "schema.yaml"]
    external += sorted((root / "external_models").rglob("*.y*ml"))
    tests = sorted((root / "tests").rglob("*.y*ml"))
    for path in (*external, *tests):
        if not path.is_file():
            continue
        file = path.relative_to(root).as_posix()
        try:
            text = path.read_text(encoding="utf-8")
            if path in tests:
                for name, test in read_yaml(text).items():
                    if isinstance(test, Lined):
                        found.tests.append((name, f"{file}:{test.line}", test))
            else:
                listed = read_yaml("all:\n" + "\n".join(f"  {row}" for row in text.split("\n")))
                found.external += [
                    (f"{file}:{one.line - 1}", one)
                    for one in as_list(listed.get("all"))
                    if isinstance(one, Lined)
                ]
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            why = " ".join(f"it cannot be read: {error}".split())
            lines.append(left(f"file {file}", file, why[:200]))
