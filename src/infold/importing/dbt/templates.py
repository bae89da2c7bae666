"""
Renders dbt's templates without dbt and without a warehouse, in a sandbox.

``ref``, ``source``, ``var``, ``this``, ``config`` and the project's own macros are resolved;
``is_incremental()`` is false, as the query has to say what the whole table is. Anything else ends
the rendering, with the name and the line.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NoReturn

from jinja2 import StrictUndefined, TemplateError, nodes
from jinja2.sandbox import SandboxedEnvironment

_MACRO = re.compile(r"\{%-?\s*macro\s+(\w+)\s*\(")
_END_OF_MACRO = re.compile(r"\{%-?\s*endmacro\s*-?%\}")
_ENDLESS = "a template without an end"
_PAST_SIZE = 2_000_000
"""A text of more letters is refused: a macro may repeat without an end in sight."""
_PAST_STEPS = 1_000_000
"""A template that takes more lines to run is refused: a loop may have no end and say nothing."""
_PAST_BITS = 10_000
"""A power with more bits is refused: it takes memory, or minutes."""


class _Bounded(SandboxedEnvironment):
    """A sandbox in which a product is no longer than a text may be."""

    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Raises UnresolvedError where the result would be too large to go on with."""
        long = any(
            isinstance(times, int)
            and isinstance(value, str | list | tuple)
            and len(value) * times > _PAST_SIZE
            for value, times in ((left, right), (right, left))
        )
        are_numbers = isinstance(left, int) and isinstance(right, int)
        if long or (operator == "**" and are_numbers and left.bit_length() * right > _PAST_BITS):
            raise UnresolvedError(_ENDLESS)
        return super().call_binop(context, operator, left, right)


@dataclass(frozen=True, slots=True)
class Names:
    """What the project has: tables by the names that dbt uses, and values of its variables."""

    refs: Mapping[str, str]
    sources: Mapping[tuple[str, str], str]
    variables: Mapping[str, Any]
    adapter: str = ""


@dataclass(frozen=True, slots=True)
class Macro:
    """A macro of the project: its text, moved down to its line, and its file."""

    name: str
    file: str
    text: str


@dataclass(frozen=True, slots=True)
class Rendered:
    """
    A template's text, and what was seen on the way.

    ``config`` is what ``config()`` was called with, ``filters`` the lines of blocks of
    ``is_incremental()`` with their text, ``notes`` what was taken for known.
    """

    text: str
    config: Mapping[str, Any]
    filters: tuple[tuple[int, str], ...] = ()
    notes: tuple[str, ...] = ()


class NotRenderedError(Exception):
    """A template cannot be resolved: what it asks for, and the file and line where it does."""

    def __init__(self, what: str, at: str) -> None:
        super().__init__(what)
        self.what = what
        self.at = at


@dataclass
class _State:
    """What the template that is being rendered called."""

    config: dict[str, Any] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)


def macros_in(file: str, text: str) -> list[Macro]:
    """Each with as many lines above it as in the file, so that errors name the right one."""
    macros, at = [], 0
    while match := _MACRO.search(text, at):
        end = _END_OF_MACRO.search(text, match.end())
        if end is None:
            break
        above, at = text.count("\n", 0, match.start()), end.end()
        macros.append(Macro(match[1], file, "\n" * above + text[match.start() : at]))
    return macros


