"""A project over events as wide as those of a tracker, and each of its tables by the reference."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from tests.reference import aggregates as A
from tests.reference.compare import difference, stored
from tests.reference.tables import events, grouped, sessions, versions
from tests.reference.world import Row

from infold import api
from infold.core import interval
from infold.core.interval import DAY, HOUR, MINUTE
from infold.core.model import table_name

START = interval.parse_instant_text("2024-03-04")
NOW = "2024-03-20"
PAGE = "struct<schema: string, data: struct<title: string, size: bigint, tags: array<string>>>"
TYPES = (
    ("url", "string"),
    ("count", "bigint"),
    ("mark", "string"),
    ("share", "double"),
    ("known", "boolean"),
    ("price", "decimal(18,2)"),
    ("sent", "timestamp"),
    ("born", "date"),
    ("page", PAGE),
    ("contexts", f"array<{PAGE}>"),
    ("label", "string"),
    ("level", "int"),
)
"""What the columns are, over and over: two of twelve are nested."""

_numbers = itertools.count()


class WideEvents:
    """Files of events come and go; what each table should hold follows from the files."""

    def __init__(self, root: Path, warehouse: str, width: int = 150) -> None:
        self.root = root
        self.columns = {"event_id": "string", "user_id": "string", "at": "timestamp"}
        for number in range(width - len(self.columns)):
            name, type_ = TYPES[number % len(TYPES)]
            self.columns[f"{name}_{number}"] = type_
        self.plain = [name for name, type_ in self.columns.items() if "<" not in type_][3:]
        self.files: dict[str, list[Row]] = {}
        for folder in ("models", "landing"):
            (root / folder).mkdir(parents=True)
        declared = "".join(f'      {name}: "{type_}"\n' for name, type_ in self.columns.items())
        (root / "infold.yml").write_text(
            f"name: wide{next(_numbers)}\n"
            "sources:\n"
            "  raw.events:\n"
            "    path: landing/*.json\n"
            "    event_time_column: at\n"
            f"    columns:\n{declared}"
            f"targets:\n  dev: {{storage: iceberg, warehouse: '{warehouse}'}}\n"
        )
        for name, text in self._models().items():
            (root / "models" / f"{name}.sql").write_text(text)

    def _models(self) -> dict[str, str]:
        """A model of each kind, and of each way to tell copies apart."""
        copied = (
            "---\nmaterialization: events\nunique_key: [event_id]\n{}"
            "timeseries: {{event_time_column: at}}\n---\nSELECT * FROM raw.events"
        )
        renamed = ", ".join(f"{name} AS other_{name}" for name in self.plain)
        firsts = ", ".join(f"first({name}) AS {name}" for name in [*self.plain, *self.nested])
        most = ", ".join(f"max({name}) AS {name}" for name in self.plain)
        day = "timeseries: {event_time_column: at, partition_column: day}\nincremental: {}\n"
        return {
            "by_time": copied.format("prefer: [count_1 desc]\n"),
            "anywhere": copied.format("deduplicate: everywhere\n"),
            "kept": "---\nmaterialization: table\n---\nSELECT * FROM raw.events",
            "renamed": (
                "---\nmaterialization: view\n---\n"
                f"SELECT event_id, user_id, at, {renamed} FROM by_time WHERE user_id <> 'nobody'"
            ),
            "visits": (
                "---\nmaterialization: sessions\nsessions: {user: user_id, gap: 30 minutes}\n---\n"
                f"SELECT count(*) AS events, {firsts} FROM by_time"
            ),
            "pages": (
                f"---\nmaterialization: sessions\nsessions: {{identifier: {self.plain[0]}}}\n---\n"
                f"SELECT count(*) AS events, {firsts} FROM anywhere"
            ),
            "daily": (
                f"---\nmaterialization: table\n{day}---\n"
                f"SELECT cast(at AS date) AS day, count(*) AS events, {most} FROM renamed_back\n"
                "GROUP BY 1"
            ),
            "renamed_back": (
                "---\nmaterialization: view\n---\nSELECT event_id, user_id, at, "
                + ", ".join(f"other_{name} AS {name}" for name in self.plain)
                + " FROM renamed"
            ),
            "dated": (
                f"---\nmaterialization: table\n{day}---\n"
                "SELECT cast(at AS date) AS day, * FROM by_time"
            ),
            "whole": "---\nmaterialization: table\n---\nSELECT * FROM anywhere",
            "users": (
                "---\nmaterialization: cumulative_aggregate\n---\n"
                f"SELECT user_id, count(*) AS events, {most} FROM by_time GROUP BY user_id"
            ),
            "states": (
                "---\nmaterialization: scd_type_2\nunique_key: [user_id]\n"
                "scd_type_2: {updated_at: at, columns: '*'}\n---\n"
                f"SELECT user_id, at, {', '.join(self.plain)} FROM by_time"
            ),
        }

    @property
    def nested(self) -> list[str]:
        """The columns that hold further ones."""
        return [name for name, type_ in self.columns.items() if "<" in type_]

    def event(self, number: int, user: str, minutes: int, version: int = 0) -> Row:
        """An event: all values follow from its number and version."""
        row: Row = {"event_id": f"e{number}", "user_id": user, "at": START + minutes * MINUTE}
        for at, (name, type_) in enumerate(list(self.columns.items())[3:]):
            seed = number * 31 + at * 7 + version
            row[name] = None if seed % 11 == 0 else value_of(type_, seed)
        return row

    def put(self, name: str, *rows: Row) -> None:
        """A file; one of that name is replaced."""
        self.files[name] = list(rows)
        lines = [json.dumps({key: as_json(value) for key, value in row.items()}) for row in rows]
        (self.root / "landing" / name).write_text("\n".join(lines) + "\n")

    def drop(self, name: str) -> None:
        """A file goes away."""
        del self.files[name]
        (self.root / "landing" / name).unlink()

    def run(self) -> None:
        """One run of everything."""
        api.run(
            api.open_project(self.root), as_of=interval.parse_instant_text(NOW), allow_removals=True
        )

    def expected(self) -> Mapping[str, Sequence[Row]]:
        """What each table should hold; copies of an event at one time are alike."""
        rows = [
            {key: as_text(value) for key, value in row.items()}
            for file in self.files.values()
            for row in file
        ]
        key = ["event_id"]
        by_time = events(rows, key=key, time="at", prefer=["count_1 desc"]).rows()
        anywhere = events(rows, key=key, time="at", everywhere=True).rows()
        named = [row | {"session_identifier": row[self.plain[0]]} for row in anywhere]
        seen = [row for row in by_time if row["user_id"] != "nobody"]
        firsts = {name: A.first(name) for name in [*self.plain, *self.nested]}
        most = {name: A.greatest(name) for name in self.plain}
        by_day = {"day": lambda row: interval.datetime_of(row["at"]).date()}
        counted = {"events": A.count(), **most}
        of = partial(sessions, time="at", key=key, aggregates={"events": A.count(), **firsts})
        return {
            "by_time": by_time,
            "anywhere": anywhere,
            "kept": rows,
            "visits": of(by_time, user="user_id", gap=30 * MINUTE),
            "pages": of(named, user="session_identifier", gap=None),
            "daily": grouped(seen, by_day, counted),
            "dated": [{"day": by_day["day"](row)} | row for row in by_time],
            "whole": anywhere,
            "users": grouped(by_time, {"user_id": lambda row: row["user_id"]}, counted),
            "states": versions(
                [{name: row[name] for name in ("user_id", "at", *self.plain)} for row in by_time],
                key=["user_id"],
                time="at",
                compared=self.plain,
            ),
        }

    def rows(self, name: str) -> list[Row]:
        """The rows of a table, in the reference's values; what is nested as text."""
        found = api.lake(api.open_project(self.root)).rows(table_name(name)).to_pylist()
        return [
            {key: as_text(value) for key, value in row.items()}
            for row in stored(found, leave_out=["session_id"])
        ]

    def difference(self) -> dict[str, str]:
        """The tables that are not what they should be, and how they differ."""
        found = {}
        for name, rows in self.expected().items():
            if differing := difference(rows, self.rows(name)):
                found[name] = differing
        return found


