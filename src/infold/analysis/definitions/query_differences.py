"""In what two queries differ, clause by clause, for people to read; nothing is decided by it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from infold.analysis.definitions.canonical import Canon
from infold.analysis.definitions.clauses import Doubt, Range
from infold.analysis.definitions.meanings import Meaning, given
from infold.analysis.definitions.places import everything
from infold.analysis.definitions.selects import Select
from infold.analysis.names.relation import Block, Relation, RenamedColumns, SetOperation, Table
from infold.core.definition import Difference
from infold.core.python_code import PythonCode
from infold.messages.errors import Spot

_CONDITIONS = ("where", "having", "qualify")
_OTHERS = ("windows", "order", "sort", "cluster", "distribute", "limit", "offset")


def query_differences(before: Meaning, after: Meaning) -> tuple[Difference, ...]:
    """
    What differs in the queries of two definitions.

    Words that are the same are left out, though what they mean is another: that has a cause.
    """
    if before.node.model.python is not None and after.node.model.python is not None:
        return tuple(_of_code(before.node.model.python, after.node.model.python))
    if before.relation is None or after.relation is None:
        return _texts(before, after)
    if _is_seed(before) and _is_seed(after) and before.node.columns == after.node.columns:
        return () if before.node.model.sql == after.node.model.sql else (_ROWS,)
    letters = before.structs or after.structs
    one, two = (
        _Side(m, Canon(m.prints, given(m.node.model), letters, m.renamed)) for m in (before, after)
    )
    try:
        every = _of_relations(one, two, before.relation, after.relation, "")
        found = tuple(one for one in every if one.before != one.after)
    except (Doubt, RecursionError):
        found = ()
    return found or _texts(before, after)


def _of_code(before: PythonCode, after: PythonCode) -> Iterator[Difference]:
    """The files with another text, and the columns that came, went or got another type."""
    old, new = ({module.file: module.source for module in code.modules} for code in (before, after))
    for file in dict.fromkeys((*old, *new)):
        if old.get(file) != new.get(file) and before.digest != after.digest:
            yield Difference("code", file, "", "", Spot(file) if file in new else None)
    columns = dict(before.columns), dict(after.columns)
    for name in dict.fromkeys((*columns[0], *columns[1])):
        was, now = (of.get(name, "") for of in columns)
        if was != now:
            yield Difference("column", name, was, now, Spot(after.files[0]))


_ROWS = Difference("rows of the file", "", "", "")
"""Of a seed, whose query has them as one long text."""


def _is_seed(meaning: Meaning) -> bool:
    return meaning.node.model.place.file.endswith(".csv")


def _texts(before: Meaning, after: Meaning) -> tuple[Difference, ...]:
    """The queries as a whole."""
    old, new = before.node.model.sql, after.node.model.sql
    if old == new:
        return ()
    return (Difference("query", "", old, new, after.spot(0, 1)),)


@dataclass(frozen=True, slots=True)
class _Side:
    meaning: Meaning
    canon: Canon

    def text(self, select: Select, span: Range | None) -> str:
        """Some tokens as they are written, in one line."""
        if span is None or span[0] >= span[1]:
            return ""
        tokens, sql = select.block.text.tokens, select.block.text.sql
        return " ".join(sql[tokens[span[0]].start : tokens[span[1] - 1].end + 1].split())

    def spot(self, select: Select, span: Range | None) -> Spot | None:
        """The place of some tokens, if they are in the model's own file."""
        own = self.meaning.text
        if span is None or own is None or select.block.text is not own or span[0] >= span[1]:
            return None
        tokens = own.tokens
        return self.meaning.spot(tokens[span[0]].start, tokens[span[1] - 1].end + 1)


def _of_relations(
    one: _Side, two: _Side, old: Relation, new: Relation, within: str
) -> Iterator[Difference]:
    old, new = _seen_through(old), _seen_through(new)
    if isinstance(old, SetOperation) and isinstance(new, SetOperation):
        yield from _of_relations(one, two, old.left, new.left, within)
        yield from _of_relations(one, two, old.right, new.right, within)
    elif isinstance(old, Block) and isinstance(new, Block):
        yield from _of_blocks(one, two, one.canon.select(old), two.canon.select(new), within)


