"""
Tables of many columns: what planning costs by their number, a run of a few rows each time.

The numbers are seconds of the processors, of Python and of the JVM, as planning is all there is.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench import runs
from bench.measure import Line, ProcessorTime, Size
from bench.project import DATA

WIDTHS = (10, 150, 300)
VERY_WIDE = (500, 1000, 2000)
TYPES = (
    ("text", "string", "a{}"),
    ("count", "bigint", 1),
    ("share", "double", 0.5),
    ("page", "struct<title: string, size: bigint>", {"title": "t", "size": 1}),
    ("tags", "array<struct<name: string>>", [{"name": "n"}]),
)


def _struct(fields: int) -> tuple[str, dict[str, str]]:
    """A struct of so many texts, and a value of it."""
    names = [f"field_{number}" for number in range(fields)]
    return f"struct<{', '.join(f'{name}: string' for name in names)}>", dict.fromkeys(names, "a")


_OF_300, _OF_50 = _struct(300), _struct(50)
NESTED = (("page", *_OF_300), ("tags", f"array<{_OF_50[0]}>", [_OF_50[1]] * 2))
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
FEW = ("events", "days")
"""What is made of very many columns: all five kinds of tables would take minutes."""
ADDITIONS = 20_000_000
HOURS = 20
ROWS = 20
Types = Sequence[tuple[str, str, object]]


def by_columns(size: Size) -> list[Line]:
    """Runs of twenty rows into tables of 10 to 2,000 columns: they grow as these do."""
    del size  # rows do not count here
    taken: dict[int, float] = {}
    lines = [_speed()]
    for width in WIDTHS:
        taken[width] = _last_run(f"wide{width}", width, TYPES, tuple(MODELS), 3)
        lines.append(Line(f"{width} columns, tables of five kinds", taken[width], None, "s"))
    lines.append(_growth(taken))
    taken.clear()
    for width in VERY_WIDE:
        taken[width] = _last_run(f"wide{width}", width, TYPES, FEW, 2)
        what = f"{width:,} columns, events and a daily table that renames them"
        lines.append(Line(what, taken[width], None, "s"))
    lines.append(_growth(taken))
    nested = _last_run("nested", 7, NESTED, FEW, 2)
    what = "the same tables of two structs of 300 fields and two arrays of structs of 50"
    return [*lines, Line(what, nested, None, "s")]


def _speed() -> Line:
    """How quick the machine is, whatever else it does: seconds of a processor, too."""
    before = ProcessorTime()
    total = 0
    for number in range(ADDITIONS):
        total += number
    return Line(f"{ADDITIONS:,} additions in Python", before.taken(), None, "s")


def _growth(taken: Mapping[int, float]) -> Line:
    """What the greatest width costs more than the least, by what the one between does."""
    least, few, many = taken
    growth = (taken[many] - taken[least]) / (taken[few] - taken[least])
    columns = (many - least) / (few - least)
    what = f"what {many:,} columns cost more than {least:,}, against what {few:,} do"
    return Line(what, growth, 1.25 * columns, "x", f"{columns:.2f} times the columns")


def _last_run(name: str, width: int, types: Types, models: Sequence[str], deliveries: int) -> float:
    """Seconds of the processors that the last of some runs takes: the JVM is warm."""
    root = _lay_out(name, width, types, models)
    for number in range(deliveries):
        _deliver(root, width, types, number)
        before = ProcessorTime()
        runs.run(root, jobs=1)
    return before.taken()


def _columns(width: int, types: Types) -> dict[str, str]:
    names = {"id": "string", "who": "string", "at": "timestamp"}
    for number in range(width - len(names)):
        name, type_, _ = types[number % len(types)]
        names[f"{name}_{number}"] = type_
    return names


def _lay_out(name: str, width: int, types: Types, models: Sequence[str]) -> Path:
    root = DATA / name
    shutil.rmtree(root, ignore_errors=True)
    for folder in ("models", "landing"):
        (root / folder).mkdir(parents=True)
    columns = _columns(width, types)
    declared = "".join(f'      {name}: "{type_}"\n' for name, type_ in columns.items())
    (root / "infold.yml").write_text(
        f"name: {name}\nsources:\n  raw.wide:\n    path: landing/*.json\n"
        f"    event_time_column: at\n    columns:\n{declared}"
    )
    own = list(columns)[3:]
    ordered = [name for name in own if not name.startswith(("page", "tags"))]
    texts = {
        "firsts": ", ".join(f"first({name}) AS {name}" for name in own),
        "renamed": ", ".join(f"{name} AS other_{name}" for name in own),
        "mosts": ", ".join(f"max({name}) AS {name}" for name in ordered),
    }
    for model in models:
        text = MODELS[model]
        for word, sql in texts.items():
            text = text.replace(f"{{{word}}}", sql)
        (root / "models" / f"{model}.sql").write_text(f"---\n{text}\n")
    return root


def _deliver(root: Path, width: int, types: Types, number: int) -> None:
    """A file: late rows beside those that are there, and some that are there already."""
    lines = []
    for at in range(ROWS):
        row: dict[str, object] = {"id": f"{number if at else 0}-{at}", "who": f"u{at % 4}"}
        row["at"] = f"2024-03-{1 + at % 3:02}T{(number + at) % HOURS:02}:00:00Z"
        names = list(_columns(width, types))[3:]
        row |= {name: types[n % len(types)][2] for n, name in enumerate(names)}
        lines.append(json.dumps(row))
    (root / "landing" / f"{number}.json").write_text("\n".join(lines) + "\n")
