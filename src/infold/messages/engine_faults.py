"""What goes wrong with an engine that somebody else runs: a cluster and its executors."""

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
    "{name} turns PySpark in this process to a server of Spark Connect, which infold cannot use",
    {"is": "{value}"},
    "Nothing was changed. Take the variable away, or run infold in a process without such a "
    "session; docs/clusters.md has what can be had in its place.",
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
    "`spark.pyspark.python` in `spark` of the target.",
    exit_code=ExitCode.FAILED,
)
