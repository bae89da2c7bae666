"""
A plugin of pytest: the module of a mutant, which ``INFOLD_MUTANT`` names, is imported with it.

That is for what lies outside of functions, which ``swapped`` cannot change.
"""

from __future__ import annotations

import os
from importlib.machinery import SourceFileLoader
from types import CodeType

from tests.mutants.listed import PACKAGE, mutants

(_MUTANT,) = (one for one in mutants() if one.name == os.environ["INFOLD_MUTANT"])
_PATH = str(PACKAGE / _MUTANT.file)
_get_code = SourceFileLoader.get_code


def _mutated(loader: SourceFileLoader, fullname: str) -> CodeType | None:
    if loader.path == _PATH:
        return compile(_MUTANT.mutated, _PATH, "exec")
    return _get_code(loader, fullname)


SourceFileLoader.get_code = _mutated  # type: ignore[method-assign, assignment]