class Templates:
    """Renders the templates of one project."""

    def __init__(self, names: Names, macros: list[Macro], project: str) -> None:
        self._names = names
        self._state = _State()
        self.called: set[str] = set()
        self.asked: set[str] = set()
        self._env = _Bounded(
            undefined=StrictUndefined, extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols"]
        )
        self._own = {macro.name: self._callable(macro) for macro in macros}
        self._files = {macro.file for macro in macros}
        ours = self._globals(project)
        self._env.globals.update(self._own | ours)

    def render(self, file: str, text: str) -> Rendered:
        """The text of a template. Raises NotRenderedError."""
        self._state = _State()
        try:
            tree = self._env.parse(text)
            compiled = self._env.compile(text, name=file, filename=file)
            template = self._env.template_class.from_code(
                self._env, compiled, self._env.make_globals(None)
            )
            rendered = ""
            with _steps_limited({file, *self._files}):
                for part in template.generate():
                    rendered += part
                    if len(rendered) > _PAST_SIZE:
                        raise UnresolvedError(_ENDLESS)
        except ReturnedError:
            raise NotRenderedError("return() outside of a macro", file) from None
        except (UnresolvedError, TemplateError, RecursionError) as error:
            raise NotRenderedError(str(error), _place(error, file, text)) from error
        except Exception as error:  # an expression of the project's, such as 1 + none
            raise NotRenderedError(f"{type(error).__name__}: {error}", file) from error
        filters = tuple(_incremental_blocks(tree, text))
        return Rendered(rendered, dict(self._state.config), filters, tuple(self._state.notes))

    def _callable(self, macro: Macro) -> Callable[..., Any]:
        """A macro as templates call it, compiled when it is called first."""

        def call(*args: Any, **words: Any) -> Any:
            self.called.add(macro.name)
            code = self._env.compile(macro.text, name=macro.file, filename=macro.file)
            template = self._env.template_class.from_code(
                self._env, code, self._env.make_globals(None)
            )
            try:
                return getattr(template.module, macro.name)(*args, **words)
            except ReturnedError as returned:
                return returned.value

        return call

    def _globals(self, project: str) -> dict[str, Any]:
        in_spark = self._names.adapter in {"", "spark", "databricks"}
        packages = OF_SPARK if in_spark else IN_ANY_DIALECT
        return {
            **{name: Unknown(name) for name in NOT_KNOWN},
            **{name: Package(name, macros) for name, macros in packages.items()},
            project: Package(project, self._own),
            "adapter": _Adapter(self._names.adapter, self._own),
            "config": _Config(self),
            "env_var": self._env_var,
            "exceptions": Unknown("exceptions"),
            "is_incremental": lambda: False,
            "log": lambda *_, **__: "",
            "print": lambda *_, **__: "",
            "ref": self._ref,
            "return": _return,
            "should_full_refresh": lambda: True,
            "source": self._source,
            "target": _Target(self),
            "this": Relation(THIS),
            "var": _Variables(self),
            "zip": zip,
        }

    def note(self, text: str) -> None:
        """Say in the report what was taken for known."""
        self._state.notes.setdefault(text)

    def configure(self, words: Mapping[str, Any]) -> None:
        """Take what a template's ``config()`` says."""
        self._state.config |= words

    @property
    def configured(self) -> Mapping[str, Any]:
        """What was said so far."""
        return self._state.config

    @property
    def names(self) -> Names:
        """What the project has."""
        return self._names

    def _ref(self, *words: str, **_: Any) -> Relation:
        name = words[-1] if words else ""
        if name not in self._names.refs:
            raise UnresolvedError(f"ref('{name}'), which is no model of this project")
        return Relation(self._names.refs[name])

    def _source(self, group: str, table: str) -> Relation:
        name = self._names.sources.get((group, table))
        if name is None:
            raise UnresolvedError(f"source('{group}', '{table}'), which no file declares")
        return Relation(name)

    def _env_var(self, name: str, default: Any = None) -> Any:
        """Its default: the project chooses the name, so the value may be any secret of the user."""
        if default is None:
            self.asked.add(name)
            raise UnresolvedError(f"env_var('{name}')")
        self.note(f"env_var('{name}') is taken for its default {default!r}")
        return default


