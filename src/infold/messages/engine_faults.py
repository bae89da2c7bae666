"""What goes wrong with an engine that somebody else runs: a cluster or a server."""

from __future__ import annotations

from infold.messages.errors import ExitCode
from infold.messages.message import Message

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
