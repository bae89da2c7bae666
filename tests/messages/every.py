"""Every message of the lists, and every place in the program that makes one."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from string import Formatter
from types import FunctionType

import infold
from infold.messages.errors import Finding, InfoldError, Message, Near, Spot
from infold.messages.refusals import Cell

PACKAGE = Path(infold.__file__).parent
LISTS = (
    *("command_errors", "run_errors", "ledger_errors", "catalog_errors", "store_errors"),
    *("database_errors", "delta_errors", "apply_errors", "environment_errors"),
    *("faults", "mismatches", "findings", "refusals"),
    *("audit_findings", "function_findings", "unit_test_errors"),
)
SPOT = Spot("models/daily.sql", 3, 8, "SELECT day FROM events", 3)

Entry = Message | Finding
Function = Callable[..., InfoldError]


def messages() -> dict[str, Entry | Function]:
    """``list.name`` -> the entry or function, in the order in which they are written."""
    found: dict[str, Entry | Function] = {}
    for name in LISTS:
        module = import_module(f"infold.messages.{name}")
        for word, value in vars(module).items():
            own = isinstance(value, FunctionType) and value.__module__ == module.__name__
            if isinstance(value, Entry) or (
                own and inspect.get_annotations(value).get("return") == "InfoldError"
            ):
                found[f"{name}.{word}"] = value
    return found


MESSAGES = messages()


def facts_of(entry: Entry) -> set[str]:
    """The names of the facts that the words of an entry need."""
    near = [text for text in entry.facts.values() if isinstance(text, Near)]
    plain = [text for text in entry.facts.values() if isinstance(text, str)]
    texts = [entry.what, entry.todo, *plain, *(text.word for text in near)]
    names = {name for text in texts for _, name, _, _ in Formatter().parse(text) if name}
    return {name.partition(".")[0] for name in names} | ({"known"} if near else set())


def rendered(name: str, given: set[str] | None = None) -> InfoldError:
    """A message with ``<fact>`` for each fact; ``given`` are those that a caller gives."""
    message = MESSAGES[name]
    if isinstance(message, Finding):
        return message(SPOT, **_stand_ins(message, given))
    if isinstance(message, Message):
        return message(**_stand_ins(message, given))
    parameters = inspect.signature(message).parameters
    return message(**{word: _typed(word, str(p.annotation)) for word, p in parameters.items()})


def _stand_ins(entry: Entry, given: set[str] | None) -> dict[str, object]:
    texts = (entry.what, entry.todo, *map(str, entry.facts.values()))
    numbers = {name for text in texts for _, name, spec, _ in Formatter().parse(text) if spec}
    found: dict[str, object] = {
        name: 1234567 if name in numbers else f"<{name}>"
        for name in (facts_of(entry) if given is None else given)
    }
    several: dict[str, object] = {"cell": Cell("day", "daily"), "known": ("<one>", "<another>")}
    several |= {"infold": "infold"}  # or with a target
    return {name: several.get(name, value) for name, value in found.items()}


def _typed(name: str, annotation: str) -> object:
    """A value of a parameter's type, which shows its name where it is a text."""
    pairs = (("<first>", "<one>"), ("<second>", "<two>"))
    of_type: dict[str, object] = {
        "Spot": SPOT, "bool": True, "int": 1234567, "int | None": 4711, "Sequence[int]": (1, 2),
        "Sequence[tuple[str, str]]": pairs, "tuple[tuple[str, str], ...]": pairs,
        "Sequence[tuple[str, str, str]]": (("<key>", "<given>", "<kept>"),),
        "Mapping[str, int | None]": {"<model>": 1_234_567, "<other model>": None},
        "Mapping[str, tuple[str, str, str]]": {"<model>": ("day", "<before>", "<after>")},
        "tuple[str, str]": ("--start", "--end"), "Sequence[str]": (f"<{name} 1>", f"<{name} 2>"),
        "tuple[str, ...]": (f"<{name} 1>", f"<{name} 2>"),
        "Iterable[str]": (f"<{name} 1>", f"<{name} 2>"), "str": f"<{name}>",
        "str | None": f"<{name}>",
    }  # fmt: skip
    return name if name == "infold" else of_type[annotation]


@dataclass(frozen=True, slots=True)
class Use:
    """A place in the program that names a message, and the facts that it gives, if it calls it."""

    message: str
    place: str
    facts: frozenset[str] | None
    plain: bool = True
    """Whether the facts are given one by one, each by its name."""


@cache
def uses() -> tuple[Use, ...]:
    """Each place in the program that names a message."""
    return tuple(_uses())


def _uses() -> Iterator[Use]:
    for file in sorted(PACKAGE.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if "infold.messages" not in text:
            continue
        nodes = list(ast.walk(ast.parse(text)))
        called = {id(node.func): node for node in nodes if isinstance(node, ast.Call)}
        names = _imported(nodes)
        for node in nodes:
            message = _named(node, names)
            if message is not None:
                place = f"{file.relative_to(PACKAGE)}:{getattr(node, 'lineno', 0)}"
                yield _use(message, place, called.get(id(node)))


def _imported(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """What a module imports from the lists: its name there -> ``list`` or ``list.name``."""
    found = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("infold.messages"):
            prefix = (node.module or "").removeprefix("infold.messages").removeprefix(".")
            for alias in node.names:
                whole = f"{prefix}.{alias.name}" if prefix else alias.name
                found[alias.asname or alias.name] = whole
    return found


def _named(node: ast.AST, names: Mapping[str, str]) -> str | None:
    """The message that an expression names, if any."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        whole = f"{names.get(node.value.id)}.{node.attr}"
    elif isinstance(node, ast.Name):
        whole = names.get(node.id, "")
    else:
        return None
    return whole if whole in MESSAGES else None


def _use(message: str, place: str, call: ast.Call | None) -> Use:
    if call is None:
        return Use(message, place, None)
    needed = 1 if isinstance(MESSAGES[message], Finding) else 0
    plain = len(call.args) == needed and all(word.arg for word in call.keywords)
    return Use(message, place, frozenset(word.arg or "**" for word in call.keywords), plain)