def value_of(type_: str, seed: int) -> Any:
    """A value of a type that follows from a number."""
    if type_.startswith("array"):
        return [value_of(PAGE, seed + at) for at in range(seed % 3)]
    if type_.startswith("struct"):
        tags = None if seed % 5 == 0 else [f"t{at}" for at in range(seed % 3)]
        data = {"title": f"title {seed % 17}", "size": seed, "tags": tags}
        return {"schema": "iglu:com.acme/page/1-0-0", "data": None if seed % 13 == 0 else data}
    return {
        "string": f"v{seed % 23}",
        "bigint": seed * 1_000_003,
        "int": seed % 1_000,
        "double": seed / 8,
        "boolean": seed % 2 == 0,
        "decimal(18,2)": Decimal(seed) / 100,
        "timestamp": START + seed * HOUR,
        "date": date.fromordinal(738_000 + seed % 900),
    }[type_]


def as_json(value: Any) -> Any:
    """A value as a file has it."""
    if isinstance(value, int) and not isinstance(value, bool) and value > START - 100 * DAY:
        return interval.show_instant(value)
    return str(value) if isinstance(value, date | Decimal) else value


def as_text(value: Any) -> Any:
    """What is nested, as text; any other value as it is."""
    return json.dumps(value, sort_keys=True) if isinstance(value, dict | list) else value
