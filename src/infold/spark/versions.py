"""
Rows of a query → versions of keys: what an ``scd_type_2`` table has.

Rows of one key at one instant are several claims about one version. The one with the greatest
values counts, by the columns in their order, NULL before all others: so the choice follows from
what the rows say, and rows that tie in it are alike.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.files import IngestedFile, written_at
from infold.core.queries import VALID_FROM, VALID_TO, VersionedQuery
from infold.spark.content import column, has_alike_values, row_hash
from infold.spark.frame_schema import ANY, FrameColumn, FrameSchema, returns

VERSIONS = FrameSchema(
    "a version of a key",
    (
        FrameColumn(VALID_FROM, ANY, "the instant of the version, included"),
        FrameColumn(VALID_TO, ANY, "that of the next one, excluded; NULL if there is none"),
    ),
    "the columns of the query",
)

_PLACE, _VALUES, _END, _BEFORE_END, _LAST_END = "__place", "__values", "__end", "__before", "__last"
_INSTANT, _FOLLOWING = "__instant", "__following"


INSTANTS = FrameSchema(
    "a snapshot without rows", (FrameColumn(_INSTANT, ANY, "its instant, as rows have theirs"),)
)


@returns(INSTANTS)
def instants_without_rows(
    spark: SparkSession, query: VersionedQuery, files: Iterable[IngestedFile]
) -> DataFrame | None:
    """The instants of snapshots that are files without rows; None where there are no such files."""
    snapshot_files = query.snapshot_files
    times = sorted({written_at(file.fingerprint) for file in files})
    if snapshot_files is None or not times:
        return None
    written = spark.createDataFrame(pa.table({_INSTANT: pa.array(times, pa.int64())}))
    named = written.select(F.timestamp_micros(_INSTANT).alias(snapshot_files.column))
    return named.select(F.expr(snapshot_files.time).alias(_INSTANT))


@returns(VERSIONS)
def versions_of(
    rows: DataFrame, query: VersionedQuery, without_rows: DataFrame | None = None
) -> DataFrame:
    """
    The versions of the keys that some rows of the query have, if these are all of their rows.

    Where a key ends because others go on, these have to be all rows of the query. There it ends at
    the instants of snapshots ``without_rows`` (``INSTANTS``), too.
    """
    keys, time = [column(name) for name in query.keys], column(query.updated_at)
    order = [compared(field).desc_nulls_last() for field in rows.schema.fields]
    order += [row_hash(rows.schema)] if has_alike_values(rows.schema) else []
    at_once = Window.partitionBy(*keys, time).orderBy(*order)
    dated = rows.where(time.isNotNull())
    versions = dated.withColumn(_PLACE, F.row_number().over(at_once)).where(F.col(_PLACE) == 1)
    in_turn = Window.partitionBy(*keys).orderBy(time)
    after = F.lead(time).over(in_turn)
    if query.snapshots:
        # A key ends at the next instant of any key, unless that is its own next one.
        instants = dated.select(time.alias(_INSTANT))
        if without_rows is not None:
            instants = instants.union(without_rows)
        distinct_instants = instants.distinct()
        next_one = F.lead(_INSTANT).over(Window.orderBy(_INSTANT))
        following = distinct_instants.withColumn(_FOLLOWING, next_one)
        # At most an instant for each copy that was delivered.
        versions = versions.join(F.broadcast(following), time == F.col(_INSTANT), "left")
        after = F.coalesce(F.col(_FOLLOWING), after)
    whole_key = in_turn.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    versions = versions.withColumn(_END, after)
    versions = versions.withColumns(
        {_BEFORE_END: F.lag(_END).over(in_turn), _LAST_END: F.last(_END).over(whole_key)}
    )
    if query.compared is not None:
        fields = {field.name: field for field in rows.schema.fields}
        values = F.struct(F.lit(0), *(compared(fields[name]) for name in query.compared))
        versions = versions.withColumn(_VALUES, F.lag(values).over(in_turn))
        goes_on = F.col(_VALUES).eqNullSafe(values) & F.col(_BEFORE_END).eqNullSafe(time)
        versions = versions.where(~goes_on)
    last = F.lead(time).over(in_turn).isNull()
    until = F.when(last, F.col(_LAST_END)).otherwise(F.lead(_BEFORE_END).over(in_turn))
    versions = versions.withColumns({VALID_FROM: time, VALID_TO: until})
    return versions.select(*map(column, (*rows.columns, VALID_FROM, VALID_TO)))


def compared(field: T.StructField) -> Column:
    """A column as values that Spark can order; maps, which it cannot, as text."""
    own = column(field.name)
    return F.to_json(own) if "map<" in field.dataType.simpleString() else own
