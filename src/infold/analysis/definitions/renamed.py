"""
Columns that only got another name, so that a stored table gets it too and keeps its rows.

A model says which: ``renamed_from``. It is proven as everything else is: both queries have equal
canonical forms once the new columns are called what they were called. The hash of a row is made of
the values of its columns in their order, so the contents of cells are the same under other names.
"""

from __future__ import annotations

from infold.analysis.definitions.canonical import Canon
from infold.analysis.definitions.clauses import Doubt
from infold.analysis.definitions.meanings import Meaning, given
from infold.analysis.definitions.session_inputs import input_form
from infold.core.model import Kind


def renamed_columns(before: Meaning, after: Meaning) -> tuple[tuple[str, str], ...]:
    """
    The stored columns that have other names in the new definition, with these; if nothing else
    differs in the two queries.

    Both definitions are equal in everything but the query. Nothing is proven where an author's word
    replaces a proof, or where the columns are in another order.
    """
    pairs = {new.lower(): old.lower() for new, old in after.node.model.renamed_from}
    old, new = ([name.lower() for name in one.node.columns] for one in (before, after))
    pairs = {
        name: was
        for name, was in pairs.items()
        if name in new and name not in old and was in old and was not in new
    }
    if not pairs or [pairs.get(name, name) for name in new] != old:
        return ()
    if len(set(old)) < len(old) or not _equal_queries(before, after, pairs):
        return ()
    stored = {name.lower(): name for name in before.node.columns}
    return tuple(
        (stored[pairs[name.lower()]], name) for name in after.node.columns if name.lower() in pairs
    )


def _equal_queries(before: Meaning, after: Meaning, pairs: dict[str, str]) -> bool:
    vouched = (
        m.node.overrides_used or m.node.bounds_declared or m.node.downgraded
        for m in (before, after)
    )
    if any(vouched) or before.relation is None or after.relation is None:
        return False
    letters = before.structs or after.structs
    one, two = (
        Canon(meaning.prints, given(meaning.node.model), letters, meaning.renamed)
        for meaning in (before, after)
    )
    try:
        old, new = one.columns(before.relation), two.columns(after.relation)
        if old != {pairs.get(name, name): form for name, form in new.items()}:
            return False
        if one.rows(before.relation, old) != two.rows(after.relation, new, pairs):
            return False
        return after.node.model.kind is not Kind.SESSIONS or _equal_events(before, after, one, two)
    except (Doubt, RecursionError):
        return False


def _equal_events(before: Meaning, after: Meaning, one: Canon, two: Canon) -> bool:
    """Whether two sessions models read the same events, in the same order."""
    queries = before.node.query, after.node.query
    unique = all(query is not None and query.unique for query in queries)
    old, new = input_form(before, one, unique=unique), input_form(after, two, unique=unique)
    return old == new
