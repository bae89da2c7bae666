"""
Columns of a source that are declared with a wider type, so that stored rows keep their values.

A file's value that fits the earlier type is the same number in the wider one, whatever the file
has. So rows stay the same if the widened columns are passed on as they are, and nothing else is
made of them: no condition, no join, no other output. Text that is read as ``float`` is rounded to
it, so that type is widened for typed files alone.

What the texts do not tell is left to the planner: a value that did not fit was set aside, and may
fit now.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from infold.analysis.definitions.canonical import Canon
from infold.analysis.definitions.clauses import Doubt
from infold.analysis.definitions.meanings import Meaning, given
from infold.analysis.names.relation import Block, Origin, Table
from infold.core.definition import Difference
from infold.core.formats import FORMATS
from infold.core.model import Kind, Source
from infold.core.type_changes import is_exact_number
from infold.core.widened_types import Retyping, type_of_text, widenings


def retyped_columns(
    before: Meaning, after: Meaning, content: Sequence[Difference]
) -> tuple[Retyping, ...]:
    """
    What gets a wider type in the stored table, if nothing else differs.

    ``content`` are the differences of keys that may change rows. Both queries are proven to be the
    same.
    """
    if {before.node.model.kind, after.node.model.kind} != {Kind.EVENTS}:
        return ()
    if before.source is None or after.source is None:
        return ()
    if not content or any(one.part != "source column" for one in content):
        return ()
    widened = _widened_columns(before.source, after.source)
    if not widened:
        return ()
    try:
        outputs = _passed_on(after, widened.keys())
    except (Doubt, RecursionError):
        return ()
    return tuple(
        Retyping((output, *one.path[1:]), one.before, one.after)
        for output, column in outputs
        for one in widened[column]
    )


def _widened_columns(before: Source, after: Source) -> Mapping[str, list[Retyping]]:
    """What is wider in each column, by lower-case name; nothing if anything else differs."""
    old, new = ({one.name: one for one in side.columns} for side in (before, after))
    found: dict[str, list[Retyping]] = {}
    if old.keys() != new.keys():
        return {}
    for name, column in new.items():
        if column.default != old[name].default:
            return {}
        one, two = type_of_text(old[name].type), type_of_text(column.type)
        for part in widenings(one, two, (name,)):
            if part is None or part.is_in_a_key:
                return {}
            exact = is_exact_number(part.before) or FORMATS[after.format].has_types
            if not exact:
                return {}
            found.setdefault(name.lower(), []).append(part)
    return found


def _passed_on(meaning: Meaning, widened: Collection[str]) -> list[tuple[str, str]]:
    """
    The outputs that are widened columns as they are, and these columns.

    Raises Doubt where anything else is made of one.
    """
    block = meaning.relation
    if not isinstance(block, Block) or block.outputs is None or meaning.source is None:
        raise Doubt
    source = meaning.source.name.lower()
    found, others = [], set[int]()
    for at, output in enumerate(block.outputs):
        origin = output.origin or block.origins.get(output.node)
        column = _column_of(origin, source)
        if column in widened:
            found.append((meaning.node.columns[at], column))
        else:
            others.add(at)
    canon = Canon(meaning.prints, given(meaning.node.model), meaning.structs)
    needs = canon.form(block, frozenset(others), whole=True)[1]
    if any(
        isinstance(of, Table) and of.name.lower() == source and at in widened for of, at in needs
    ):
        raise Doubt
    return found


def _column_of(origin: Origin | None, source: str) -> str:
    """The column of the source that an output is, in lower case; empty if it is anything else."""
    if origin is None or origin.fields:
        return ""
    relation = origin.entry.relation
    if not isinstance(relation, Table) or relation.view is not None:
        return ""
    return origin.column.lower() if relation.name.lower() == source else ""
