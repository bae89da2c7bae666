"""
How the machine gives way under a program: Java, jars, memory, disks, permissions.

Nothing here is a mistake in a project, and none of it is one of infold's.
:mod:`infold.system.failures` says which it was.
"""

from __future__ import annotations

from collections.abc import Sequence

from infold.messages.errors import ExitCode, InfoldError
from infold.messages.message import Message

JAVA_TODO = (
    "Install Java 17 or 21 (apt-get install openjdk-17-jre-headless, brew install openjdk@17), "
    "or set JAVA_HOME to one. Homebrew puts its own where nothing finds it by itself: "
    'export JAVA_HOME="$(brew --prefix openjdk@17)".'
)


def java_missing(looked: tuple[tuple[str, str], ...]) -> InfoldError:
    """No Java at all; ``looked`` says where it was looked for."""
    return InfoldError(
        "java-missing", "Java 17 to 22 is needed and none was found", looked, JAVA_TODO
    )


java_too_old = Message(
    "java-too-old",
    "Java 17 to 22 is needed and {version} was found",
    {"found": "{path}"},
    JAVA_TODO,
)


java_too_new = Message(
    "java-too-new",
    "Java 17 to 22 is needed and {version} was found, on which this Spark does not start",
    {"found": "{path}"},
    JAVA_TODO,
)


nameless_user = Message(
    "nameless-user",
    "this process runs as user {number}, who has no name on this machine, and Spark needs one",
    todo="Run it as a user of /etc/passwd, or give this one a line there. In a container "
    "nss_wrapper does so for any user, and the image of infold's Containerfile has it.",
)


def jars_unresolved(coordinates: tuple[str, ...], cache: str, why: str) -> InfoldError:
    """The jars for tables, catalogs and stores could not be downloaded."""
    return InfoldError(
        "jars-unresolved",
        "jars that Spark needs could not be downloaded",
        (*(("jar", c) for c in coordinates), ("cache", cache), ("why", why)),
        "Check that this machine reaches Maven Central (once is enough: later runs use the cache), "
        "or set INFOLD_CACHE to a cache that has them.",
        exit_code=ExitCode.FAILED,
    )


spark_failed_to_start = Message(
    "spark-start",
    "Spark did not start",
    {"why": "{why}", "log": "{log}"},
    "The log has the details, and `infold doctor` checks all that Spark needs. A machine short of "
    "memory can set INFOLD_MEMORY (2g by default).",
    exit_code=ExitCode.FAILED,
)

check_failed = Message(
    "check-failed",
    "{name} cannot be used",
    {"why": "{why}"},
    "Mend what the reason says, then run `infold doctor` again. What Spark "
    "printed is in .infold/spark.log.",
    exit_code=ExitCode.FAILED,
)

disk_full = Message(
    "disk-full",
    "a disk is full",
    {"file": "{path}", "why": "{why}"},
    "Make room, and run again. Tables are in the target's warehouse; what Spark writes "
    "meanwhile is in .infold/spill of the project, or where spark.local.dir says.",
    exit_code=ExitCode.FAILED,
)

not_permitted = Message(
    "not-permitted",
    "a file or folder cannot be read or written",
    {"file": "{path}", "why": "{why}"},
    "The project and its models/ have to be readable; .infold, the warehouse and the ledger "
    "writable, for whoever runs infold.",
    exit_code=ExitCode.FAILED,
)

system_refused = Message(
    "system-refused",
    "the system refused something that infold asked for",
    {"file": "{path}", "why": "{why}"},
    "Once the cause is gone, run again: what was finished is kept.",
    exit_code=ExitCode.FAILED,
)

output_failed = Message(
    "output-failed",
    "the output cannot be written",
    {"why": "{why}"},
    "What the command did, it did: `infold history` and `infold status` show it again.",
    exit_code=ExitCode.FAILED,
)

database_unusable = Message(
    "database-unusable",
    "the database file of the catalog cannot be used",
    {"why": "{why}"},
    "Check that it and its folder can be written and that the disk has room.",
    exit_code=ExitCode.FAILED,
)


def out_of_memory(process: str, why: str) -> InfoldError:
    """A process that asked for more memory than it may have."""
    return InfoldError(
        "out-of-memory",
        f"{process} ran out of memory",
        (("why", why or "no more can be had"),),
        "INFOLD_MEMORY gives Spark more (2g by default). Of tables that are built cell by cell, "
        "`infold run --batch-size 1` builds less at once; events and sessions take in less where "
        "fewer files arrive for a run.",
        exit_code=ExitCode.FAILED,
    )


engine_died = Message(
    "engine-died",
    "Spark's Java process ended in the middle of its work",
    {"why": "{why}", "log": ".infold/spark.log"},
    "Somebody killed it, or the system did because memory ran out. Run again: the next run finds "
    "out what it had committed, and goes on from there.",
    exit_code=ExitCode.FAILED,
)

# Nested deeper than the program can follow.
too_deep = Message(
    "too-deep",
    "something is nested too deeply",
    {"why": "{why}"},
    "A list (IN (…)) says the same as thousands of ORs; a view or a table of its own takes a "
    "part of a long UNION ALL.",
)

too_many_parts = Message(
    "too-many-parts",
    "a query has more parts than Spark can keep an account of",
    {"why": "{why}"},
    "Put a part of a long UNION ALL into a table of its own (materialization: table), or let "
    "one source name all the files: `path: landing/*/*.json`.",
    exit_code=ExitCode.FAILED,
)

spark_without_iceberg = Message(
    "no-iceberg",
    "the Spark session of this process cannot open Iceberg tables",
    {"why": "{why}"},
    "Let infold start Spark: call it before there is a session. Or start yours with "
    "`spark.jars.packages`, of the same Spark: iceberg-spark-runtime and sqlite-jdbc, and with "
    "`spark.sql.extensions` (docs/python-api.md has both). spark-submit has to have the jars too "
    "(docs/clusters.md).",
)


def fixed_setting(where: str, found: Sequence[tuple[str, str, str]]) -> InfoldError:
    """Settings from outside of the project that would change what queries and files mean."""
    (key, value, _), *more = found
    others = f", nor {len(more):,} others as they are" if more else ""
    return InfoldError(
        "fixed-setting",
        f"{key} cannot be {value or 'empty'}{others}",
        (("where", where), *((name, f"{given}; it is {kept}") for name, given, kept in found)),
        "Take it out there. Tables equal their definitions only while it stays as it is; whatever "
        "changes no rows (memory, parallelism, compression) is free.",
    )
