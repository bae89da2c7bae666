"""
A mutant in the running program: the changed functions get the code of the mutant's source.

Whatever holds such a function (another module, a class, a table of functions) has the change then,
without a module being imported again. What lies outside of functions cannot be changed so.
"""

from __future__ import annotations

import ast
import functools
import gc
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType

from tests.mutants.listed import PACKAGE, Mutant

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Swap:
    """A function of the program, with the code of a mutant."""

    function: FunctionType
    mutated: CodeType


def swaps(mutants: Iterable[Mutant]) -> dict[str, tuple[Swap, ...]]:
    """The functions that each mutant changes, by its name; none if it changes something else."""
    listed = [*mutants]
    for file in {mutant.file for mutant in listed}:
        import_module(".".join(("infold", *Path(file).with_suffix("").parts)))
    gc.unfreeze()  # what is frozen is not listed
    functions: dict[str, list[FunctionType]] = defaultdict(list)
    for each in gc.get_objects():
        if isinstance(each, FunctionType):
            functions[each.__code__.co_filename].append(each)
    return {mutant.name: _swaps(mutant, functions[_path(mutant)]) for mutant in listed}


def _swaps(mutant: Mutant, functions: Iterable[FunctionType]) -> tuple[Swap, ...]:
    path, mutated = _path(mutant), mutant.mutated
    before = ast.parse(Path(path).read_text(encoding="utf-8"))
    names = _changed_functions(before, ast.parse(mutated))
    if names is None:
        return ()
    codes = _codes(compile(mutated, path, "exec"))
    found = [one for one in functions if one.__code__.co_qualname in names]
    changes = tuple(Swap(one, codes[one.__code__.co_qualname]) for one in found)
    fit = all(one.function.__code__.co_freevars == one.mutated.co_freevars for one in changes)
    return changes if fit and {one.__code__.co_qualname for one in found} == names else ()


def _path(mutant: Mutant) -> str:
    return str(PACKAGE / mutant.file)


@contextmanager
def swapped(changes: tuple[Swap, ...]) -> Iterator[None]:
    """With a mutant in its place; what was computed before and kept is forgotten."""
    before = [change.function.__code__ for change in changes]
    for change in changes:
        change.function.__code__ = change.mutated
    _forget_kept()
    try:
        yield
    finally:
        for change, code in zip(changes, before, strict=True):
            change.function.__code__ = code
        _forget_kept()


def _forget_kept() -> None:
    gc.unfreeze()
    for each in gc.get_objects():
        if isinstance(each, functools._lru_cache_wrapper) and each.__module__.startswith("infold"):
            each.cache_clear()


def _codes(code: CodeType) -> dict[str, CodeType]:
    """The code of each function, by its qualified name."""
    inner = [one for one in code.co_consts if isinstance(one, CodeType)]
    return {one.co_qualname: one for one in inner} | {
        name: found for one in inner for name, found in _codes(one).items()
    }


def _changed_functions(before: ast.AST, after: ast.AST, prefix: str = "") -> set[str] | None:
    """The outermost functions that differ, by qualified name; None if anything else does."""
    first, second = [*ast.iter_child_nodes(before)], [*ast.iter_child_nodes(after)]
    if len(first) != len(second):
        return None
    changed: set[str] = set()
    for one, other in zip(first, second, strict=True):
        if ast.dump(one) == ast.dump(other):
            continue
        if isinstance(one, Function) and isinstance(other, Function) and _same_head(one, other):
            changed.add(f"{prefix}{one.name}")
        elif isinstance(one, ast.ClassDef) and isinstance(other, ast.ClassDef):
            inside = _changed_functions(one, other, f"{prefix}{one.name}.")
            if inside is None:
                return None
            changed |= inside
        else:
            return None
    return changed


def _same_head(one: Function, other: Function) -> bool:
    """Whether two functions are called and decorated alike."""
    heads = [
        (each.name, ast.dump(each.args), *map(ast.dump, each.decorator_list))
        for each in (one, other)
    ]
    return heads[0] == heads[1]
