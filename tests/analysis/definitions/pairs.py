"""Pairs of queries, before and after a change, with what the change does to the rows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from infold.analysis.definitions.compare import redefinition
from infold.analysis.definitions.meanings import Meaning, Query
from infold.analysis.fingerprint import fingerprint, normal_text
from infold.analysis.names.relation import Table
from infold.analysis.names.resolve import resolve
from infold.analysis.sql.parse import parse
from infold.core.definition import Category, Redefinition
from infold.core.model import Materialization, Model
from infold.core.project import Node

HERE = Path(__file__).parent
COLUMNS = {"t": ("a", "b", "c", "s", "d", "xs", "ts"), "u": ("a", "b", "k", "s")}
VIEW = "SELECT a, b FROM t WHERE c > 1"


@dataclass(frozen=True)
class Pair:
    """One change: its category, what it is, and the query before and after."""

    category: Category
    name: str
    before: str
    after: str

    def __str__(self) -> str:
        return self.name


@cache
def pairs() -> tuple[Pair, ...]:
    """Those of all files."""
    found = []
    for path in sorted(HERE.glob("*.sql")):
        for block in re.split(r"\n{2,}(?=-- )", path.read_text(encoding="utf-8").strip()):
            head, _, text = block.partition("\n")
            category, _, name = head.removeprefix("-- ").partition(": ")
            before, _, after = text.partition("\n-- =>\n")
            found.append(Pair(Category(category), name, before, after))
    return tuple(found)


@cache
def tables() -> dict[str, Table]:
    """The stored tables ``t`` and ``u``, and the view ``v``."""
    known = {name: Table(name, columns) for name, columns in COLUMNS.items()}
    view = parse("models/v.sql", VIEW)
    return {**known, "v": Table("v", ("a", "b"), resolve(view.text, view.tree, known).relation)}


@lru_cache(maxsize=4096)
def meaning(sql: str) -> Meaning:
    """A query as that of a whole table, however it would be judged."""
    parsed = parse("models/m.sql", sql)
    resolved = resolve(parsed.text, parsed.tree, tables())
    assert not resolved.errors, "\n".join(map(str, resolved.errors))
    columns = resolved.relation.columns
    model = Model("m", Materialization.TABLE, parsed.text.sql)
    words = normal_text(parsed.text, resolved.references, {"v": (VIEW, VIEW)}).words_of(parsed.tree)
    print_ = fingerprint(model, words, columns, None)
    node = Node(model, (), resolved.references, print_, columns or ())
    query = Query(parsed.text, resolved.relation)
    return Meaning(node, None, (model.sql,), {"v": VIEW}, lambda: query)


def change(before: str, after: str) -> Redefinition | None:
    """The change of a table with another query; None if its words are the same."""
    return redefinition(meaning(before), meaning(after))


def category(before: str, after: str) -> Category:
    """What a change of a query does to the rows."""
    found = change(before, after)
    return Category.NONE if found is None else found.category
