"""
Tables of 100 columns, some of them structs and arrays of structs: each kind, and a later run.

Trackers' events are as wide. What grows faster than the number of columns shows here by the time
that it takes, if it ends at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.reference import aggregates as agg
from tests.reference import tables
from tests.reference.compare import difference, stored
from tests.reference.world import Row
from tests.spark.project import WHOLE, SparkProject, new_name

from infold import api
from infold.core import interval
from infold.core.audits import AuditState
from infold.core.interval import DAY, HOUR, MINUTE
from infold.core.model import table_name
from infold.inspecting.audits import newest_audits

pytestmark = pytest.mark.spark

START = interval.parse_instant_text("2024-03-04")
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


class WideEvents(SparkProject):
    """Files of events as wide as those of a tracker, and a model of each kind."""

    now = "2024-03-20"

    source, storage = "path: landing/*.json", "iceberg"

    def __init__(self, root: Path, warehouse: Path, width: int = 100) -> None:
        self.columns = {"event_id": "string", "user_id": "string", "at": "timestamp"}
        for number in range(width - len(self.columns)):
            name, type_ = TYPES[number % len(TYPES)]
            self.columns[f"{name}_{number}"] = type_
        self.plain = [name for name, type_ in self.columns.items() if "<" not in type_][3:]
        self.nested = [name for name, type_ in self.columns.items() if "<" in type_]
        declared = "".join(f'      {name}: "{type_}"\n' for name, type_ in self.columns.items())
        self.there: dict[str, tuple[Row, ...]] = {}
        super().__init__(
            root,
            f"name: {new_name('wide')}\nsources:\n  raw.events:\n    {self.source}\n"
            f"    event_time_column: at\n    columns:\n{declared}"
            f"targets:\n  dev: {{storage: {self.storage}, warehouse: '{warehouse}'}}\n",
        )
        self.models(**self._models())

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
            "whole": f"{WHOLE}SELECT * FROM anywhere",
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

    def event(self, number: int, user: str, minutes: int, version: int = 0) -> Row:
        """An event: all values follow from its number and version."""
        row: Row = {"event_id": f"e{number}", "user_id": user, "at": START + minutes * MINUTE}
        for at, (name, type_) in enumerate(list(self.columns.items())[3:]):
            seed = number * 31 + at * 7 + version
            row[name] = None if seed % 11 == 0 else value_of(type_, seed)
        return row

    def put(self, name: str, *rows: Row) -> None:
        """A file; one of that name is replaced."""
        self.there[name] = rows
        lines = [json.dumps({key: as_json(value) for key, value in row.items()}) for row in rows]
        self.write(f"landing/{name}", "\n".join(lines) + "\n")

    def drop(self, name: str) -> None:
        """A file leaves."""
        del self.there[name]
        super().drop(name)

    def check(self) -> dict[str, list[Row]]:
        """Each table has the expected rows."""
        expected, lake = self.expected(), api.lake_of(self.project())
        for name, rows in expected.items():
            found = stored(lake.rows(table_name(name)).to_pylist(), ["session_id"])
            assert difference(rows, nested_as_text(found)) == "", name
        return expected

    def expected(self) -> dict[str, list[Row]]:
        """The rows of each table, by brute force."""
        kept = nested_as_text(row for rows in self.there.values() for row in rows)
        copies = partial(tables.events, kept, key=["event_id"], time="at")
        by_time, anywhere = copies(prefer=["count_1 desc"]).rows(), copies(everywhere=True).rows()
        count = {"events": agg.count()}
        firsts = count | {name: agg.first(name) for name in [*self.plain, *self.nested]}
        most = count | {name: agg.greatest(name) for name in self.plain}
        sessions = partial(tables.sessions, time="at", key=["event_id"], aggregates=firsts)
        days = [{"day": day_of(row["at"]), **row} for row in by_time]
        states = [{name: row[name] for name in ("user_id", "at", *self.plain)} for row in by_time]
        return {
            "by_time": by_time,
            "anywhere": anywhere,
            "whole": anywhere,
            "visits": sessions(by_time, user="user_id", gap=30 * MINUTE),
            "pages": sessions(
                anywhere,
                user="session_identifier",
                gap=None,
                ends=tables.Ends(whose=lambda row: row[self.plain[0]]),
            ),
            "daily": tables.grouped(
                [row for row in days if row["user_id"] != "nobody"],
                {"day": lambda row: row["day"]},
                most,
            ),
            "users": tables.grouped(by_time, {"user_id": lambda row: row["user_id"]}, most),
            "states": tables.versions(states, key=["user_id"], time="at", compared=self.plain),
        }


class WideDelta(WideEvents):
    """A table of Delta Lake as wide, from one of another owner; audits and a lookup as wide."""

    source, storage = "path: landing/raw\n    format: delta", "delta"

    def _models(self) -> dict[str, str]:
        """Audits of all columns: of the events, and of what is joined to them."""
        words = ", ".join(self.plain)
        most = ", ".join(f"max({name}) AS {name}" for name in self.plain)
        known = ", ".join(f"u.{name} AS most_{name}" for name in self.plain)
        audits = "audits:\n  - not_null: [event_id, user_id, at]\n  - unique: [event_id]\n"
        audits += f"  - not_null: [{words}]\n    severity: warn\n    name: no gaps in it\n"
        return {
            "by_time": (
                "---\nmaterialization: events\nunique_key: [event_id]\n"
                f"timeseries: {{event_time_column: at}}\n{audits}---\nSELECT * FROM raw.events"
            ),
            "users": (
                "---\nmaterialization: cumulative_aggregate\n---\n"
                f"SELECT user_id, {most} FROM by_time GROUP BY user_id"
            ),
            "known": (
                "---\nmaterialization: table\ntimeseries: {event_time_column: at, "
                f"partition_column: day}}\nincremental: {{}}\n{audits}---\n"
                f"SELECT cast(e.at AS date) AS day, e.*, {known} "
                "FROM by_time e LEFT JOIN users u ON u.user_id = e.user_id"
            ),
        }

    def append(self, *rows: Row) -> None:
        """The owner of the source adds rows."""
        self.there["raw"] = (*self.there.get("raw", ()), *rows)
        schema = pa.schema([(name, arrow_type(type_)) for name, type_ in self.columns.items()])
        there = pa.Table.from_pylist(list(rows), schema)
        write_deltalake((self.root / "landing/raw").as_uri(), there, mode="append")

    def delete(self, *ids: str) -> None:
        """The owner deletes events."""
        self.there["raw"] = tuple(row for row in self.there["raw"] if row["event_id"] not in ids)
        names = ", ".join(f"'{id_}'" for id_ in ids)
        DeltaTable((self.root / "landing/raw").as_uri()).delete(f"event_id IN ({names})")

    def expected(self) -> dict[str, list[Row]]:
        """The rows of each table, by brute force."""
        events = nested_as_text(self.there["raw"])
        most = {f"most_{name}": agg.greatest(name) for name in self.plain}
        users = tables.grouped(events, {"user_id": lambda row: row["user_id"]}, most)
        days = [{"day": day_of(row["at"]), **row} for row in events]
        return {
            "by_time": events,
            "users": [{name.removeprefix("most_"): row[name] for name in row} for row in users],
            "known": tables.left_joined(days, users, "user_id", [*most]),
        }


def arrow_type(type_: str) -> pa.DataType:
    """The type of a column in a file."""
    page = pa.struct({"title": pa.string(), "size": pa.int64(), "tags": pa.list_(pa.string())})
    nested = {"struct": pa.struct({"schema": pa.string(), "data": page})}
    nested["array"] = pa.list_(nested["struct"])
    plain = {
        "string": pa.string(),
        "bigint": pa.int64(),
        "int": pa.int32(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
        "decimal(18,2)": pa.decimal128(18, 2),
        "timestamp": pa.timestamp("us", "UTC"),
        "date": pa.date32(),
    }
    return plain.get(type_) or nested[type_.partition("<")[0]]


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


def day_of(instant: int) -> date:
    """The day of an instant."""
    return interval.datetime_of(instant).date()


def nested_as_text(rows: Iterable[Row]) -> list[Row]:
    """Rows whose structs and lists are texts, which can be counted."""
    return [
        {
            name: repr(value) if isinstance(value, list | dict) else value
            for name, value in row.items()
        }
        for row in rows
    ]


def as_json(value: Any) -> Any:
    """A value as a file has it."""
    if isinstance(value, int) and not isinstance(value, bool) and value > START - 100 * DAY:
        return interval.show_instant(value)
    return str(value) if isinstance(value, date | Decimal) else value


def test_each_kind_after_each_arrival(tmp_path: Path, warehouse: Path) -> None:
    """Late, replaced and removed files, and copies at the same and at other times."""
    wide = WideEvents(tmp_path / "wide", warehouse)
    event = wide.event
    wide.put(
        "1.json",
        *(event(number, f"u{number % 4}", number * 17) for number in range(12)),
        event(3, "u3", 51),
        event(50, "nobody", 24 * 60),
    )
    wide.put("2.json", *(event(n, "u1", 24 * 60 + n * 20) for n in range(20, 26)))
    wide.put("3.json", event(30, "u0", 5), event(31, "u2", 48 * 60))
    wide.go()

    wide.put("2.json", *(event(n, "u1", 24 * 60 + n * 21, 1) for n in range(20, 25)))
    wide.drop("3.json")
    wide.put("4.json", event(1, "u1", 17), event(5, "u1", 84), event(40, "u5", 60))
    wide.go()

    expected = wide.check()
    assert [len(expected[name]) for name in ("by_time", "anywhere", "users")] == [20, 19, 6]


def test_delta_from_a_table_with_audits_and_a_lookup(tmp_path: Path, warehouse: Path) -> None:
    """A table source whose owner deletes, replaces and adds rows; a late row changes a lookup."""
    wide = WideDelta(tmp_path, warehouse, width=75)
    event = wide.event
    wide.append(*(event(number, f"u{number % 4}", number * 200) for number in range(12)))
    wide.go()

    wide.delete("e3", "e5")
    wide.append(event(5, "u1", 1000, 1), event(20, "u1", 10))
    wide.go()

    assert [len(rows) for rows in wide.check().values()] == [12, 4, 12]
    project = wide.project()
    failed = {
        (one.result.model, one.result.audit)
        for one in newest_audits(project, api.ledger_of(project))
        if one.result.state is AuditState.FAILED
    }
    assert failed == {("by_time", "no gaps in it"), ("known", "no gaps in it")}
