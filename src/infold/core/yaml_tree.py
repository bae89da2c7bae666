"""
YAML as a small tree of values with their places.

Only the structure is read here: mappings, lists and scalars with their YAML kind. ``keys``,
``sources`` and ``models`` give the keys their meaning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import yaml

from infold.messages import findings
from infold.messages.errors import InfoldError, Spot

_TOO_DEEP = "it is nested too deeply"

_KINDS = {
    "tag:yaml.org,2002:str": "text",
    "tag:yaml.org,2002:int": "a number",
    "tag:yaml.org,2002:float": "a number",
    "tag:yaml.org,2002:bool": "true or false",
    "tag:yaml.org,2002:null": "nothing",
    "tag:yaml.org,2002:timestamp": "a date",
}


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """A YAML text inside a file: the file, its lines, and the line before the text's first."""

    file: str
    lines: tuple[str, ...]
    above: int = 0

    def spot(self, line: int, column: int, end: tuple[int, int] | None = None) -> Spot:
        """A place by 0-based line and column of the YAML text."""
        row = line + self.above
        text = self.lines[row] if row < len(self.lines) else ""
        width = end[1] - column if end is not None and end[0] == line else len(text) - column
        return Spot(self.file, row + 1, column + 1, text, max(1, width))


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """
    A scalar (``text`` as written), a list (``items``) or a mapping (``entries``).

    ``keys`` has the place of each key of a mapping.
    """

    kind: str
    at: Spot
    text: str = ""
    items: tuple[Value, ...] = ()
    entries: Mapping[str, Value] = field(default_factory=dict)
    keys: Mapping[str, Spot] = field(default_factory=dict)


def read(page: Page, text: str, errors: list[InfoldError]) -> Value | None:
    """The tree of a YAML text; None when it is empty or not YAML (an error is added)."""
    deep = deep_place(text)
    if deep is not None:
        errors.append(findings.bad_yaml(page.spot(*deep), why=_TOO_DEEP))
        return None
    try:
        node = yaml.compose(text, Loader=LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = page.spot(mark.line, mark.column) if mark else page.spot(0, 0)
        why = " ".join(part for part in (error.context, error.problem) if part)
        errors.append(findings.bad_yaml(at, why=why))
        return None
    except yaml.YAMLError as error:
        errors.append(findings.bad_yaml(page.spot(0, 0), why=str(error).splitlines()[0]))
        return None
    return None if node is None else _Converter(page, errors).value(node, 0)


@dataclass(slots=True)
class _Converter:
    page: Page
    errors: list[InfoldError]
    done: dict[int, Value] = field(default_factory=dict)

    def value(self, node: yaml.Node, depth: int) -> Value:
        """The value of a node; each node once, so that aliases cannot blow up."""
        if id(node) not in self.done:
            self.done[id(node)] = self._value(node, depth)
        return self.done[id(node)]

    def _value(self, node: yaml.Node, depth: int) -> Value:
        at = self._spot(node)
        if depth > 20:  # nothing declared is that deep: an alias that contains itself
            self.errors.append(findings.bad_yaml(at, why=_TOO_DEEP))
            return Value("nothing", at)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, at, depth)
        if isinstance(node, yaml.SequenceNode):
            items = tuple(self.value(item, depth + 1) for item in node.value)
            return Value("a list", at, items=items)
        return Value(_KINDS.get(node.tag, "text"), at, text=str(node.value))

    def _mapping(self, node: yaml.MappingNode, at: Spot, depth: int) -> Value:
        entries: dict[str, Value] = {}
        keys: dict[str, Spot] = {}
        for key_node, value_node in node.value:
            spot = self._spot(key_node)
            key = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else ""
            if key in entries:
                self.errors.append(findings.duplicate_key(spot, key=key, first=keys[key]))
                continue
            entries[key] = self.value(value_node, depth + 1)
            keys[key] = spot
        return Value("a mapping", at, entries=entries, keys=keys)

    def _spot(self, node: yaml.Node) -> Spot:
        start, end = node.start_mark, node.end_mark
        return self.page.spot(start.line, start.column, (end.line, end.column))


