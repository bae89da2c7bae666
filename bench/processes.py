"""Whole processes: a fresh ``infold run`` for a small file, and commands that need no Spark."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from bench.first_builds import forget, year_of_events
from bench.measure import Clock, Line, Size, alternately, ratio
from bench.project import DATA, with_history

from infold.demo import acts

STOCK_SPARK = """
import sys
from bench.stock_spark import stock_spark
from infold.spark.jvm import spark_session
spark_session.start = stock_spark
spark_session.tune = lambda *_: None
from infold.cli import main
sys.argv = ["infold", "run"]
main()
"""


def infold(root: Path, *arguments: str) -> tuple[float, str]:
    """One process of the command line: seconds and what it printed. Fails when it fails."""
    return _process(root, "-m", "infold", *arguments)


def _process(root: Path, *arguments: str) -> tuple[float, str]:
    return timed(root, sys.executable, *arguments, PYTHONPATH=str(Path(__file__).parents[1]))


def timed(root: Path, *command: str, **variables: str) -> tuple[float, str]:
    """A command in a folder: seconds and what it printed. Fails when it fails."""
    started = time.perf_counter()
    done = subprocess.run(
        command,
        cwd=root,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - started
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
    return seconds, done.stdout + done.stderr


def fresh_run(size: Size) -> list[Line]:
    """A fresh process for a file of 10 k rows, against the same with Spark's default settings."""
    root, deliveries = with_history("e", year_of_events(size))
    infold(root, "run")
    ours, theirs = Clock(), Clock()

    def with_infold_settings() -> None:
        deliveries.deliver(10_000)
        ours.add(infold(root, "run")[0])

    def with_stock_spark() -> None:
        deliveries.deliver(10_000)
        theirs.add(_process(root, "-c", STOCK_SPARK)[0])

    with_infold_settings()  # leaves the archive of classes behind for the next
    with_infold_settings()
    ours.seconds.clear()
    alternately(size.repeats, with_stock_spark, with_infold_settings)
    return [
        Line(
            "a fresh `infold run` for 10 k rows, against Spark's default settings",
            ratio(ours, theirs),
            0.6,
            detail=f"{ours} against {theirs}",
        )
    ]


def without_spark(size: Size) -> list[Line]:
    """Whole processes that have nothing to compute, on the demo's project."""
    root = DATA / "g"
    root.mkdir(parents=True, exist_ok=True)
    forget(root)
    for act in acts(root):
        if act.title == "nothing new":
            break
        act.apply()
        infold(root, "run")
    lines = []
    for command in ("plan", "status", "history", "run"):
        clock = Clock()
        for _ in range(max(9, size.repeats)):
            clock.add(infold(root, command)[0])
        _, traced = _process(root, "-X", "importtime", "-m", "infold", command)
        imported = "pyspark" in traced
        lines.append(
            Line(
                f"`infold {command}`, nothing to do" if command == "run" else f"`infold {command}`",
                clock.least,
                0.4,
                "s",
                f"{clock}; pyspark {'**imported**' if imported else 'not imported'}",
            )
        )
    return lines
