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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType

from tests.mutants.listed import PACKAGE, Mutant

Function = ast.FunctionDef | ast.AsyncFunctionDef


REACHED: set[str] = set()
"""The mutants whose functions were called since it was emptied (``watched``)."""


@dataclass(frozen=True, slots=True)
class Swap:
    """A function of the program, with the code of a mutant."""

    function: FunctionType
    mutated: CodeType


def swaps(mutant: Mutant) -> tuple[Swap, ...]:
    """The functions that a mutant changes; none where it changes something else too."""
    path = PACKAGE / mutant.file
    source, mutated = path.read_text(encoding="utf-8"), mutant.mutated
    before, after = ast.parse(source), ast.parse(mutated)
    names = _changed_functions(before, after)
    if names is None:
        return ()
    import_module(".".join(("infold", *path.relative_to(PACKAGE).with_suffix("").parts)))
    codes = _codes(compile(mutated, str(path), "exec"))
    functions = {
        each: codes[name]
        for each in gc.get_objects()
        if isinstance(each, FunctionType)
        and each.__code__.co_filename == str(path)
        and (name := each.__code__.co_qualname) in names
    }
    fits = all(one.__code__.co_freevars == code.co_freevars for one, code in functions.items())
    if not fits or {one.__code__.co_qualname for one in functions} != names:
        return ()
    return tuple(Swap(function, code) for function, code in functions.items())


def watched(mutants: Mapping[str, tuple[Swap, ...]]) -> tuple[Swap, ...]:
    """The functions that mutants change, with code that notes their names in ``REACHED`` first."""
    names: dict[FunctionType, list[str]] = defaultdict(list)
    for mutant, changes in mutants.items():
        for change in changes:
            names[change.function].append(mutant)
    by_file: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for function, meant in names.items():
        by_file[function.__code__.co_filename][function.__code__.co_qualname] = meant
    codes = {file: _noting(file, noted) for file, noted in by_file.items()}
    return tuple(
        Swap(function, codes[code.co_filename][code.co_qualname])
        for function in names
        for code in [function.__code__]
    )


def _noting(file: str, noted: Mapping[str, list[str]]) -> dict[str, CodeType]:
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))

    def note(node: ast.AST, prefix: str) -> None:
        for inner in ast.iter_child_nodes(node):
            if isinstance(inner, Function) and f"{prefix}{inner.name}" in noted:
                words = noted[f"{prefix}{inner.name}"]
                line = f"__import__({__name__!r}, fromlist=['']).REACHED.update({words!r})"
                inner.body[:0] = ast.parse(line).body
            elif isinstance(inner, ast.ClassDef):
                note(inner, f"{prefix}{inner.name}.")

    note(tree, "")
    return _codes(compile(ast.fix_missing_locations(tree), file, "exec"))


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
