"""
The parts of the state of a row, and how they follow from the rows that come and go: as SQL.

- A **count** or **sum** after a change is the stored one, plus that of the rows that came, minus
  that of the rows that went. Whole numbers and decimals add exactly in any order.
- A **least value** is the lesser of the stored one and that of the rows that came, unless a row
  with the stored one went. Then it is that of the rows that came if this is no greater, and else it
  is *in doubt*: the rows of the key have to be read. The greatest value is the mirror image.

A sum with too many digits for its type is NULL: what is computed from it is in doubt, so that the
query itself decides whether that is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from infold.core.queries import Output
from infold.core.quoting import quoted
from infold.core.session_columns import STATE

SIGN = "__sign"
"""Of a changed row: 1 if it came, -1 if it went."""
ROWS = "_n"
"""The part that counts the rows of a key."""


class Merge(StrEnum):
    """How a part follows from the stored one and from changed rows."""

    COUNT = "count"
    SUM = "sum"
    LEAST = "min"
    GREATEST = "max"
    LEAST_BY = "min_by"
    GREATEST_BY = "max_by"


@dataclass(frozen=True, slots=True)
class Part:
    """
    One part of the state of a row.

    ``argument`` is SQL over a row of the input, NULL where the row takes no part; None for a count
    of rows. ``type`` is that of the part. ``of`` names another part: for a sum how many values it
    has, for a value that is chosen the least or greatest one that it is chosen by.
    """

    name: str
    merge: Merge
    argument: str | None
    type: str
    of: str = ""
    by: str | None = None
    """What a value is chosen by, as ``argument``."""
    shown: str | None = None
    """The column of the table that is its value."""

    @property
    def sql(self) -> str:
        """The aggregate over all rows of a key."""
        if self.merge is Merge.COUNT:
            return f"count({self.argument or 1})"
        if self.merge is Merge.SUM:
            return f"cast(try_sum({self.argument}) AS {self.type})"
        if self.by is not None:
            return f"{self.merge}({self.argument}, {self.by})"
        return f"{self.merge}({self.argument})"


@dataclass(frozen=True, slots=True)
class Value:
    """An aggregate's value, as SQL over parts, and when it is in doubt besides."""

    sql: str
    doubt: str = "false"


@dataclass(frozen=True)
class States:
    """The states of a model's rows: their parts, and what is computed from them."""

    parts: tuple[Part, ...]
    values: tuple[tuple[str, Value], ...]
    """The name of each aggregate, and its value."""
    outputs: tuple[Output, ...]
    """The columns of the table; that of a key has no SQL."""
    having: str | None
    items_end: int
    mark: str

    @property
    def stored(self) -> tuple[Part, ...]:
        """The parts that no column shows."""
        return tuple(part for part in self.parts if part.shown is None)

    @property
    def struct(self) -> str:
        """SQL for ``_state``, of columns that have the parts."""
        mark = f"'{self.mark}', cast(NULL AS boolean)"
        fields = [f"'{one.name}', cast({one.name} AS {one.type})" for one in self.stored]
        return f"named_struct({', '.join([mark, *fields])})"

    def restored(self, part: Part) -> str:
        """SQL for a part, over a row of the table."""
        where = quoted(part.shown) if part.shown else f"{STATE}.{quoted(part.name)}"
        return f"cast({where} AS {part.type})"


def changed_parts(parts: Sequence[Part]) -> dict[str, str]:
    """
    Aggregates over changed rows, which have a ``SIGN``, by the names of their columns.

    ``d_`` is what to add to a count or sum (NULL: too many digits), ``a_`` the end of the rows that
    came and ``r_`` that of the rows that went.
    """
    found = {}
    for part in parts:
        name, argument = part.name, part.argument
        if part.merge is Merge.COUNT:
            one = SIGN if argument is None else f"CASE WHEN {argument} IS NOT NULL THEN {SIGN} END"
            found[f"d_{name}"] = f"cast(coalesce(sum({one}), 0) AS bigint)"
        elif part.merge is Merge.SUM:
            signed = f"coalesce(CASE WHEN {SIGN} < 0 THEN -{argument} ELSE {argument} END, 0)"
            found[f"d_{name}"] = f"try_cast(try_sum({signed}) AS {part.type})"
        else:
            by = f", {part.by}" if part.by is not None else ""
            end = f"{part.merge}({argument}{by}) FILTER (WHERE {SIGN}"
            found[f"a_{name}"] = f"{end} > 0)"
            if part.by is None:
                found[f"r_{name}"] = f"{end} < 0)"
    return found


def merged_parts(parts: Sequence[Part]) -> dict[str, str]:
    """
    The parts after a change, by name: SQL over the columns of :func:`changed_parts` and ``s_``, the
    stored ones.
    """
    by_name = {part.name: part for part in parts}
    return {part.name: _merged(part, by_name.get(part.of)) for part in parts}


def _merged(part: Part, of: Part | None) -> str:
    stored, name = f"s_{part.name}", part.name
    if part.merge is Merge.COUNT:
        return f"coalesce({stored}, 0L) + d_{name}"
    if part.merge is Merge.SUM:
        assert of is not None, "a sum has the count of its values"
        before = f"CASE WHEN s_{of.name} > 0 THEN {stored} ELSE cast(0 AS {part.type}) END"
        total = f"try_cast(try_add({before}, d_{name}) AS {part.type})"
        return f"CASE WHEN {_merged(of, None)} > 0 THEN {total} END"
    end = part if of is None else of
    return f"CASE WHEN coalesce({_takes_over(end)}, false) THEN a_{name} ELSE {stored} END"


def _takes_over(end: Part) -> str:
    """Whether the end of the rows that came takes the place of the stored one."""
    came, stored = f"a_{end.name}", f"s_{end.name}"
    sign = "<=" if end.merge is Merge.LEAST else ">="
    return f"({came} IS NOT NULL AND ({stored} IS NULL OR {came} {sign} {stored}))"


def doubts(states: States) -> list[str]:
    """When the parts do not tell a row: SQL over all of these columns and the merged parts."""
    found = []
    for part in states.parts:
        name = part.name
        if part.merge is Merge.COUNT:
            found += [f"{name} < 0", f"{name} > {ROWS}"]  # the table was tampered with
        elif part.merge is not Merge.SUM and part.by is None:
            inside = "<" if part.merge is Merge.LEAST else ">"
            gone = f"r_{name} IS NOT NULL AND NOT coalesce(s_{name} {inside} r_{name}, false)"
            again = f"a_{name} {inside}= s_{name}"
            found.append(f"{ROWS} > 0 AND {gone} AND NOT coalesce({again}, false)")
    return [*found, *(value.doubt for _, value in states.values if value.doubt != "false")]
