"""The files of a SQLMesh project: models and audits by their blocks, tests and external tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from infold.importing.project_files import LISTED, ProjectFiles
from infold.importing.report import Line, left
from infold.importing.sqlmesh.audits import OwnAudit
from infold.importing.sqlmesh.blocks import Statement, properties, statements, unquoted
from infold.importing.yaml_lines import Lined, as_list


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
    files: ProjectFiles
    models: list[SqlModel] = field(default_factory=list)
    audits: dict[str, OwnAudit] = field(default_factory=dict)
    tests: list[tuple[str, str, Lined]] = field(default_factory=list)
    external: list[tuple[str, Lined]] = field(default_factory=list)


def read_folder(root: Path, dialect: str, lines: list[Line]) -> MeshFolder:
    """The project in ``root``."""
    files = ProjectFiles(root, lines)
    found = MeshFolder(root, files)
    for folder in ("models", "audits"):
        for file in files.found(folder, ".sql"):
            try:
                _take(found, file, statements(files.text(file) or "", dialect), lines)
            except ValueError as error:
                lines.append(left(f"file {file}", file, f"it cannot be read: {error}"[:200]))
    for folder, what, why in _PYTHON:
        for file in files.found(folder, ".py"):
            path = PurePosixPath(file)
            if path.name != "__init__.py":
                lines.append(left(f"{what} {path.stem}", file, why))
    _yaml_files(found, files)
    return found


_PYTHON = (
    ("models", "model", "a model in Python: infold's are functions of DataFrames"),
    ("macros", "macros", "macros in Python are not run"),
)


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


def _yaml_files(found: MeshFolder, files: ProjectFiles) -> None:
    for file in files.found("tests", ".yaml", ".yml"):
        for name, test in files.yaml(file).items():
            if isinstance(test, Lined):
                found.tests.append((name, f"{file}:{test.line}", test))
    external = [name for name in _EXTERNAL if (found.root / name).is_file()]
    for file in (*external, *files.found("external_models", ".yaml", ".yml")):
        for one in as_list(files.yaml(file, listed=True).get(LISTED)):
            if isinstance(one, Lined):
                found.external.append((f"{file}:{one.line - 1}", one))


_EXTERNAL = ("external_models.yaml", "schema.yaml")