def join(first: Value, second: Value | None, errors: list[InfoldError]) -> Value:
    """Two mappings as one, as ``merge`` does; what is in both is noted, as neither goes first."""
    if second is not None:
        errors.extend(_errors_of_keys_in_both(first, second, ""))
    return merge(first, second) or first


def _errors_of_keys_in_both(first: Value, second: Value, prefix: str) -> Iterator[InfoldError]:
    """An error at each key of ``second`` that ``first`` has, but for mappings in both."""
    for key, value in second.entries.items():
        other, at = first.entries.get(key), second.keys[key]
        if other is not None and other.kind == value.kind == "a mapping":
            yield from _errors_of_keys_in_both(other, value, f"{prefix}{key}.")
        elif other is not None:
            yield findings.duplicate_key(at, key=f"{prefix}{key}", first=first.keys[key])


def merge(first: Value | None, second: Value | None) -> Value | None:
    """Two mappings key by key, ``first`` before ``second``, mappings inside them alike."""
    if first is None or second is None:
        return first or second
    if first.kind != "a mapping" or second.kind != "a mapping":
        return first
    entries = dict(first.entries)
    for key, value in second.entries.items():
        entries[key] = merge(entries.get(key), value) or value
    return Value("a mapping", first.at, entries=entries, keys={**second.keys, **first.keys})


LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""What reads without making anything but plain values, in C where that is installed."""

MOST = 50
"""Nothing that is written for infold, or for the tools that it imports from, is that deep."""

_BEGINS = (yaml.SequenceStartEvent, yaml.MappingStartEvent)
_ENDS = (yaml.SequenceEndEvent, yaml.MappingEndEvent)


def deep_place(text: str) -> tuple[int, int] | None:
    """The 0-based line and column at which a text is too deep; None if it never is."""
    depth = 0
    try:
        for event in yaml.parse(text, Loader=LOADER):
            depth += isinstance(event, _BEGINS) - isinstance(event, _ENDS)
            mark = event.start_mark
            if depth > MOST and mark is not None:
                return mark.line, mark.column
    except yaml.YAMLError:  # whoever reads it says what is wrong
        return None
    return None


MOST_BYTES = {".yml": 10_000_000, ".sql": 2_000_000, ".py": 2_000_000}
"""The most of a file by its ending: some seconds of reading. Seeds have a limit of their own."""


def decoded(file: str, content: bytes) -> str:
    """The text of a file. Raises InfoldError: it is too large, or a line is not UTF-8."""
    most = MOST_BYTES.get(PurePosixPath(file).suffix, len(content))
    if len(content) > most:
        raise findings.large_file(Spot(file), found=f"{len(content):,}", most=f"{most:,}")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise findings.not_utf8(Spot(file, line), byte=error.start) from None


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The front matter's text, the line above it, and where the SQL begins in the file."""

    text: str
    above: int
    sql_start: int
    at: Spot


def split_front_matter(file: str, source: str) -> FrontMatter:
    """
    Front matter between ``---`` lines at the head of a file, blank lines and comments before it.

    A file without any has an empty one.
    """
    lines = source.split("\n")
    first = next((i for i, line in enumerate(lines) if not _is_blank_or_comment(line)), len(lines))
    page = Page(file, tuple(line.rstrip("\r") for line in lines))
    if first == len(lines) or lines[first].strip() != "---":
        return FrontMatter("", 0, 0, page.spot(0, 0))
    last = next((i for i in range(first + 1, len(lines)) if lines[i].strip() == "---"), None)
    if last is None:
        raise findings.no_front_matter(page.spot(first, 0))
    start = sum(len(line) + 1 for line in lines[: last + 1])
    text = "\n".join(lines[first + 1 : last])
    return FrontMatter(text, first + 1, min(start, len(source)), page.spot(first, 0))


def _is_blank_or_comment(line: str) -> bool:
    line = line.strip()
    return not line or (line.startswith("--") and line != "---")
