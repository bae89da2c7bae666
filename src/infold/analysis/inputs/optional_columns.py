"""
Optional columns that queries do not name.

Such a column is not read: a bad value in it sets no row aside, and adding it to a source changes no
definition. Where the words of a query do not decide, it names all of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from infold.analysis.names.subject import Draft
from infold.core.model import Source


def unnamed_columns(source: Source, drafts: Iterable[Draft]) -> tuple[str, ...]:
    """The optional columns of a source that none of the models names."""
    optional = [column.name for column in source.columns if column.optional]
    if not optional:
        return ()
    named: set[str] = set()
    beside: list[str] = []
    for draft in drafts:
        if _takes_all(draft):
            return ()
        named.update(name.name.lower() for name in draft.parsed.tree.find_all(exp.Identifier))
        beside += draft.model.sessions.visible_columns if draft.model.sessions else ()
    text = " ".join(beside).lower()
    return tuple(n for n in optional if n.lower() not in named and n.lower() not in text)


def _takes_all(draft: Draft) -> bool:
    """Whether a query reads all columns that there are."""
    tree = draft.parsed.tree
    if any(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star)):
        return True
    # PIVOT groups by all that is left, NATURAL joins by all that is alike.
    return bool(tree.find(exp.Pivot)) or any(join.method for join in tree.find_all(exp.Join))