@contextmanager
def _steps_limited(files: Collection[str]) -> Iterator[None]:
    """
    End what templates of some files do after :data:`_PAST_STEPS` of their lines.

    A sandbox bounds ``range``, not loops in loops. Python counts the lines, as nothing of a loop
    that yields no text comes to whoever renders it.
    """
    left, before = _PAST_STEPS, sys.gettrace()

    def count(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if event == "call":
            return count if frame.f_code.co_filename in files else None
        left -= event == "line"
        if left < 0:
            raise UnresolvedError(_ENDLESS)
        return count

    sys.settrace(count)
    try:
        yield
    finally:
        sys.settrace(before)


def _return(value: Any = "") -> Any:
    raise ReturnedError(value)


class _Variables:
    """``var``: values of dbt_project.yml, or the default that is given."""

    def __init__(self, templates: Templates) -> None:
        self._templates = templates

    def __call__(self, name: str, default: Any = None) -> Any:
        value = self._templates.names.variables.get(name, default)
        if value is None:
            raise UnresolvedError(f"var('{name}'), which has no value")
        return value

    def has_var(self, name: str) -> bool:
        """Whether dbt_project.yml has a value."""
        return name in self._templates.names.variables


class _Config:
    """``config``: a call is noted, values are those that were noted."""

    def __init__(self, templates: Templates) -> None:
        self._templates = templates

    def __call__(self, *mappings: Mapping[str, Any], **words: Any) -> str:
        for mapping in mappings:
            self._templates.configure(mapping)
        self._templates.configure(words)
        return ""

    def get(self, name: str, default: Any = None, **_: Any) -> Any:
        """A value that the template set itself."""
        return self._templates.configured.get(name, default)

    require = get


class _Target:
    """``target``: its kind is known, and its name is taken for ``prod``."""

    def __init__(self, templates: Templates) -> None:
        self._templates = templates

    @property
    def name(self) -> str:
        """Production's."""
        self._templates.note("target.name is taken for 'prod'")
        return "prod"

    @property
    def type(self) -> str:
        """The adapter that --dialect means. Raises UnresolvedError without one."""
        if not self._templates.names.adapter:
            raise UnresolvedError("target.type: give --dialect")
        return self._templates.names.adapter

    def __getattr__(self, name: str) -> Any:
        raise UnresolvedError(f"target.{name}")


class _Adapter:
    """``adapter``: finds the macro of an adapter; all else asks the warehouse."""

    def __init__(self, adapter: str, own: Mapping[str, Callable[..., Any]]) -> None:
        self._adapter = adapter
        self._own = own

    def dispatch(self, name: str, *_: Any, **__: Any) -> Callable[..., Any]:
        """The macro of this adapter, or the default one."""
        for prefix in (self._adapter, "default"):
            if f"{prefix}__{name}" in self._own:
                return self._own[f"{prefix}__{name}"]
        raise UnresolvedError(f"adapter.dispatch('{name}')")

    def __getattr__(self, name: str) -> Any:
        raise UnresolvedError(f"adapter.{name}()")


def _place(error: BaseException, file: str, text: str) -> str:
    """File and line where rendering ended: of the macro, if it was there."""
    line = getattr(error, "lineno", None)
    place = f"{file}:{line}" if line else file
    trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if name == file and trace.tb_lineno <= text.count("\n") + 1:
            place = f"{file}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _incremental_blocks(tree: nodes.Template, text: str) -> list[tuple[int, str]]:
    """The line of each ``if is_incremental()``, and the text inside of it."""
    blocks = []
    for block in tree.find_all(nodes.If):
        if isinstance(block.test, nodes.Not):  # what is inside is for full builds, and stays
            continue
        calls = [block.test, *block.test.find_all(nodes.Call)]
        if not any(
            isinstance(call, nodes.Call)
            and isinstance(call.node, nodes.Name)
            and call.node.name == "is_incremental"
            for call in calls
        ):
            continue
        lines = text.split("\n")[block.lineno - 1 :]
        inner = re.split(r"\{%-?\s*(?:endif|else|elif)\b", "\n".join(lines))[0]
        blocks.append((block.lineno, inner.partition("%}")[2].strip()))
    return blocks


# The names that dbt puts into templates, and what of them is known without a warehouse.

THIS = "infold__this_table"
"""Stands for ``{{ this }}``; a query that still has it afterwards reads its own table."""


class UnresolvedError(Exception):
    """A template asks for what only dbt or the warehouse knows; the argument names it."""


class ReturnedError(Exception):
    """What a macro returns by ``return``."""

    def __init__(self, value: Any) -> None:
        super().__init__("return")
        self.value = value


def unresolved(name: str) -> NoReturn:
    """End the rendering: this is not known here."""
    raise UnresolvedError(name)


class Relation(str):
    """A table's name in infold; parts of its name in the warehouse are not known."""

    __slots__ = ()

    @property
    def identifier(self) -> str:
        """The whole name: infold's have no database or schema apart from it."""
        return str(self)

    name = identifier
    table = identifier

    def render(self) -> Relation:
        """The same, without a filter by event time, which infold has by itself."""
        return self

    def include(self, **_: Any) -> Relation:
        """The same: a name has no database and no schema here."""
        return self

    def __getattr__(self, name: str) -> NoReturn:
        unresolved(f"relation.{name}")


class Unknown:
    """A name that depends on the warehouse or the run: any use of it ends the rendering."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> NoReturn:
        if name in {"unsafe_callable", "alters_data"} or name.startswith("jinja_"):
            # Jinja asks for these before a call.
            raise AttributeError(name)
        unresolved(f"{self._name}.{name}")

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        """End the rendering."""
        unresolved(f"{self._name}()")

    def __bool__(self) -> bool:
        return unresolved(self._name)

    def __str__(self) -> str:
        return unresolved(self._name)

    def __iter__(self) -> Any:
        unresolved(self._name)

    def __getitem__(self, _: Any) -> NoReturn:
        unresolved(self._name)


class Package:
    """Macros of a package by their names; others are not known."""

    def __init__(self, name: str, macros: Mapping[str, Callable[..., Any]]) -> None:
        self._name = name
        self._macros = macros

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in self._macros:
            unresolved(f"{self._name}.{name}()")
        return self._macros[name]


def _generate_surrogate_key(columns: Any) -> str:
    """dbt_utils' hash of columns: the same text, so the same MD5."""
    null = "'_dbt_utils_surrogate_key_null_'"
    parts = [f"coalesce(cast({column} as string), {null})" for column in columns]
    return f"md5(concat_ws('-', {', '.join(parts)}))"


def _surrogate_key(*columns: Any) -> str:
    """What the key above was called, and gave, before version 1 of dbt_utils."""
    names = columns[0] if len(columns) == 1 and isinstance(columns[0], list) else columns
    parts = [f"coalesce(cast({column} as varchar), '')" for column in names]
    return "md5(" + " || '-' || ".join(parts) + ")"


def _surrogate_key_of_spark(*columns: Any) -> str:
    return _surrogate_key(*columns).replace("varchar", "string")


def _date_trunc(part: str, column: str) -> str:
    return f"date_trunc('{part}', {column})"


def _type(name: str) -> Callable[[], str]:
    return lambda: name


_TYPES = {
    "type_string": "string",
    "type_timestamp": "timestamp",
    "type_float": "float",
    "type_numeric": "decimal(28,6)",
    "type_bigint": "bigint",
    "type_int": "int",
    "type_boolean": "boolean",
}

OF_SPARK: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "dbt_utils": {
        "generate_surrogate_key": _generate_surrogate_key,
        "surrogate_key": _surrogate_key_of_spark,
    },
    "dbt": {
        "date_trunc": _date_trunc,
        **{name: _type(text) for name, text in _TYPES.items()},
    },
}
"""Macros of packages whose SQL in Spark is known exactly, for projects that are read as Spark's."""

IN_ANY_DIALECT: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "dbt_utils": {
        "generate_surrogate_key": lambda columns: (
            "md5("
            + " || '-' || ".join(
                f"coalesce(cast({column} as varchar), '_dbt_utils_surrogate_key_null_')"
                for column in columns
            )
            + ")"
        ),
        "surrogate_key": _surrogate_key,
    },
    "dbt": {
        "date_trunc": _date_trunc,
        "type_string": _type("varchar"),
        "type_timestamp": _type("timestamp"),
        "type_int": _type("int"),
        "type_bigint": _type("bigint"),
        "type_boolean": _type("boolean"),
    },
}
"""The same in words that sqlglot reads in every dialect."""

NOT_KNOWN = (
    "adapter", "api", "builtins", "database", "database_schemas", "dbt_metadata_envs", "env",
    "execute", "fromyaml", "graph", "invocation_args_dict", "invocation_id", "load_result",
    "local_md5", "model", "modules", "run_query", "run_started_at", "schema", "schemas",
    "selected_resources", "statement", "store_result", "submit_python_job", "thread_id",
)  # fmt: skip
"""Names of dbt's that depend on the warehouse, the run or the machine."""
