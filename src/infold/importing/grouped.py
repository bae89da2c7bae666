"""What a query groups by, which tells a merge by key that follows from its inputs."""

from __future__ import annotations

from sqlglot import exp


def grouped_by(tree: exp.Query) -> set[str]:
    """The output columns that the outermost SELECT groups by, in lower case."""
    group = tree.args.get("group") if isinstance(tree, exp.Select) else None
    if not isinstance(tree, exp.Select) or not isinstance(group, exp.Group):
        return set()
    found = set()
    for key in group.expressions:
        if isinstance(key, exp.Literal) and key.is_int:
            place = int(key.name) - 1
            if place < len(tree.selects):
                found.add(tree.selects[place].alias_or_name.lower())
        else:
            named = [s for s in tree.selects if s.unalias() == key]
            found.add((named[0] if named else key).alias_or_name.lower())
    return found
