"""
Two tables of one model compared: columns, cells by their contents, and the rows of what differs.

Cells with equal hashes have equal rows, so only the others are read, from the first to the last of
them. Rows are compared as a multiset; those with one key on both sides are one row that changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from infold.analysis.names.subject import time_column
from infold.core.arrow_values import rows_of
from infold.core.interval import MAX, MIN, Interval, Ranges, datetime_of
from infold.core.model import table_name
from infold.core.ports import Lake, Ledger
from infold.core.project import Node
from infold.core.queries import quoted
from infold.core.report import Row, RowDiff, TableDiff, key_values
from infold.core.type_changes import shown
from infold.inspecting.show import row_key

SAMPLE = 5
"""How many rows are shown of what was added, removed and changed, all together."""


def table_diff(ledger: Ledger, lake: Lake, node: Node, before: str, after: str) -> TableDiff:
    """The table ``after`` of a model against the table ``before``, both by their keys."""
    columns = [_columns(lake, key) for key in (before, after)]
    differing_columns = _other_columns(*columns)
    contents = [{c.cell: (c.rows, c.content) for c in ledger.cells(key)} for key in (before, after)]
    old, new = contents
    cells = {cell for cell in old.keys() | new.keys() if old.get(cell) != new.get(cell)}
    rows = (sum(n for n, _ in old.values()), sum(n for n, _ in new.values()))
    if not cells:
        return TableDiff(node.name, rows, differing_columns)
    common = [name for name in columns[0] if name in columns[1]]
    where = _where(node, Ranges.of(cells).span, columns[0])
    rows_of_sides = [
        rows_of(lake.rows(table_name(key), columns=common, where=where)) for key in (before, after)
    ]
    key = row_key(node) or tuple(name for name in (time_column(node),) if name)
    added, removed, changed = row_diffs(rows_of_sides[0], rows_of_sides[1], key)
    return TableDiff(
        node.name,
        rows,
        differing_columns,
        Ranges.of(cells),
        len(added),
        len(removed),
        len(changed),
        _sample(changed, added, removed),
    )


def row_diffs(
    before: Sequence[Row], after: Sequence[Row], key: Sequence[str]
) -> tuple[list[RowDiff], list[RowDiff], list[RowDiff]]:
    """
    The rows that were added, removed, and changed; in this order.

    Where a value of the key has several such rows on one side, none of these is one that changed.
    """
    gone = _by_key(_left_over(before, after), key)
    new = _by_key(_left_over(after, before), key)
    pairs = [at for at in gone if key and len(gone[at]) == 1 and len(new.get(at, ())) == 1]
    changed = [RowDiff(key_values(gone[at][0], key), gone[at][0], new[at][0]) for at in pairs]
    paired = set(pairs)
    new_rows = [row for at in new if at not in paired for row in new[at]]
    gone_rows = [row for at in gone if at not in paired for row in gone[at]]
    added = [RowDiff(key_values(row, key), None, row) for row in new_rows]
    removed = [RowDiff(key_values(row, key), row, None) for row in gone_rows]
    return added, removed, changed


def _left_over(rows: Sequence[Row], others: Sequence[Row]) -> list[Row]:
    """The rows that others do not have, as many times as they do not have them."""
    counts = Counter(map(_text, others))
    surplus = []
    for row in rows:
        text = _text(row)
        if counts[text]:
            counts[text] -= 1
        else:
            surplus.append(row)
    return surplus


def _by_key(rows: Iterable[Row], key: Sequence[str]) -> dict[str, list[Row]]:
    """Rows by their values of a key."""
    by_key: dict[str, list[Row]] = {}
    for row in rows:
        by_key.setdefault(_text(key_values(row, key)), []).append(row)
    return by_key


def _text(row: Row) -> str:
    return repr(list(row.items()))


def _sample(*kinds: Sequence[RowDiff]) -> tuple[RowDiff, ...]:
    """Some rows of each kind in turn."""
    diffs: list[RowDiff] = []
    for number in range(SAMPLE):
        diffs += [some[number] for some in kinds if number < len(some)]
    return tuple(diffs[:SAMPLE])


def _columns(lake: Lake, key: str) -> Mapping[str, str]:
    """The columns of a table, with types as Spark SQL writes them."""
    return {name: shown(type_) for name, type_ in lake.columns(table_name(key)).items()}


def _other_columns(
    before: Mapping[str, str], after: Mapping[str, str]
) -> tuple[tuple[str, str, str], ...]:
    names = dict.fromkeys((*before, *after))
    pairs = ((name, before.get(name, ""), after.get(name, "")) for name in names)
    return tuple((name, old, new) for name, old, new in pairs if old != new)


def _where(node: Node, span: Interval | None, columns: Mapping[str, str]) -> str | None:
    """The rows of a stretch of cells; all of a table of one cell. ``columns`` have their types."""
    name = time_column(node)
    if name is None or name not in columns or span is None:
        return None
    if span.start == MIN or span.end == MAX:
        return None
    times = (datetime_of(at).replace(tzinfo=None) for at in (span.start, span.end))
    by_day = columns[name].startswith("date")  # of a date, cells are whole days
    first, last = ((at.date() if by_day else at).isoformat() for at in times)
    return f"{quoted(name)} >= '{first}' AND {quoted(name)} < '{last}'"
