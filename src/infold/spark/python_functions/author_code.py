"""Code of a project's author in Spark's Python workers: loaded from its text, and its failures."""

from __future__ import annotations

import builtins
import importlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Any, Self

from infold.core.functions import FunctionCode
from infold.spark.python_functions.values import first_line
from infold.system.failures import FUNCTION_FAILED


class FunctionFailedError(Exception):
    """Code of the project failed; the message is what ``system.failures`` reads again."""


@dataclass(frozen=True)
class AuthorCode:
    """A function of one of the project's files; ``digest`` is of all ``files`` that it needs."""

    function: str
    files: tuple[tuple[str, str], ...]
    digest: str

    @classmethod
    def of(cls, code: FunctionCode) -> Self:
        """That of a function; the digest is at the end of the name that it is registered by."""
        return cls(code.function, code.files, code.registered.rpartition("__")[2])

    def loaded(self) -> Callable[..., Any]:
        """The function; its modules are executed once in a process."""
        try:
            module = module_of(self.files, self.digest)
        except BaseException as error:  # noqa: BLE001 (also an exit: the worker would be lost)
            raise self.failed(error) from None
        function: Callable[..., Any] = getattr(module, self.function)
        return function

    def failed(self, error: BaseException, given: str = "") -> FunctionFailedError:
        """An exception of the author's code, with the last line of it that was executed."""
        texts = dict(self.files)
        file, line, at = self.files[0][0], 1, error.__traceback__
        while at is not None:
            if at.tb_frame.f_code.co_filename in texts:
                file, line = at.tb_frame.f_code.co_filename, at.tb_lineno
            at = at.tb_next
        what = f"{type(error).__name__}: {first_line(error)}".removesuffix(": ")
        return self._error(file, line, f"raised {what}", given)

    def wrong(self, what: str, given: str = "") -> FunctionFailedError:
        """A result that is not what is declared; the place is the function."""
        file, text = self.files[0]
        line_numbers = (
            number
            for number, line in enumerate(text.splitlines(), 1)
            if line.split("(")[0].split() == ["def", self.function]
        )
        return self._error(file, next(line_numbers, 1), what, given)

    def _error(self, file: str, line: int, what: str, given: str) -> FunctionFailedError:
        lines = dict(self.files)[file].splitlines()
        facts = {
            "function": self.function,
            "file": file,
            "line": line,
            "text": lines[line - 1] if line <= len(lines) else "",
            "what": what,
            "arguments": given,
        }
        return FunctionFailedError(FUNCTION_FAILED + json.dumps(facts))


# Each version of a function has modules of its own, below a package with its digest. So two
# versions can be in one process, and a file that changed meanwhile does not matter. An absolute
# import in such a module finds the project's modules of the same version first.


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
