"""
What a fold changes, component by component, and what that adds up to.

A *changed* frame has one row for each component: ``__old``, the keys of its stored sessions,
``__new``, its sessions as they are now (key and row), and ``__n``, the events that were looked at.
A session whose key is among the old ones is as it was. A key holds a hash of the row and one of
its state, so equal keys mean equal rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.interval import Granularity, Interval, Ranges
from infold.core.session_columns import FIRST, ID, LAST, STATE
from infold.core.trace import CellChange, CellState, signed
from infold.spark.content import JSON, cell_of, cell_start, content, micros, quoted, row_hash
from infold.spark.sessions.islands import END, EVENTS, START

OLD, NEW, KEY, ROW = "__old", "__new", "key", "row"

COUNTED = ("new", "extended", "merged", "split", "removed", "read")
"""What is counted of components: what became of their sessions, and the rows that were read."""


def key_of(rows: DataFrame, granularity: Granularity | None) -> Column:
    """What a row is known by: id and start for the commit; cell, last and hashes for the totals."""
    state = rows.schema[STATE].dataType
    fields = state.fields if isinstance(state, T.StructType) else []
    return F.struct(
        F.col(ID).alias("id"),
        F.col(FIRST).alias("first"),
        cell_start(F.col(FIRST), granularity).alias("cell"),
        micros(F.col(LAST)).alias("last"),
        row_hash(rows.schema).alias("hash"),
        F.xxhash64(*(part for entry in fields for part in _hashed(entry))).alias("state"),
    )


def _hashed(part: T.StructField) -> Iterable[Column]:
    value = F.expr(f"{STATE}.{quoted(part.name)}")
    yield value.isNull()
    # A hash leaves out what is NULL inside, and takes no maps.
    nested = isinstance(part.dataType, T.MapType | T.ArrayType | T.StructType)
    yield F.to_json(value, JSON) if nested else value


@dataclass(frozen=True)
class Totals:
    """
    Sums over changed components.

    ``cells`` holds rows, content and last instant by cell start and whether they were added or
    removed; ``hulls`` are the stretches of time in which events have to be read again.
    """

    cells: Mapping[tuple[int, bool], tuple[int, int, int]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    hulls: Ranges = Ranges()

    def __add__(self, other: Totals) -> Totals:
        cells = dict(self.cells)
        for at, (rows, sum_, last) in other.cells.items():
            known = cells.get(at, (0, 0, last))
            cells[at] = (known[0] + rows, signed(known[1] + sum_), max(known[2], last))
        return Totals(cells, self.counts + other.counts, self.hulls | other.hulls)

    def changes(
        self, before: Iterable[CellState], granularity: Granularity | None
    ) -> tuple[CellChange, ...]:
        """The table's touched cells, before and after."""
        known = {state.cell.start: state for state in before}
        found = []
        for start in sorted({start for start, _ in self.cells}):
            cell = cell_of(start, granularity)
            old = known.get(start, CellState(cell, 0, 0))
            added, plus, last = self.cells.get((start, True), (0, 0, None))
            removed, minus, _ = self.cells.get((start, False), (0, 0, None))
            lasts = [at for at in (old.last, last) if at is not None]
            found.append(
                CellChange(
                    cell=cell,
                    added=added,
                    removed=removed,
                    rows_before=old.rows,
                    rows_after=old.rows + added - removed,
                    content_before=old.content,
                    content_after=signed(old.content + plus - minus),
                    last=max(lasts, default=None),
                )
            )
        return tuple(found)

    def losing(self, granularity: Granularity | None) -> Ranges:
        """The cells from which rows are removed."""
        return Ranges.of(cell_of(at, granularity) for at, added in self.cells if not added)


def inserted(changed: DataFrame) -> DataFrame:
    """The rows to add."""
    fresh = F.filter(NEW, lambda new: ~F.array_contains(OLD, new["key"]))
    return changed.select(F.explode(fresh).alias("n")).select("n.row.*")


def deleted(changed: DataFrame) -> DataFrame:
    """Id and start of the rows to remove."""
    gone = changed.select(F.explode(_gone()).alias("o"))
    return gone.select(F.col("o.id").alias(ID), F.col("o.first").alias(FIRST))


def _keys() -> Column:
    return F.transform(NEW, lambda new: new["key"])


def _gone() -> Column:
    return F.array_except(OLD, _keys())


