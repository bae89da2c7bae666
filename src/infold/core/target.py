"""Targets: where a project's tables and its ledger live, and how changes get there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from infold.core.interval import DAY
from infold.core.model import OnLoss
from infold.core.object_store import Stores, is_url
from infold.core.storages import (
    DEFAULT_STORAGE,
    STORAGE_SETTINGS,
    Catalog,
    CatalogType,
    Storage,
    extensions,
)

if TYPE_CHECKING:
    from infold.core.hooks import Hook, Lineage


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


LONGEST_SCHEMA = 63
"""How long a name can be in PostgreSQL."""


class Apply(StrEnum):
    """How a changed definition comes to be used in a target."""

    AUTO = "auto"
    """The next run takes it from the files."""
    MANUAL = "manual"
    """`infold apply` does so; until then runs go on with the earlier one."""


class Publish(StrEnum):
    """When readers see what a run writes."""

    EACH = "each"
    """Each step's rows as soon as it is done."""
    TOGETHER = "together"
    """All rows of a run at one instant, once it has ended without a failure."""


class HideTechnical(StrEnum):
    """What readers have who are to see no technical columns."""

    VIEWS = "views"
    """A view of each table, in a namespace of its own."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a project's tables and its ledger live; relative paths are the project's."""

    name: str
    warehouse: str = "warehouse"
    ledger: str = "sqlite:///.infold/ledger.db"
    ledger_schema: str = ""
    """Where a ledger on a server is in its database; empty for a schema named after the project."""
    storage: Storage = DEFAULT_STORAGE
    catalog: Catalog = Catalog()
    stores: Stores = Stores()
    """How places in object stores are reached: of the warehouse, and of sources."""
    protected: bool = False
    engine: Engine = Engine()
    spark: tuple[tuple[str, str], ...] = ()
    """Settings of the Spark session (``spark.…``)."""
    apply: Apply = Apply.AUTO
    publish: Publish = Publish.EACH
    hide_technical: HideTechnical | None = None
    environment_ttl: int | None = 14 * DAY
    """How long an environment is kept after its last run; microseconds. None: for ever."""
    keep_old: int | None = 7 * DAY
    """How long tables are kept that others took the place of; microseconds. None: for ever."""
    environment_from_branch: bool = False
    """Whether commands work in the environment of git's branch, unless another is named."""
    hooks: tuple[Hook, ...] = ()
    """Who is told of the ends of its runs."""
    lineage: Lineage | None = None
    """Where events of lineage are sent; None: nowhere."""
    erasure_secret: str = ""
    """A reference to the secret that erased keys are hashed with; empty: nothing can be erased."""
    retain: int | None = None
    """How long after their time its events keep rows at most, in microseconds."""
    erasure_purge: int | None = None
    """
    How long after a request no file has its rows any more; microseconds, 0: at once. None: only a
    purge that somebody asks for leaves none.
    """
    erasure_certificate_key: str = ""
    """A reference to the key that certificates of erasure are signed with; empty: they are not."""
    state_messages: bool = False
    """Whether each run says the state of its models in Snowplow's words; all targets are alike."""
    default: bool = True
    """Whether commands are about it that name no target."""

    @property
    def command(self) -> str:
        """How a command about it begins, as messages name it."""
        return "infold" if self.default else f"infold --target {self.name}"

    @property
    def in_store(self) -> bool:
        """Whether the warehouse is in an object store."""
        return is_url(self.warehouse)

    @property
    def by_folders(self) -> bool:
        """Whether its tables are found by their folders, and not by a catalog."""
        return STORAGE_SETTINGS[self.storage].by_folders

    @property
    def registers(self) -> bool:
        """Whether a metastore has the names of tables that are found by their folders."""
        return self.by_folders and self.catalog.type is CatalogType.HIVE

    @property
    def at_once(self) -> bool:
        """Whether several of its tables can get other names at one instant."""
        return self.catalog.at_once and not self.by_folders

    @property
    def on_destructive_change(self) -> OnLoss:
        """What happens to a change that destroys something, where a model does not say it."""
        guarded = self.protected or self.apply is Apply.MANUAL
        return OnLoss.ERROR if guarded else OnLoss.WARN
