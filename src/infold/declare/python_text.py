"""Python files as syntax trees, which nobody executes: their places, and what identifies them."""

from __future__ import annotations

import ast

from infold.messages import python_findings
from infold.messages.errors import Spot


def parse_python(file: str, text: str) -> ast.Module:
    """The syntax tree of a file. Raises InfoldError with the place where it is none."""
    try:
        return ast.parse(text, file)
    except SyntaxError as error:
        lines = text.splitlines()
        line = min(error.lineno or 1, max(len(lines), 1))
        shown = lines[line - 1] if lines else ""
        at = Spot(file, line, max(1, error.offset or 1), shown)
        raise python_findings.bad_python(at, why=error.msg) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise python_findings.bad_python(Spot(file), why=str(error) or "too deep") from None


def spot_of(file: str, text: str, node: ast.AST) -> Spot:
    """The place of a part of a file; of several lines the first."""
    line = getattr(node, "lineno", 1)
    lines = text.splitlines()
    shown = lines[line - 1] if line <= len(lines) else ""
    column = _characters(shown, getattr(node, "col_offset", 0))
    end = len(shown)
    if getattr(node, "end_lineno", None) == line:
        end = _characters(shown, getattr(node, "end_col_offset", 0))
    return Spot(file, line, column + 1, shown, max(1, end - column))


def _characters(text: str, bytes_: int) -> int:
    """How many characters the first bytes of a line are."""
    return len(text.encode()[:bytes_].decode(errors="ignore"))


def canonical(node: object, undecorated: ast.AST | None = None) -> str:
    """
    A tree as text without positions, comments and docstrings.

    Unlike the text of ``ast.dump`` it is the same in all versions of Python: what is empty is left
    out, so fields that later versions add do not show. The decorators of ``undecorated`` are left
    out too.
    """
    if isinstance(node, list):
        return f"[{','.join(canonical(one, undecorated) for one in node)}]"
    if not isinstance(node, ast.AST):
        return f"{type(node).__name__}:{node!r}"
    parts = []
    for name, value in ast.iter_fields(node):
        if value is None or value == [] or name in _NO_MEANING:
            continue
        if node is undecorated and name == "decorator_list":
            continue
        shown = value
        if name == "body" and isinstance(node, _DOCUMENTED) and ast.get_docstring(node) is not None:
            shown = node.body[1:]
        parts.append(f"{name}={canonical(shown, undecorated)}")
    return f"{type(node).__name__}({','.join(parts)})"


_NO_MEANING = frozenset({"ctx", "kind", "type_comment", "type_ignores"})
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
