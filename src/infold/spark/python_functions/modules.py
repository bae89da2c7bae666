"""
A project's Python files as modules, made from their texts: nothing is read from the disk.

Each version of a function has modules of its own, below a package with its digest. So two versions
can be in one process, and a file that changed meanwhile does not matter. An absolute import in
such a module finds the project's modules of the same version first.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Any


def module_of(files: Sequence[tuple[str, str]], digest: str) -> ModuleType:
    """The module of the first file, executed once in this process for each digest."""
    package = f"_infold_{digest}"
    if package not in sys.modules:
        finder = _ProjectModules(package, dict(files))
        sys.meta_path.append(finder)
        root = ModuleType(package)
        root.__path__ = []
        sys.modules[package] = root
    return importlib.import_module(f"{package}.{_dotted(files[0][0])}")


def _dotted(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


class _ProjectModules(MetaPathFinder, Loader):
    """Finds the modules below one package among the texts of a project's files."""

    def __init__(self, package: str, files: Mapping[str, str]) -> None:
        self.package = package
        self.files = files

    def find_spec(
        self, fullname: str, path: object = None, target: object = None
    ) -> ModuleSpec | None:
        """The module, if it is below the package and one of the files, or a folder of them."""
        del path, target
        if not fullname.startswith(f"{self.package}."):
            return None
        name = fullname.removeprefix(f"{self.package}.")
        if not self._knows(name):
            return None
        return spec_from_loader(fullname, self, is_package=self._is_package(name))

    def _file(self, name: str) -> str | None:
        path = name.replace(".", "/")
        return next(
            (file for file in (f"{path}/__init__.py", f"{path}.py") if file in self.files), None
        )

    def _is_package(self, name: str) -> bool:
        folder = name.replace(".", "/") + "/"
        return any(path.startswith(folder) for path in self.files)

    def _knows(self, name: str) -> bool:
        return self._file(name) is not None or self._is_package(name)

    def exec_module(self, module: ModuleType) -> None:
        """Execute the text of a module; a folder without one has nothing to execute."""
        path = self._file(module.__name__.removeprefix(f"{self.package}."))
        if path is None:
            return
        module.__file__ = path
        own_builtins = {**vars(builtins), "__import__": self._import}
        module.__dict__["__builtins__"] = own_builtins
        code = compile(self.files[path], path, "exec", dont_inherit=True)
        exec(code, module.__dict__)  # noqa: S102 (the author's file)

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,  # noqa: A002 (as in builtins.__import__)
        locals: Mapping[str, Any] | None = None,  # noqa: A002
        fromlist: Sequence[str] = (),
        level: int = 0,
    ) -> ModuleType:
        if level or not self._knows(name.split(".", maxsplit=1)[0]):
            return __import__(name, globals, locals, fromlist, level)
        module = importlib.import_module(f"{self.package}.{name}")
        if not fromlist:
            return sys.modules[f"{self.package}.{name.split('.', maxsplit=1)[0]}"]
        for submodule in fromlist:
            if not hasattr(module, submodule) and self._knows(f"{name}.{submodule}"):
                importlib.import_module(f"{self.package}.{name}.{submodule}")
        return module
