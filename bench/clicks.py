"""Whole commands at a terminal: the first run, a click, a proof and a day in a warm engine."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.first_builds import year_of_events
from bench.measure import Clock, Line, Size
from bench.processes import timed
from bench.project import DATA, with_history

COMMAND = Path(sys.executable).with_name("infold")
SOON = datetime(2024, 3, 11, tzinfo=UTC)
"""The first click that is not in the starter."""
READING_SECONDS = 10
"""For how long somebody looks at a plan."""
WARM_CLICKS = 12
"""Clicks that are not counted: the JVM still compiles much of what one takes."""


def infold(root: Path, *words: str) -> float:
    """One command as if it were typed, with an engine that stays; its seconds."""
    return timed(root, str(COMMAND), *words, INFOLD_ENGINE="on")[0]


def starter(name: str) -> Path:
    """The starter's project, never run."""
    root = DATA / name
    if root.exists():
        infold(root, "engine", "stop")
        shutil.rmtree(root)
    root.parent.mkdir(parents=True, exist_ok=True)
    infold(root.parent, "init", str(root))
    return root


def land(root: Path, number: int, rows: int = 1) -> None:
    """A file of clicks of a hundred users in turn, a second apart, an hour after the one before."""
    lines = []
    for row in range(rows):
        at = SOON + timedelta(hours=number, seconds=row)
        click = {
            "event_id": f"n{number}-{row}",
            "user_id": f"u{row % 100}",
            "event_ts": at.isoformat().replace("+00:00", "Z"),
            "url": "/",
            "amount": None,
        }
        lines.append(json.dumps(click) + "\n")
    written = root / "landing" / f"{number:05}.json"
    written.write_text("".join(lines))
    written.rename(root / "landing" / "clicks" / written.name)


@contextmanager
def engine_ends(root: Path) -> Iterator[None]:
    """No engine stays after this."""
    try:
        yield
    finally:
        infold(root, "engine", "stop")


def warm_commands(size: Size) -> list[Line]:
    """Whole commands of the starter's project, and of a day of 10,000 rows, in a warm engine."""
    first, click, proof = Clock(), Clock(), Clock()
    infold(DATA.parent, "--version")  # its modules are compiled
    for number in range(size.repeats):
        root = starter(f"clicks-{number}")
        first.add(infold(root, "run"))
        if number < size.repeats - 1:
            infold(root, "engine", "stop")
    with engine_ends(root):
        for number in range(WARM_CLICKS + max(7, size.repeats)):
            land(root, number)
            click.add(infold(root, "run"))
        click.seconds[:WARM_CLICKS] = []
        for _ in range(max(7, size.repeats)):
            proof.add(infold(root, "verify"))
    return [
        Line("first `infold run` of a project, no engine yet", first.median, 5, "s", str(first)),
        Line("`infold run` of one click, warm engine", click.median, 1.5, "s", str(click)),
        Line("`infold verify` of the starter, warm engine", proof.median, 2, "s", str(proof)),
        _small_day(size),
        _watched(size),
    ]


def after_a_plan(size: Size) -> list[Line]:
    """The first `infold run` of the starter's project, after `infold plan` at a terminal."""
    ready, at_once, alone = Clock(), Clock(), Clock()
    infold(DATA.parent, "--version")  # its modules are compiled
    for number in range(max(5, size.repeats)):
        for clock in (ready, at_once, alone):
            root = starter(f"early-{number}")
            with engine_ends(root):
                if clock is not alone:
                    _plan_at_a_terminal(root)
                if clock is ready:
                    time.sleep(READING_SECONDS)
                clock.add(infold(root, "run"))
    return [
        Line("first `infold run`, ten seconds after the plan", ready.median, 3.5, "s", str(ready)),
        Line("the same, at once after the plan", at_once.median, None, "s", str(at_once)),
        Line("the same without a plan before it", alone.median, None, "s", str(alone)),
    ]


def _plan_at_a_terminal(root: Path) -> None:
    terminal, screen = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key != "CI"}
    environment["INFOLD_ENGINE"] = "on"
    subprocess.run(
        [str(COMMAND), "plan"],
        cwd=root,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=screen,
        check=True,
    )
    os.close(screen)
    os.close(terminal)


def _small_day(size: Size) -> Line:
    shape = replace(year_of_events(size), events=size.rows(1_000_000), users=size.rows(30_000, 100))
    root, deliveries = with_history("clicks-day", shape)
    day = Clock()
    with engine_ends(root):
        infold(root, "run")
        for _ in range(5 + max(5, size.repeats)):
            deliveries.deliver(10_000)
            day.add(infold(root, "run"))
    day.seconds[:5] = []
    return Line("a day of 10,000 rows into 1 M, warm engine", day.median, 3, "s", str(day))


def _watched(size: Size) -> Line:
    """From the moment a file of 1,000 rows is there until a run that has it is committed."""
    import sqlite3

    root = starter("clicks-watched")
    infold(root, "run")
    infold(root, "engine", "stop")
    watching = subprocess.Popen(
        [str(COMMAND), "--no-engine", "run", "--watch"],
        cwd=root,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    ledger = sqlite3.connect(f"file:{root / '.infold' / 'ledger.db'}?mode=ro", uri=True)
    committed = "SELECT count(*) FROM steps WHERE model = 'daily' AND finished_at IS NOT NULL"
    latency = Clock()
    try:
        for number in range(WARM_CLICKS + max(7, size.repeats)):
            before = ledger.execute(committed).fetchone()[0]
            land(root, number, 1_000)
            with latency.timing():
                while ledger.execute(committed).fetchone()[0] == before:
                    if watching.poll() is not None:
                        raise SystemExit("infold run --watch ended")
                    time.sleep(0.02)
            time.sleep(1)
    finally:
        watching.send_signal(signal.SIGINT)
        watching.wait(60)
        ledger.close()
    latency.seconds[:WARM_CLICKS] = []
    return Line(
        "`infold run --watch`: from a file of 1,000 rows to three tables that have it",
        latency.median,
        2,
        "s",
        str(latency),
    )
