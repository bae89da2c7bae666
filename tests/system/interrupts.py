"""
Ctrl-C at any moment of a whole ``infold run``: cold, where it starts Spark, and with an engine.

After each: the exit code is 130 with one line (or the run had ended before), no process is left but
those of an engine at rest, and the next run finishes. What was found wrong is kept, not raised.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from infold.cli.init import write_project
from infold.system.engine_socket import KEEPER
from infold.system.signals import STOPPED_LINE

STAYS = "Spark stays ready for the next command"
ENDED = "ended before"
PATIENCE = 300
NEW = {0}
"""The processes of an engine that is not there yet."""


def processes(folder: Path) -> dict[int, str]:
    """The processes that commands in a folder have started, and their words; the dead have none."""
    marked = b"INFOLD_SWEPT=" + os.fsencode(folder) + b"\0"
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if marked in (entry / "environ").read_bytes():
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().decode()
            except OSError:
                continue
    return found


@dataclass
class Sweep:
    """The starter's project, new clicks before each run, and what the interrupted runs did."""

    folder: Path
    random: Random
    seconds: dict[str, float] = field(default_factory=dict)
    """How long an undisturbed run takes, ``cold`` and ``warm``."""
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    arrived: int = 0

    def __post_init__(self) -> None:
        if not self.folder.exists():
            write_project(self.folder)

    def begin(self, engine: str) -> subprocess.Popen[str]:
        """A run in a process group of its own, as a shell begins it, with news to take in."""
        self._arrive()
        given = {"INFOLD_ENGINE": engine, "INFOLD_SWEPT": str(self.folder)}
        return subprocess.Popen(
            [sys.executable, "-m", "infold", "-C", str(self.folder), "run"],
            env={**os.environ, **given},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )

    def finish(self, engine: str = "on") -> float:
        """A run that nobody disturbs; its seconds. It ends well, or that is a fault."""
        begun = time.monotonic()
        out, err = (process := self.begin(engine)).communicate(timeout=PATIENCE)
        if process.returncode != 0 or (err and STAYS not in err):
            self._fault("the next run", process.returncode, out, err)
        return time.monotonic() - begun

    def measure(self) -> None:
        """Take the times of undisturbed runs; an engine is left."""
        # Else a first run leaves a process that makes the archive of classes.
        subprocess.run([sys.executable, "-m", "infold.api.warm_up"], check=True)
        self.stop_engine()
        self.seconds = {"cold": self.finish(), "warm": self.finish()}

    def stop_engine(self) -> None:
        """End the engine, if there is one, and wait until it is gone."""
        if not processes(self.folder):
            return
        words = (sys.executable, "-m", "infold", "-C", str(self.folder), "engine", "stop")
        subprocess.run(words, capture_output=True, check=False, timeout=PATIENCE)
        self._gone(set(), "engine stop")

    def interrupt(self, how: str, part: float) -> None:
        """
        Ctrl-C after a part of the time that a run takes. ``warm`` has an engine, ``leaving`` is to
        leave one, ``cold`` is not.
        """
        if how != "warm":
            self.stop_engine()
        engine = set(processes(self.folder)) or NEW
        moment = part * self.seconds["warm" if how == "warm" else "cold"]
        # A terminal sends it to all of its foreground group, `kill` to one process.
        terminal = self.random.random() < 0.5
        times = 2 if self.random.random() < 0.1 else 1
        name = f"{how} after {moment:.3f} s" + " by a terminal" * terminal + " twice" * (times - 1)
        process = self.begin("off" if how == "cold" else "on")
        time.sleep(moment)
        if process.poll() is None:
            for _ in range(times):
                (os.killpg if terminal else os.kill)(process.pid, signal.SIGINT)
        try:
            out, err = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            self._fault(f"{name}, no end", process.returncode, out, err)
            return
        outcome = _outcome(process.returncode, err, times)
        self.outcomes[f"{how}: {outcome}"] += 1
        if not outcome:
            self._fault(name, process.returncode, out, err)
        # An engine that was not asked for Spark yet, or not any more, is at rest again.
        stays = how == "warm" or (how == "leaving" and outcome == ENDED)
        self._gone(engine if stays else set(), name)

    def _gone(self, allowed: set[int], name: str) -> None:
        """No process is left, or those of an engine; others are given some seconds."""
        until = time.monotonic() + 10
        while left := processes(self.folder):
            if _are_an_engine(left) and (allowed == NEW or set(left) <= allowed):
                return
            if time.monotonic() > until:
                said = {number: words.replace("\0", " ")[-200:] for number, words in left.items()}
                self.faults.append(f"{name}: left behind: {said}, allowed were {allowed}")
                print(self.faults[-1], flush=True)
                for number in left:
                    os.kill(number, signal.SIGKILL)
                return
            time.sleep(0.05)

    def _arrive(self) -> None:
        """A few clicks of a user of their own, on one of two days."""
        self.arrived += 1
        day, hour = self.random.choice((8, 9)), self.random.randrange(24)
        rows = [
            {
                "event_id": f"s{self.arrived}-{number}",
                "user_id": f"u{self.random.randrange(20)}",
                "event_ts": f"2024-03-{day:02}T{hour:02}:{minute:02}:00Z",
                "url": "/pay",
                "amount": 1.5,
            }
            for number, minute in enumerate(self.random.sample(range(60), 3))
        ]
        file = self.folder / "landing" / "clicks" / f"swept-{self.arrived}.json"
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    def _fault(self, name: str, code: int, out: str, err: str) -> None:
        self.faults.append(f"{name}: exit {code}\n{out[-2000:]}\n{err[-4000:]}")
        print(self.faults[-1], flush=True)


def _outcome(code: int, err: str, times: int) -> str:
    """What an interrupted run has to look like; nothing if it looks otherwise."""
    if code == 130 and (err == f"{STOPPED_LINE}\n" or (times == 2 and not err)):
        return "stopped"
    if code == 0 and (not err or (err.startswith(STAYS) and err.count("\n") == 1)):
        return ENDED
    # Nothing of infold was there yet. Python itself ends with 1 where it cannot import its own,
    # and goes on after a finalizer.
    early = re.search(r"^KeyboardInterrupt:? ?\n\Z", err, re.MULTILINE)
    if (early and not re.search(r"infold/.*, in main\n", err)) or (
        code == -signal.SIGINT and not err
    ):
        return "Python was starting"
    return ""


def _are_an_engine(found: dict[int, str]) -> bool:
    """Whether they are a keeper and its JVM, and nothing else."""
    return sorted(KEEPER in words for words in found.values()) == [False, True]
