"""Tables of many columns: what planning costs by their number, a run of a few rows each time."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from bench import runs
from bench.measure import Clock, Line, Size
from bench.project import DATA

WIDTHS = (10, 50, 150, 300)
TYPES = (
    ("text", "string", "a{}"),
    ("count", "bigint", 1),
    ("share", "double", 0.5),
    ("page", "struct<title: string, size: bigint>", {"title": "t", "size": 1}),
    ("tags", "array<struct<name: string>>", [{"name": "n"}]),
)
MODELS = {
    "events": "materialization: events\nunique_key: [id]\n"
    "timeseries: {event_time_column: at}\n---\nSELECT * FROM raw.wide",
    "anywhere": "materialization: events\nunique_key: [id]\ndeduplicate: everywhere\n"
    "timeseries: {event_time_column: at}\n---\nSELECT * FROM raw.wide",
    "visits": "materialization: sessions\nsessions: {user: who, gap: 30 minutes}\n---\n"
    "SELECT count(*) AS events, {firsts} FROM events",
    "days": "materialization: table\n"
    "timeseries: {event_time_column: at, partition_column: day}\nincremental: {}\n---\n"
    "SELECT cast(at AS date) AS day, {renamed} FROM events",
    "users": "materialization: cumulative_aggregate\n---\n"
    "SELECT who, count(*) AS n, {mosts} FROM events GROUP BY who",
}
HOURS = 20
ROWS = 20


def by_columns(size: Size) -> list[Line]:
    """A run of twenty rows into tables of 10, 50, 150 and 300 columns: it grows as they do."""
    del size  # rows do not count here
    clocks: dict[int, Clock] = {}
    steps: dict[int, str] = {}
    for width in WIDTHS:
        root = _lay_out(width)
        clocks[width] = Clock()
        for number in range(5):
            _deliver(root, width, number)
            cost = runs.run(root, jobs=1)
            steps[width] = cost.by_step
            if number > 1:  # before, the JVM compiles what all of them need
                clocks[width].add(cost.seconds)
    base = clocks[WIDTHS[0]].least
    lines = [
        Line(f"{width} columns", clocks[width].least, None, "s", steps[width]) for width in WIDTHS
    ]
    few, many = WIDTHS[-2:]
    growth = (clocks[many].least - base) / (clocks[few].least - base)
    what = f"what {many} columns cost more than {WIDTHS[0]}, against what {few} do"
    columns = (many - WIDTHS[0]) / (few - WIDTHS[0])
    return [*lines, Line(what, growth, 1.25 * columns, "x", f"{columns:.2f} times the columns")]


def _columns(width: int) -> dict[str, str]:
    names = {"id": "string", "who": "string", "at": "timestamp"}
    for number in range(width - len(names)):
        name, type_, _ = TYPES[number % len(TYPES)]
        names[f"{name}_{number}"] = type_
    return names


def _lay_out(width: int) -> Path:
    root = DATA / f"wide{width}"
    shutil.rmtree(root, ignore_errors=True)
    for folder in ("models", "landing"):
        (root / folder).mkdir(parents=True)
    columns = _columns(width)
    declared = "".join(f'      {name}: "{type_}"\n' for name, type_ in columns.items())
    (root / "infold.yml").write_text(
        f"name: wide{width}\nsources:\n  raw.wide:\n    path: landing/*.json\n"
        f"    event_time_column: at\n    columns:\n{declared}"
    )
    own = list(columns)[3:]
    ordered = [name for name in own if not name.startswith(("page", "tags"))]
    texts = {
        "firsts": ", ".join(f"first({name}) AS {name}" for name in own),
        "renamed": ", ".join(f"{name} AS other_{name}" for name in own),
        "mosts": ", ".join(f"max({name}) AS {name}" for name in ordered),
    }
    for name, text in MODELS.items():
        for word, sql in texts.items():
            text = text.replace(f"{{{word}}}", sql)
        (root / "models" / f"{name}.sql").write_text(f"---\n{text}\n")
    return root


def _deliver(root: Path, width: int, number: int) -> None:
    """A file: late rows beside those that are there, and some that are there already."""
    lines = []
    for at in range(ROWS):
        row: dict[str, object] = {"id": f"{number if at else 0}-{at}", "who": f"u{at % 4}"}
        row["at"] = f"2024-03-{1 + at % 3:02}T{(number + at) % HOURS:02}:00:00Z"
        row |= {name: TYPES[n % len(TYPES)][2] for n, name in enumerate(list(_columns(width))[3:])}
        lines.append(json.dumps(row))
    (root / "landing" / f"{number}.json").write_text("\n".join(lines) + "\n")
