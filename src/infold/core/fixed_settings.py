"""
The settings of Spark that exactness depends on: what they are, and that nothing changes them.

A table equals its definition only where the definition has one meaning. A time zone, a legacy
switch or a file that may be left out changes that meaning silently, and two runs under two settings
would mix both in one table. So the settings that change rows are fixed here. A project, an
environment or a session that sets another value is refused by the setting's name. Settings that
change only speed or memory are free.

The names are those of Spark's SQLConf (4.1), Iceberg's SparkSQLProperties and Delta's DeltaSQLConf.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from infold.core.storages import STORAGE_SETTINGS, Storage, extensions

FIXED: Mapping[str, str] = {
    # what times and types mean
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.charAsVarchar": "false",
    "spark.sql.icu.caseMappings.enabled": "true",
    "spark.sql.chunkBase64String.enabled": "true",
    "spark.sql.readSideCharPadding": "true",
    # impossible values are an error, never a NULL or a guess
    "spark.sql.ansi.enabled": "true",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.files.ignoreCorruptFiles": "false",
    "spark.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # how the text of a query is read: as the analysis reads it
    "spark.sql.caseSensitive": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.ansi.relationPrecedence": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.variable.substitute": "false",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.orderByOrdinal": "true",
    "spark.sql.groupByAliases": "true",
    "spark.sql.lateralColumnAlias.enableImplicitResolution": "true",
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.timeTravelVersionKey": "versionAsOf",
    "spark.sql.timeTravelTimestampKey": "timestampAsOf",
    "spark.sql.function.concatBinaryAsString": "false",
    "spark.sql.function.eltOutputAsString": "false",
    "spark.sql.retainGroupColumns": "true",
    # how files are read and written
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.parquet.int96RebaseModeInRead": "EXCEPTION",
    "spark.sql.parquet.int96RebaseModeInWrite": "EXCEPTION",
    "spark.sql.parquet.datetimeRebaseModeInRead": "EXCEPTION",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "EXCEPTION",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.columnNameOfCorruptRecord": "_corrupt_record",
    "spark.sql.jsonGenerator.ignoreNullFields": "true",
    "spark.sql.sources.partitionOverwriteMode": "STATIC",
    # one attempt of a task writes
    "spark.speculation": "false",
    # what names mean, and that there is no Hive behind them
    "spark.sql.defaultCatalog": "infold",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.extensions": extensions(),
}
"""Setting -> the only value it may have."""

_RIGHT_TOO = {"spark.sql.extensions": extensions(*Storage)}
"""Setting -> another value that leaves every meaning as it is: a JVM for tables of all storages."""

REFUSED = (
    "spark.sql.legacy.",
    "spark.sql.ansi.",
    "spark.sql.parser.",
    "spark.sql.avro.",
    "spark.sql.json.",
    "spark.sql.orc.",
    "spark.sql.catalog.infold",
    *(prefix for one in STORAGE_SETTINGS.values() for prefix in one.refused),
)
"""Prefixes of settings that stay as Spark has them: no value is accepted."""

_OWN = (
    "spark.sql.legacy.parquet.nanosAsLong",
    *(prefix for one in STORAGE_SETTINGS.values() for prefix in one.own),
)
"""What infold sets itself: for the length of a commit, and to see times too fine to store."""


def changed_settings(settings: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Settings that may not be given: name, value, and the value that infold uses instead."""
    known = {name.lower(): name for name in FIXED}
    for key, value in settings.items():
        # Spark compares names by case; a name that differs in case alone means the same setting.
        name = known.get(key.lower())
        if name is not None:
            right = (FIXED[name].lower(), _RIGHT_TOO.get(name, "").lower() or FIXED[name].lower())
            if name != key or value.strip().lower() not in right:
                yield key, value, FIXED[name]
        elif key.startswith(REFUSED) and not key.startswith(_OWN):
            yield key, value, "as Spark has it"
