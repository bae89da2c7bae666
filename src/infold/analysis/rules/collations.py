"""
No text by a collation, but in a comparison.

Texts that count as equal may differ there. So which of them a group, a key or a greatest value
shows would follow from the order in which Spark met them; and a stored table has the text without
its collation. A comparison is true or false of two texts, whatever is beside them.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from infold.analysis.names.subject import Subject
from infold.messages import refusals
from infold.messages.errors import InfoldError

_BINARY = "UTF8_BINARY"
"""The collation of text without one: equal texts are the same."""


def check(subject: Subject) -> Iterator[InfoldError]:
    """COLLATE and `collate` outside of comparisons."""
    for node in subject.draft.parsed.tree.find_all(exp.Collate):
        name = node.expression.name
        if name.upper() != _BINARY and not _compared(node):
            yield refusals.collation(subject.text.spot_of(node), name=name)


def _compared(node: exp.Expr) -> bool:
    """Whether all that a query makes of a text is whether a comparison with it is true."""
    parent = node.parent
    while parent is not None and not isinstance(parent, exp.Query):
        if isinstance(parent, exp.Predicate):
            return True
        parent = parent.parent
    return False
