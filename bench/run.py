"""
Runs measured cases, each in a process of its own, and writes bench/RESULTS.md.

    make bench                      # all, full size: hours
    make bench BENCH=a,g SCALE=0.1  # some, smaller
    python -m bench --cases a,b --scale 0.1

Results of earlier cases are kept beside the generated data, and what the page says of the others
stays, so cases can be run one by one; the page says at what scale each was measured.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench import (
    audits,
    by_hand,
    cells,
    changed_definitions,
    clicks,
    erasures,
    first_builds,
    keys,
    large,
    many_files,
    many_models,
    one_more_day,
    processes,
    replay,
    scale,
    session_kinds,
    stages,
    storages,
    stores,
    unit_tests,
    versus_sqlmesh,
    wide_tables,
)
from bench.measure import Line, Size, as_dict, machine, table
from bench.project import DATA

Case = Callable[[Size], list[Line]]

CASES: dict[str, Case] = {
    "a": first_builds.against_session_window,
    "b": one_more_day.one_more_day,
    "c": one_more_day.into_longer,
    "d": one_more_day.one_event,
    "e": processes.fresh_run,
    "f": replay.real_data,
    "g": processes.without_spark,
    "h": replay.hundred_days,
    "i": first_builds.within_heap,
    "j": cells.many_models,
    "k": cells.rolling_week,
    "l": cells.sixty_days,
    "m": versus_sqlmesh.one_day_into_sixty,
    "n": one_more_day.everywhere,
    "o": session_kinds.first_builds,
    "p": session_kinds.bot_of_three_years,
    "q": session_kinds.one_early_event,
    "r": changed_definitions.plan_of_a_change,
    "s": changed_definitions.column_in_a_chain,
    "t": changed_definitions.other_gap,
    "u": audits.five_audits,
    "v": unit_tests.fifty_tests,
    "w": keys.one_day_by_key,
    "x": scale.simulated_history,
    "y": large.hundred_million,
    "z": stages.one_task,
    "A": storages.delta_against_iceberg,
    "B": stores.in_store_against_disk,
    "C": clicks.warm_commands,
    "D": first_builds.against_a_plain_insert,
    "E": many_files.twenty_thousand,
    "F": many_files.formats,
    "G": by_hand.against_plain_statements,
    "H": by_hand.first_run,
    "I": wide_tables.by_columns,
    "J": many_models.one_click,
    "K": clicks.after_a_plan,
    "L": erasures.persons,
}

HERE = Path(__file__).parent

SECTION = re.compile(r"^## (\w)\. .*?\n(?=\n## |\Z)", re.DOTALL | re.MULTILINE)
"""What the page says of a case, from its title to the next one's."""
MACHINES = re.compile(r"^Measured on: (.*)\.$", re.MULTILINE)

INTRODUCTION = """\
# Measurements

`make bench` measures and writes this table. Both sides of a ratio are measured in one run of one
case, taking turns, and the quicker of the repeats is compared with the quicker: machines are noisy,
ratios less so. Rows are generated (`bench/generate.py`): 10 M events in 2 M sessions of 300 k users
over a year; in `web` 5 % of events are late, log-uniform from a minute to 90 days; in `spread` 5 %
are late by up to a year, uniformly, so that every old day is touched. 0.5 % arrive twice. A day has
168 k events. What a lookback gets wrong is measured by `python bench/lookback.py`, what starting
Spark costs by `python bench/startup.py`.

Case m compares with SQLMesh. `bench/versus_sqlmesh.py` installs a pinned version into an
environment of its own: the same SQL, jars, cores, heap and number of models in hand, and the same
rows at the end, which is checked. Each side has a process of its own, warmed by thirty days, with a
pause before each begins, as a JVM goes on compiling after its work; medians are compared. SQLMesh
leaves Spark's settings to its user, infold chooses them for each run; so SQLMesh is measured in
Spark as it comes, and once more in a session that was given infold's settings for a large run. What
is timed is not the same work. infold reads the project, finds by itself what is new, compares each
cell's content with what was there, records traces and maintains its files, so that one run in eight
takes twice as long; SQLMesh keeps its project loaded, takes the day to build from the clock, and
would not see a late row.
"""


def measure(name: str, size: Size) -> None:
    """Run one case in this process and keep its lines."""
    lines = CASES[name](size)
    kept = {
        "scale": size.scale,
        "repeats": size.repeats,
        "machine": machine(),
        "lines": [as_dict(line) for line in lines],
    }
    _kept(name).parent.mkdir(parents=True, exist_ok=True)
    _kept(name).write_text(json.dumps(kept, indent=1))
    print(table(lines), flush=True)


def report(written: str = "") -> str:
    """
    Everything that was measured, as the page bench/RESULTS.md.

    ``written`` is the page as it is; what it says of cases that were never measured in this
    checkout stays.
    """
    sections = {found[1]: found[0] for found in SECTION.finditer(written)}
    machines: list[str] = []
    for name, case in CASES.items():
        if not _kept(name).exists():
            continue
        kept: dict[str, Any] = json.loads(_kept(name).read_text())
        known = "; ".join(f"{key} {value}" for key, value in kept["machine"].items())
        if known not in machines:
            machines.append(known)
        title = (case.__doc__ or name).strip().splitlines()[0]
        command = f"make bench BENCH={name}"
        if kept["scale"] != 1:
            command += f" SCALE={kept['scale']:g}"
        lines = [Line(**line) for line in kept["lines"]]
        sections[name] = f"## {name}. {title}\n\n`{command}`\n\n{table(lines)}\n"
    if not sections:
        return INTRODUCTION + "\nNothing was measured yet.\n"
    before = MACHINES.search(written)
    for known in before[1].split(" / ") if before else []:
        if known not in machines:
            machines.append(known)
    measured_on = "Measured on: " + " / ".join(machines) + ".\n"
    in_order = (sections[name] for name in CASES if name in sections)
    return "\n".join((INTRODUCTION, measured_on, *in_order))


def _kept(name: str) -> Path:
    return DATA / "results" / f"{name}.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Reads the command line; the number of cases that failed is the exit code."""
    parser = argparse.ArgumentParser(description="Measure.")
    parser.add_argument(
        "--cases",
        default=os.environ.get("BENCH", ""),
        help="some of " + ",".join(CASES) + "; default all",
    )
    parser.add_argument("--scale", type=float, default=float(os.environ.get("SCALE") or 1))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--here", action="store_true", help="in this process, and no report")
    options = parser.parse_args(arguments)
    names = [name for name in options.cases.split(",") if name] or list(CASES)
    unknown = [name for name in names if name not in CASES]
    if unknown:
        parser.error(f"no such case: {', '.join(unknown)}")
    size = Size(options.scale, options.repeats)
    if options.here:
        for name in names:
            measure(name, size)
        return 0
    failed = 0
    for name in names:
        print(f"\n{name}. {(CASES[name].__doc__ or '').strip().splitlines()[0]}", flush=True)
        command = [sys.executable, "-m", "bench.run", "--here", "--cases", name]
        command += ["--scale", str(options.scale), "--repeats", str(options.repeats)]
        done = subprocess.run(command, cwd=HERE.parent, env=os.environ, check=False)
        failed += done.returncode != 0
    page = HERE / "RESULTS.md"
    page.write_text(report(page.read_text() if page.exists() else ""))
    return failed


if __name__ == "__main__":
    sys.exit(main())
