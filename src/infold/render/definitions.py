"""Changed definitions as a part of a screen, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from infold.core.definition import Difference, Redefinition
from infold.messages.errors import Spot
from infold.render import formatting

_CLAUSES = {
    "from": "FROM",
    "where": "WHERE",
    "group": "GROUP BY",
    "having": "HAVING",
    "qualify": "QUALIFY",
    "window": "WINDOW",
    "order": "ORDER BY",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
}
_SAME = {
    "layout": "comments and layout",
    "wording": "the same in other words",
    "order of columns": "order of columns",
    "query": "another query",
}
_WIDTH = 56
"""How many characters of a difference are shown."""


def definitions_part(changes: Sequence[Redefinition], models: int) -> str:
    """
    The changed definitions of a project with ``models`` models; nothing without a change.

    Each model has its category and its differences with their places. The last line lists losses.
    """
    if not changes:
        return ""
    verb = "differ" if len(changes) > 1 else "differs"
    head = (
        f"Definitions: {len(changes):,} of {formatting.count(models, 'model')} {verb} "
        "from what was applied"
    )
    rows = [row for change in changes for row in _rows(change)]
    lost = [f"{change.model}: {', '.join(change.losses)}" for change in changes if change.losses]
    lines = [head, *formatting.columns(rows), f"  Lost  {'; '.join(lost) or 'nothing'}"]
    return "\n".join(lines)


def _rows(change: Redefinition) -> Iterator[list[str]]:
    model, category = change.model, str(change.category)
    for difference in change.differences or (None,):
        text = "" if difference is None else formatting.clip(_in_words(difference), _WIDTH)
        yield [model, category, text, _place(difference.at if difference else None)]
        model = category = ""


def _place(at: Spot | None) -> str:
    return "" if at is None else str(at)


def _in_words(difference: Difference) -> str:
    """One difference: ``+ column``, ``- condition``, ``before → after``."""
    part, name = difference.part, difference.name
    if part in _SAME:
        return _SAME[part]
    before, after = difference.before, difference.after
    if part in ("column", "source column"):
        source = part.removesuffix("column")
        return f"{source}{_sign(before, after)}{name}  {_change(before, after)}"
    word = _CLAUSES.get(part, part)
    within = f"{name}: " if name else ""
    return f"{within}{word} {_sign(before, after)}{_change(before, after)}"


def _sign(before: str, after: str) -> str:
    return "+ " if not before else "- " if not after else ""


def _change(before: str, after: str) -> str:
    return f"{before} → {after}" if before and after else before or after


def definitions_json(changes: Iterable[Redefinition]) -> list[dict[str, object]]:
    """The changed definitions for programs."""
    return [
        {
            "model": change.model,
            "category": str(change.category),
            "differences": [_difference(one) for one in change.differences],
            "how": str(change.how),
            "columns_kept": sorted(change.columns_kept),
            "losses": list(change.losses),
        }
        for change in changes
    ]


def _difference(difference: Difference) -> dict[str, object]:
    at = difference.at
    return {
        "part": difference.part,
        "name": difference.name,
        "before": difference.before,
        "after": difference.after,
        "file": at.file if at else None,
        "line": at.line if at else None,
    }
