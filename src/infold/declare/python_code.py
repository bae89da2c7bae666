"""
Code in Python, read without being run: its imports, its digest, and what a model's may do.

Imports of the project's own modules are followed, so that what decides about rows is known as a
whole. What shows in the text and makes rows depend on more than the inputs is refused; what does
not show there (what an installed package does, say) is for Spark's analysed plan and for `verify`.
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

from infold.core.functions import PROJECT_PACKAGE, PythonModule
from infold.core.yaml_tree import decoded
from infold.messages import function_findings
from infold.messages.errors import InfoldError, Spot

# -- modules of the project


def project_modules(
    file: str,
    source: str,
    tree: ast.Module,
    files: Mapping[str, str],
    errors: list[InfoldError],
) -> tuple[PythonModule, ...]:
    """
    A model's own file, and every module of the project that it imports, directly or not.

    ``files`` are the texts of the files in lib/. They come after the model, in the order of their
    names. What they must not do is noted in ``errors``.
    """
    own = PythonModule("", file, source)
    modules: dict[str, PythonModule] = {}
    todo = [(own, tree)]
    while todo:
        module, parsed = todo.pop()
        for at, construct, outside in not_of_inputs(module.file, module.source, parsed):
            if outside:
                errors.append(function_findings.outside_inputs(at, what=construct))
            else:
                errors.append(function_findings.python_changes_by_itself(at, what=construct))
        for name, node, inside in _imports(module.name, parsed, files):
            at = spot_of(module.file, module.source, node)
            if inside:
                errors.append(function_findings.late_import(at, name=name))
            path = f"{name.replace('.', '/')}.py"
            if path not in files:
                errors.append(function_findings.no_project_module(at, name=name, file=path))
            elif name not in modules:
                modules[name] = PythonModule(name, path, files[path])
                try:
                    todo.append((modules[name], parse_python(path, files[path])))
                except InfoldError as error:
                    errors.append(error)
    return (own, *(modules[name] for name in sorted(modules)))


def _imports(
    module: str, tree: ast.Module, files: Mapping[str, str]
) -> Iterator[tuple[str, ast.stmt, bool]]:
    """The project's modules that a file imports: name, place, and whether inside a function."""
    for node, inside in _statements(tree, inside=False):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = module.split(".")[: -node.level] if module else ["models"]
                base = ".".join([*package, *([base] if base else [])])
            is_module = f"{base.replace('.', '/')}.py" in files
            names = [base] if is_module else [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name.split(".")[0] in (PROJECT_PACKAGE, "models"):
                yield name, node, inside


def _statements(node: ast.AST, *, inside: bool) -> Iterator[tuple[ast.stmt, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child, inside
        deeper = inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from _statements(child, inside=deeper)


# -- what identifies it


def code_digest(function: ast.FunctionDef, modules: Mapping[str, ast.Module]) -> str:
    """
    The same for trees that differ in comments, layout and docstrings only.

    The decorators of ``function`` are left out: what they declare counts by itself. ``modules`` are
    trees by the names of their modules; that of the model has none.
    """
    forms = [f"{name}:{canonical(tree, function)}" for name, tree in sorted(modules.items())]
    return sha256("\n".join([function.name, *forms]).encode()).hexdigest()


# -- what it must not do


def not_of_inputs(
    file: str, source: str, tree: ast.Module, *, frames: bool = True
) -> Iterator[tuple[Spot, str, bool]]:
    """
    Reads of a clock, of chance, of what a function keeps in its module from one call to the next,
    and of anything that is no input, as far as names show them.

    Each with its place, and whether it is of the last kind. Methods of ``frames`` count by their
    names, where there may be frames.
    """
    names = _imported_names(tree)
    called = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield spot_of(file, source, node), f"{node.names[0]}, which a function changes,", False
        if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        at = spot_of(file, source, node)
        call = called.get(id(node))
        attribute = node.attr if isinstance(node, ast.Attribute) else ""
        path = _path(node, names)
        if attribute in _SESSION or (attribute in _WRITES and call is None):
            yield at, f".{attribute}", True
        elif frames and attribute in _CHOOSING and call is not None:
            yield at, f".{attribute}()", False
        elif call is not None and _is_given_all(path, call):
            continue
        elif _is_in(path, _OUTSIDE):
            yield at, path, True
        elif id(node) not in inner and _is_in(path, _CHANGING):
            yield at, path, False


def _is_given_all(path: str, call: ast.Call) -> bool:
    """Whether a call is given the seed, or the time, that it would choose by itself."""
    if path in _SEEDED:
        return bool(call.args or call.keywords)
    return path in _OF_A_GIVEN_TIME and len(call.args) >= _OF_A_GIVEN_TIME[path]


def _imported_names(tree: ast.Module) -> dict[str, str]:
    """What names of a file stand for: local name -> dotted path."""
    names = {name: name for name in _BUILT_IN}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.name if alias.asname else alias.name.split(".")[0]
                names[alias.asname or name] = name
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.pop(node.name, None)
    return names


def _path(node: ast.expr, names: Mapping[str, str]) -> str:
    """What a name with dots stands for; empty where it begins with no import."""
    if isinstance(node, ast.Name):
        return names.get(node.id, "")
    if isinstance(node, ast.Attribute) and (before := _path(node.value, names)):
        return f"{before}.{node.attr}"
    return ""


def _is_in(path: str, known: frozenset[str]) -> bool:
    """Whether a path is known, or one of everything in a known module (``random.``)."""
    if not path:
        return False
    parts = path.split(".")
    return path in known or any(".".join(parts[:at]) + "." in known for at in range(1, len(parts)))


_BUILT_IN = ("open", "input", "eval", "exec", "compile", "__import__")
_SESSION = frozenset({"sparkSession", "sparkContext", "rdd", "_jdf", "_jsparkSession"})
_WRITES = frozenset({"write", "writeStream"})
_CHOOSING = frozenset({"sample", "sampleBy", "randomSplit", "writeTo", "mergeInto"})
_SEEDED = frozenset({"random.Random", "numpy.random.default_rng", "numpy.random.RandomState"})
_OF_A_GIVEN_TIME = {"time.asctime": 1, "time.ctime": 1, "time.strftime": 2}
"""With so many arguments these read no clock."""
_OUTSIDE = frozenset(
    {
        *_BUILT_IN,
        "pyspark.sql.SparkSession",
        "pyspark.SparkContext",
        "importlib.",
        "io.open",
        "os.environ",
        "os.getenv",
        "os.popen",
        "os.system",
        "requests.",
        "socket.",
        "subprocess.",
        "urllib.request.",
    }
)
_FUNCTIONS = "pyspark.sql.functions"
_CHANGING = frozenset(
    {
        "datetime.date.today",
        "datetime.datetime.now",
        "datetime.datetime.today",
        "datetime.datetime.utcnow",
        "numpy.random.",
        "os.urandom",
        "pandas.Timestamp.now",
        "pandas.Timestamp.today",
        "pandas.Timestamp.utcnow",
        "random.",
        "secrets.",
        *_OF_A_GIVEN_TIME,
        "time.gmtime",
        "time.localtime",
        "time.monotonic",
        "time.perf_counter",
        "time.time",
        "time.time_ns",
        "uuid.uuid1",
        "uuid.uuid4",
        *(
            f"{_FUNCTIONS}.{name}"
            for name in (
                "curdate",
                "current_date",
                "current_time",
                "current_timestamp",
                "input_file_name",
                "localtimestamp",
                "monotonically_increasing_id",
                "now",
                "rand",
                "randn",
                "randstr",
                "shuffle",
                "spark_partition_id",
                "uniform",
                "uuid",
            )
        ),
    }
)


def parse_python(file: str, text: str) -> ast.Module:
    """The syntax tree of a file. Raises InfoldError with the place where it is none."""
    try:
        return ast.parse(text, file)
    except SyntaxError as error:
        lines = text.splitlines()
        line = min(error.lineno or 1, max(len(lines), 1))
        shown = lines[line - 1] if lines else ""
        at = Spot(file, line, max(1, error.offset or 1), shown)
        raise function_findings.bad_python(at, why=error.msg) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise function_findings.bad_python(Spot(file), why=str(error) or "too deep") from None


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


# -- a file with the modules of the project that it imports
#
# Imports are found in the syntax tree wherever they stand, and followed from module to module.
# Absolute ones are looked for from the project's folder, relative ones from the file's own. The
# standard library comes before the project; the project comes before installed packages, which are
# not followed. Names that a program makes up while it runs (``importlib.import_module(name)``) are
# not seen.

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
