"""Where Spark computes: here, on a cluster, on a server, or as spark-submit says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from infold.core.storages import STORAGE_SETTINGS, Storage, extensions

LOCAL = "local[*]"
"""Everything in one process, on all of its machine's cores."""

REMOTE = re.compile(
    r"sc://(?P<host>\[[^\]\s]+\]|[^\s:/;,@\[\]]+)(:(?P<port>\d{1,5}))?/?(?P<more>(?<=/);.*)?"
)
"""A server of Spark Connect, as Spark writes it: address, then parameters."""

EARLY, WHEN_NEEDED, OFF = "early", "when_needed", "off"
"""When a Spark of this machine starts that stays: before a command needs it, by one that needs it,
never."""

REMOTE_PORT = 15002
"""The port of a server of Spark Connect, if none is given."""

MASTER = re.compile(r"spark://[^\s,/]+:\d+(,[^\s,/]+:\d+)*|yarn|k8s://\S+|local(\[(\*|\d+)\])?")
"""A master: the address of a standalone cluster (several with standbys), or of others."""


@dataclass(frozen=True, slots=True)
class Engine:
    """
    The engine of a target.

    ``submitted``: infold is the application of a spark-submit, which chose the master, and computes
    with the Spark that it was given. ``master`` says nothing then.
    ``remote``: the address of a server of Spark Connect, which computes; with references to
    secrets, and no secret. ``master`` says nothing then either.
    ``shared_disk``: the folders of the project and its tables are at the same paths on the
    machines of the executors.
    """

    master: str = LOCAL
    shared_disk: bool = False
    executor_wait: int = 300
    """How long a run waits for a first executor, in seconds."""
    submitted: bool = False
    idle: int = 600
    """For how long an engine that a command leaves running waits for the next one, in seconds."""
    start: str = EARLY
    """When one that stays is started: ``early``, ``when_needed`` or ``off``."""
    remote: str = ""

    @property
    def name(self) -> str:
        """What a message calls it; without the parameters of an address, some of them secret."""
        return "what spark-submit gives" if self.submitted else self.server or self.master

    @property
    def server(self) -> str:
        """The address of a server of Spark Connect without its parameters; empty for none."""
        return self.remote.partition("/;")[0].rstrip("/")

    @property
    def is_cluster(self) -> bool:
        """Whether executors are, or may be, processes of their own, on machines of their own."""
        return self.submitted or bool(self.remote) or not self.master.startswith("local")

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        """Hosts and ports of a server, or of a standalone cluster's masters; else none."""
        if match := REMOTE.fullmatch(self.remote):
            return ((match["host"], int(match["port"] or REMOTE_PORT)),)
        if not self.master.startswith("spark://"):
            return ()
        parts = (one.rpartition(":") for one in self.master.removeprefix("spark://").split(","))
        return tuple((host, int(port)) for host, _, port in parts)


@dataclass(frozen=True, slots=True)
class WarmEngine:
    """A process that keeps Spark running between commands. Times are in seconds."""

    target: str
    process: int
    jvm: int
    """The number of Java's process."""
    since: int
    """When it began, in microseconds since 1970."""
    commands: int
    """How many commands it carried out."""
    busy: bool
    idle_seconds: int
    """For how long it has waited for a command."""
    ends_after_seconds: int
    """It ends once it has waited for so long."""
    memory_bytes: int
    """The resident memory of Java's process."""


# A table equals its definition only where the definition has one meaning. A time zone, a legacy
# switch or a file that may be left out changes that meaning silently, and two runs under two
# settings would mix both in one table. So the settings that change rows are fixed here. A project,
# an environment or a session that sets another value is refused by the setting's name. Settings
# that change only speed or memory are free.
#
# The names are those of Spark's SQLConf (4.1), Iceberg's SparkSQLProperties and Delta's
# DeltaSQLConf.

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

_ACCEPTED = {"spark.sql.extensions": extensions(*Storage)}
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

_OWN_SETTINGS = (
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
            right = (FIXED[name].lower(), _ACCEPTED.get(name, "").lower() or FIXED[name].lower())
            if name != key or value.strip().lower() not in right:
                yield key, value, FIXED[name]
        elif key.startswith(REFUSED) and not key.startswith(_OWN_SETTINGS):
            yield key, value, "as Spark has it"