def totals(
    changed: DataFrame | None, hulls: DataFrame | None = None, others: Iterable[DataFrame] = ()
) -> Totals:
    """
    Add up in one action.

    ``hulls`` are components to be read again (their first and last instants), which are only
    counted, and ``others`` are counts of what else there is (see :func:`tallied`).
    """
    frames = [] if changed is None else [_cells(changed), _counts(changed)]
    if hulls is not None:
        frames.append(_stretches(hulls))
    frames += others
    cells: dict[tuple[int, bool], tuple[int, int, int]] = {}
    counts: Counter[str] = Counter()
    stretches = []
    for row in reduce(DataFrame.unionAll, frames).collect():
        if row["what"] == "cell":
            sum_ = content(row["hi"], row["lo"])
            cells[row["at"], row["added"]] = (row["n"], sum_, row["last"])
        elif row["what"] == "hull":
            stretches.append(Interval(row["at"], row["last"] + 1))
            counts["again"] += row["n"]
        elif row["n"]:
            counts[row["what"]] += row["n"]
    return Totals(cells, counts, Ranges.of(stretches))


def tallied(rows: DataFrame, what: Column) -> DataFrame:
    """How many rows there are, by what they are counted as."""
    found = rows.groupBy(what.alias("what")).agg(F.count(F.lit(1)).alias("n"))
    return found.select(*_line(F.col("what"), F.lit(0), False, F.col("n")))


def _line(
    what: str | Column,
    at: Column,
    added: bool | Column,
    n: Column,
    hi: Column | None = None,
    lo: Column | None = None,
    last: Column | None = None,
) -> list[Column]:
    zero = F.lit(0)
    values = {
        "what": what if isinstance(what, Column) else F.lit(what),
        "at": at.cast("bigint"),
        "added": added if isinstance(added, Column) else F.lit(added),
        "n": n.cast("bigint"),
        "hi": (zero if hi is None else hi).cast("bigint"),
        "lo": (zero if lo is None else lo).cast("bigint"),
        "last": (zero if last is None else last).cast("bigint"),
    }
    return [value.alias(name) for name, value in values.items()]


def _cells(changed: DataFrame) -> DataFrame:
    added = F.transform(
        F.filter(NEW, lambda new: ~F.array_contains(OLD, new["key"])),
        lambda new: F.struct(new["key"].alias("key"), F.lit(True).alias("added")),
    )
    removed = F.transform(
        _gone(), lambda old: F.struct(old.alias("key"), F.lit(False).alias("added"))
    )
    rows = changed.select(F.explode(F.concat(added, removed)).alias("c"))
    grouped = rows.groupBy(F.col("c.key.cell").alias("cell"), F.col("c.added").alias("added")).agg(
        F.count(F.lit(1)).alias("n"),
        F.sum(F.shiftright("c.key.hash", 32)).alias("hi"),
        F.sum(F.col("c.key.hash").bitwiseAND(F.lit(0xFFFFFFFF))).alias("lo"),
        F.max("c.key.last").alias("last"),
    )
    return grouped.select(
        *_line(
            "cell",
            F.col("cell"),
            F.col("added"),
            F.col("n"),
            F.col("hi"),
            F.col("lo"),
            F.col("last"),
        )
    )


def _counts(changed: DataFrame) -> DataFrame:
    """What became of the components' sessions, one line for each thing that is counted."""
    old, new = F.size(OLD), F.size(NEW)
    fresh = F.size(F.array_except(_keys(), F.col(OLD)))
    fewer = F.greatest(old - new, F.lit(0))
    more = F.greatest(new - old, F.lit(0))
    nothing = F.lit(0)
    values = {
        "new": F.when(old == 0, new).otherwise(nothing),
        "extended": F.when((old > 0) & (new > 0) & (old == new), fresh).otherwise(nothing),
        "merged": F.when(new > 0, fewer).otherwise(nothing),
        "split": F.when(old > 0, more).otherwise(nothing),
        "removed": F.when(new == 0, old).otherwise(nothing),
        "read": F.col(EVENTS),
    }
    sums = changed.agg(*(F.sum(values[name]).alias(name) for name in COUNTED))
    pairs = F.array(
        *(
            F.struct(F.lit(name).alias("what"), F.coalesce(name, F.lit(0)).alias("n"))
            for name in COUNTED
        )
    )
    lines = sums.select(F.explode(pairs).alias("l"))
    return lines.select(*_line(F.col("l.what"), F.lit(0), False, F.col("l.n")))


def _stretches(hulls: DataFrame) -> DataFrame:
    """The days in which events have to be read again, not one line for each component."""
    day = cell_start(F.timestamp_micros(START), Granularity.DAY)
    days = hulls.groupBy(day.alias("day")).agg(
        F.min(START).alias("lo"), F.max(END).alias("hi"), F.count(F.lit(1)).alias("n")
    )
    return days.select(*_line("hull", F.col("lo"), False, F.col("n"), last=F.col("hi")))
