"""Code of a project's author in Spark's Python workers: loaded from its text, and its failures."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from infold.core.functions import FunctionCode
from infold.spark.python_functions.modules import module_of
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
