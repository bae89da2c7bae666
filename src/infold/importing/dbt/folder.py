"""The files of a dbt project, and which settings hold for each of its parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from infold.importing.draft import Line, left
from infold.importing.project_files import Lined, ProjectFiles, as_list, as_mapping, line_of

PROJECT_FILE = "dbt_project.yml"
_PATHS = {
    "models": ("model-paths", "source-paths"),
    "seeds": ("seed-paths", "data-paths"),
    "snapshots": ("snapshot-paths",),
    "tests": ("test-paths",),
    "macros": ("macro-paths",),
}
_NOT_OURS = {
    "exposures": "exposure",
    "metrics": "metric",
    "semantic_models": "semantic model",
    "saved_queries": "saved query",
    "groups": "group",
    "functions": "function",
}


@dataclass(frozen=True, slots=True)
class Properties:
    """An entry of a properties file (of a model, a source, a test): its mapping and its place."""

    file: str
    found: Lined

    @property
    def at(self) -> str:
        """File and line."""
        return f"{self.file}:{line_of(self.found)}"

    @property
    def config(self) -> Lined:
        """What stands below ``config``; empty where that is no mapping."""
        return as_mapping(self.found.get("config"))


@dataclass(frozen=True, slots=True)
class DbtFolder:
    """
    What is in the folder, by kind: files as text, and entries of properties files by name.

    ``lines`` says what of it has no place in infold.
    """

    root: Path
    project: Lined
    models: Mapping[str, str] = field(default_factory=dict)
    python: tuple[str, ...] = ()
    snapshots: Mapping[str, str] = field(default_factory=dict)
    tests: Mapping[str, str] = field(default_factory=dict)
    macros: Mapping[str, str] = field(default_factory=dict)
    seeds: tuple[str, ...] = ()
    entries: Mapping[str, tuple[Properties, ...]] = field(default_factory=dict)
    lines: tuple[Line, ...] = ()

    @property
    def name(self) -> str:
        """The project's name."""
        return str(self.project.get("name", self.root.name))

    def properties(self, kind: str, name: str) -> Properties | None:
        """The entry of one model, seed or snapshot."""
        return next((p for p in self.entries.get(kind, ()) if p.found.get("name") == name), None)

    def settings(self, kind: str, file: str, name: str) -> dict[str, Any]:
        """
        What dbt_project.yml and the properties file say of one part; nearer words win.

        A query's own ``config()`` is nearer still.
        """
        settings: dict[str, Any] = {}
        for level in self._levels(kind, file):
            settings |= {
                key.removeprefix("+").replace("-", "_"): value
                for key, value in level.items()
                if key.startswith("+") or not isinstance(value, dict)
            }
        if (entry := self.properties(kind, name)) is not None:
            settings |= {key.replace("-", "_"): value for key, value in entry.config.items()}
        return settings

    def _levels(self, kind: str, file: str) -> Iterator[Lined]:
        """The mappings of dbt_project.yml that hold for a file, from far to near."""
        level = as_mapping(self.project.get(kind))
        yield level
        level = as_mapping(level.get(self.name))
        yield level
        inside = PurePosixPath(file).parts[1:]
        for part in (*inside[:-1], PurePosixPath(file).stem):
            level = as_mapping(level.get(part))
            yield level


def read_folder(root: Path) -> DbtFolder:
    """The files of the project in ``root``."""
    lines: list[Line] = []
    files = ProjectFiles(root, lines)
    project = files.yaml(PROJECT_FILE)
    folders = {kind: _folders(project, kind) for kind in _PATHS}
    sql = {
        kind: {file: text for file in _files_in(files, of, ".sql") if (text := files.text(file))}
        for kind, of in folders.items()
    }
    entries: dict[str, list[Properties]] = {}
    described = folders["models"] + folders["seeds"] + folders["snapshots"]
    for file in _files_in(files, described, ".yml", ".yaml"):
        for key, values in files.yaml(file).items():
            for value in as_list(values):
                if isinstance(value, Lined):
                    entries.setdefault(key, []).append(Properties(file, value))
    for kind, called in _NOT_OURS.items():
        for entry in entries.get(kind, ()):
            what = f"{called} {entry.found.get('name', '')}"
            lines.append(left(what, entry.at, "infold has none"))
    for hook in ("on-run-start", "on-run-end"):
        if project.get(hook):
            why = "start commands before and after `infold run`, or use on_success and on_failure"
            lines.append(left(f"hook {hook}", PROJECT_FILE, why))
    return DbtFolder(
        root,
        project,
        sql["models"],
        tuple(_files_in(files, folders["models"], ".py")),
        sql["snapshots"],
        {f: t for f, t in sql["tests"].items() if "/generic/" not in f},
        sql["macros"] | {f: t for f, t in sql["tests"].items() if "/generic/" in f},
        tuple(_files_in(files, folders["seeds"], ".csv")),
        {key: tuple(of) for key, of in entries.items()},
        tuple(lines),
    )


def variables(project: Lined) -> dict[str, Any]:
    """The values of variables: of all packages, then the project's own."""
    declared = as_mapping(project.get("vars"))
    values = {key: value for key, value in declared.items() if not isinstance(value, Lined)}
    return values | dict(as_mapping(declared.get(str(project.get("name")))))


def _folders(project: Lined, kind: str) -> list[str]:
    for key in _PATHS[kind]:
        if key in project:
            return [str(one).strip("/") for one in as_list(project[key])]
    return [kind]


def _files_in(files: ProjectFiles, folders: list[str], *endings: str) -> list[str]:
    return sorted({file for folder in folders for file in files.found(folder, *endings)})
