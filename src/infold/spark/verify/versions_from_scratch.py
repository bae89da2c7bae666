"""
Versions of keys from all rows of a query, by aggregation and arrays.

Nothing here is shared with the fold or with what builds a table, which use windows: a mistake of
theirs shows as a difference.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from infold.core.queries import VALID_FROM, VALID_TO, VersionedQuery
from infold.spark.content import column


def versions(rows: DataFrame, query: VersionedQuery) -> DataFrame:
    """The versions of all keys of a query's rows."""
    names = {f"_{at}": name for at, name in enumerate(rows.columns)}
    places = {name: place for place, name in names.items()}
    types = dict(rows.dtypes)
    # Maps cannot be ordered, and are compared as text.
    ranks = [
        (F.to_json(column(name)) if "map<" in types[name] else column(name)).alias(place)
        for place, name in names.items()
    ]
    values = F.struct(*(column(name).alias(place) for place, name in names.items()))
    keys = [column(name) for name in query.keys]
    packed = rows.select(
        F.struct(*(key.alias(f"_{at}") for at, key in enumerate(keys))).alias("key"),
        column(query.updated_at).alias("at"),
        F.struct(*ranks).alias("rank"),
        values.alias("row"),
    ).where("at IS NOT NULL")
    single = packed.groupBy("key", "at").agg(F.max_by("row", "rank").alias("row"))
    listed = single.groupBy("key").agg(
        F.array_sort(F.collect_list(F.struct("at", "row")), _by_time).alias("seen")
    )
    if query.snapshots:
        instants = F.array_sort(F.collect_set("at")).alias("instants")
        # At most an instant for each copy that was delivered.
        listed = listed.crossJoin(F.broadcast(packed.agg(instants)))
    kept = listed.select(F.transform("seen", _with_end(query)).alias("all"))
    kept = kept.select("all", _begun(query, places, types).alias("begun"))
    one = kept.select("all", "begun", F.posexplode("begun").alias("place", "version"))
    after = F.get(F.col("begun"), F.col("place") + 1)["at"]
    # A version lasts as long as the last row that says so.
    those = F.filter("all", lambda seen: after.isNull() | (seen["at"] < after))
    return one.select(
        *(F.col("version")["row"][place].alias(name) for place, name in names.items()),
        F.col("version")["at"].alias(VALID_FROM),
        F.element_at(those, -1)["end"].alias(VALID_TO),
    )


def _by_time(one: Column, other: Column) -> Column:
    """The order of two versions of a key; no two have one time."""
    return F.when(one["at"] < other["at"], -1).otherwise(1)


def _with_end(query: VersionedQuery) -> Callable[[Column, Column], Column]:
    """A row of a key with the instant at which what it says may be another."""

    def ended(seen: Column, at: Column) -> Column:
        after = F.get(F.col("seen"), at + 1)["at"]
        if query.snapshots:
            later = F.filter("instants", lambda instant: instant > seen["at"])
            after = F.get(later, F.lit(0))
        return F.struct(seen["at"].alias("at"), seen["row"].alias("row"), after.alias("end"))

    return ended


def _begun(query: VersionedQuery, places: dict[str, str], types: dict[str, str]) -> Column:
    """Of the ordered rows of a key, those that begin a version."""
    every = F.col("all")
    if query.compared is None:
        return every
    alike = [(places[name], "map<" in types[name]) for name in query.compared]

    def begins(seen: Column, at: Column) -> Column:
        before = F.get(every, at - 1)
        found = (at == 0) | ~before["end"].eqNullSafe(seen["at"])
        for place, text in alike:
            one, other = before["row"][place], seen["row"][place]
            if text:
                one, other = F.to_json(one), F.to_json(other)
            found = found | ~one.eqNullSafe(other)
        return found

    return F.filter(every, begins)
