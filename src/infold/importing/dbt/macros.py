"""The names that dbt puts into its templates, and what of them is known without a warehouse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

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