def _seen_through(relation: Relation) -> Relation:
    while True:
        if isinstance(relation, RenamedColumns):
            relation = relation.inner
        elif isinstance(relation, Table) and relation.view is not None:
            relation = relation.view
        else:
            return relation


def _of_blocks(
    one: _Side, two: _Side, old: Select, new: Select, within: str
) -> Iterator[Difference]:
    yield from _column_differences(one, two, old, new, within)
    if old.parts.distinct != new.parts.distinct:
        was, now = ("DISTINCT" if side.parts.distinct else "" for side in (old, new))
        yield Difference("distinct", within, was, now)
    yield from _of_entries(one, two, old, new, within)
    for key in _CONDITIONS:
        yield from _of_conditions(one, two, old, new, key, within)
    if old.grouped() != new.grouped():
        yield _clause(one, two, old, new, "group", within)
    for key in _OTHERS:
        texts = [side.text(s, s.parts.ranges.get(key)) for side, s in ((one, old), (two, new))]
        if texts[0] != texts[1]:
            yield _clause(one, two, old, new, key, within)


def _clause(one: _Side, two: _Side, old: Select, new: Select, key: str, within: str) -> Difference:
    spans = old.parts.ranges.get(key), new.parts.ranges.get(key)
    texts = one.text(old, spans[0]), two.text(new, spans[1])
    part = {"from_": "from", "windows": "window"}.get(key, key)
    return Difference(part, within, *texts, two.spot(new, spans[1]))


def _column_differences(
    one: _Side, two: _Side, old: Select, new: Select, within: str
) -> Iterator[Difference]:
    names = [
        {name.lower(): at for at, name in reversed([*enumerate(select.block.columns or ())])}
        for select in (old, new)
    ]
    before, after = names
    for name in dict.fromkeys((*before, *after)):
        spans = (
            old.written(before[name]) if name in before else None,
            new.written(after[name]) if name in after else None,
        )
        texts = one.text(old, spans[0]), two.text(new, spans[1])
        if name in before and name in after:
            if old.output(before[name])[0] == new.output(after[name])[0]:
                continue
        else:
            texts = (
                texts[0] or name if name in before else "",
                texts[1] or name if name in after else "",
            )
        shown = f"{within}.{name}" if within else name
        yield Difference("column", shown, *texts, two.spot(new, spans[1]))


def _of_conditions(
    one: _Side, two: _Side, old: Select, new: Select, key: str, within: str
) -> Iterator[Difference]:
    before, after = dict(old.conditions(key)), dict(new.conditions(key))
    for form, span in before.items():
        if form not in after:
            yield Difference(key, within, one.text(old, span), "")
    for form, span in after.items():
        if form not in before:
            yield Difference(key, within, "", two.text(new, span), two.spot(new, span))


def _of_entries(
    one: _Side, two: _Side, old: Select, new: Select, within: str
) -> Iterator[Difference]:
    """What differs in FROM; queries in it are compared clause by clause."""
    entries = old.block.entries, new.block.entries
    words = [
        [(item.joined, tuple(f for f, _ in select.on(item))) for item in select.parts.froms]
        for select in (old, new)
    ]
    if len(entries[0]) != len(entries[1]) or words[0] != words[1]:
        yield _clause(one, two, old, new, "from_", within)
        return
    for before, after in zip(*entries, strict=True):
        if _named(before.relation) != _named(after.relation):
            yield _clause(one, two, old, new, "from_", within)
            return
    for before, after in zip(*entries, strict=True):
        forms = [_form(side, entry.relation) for side, entry in ((one, before), (two, after))]
        if forms[0] is None or forms[0] != forms[1]:
            name = after.alias or before.alias
            yield from _of_relations(one, two, before.relation, after.relation, name)


def _form(side: _Side, relation: Relation) -> str | None:
    try:
        return side.canon.form(relation, everything(relation))[0]
    except Doubt:
        return None


def _named(relation: Relation) -> str:
    """The stored table that a relation is; nothing for a query."""
    while isinstance(relation, RenamedColumns):
        relation = relation.inner
    return relation.name.lower() if isinstance(relation, Table) and relation.view is None else ""
