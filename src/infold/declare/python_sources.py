"""
A Python file of a project with the project's modules that it imports, none of them executed.

Imports are found in the syntax tree wherever they stand, and followed from module to module.
Absolute ones are looked for from the project's folder, relative ones from the file's own. The
standard library comes before the project; the project comes before installed packages, which are
not followed. Names that a program makes up while it runs (``importlib.import_module(name)``) are
not seen.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from infold.core.yaml_tree import decoded
from infold.declare.python_code import canonical, parse_python, spot_of
from infold.messages import function_findings
from infold.messages.errors import Spot

_NEVER_OF_A_PROJECT = frozenset({*sys.stdlib_module_names, "infold", "pyspark"})


@dataclass(frozen=True, slots=True)
class PythonSources:
    """
    The texts of a file and of the modules that it imports, by their paths in the project.

    The file itself is the first; the modules follow in the order of their paths.
    """

    files: tuple[tuple[str, str], ...]

    @property
    def digest(self) -> str:
        """What identifies the code: comments, layout and docstrings do not count."""
        digest = sha256()
        for path, text in self.files:
            digest.update(f"{path}\0{canonical(ast.parse(text))}\0".encode())
        return digest.hexdigest()


def read_sources(
    root: Path, file: str, known: Mapping[str, bytes] = MappingProxyType({})
) -> PythonSources:
    """
    A file of the project in ``root`` and all that it imports of the project.

    Files that are ``known`` are not read again. Raises InfoldError with file and line: a file that
    is not UTF-8 or not Python, a module that is neither in the project nor installed.
    """
    texts: dict[str, str] = {}
    todo = [(file, Spot(file))]
    while todo:
        path, at = todo.pop()
        if path not in texts:
            content = known[path] if path in known else _read_file(root, path, at)
            texts[path] = text = decoded(path, content)
            todo.extend(_imported_files(root, path, text))
    imported = sorted(path for path in texts if path != file)
    return PythonSources(tuple((path, texts[path]) for path in (file, *imported)))


def _read_file(root: Path, path: str, at: Spot) -> bytes:
    try:
        return (root / path).read_bytes()
    except OSError as error:
        raise function_findings.unreadable_python(at, why=error.strerror or str(error)) from error


def _imported_files(root: Path, path: str, text: str) -> Iterator[tuple[str, Spot]]:
    """The files that a module's imports execute, each with the place of the import."""
    tree = parse_python(path, text)
    optional = _nodes_in_try(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = _absolute_name(path, node)
            names = [(base, alias.name) for alias in node.names]
        else:
            continue
        at = spot_of(path, text, node)
        for module, name in names:
            files = _files_of(root, module, name)
            needed = node not in optional
            if not files and needed and not (module and _is_installed(module.split(".")[0])):
                shown = module or f"{'.' * getattr(node, 'level', 0)}{name}"
                raise function_findings.missing_module(
                    at, module=shown, known=_modules_near(root, module)
                )
            yield from ((one, at) for one in files)


def _nodes_in_try(tree: ast.Module) -> frozenset[ast.AST]:
    """The nodes in a `try` with an `except`: an import there may fail."""
    tries = (node for node in ast.walk(tree) if isinstance(node, ast.Try) and node.handlers)
    return frozenset(
        inner for node in tries for statement in node.body for inner in ast.walk(statement)
    )


def _absolute_name(path: str, node: ast.ImportFrom) -> str:
    """The name of the module that an import is from, by the project's folder; "" is the folder."""
    if not node.level:
        return node.module or ""
    folder = PurePosixPath(path).parent.parts
    parents = folder[: len(folder) - node.level + 1]
    return ".".join((*parents, *((node.module,) if node.module else ())))


def _files_of(root: Path, module: str, name: str) -> list[str]:
    """
    The files of the project that importing ``module`` (and ``name`` of it, if that is one) runs.

    None where the project has no such module.
    """
    parts = module.split(".") if module else []
    if parts and parts[0] in _NEVER_OF_A_PROJECT:
        return []
    packages = []
    for end in range(1, len(parts)):
        folder = root.joinpath(*parts[:end])
        if not folder.is_dir():
            return []
        if (folder / "__init__.py").is_file():
            packages.append("/".join((*parts[:end], "__init__.py")))
    own = _file_of(root, parts) if parts else None
    below = _file_of(root, [*parts, name]) if name and name != "*" else None
    if own is None and below is None:
        return []
    return [*packages, *(one for one in (own, below) if one is not None)]


def _file_of(root: Path, parts: list[str]) -> str | None:
    for ending in ((*parts, "__init__.py"), (*parts[:-1], f"{parts[-1]}.py")):
        if root.joinpath(*ending).is_file():
            return "/".join(ending)
    return None


@cache
def _is_installed(name: str) -> bool:
    """Whether a module of that name can be imported; it is not."""
    if name in _NEVER_OF_A_PROJECT:
        return True
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError, AttributeError):
        return False


def _modules_near(root: Path, module: str) -> list[str]:
    """Modules of the project in the folder where ``module`` was looked for."""
    parts = module.split(".")[:-1]
    folder = root.joinpath(*parts)
    names = sorted(path.stem for path in folder.glob("*.py")) if folder.is_dir() else []
    return [".".join((*parts, name)) for name in names]
