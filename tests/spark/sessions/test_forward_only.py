"""Sessions whose definition changes forward-only: the border ends them, each side has its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import md5
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.crash.scenario import living
from tests.reference import aggregates as agg
from tests.reference.compare import stored
from tests.reference.tables import Ends, Entry, numbered, sessions
from tests.reference.world import Row, frozen

from infold import api
from infold.core.interval import (
    DAY,
    HOUR,
    MAX,
    MIN,
    MINUTE,
    datetime_of,
    parse_instant_text,
)
from infold.core.manual_entry import ManualEntry
from infold.core.plan import Action, PlanOptions
from infold.core.project import Project
from infold.core.report import RunFailed, RunResult

pytestmark = pytest.mark.spark

PROJECT = """
name: shop
sources:
  raw.clicks:
    path: landing/*.json
    format: json
    event_time_column: ts
    columns: {id: string, who: string, ts: timestamp, url: string, n: int}
"""
CLICKS = """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: ts, granularity: day}
---
SELECT id, who, ts, url, n FROM raw.clicks
"""
DAILY = """---
materialization: table
timeseries: {event_time_column: session_start, partition_column: day, granularity: day}
incremental: {}
---
SELECT cast(session_start AS date) AS day, count(*) AS sessions, sum(events) AS events
FROM sessions GROUP BY 1
"""
BEGIN = parse_instant_text("2024-03-01")


def day(number: int) -> int:
    """The start of a day, counted from 1."""
    return BEGIN + (number - 1) * DAY


@dataclass(frozen=True)
class Version:
    """A definition of the sessions, and the same for the reference."""

    front: str
    sql: str
    gap: int
    columns: Mapping[str, agg.Aggregate]
    ends: Ends = Ends()
    where: Callable[[Row], bool | None] = lambda row: True
    numbered: bool = False
    keys: str = "forward_only: true"

    @property
    def text(self) -> str:
        """The model's file."""
        front = f"materialization: sessions\nsessions: {self.front}\n{self.keys}"
        return f"---\n{front}\n---\n{self.sql}"


def _campaign(row: Row) -> Any:
    return row["url"]


def _start(row: Row) -> Any:
    return row["session_start"]


COUNT = agg.count()
FIRST = Version(
    "{user: who, gap: 30 minutes, session_number: true}",
    "SELECT count(*) AS events, first(url) AS entry FROM clicks",
    30 * MINUTE,
    {"events": COUNT, "entry": agg.first("url")},
    numbered=True,
)
SECOND = Version(
    "{user: who, gap: 2 hours, cuts: {campaign: url}, quarantine_after: 3 hours, keep: head,"
    " session_number: true}",
    "SELECT max(n) AS top, count(*) AS events, last(url) AS entry, sum(n) AS ns FROM clicks",
    2 * HOUR,
    {
        "top": agg.greatest("n"),
        "events": COUNT,
        "entry": agg.last("url"),
        "ns": agg.total("n"),
    },
    Ends(campaign=_campaign, limit=3 * HOUR, head=True),
    numbered=True,
)
THIRD = Version(
    "{user: who, gap: 45 minutes, max_length: 2 hours, session_number: true}",
    "SELECT max(n) AS top, count(n) AS events, first(url) AS entry, sum(n) AS ns,\n"
    "count(DISTINCT url) AS urls FROM clicks WHERE n <> 0",
    45 * MINUTE,
    {
        "top": agg.greatest("n"),
        "events": agg.count_of("n"),
        "entry": agg.first("url"),
        "ns": agg.total("n"),
        "urls": agg.count_distinct("url"),
    },
    Ends(most=2 * HOUR),
    lambda row: row["n"] is not None and row["n"] != 0,
    numbered=True,
)


DROPPED = replace(
    THIRD, sql="SELECT count(n) AS events, first(url) AS entry, sum(n) AS ns FROM clicks"
)
RETYPED = replace(THIRD, sql=THIRD.sql.replace("count(n)", "cast(count(n) AS string)"))


class EveryPointBut(Collection[tuple[str, str]]):
    """All write points but the one that a run is to die at."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __contains__(self, point: object) -> bool:
        return isinstance(point, tuple) and point[1] != self.name

    def __iter__(self) -> Iterator[tuple[str, str]]:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError


@dataclass
class Shop:
    """The project in a folder, and the rows that its sessions should have."""

    root: Path
    random: Random = field(default_factory=lambda: Random(7))
    files: dict[str, list[Row]] = field(default_factory=dict)
    held: list[tuple[int, Version]] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    ids: int = 0

    def __post_init__(self) -> None:
        for folder in ("models", "landing"):
            (self.root / folder).mkdir(parents=True)
        (self.root / "infold.yml").write_text(PROJECT, encoding="utf-8")
        self.model("clicks", CLICKS)
        self.model("daily", DAILY)

    def model(self, name: str, text: str) -> None:
        """Write a model."""
        (self.root / "models" / f"{name}.sql").write_text(text, encoding="utf-8")

    @property
    def project(self) -> Project:
        """The project, read again as each command does."""
        return api.open_project(self.root)

    def define(self, version: Version, since: int = MIN) -> None:
        """Another definition, in force from an instant on."""
        self.model("sessions", version.text)
        self.held = [*(one for one in self.held if one[0] < since), (since, version)]

    def land(self, first: int, last: int, events: int = 25, name: str = "") -> str:
        """A file of random events between two days, both included; many are around midnights."""
        name, draw = name or f"{len(self.files):02}.json", self.random
        rows = []
        for _ in range(events):
            self.ids += 1
            near = day(draw.randint(first, last)) + draw.choice([0, 0, 12 * HOUR])
            at = max(day(first), near + draw.randint(-8, 12) * 15 * MINUTE + draw.randint(-1, 1))
            who = draw.choice(["ann", "bob", "cid", None])
            url = draw.choice([None, "/", "/a", "/b"])
            rows.append(
                {"id": str(self.ids), "who": who, "ts": at, "url": url, "n": draw.randint(-2, 3)}
            )
        self.put(name, rows)
        return name

    def put(self, name: str, rows: list[Row]) -> None:
        """Write a file."""
        lines = [json.dumps(row | {"ts": datetime_of(row["ts"]).isoformat()}) for row in rows]
        (self.root / "landing" / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        self.files[name] = rows

    def remove(self, name: str) -> None:
        """Delete a file."""
        (self.root / "landing" / name).unlink()
        del self.files[name]

    def say(self, held: str, released: str) -> None:
        """Entries by hand: some sessions of one user go into quarantine, another's come out."""
        words = [(held, True, day(2), day(7)), (released, False, None, None)]
        entries = [ManualEntry(0, *one) for one in words]
        api.ledger(self.project).add_entries("sessions", entries)
        self.entries += [Entry(*one) for one in words]

    def run(self) -> RunResult:
        """Run, and compare with the reference."""
        result = api.run(self.project, allow_removals=True)
        self.check()
        return result

    @staticmethod
    def id_of(row: Row) -> str:
        """The id of a session."""
        return md5(f"{row['who']}|{row['session_start']}".encode()).hexdigest()

    def events(self) -> Iterator[tuple[Version, Row]]:
        """All events, each with the definition in force at its time."""
        for row in (row for rows in self.files.values() for row in rows):
            yield next(one for at, one in reversed(self.held) if at <= row["ts"]), row

    def expected(self) -> list[Row]:
        """The sessions by brute force: each version over the events of its stretch."""
        events = [row for rows in self.files.values() for row in rows]
        ends = [*(at for at, _ in self.held[1:]), MAX]
        columns = list(self.held[-1][1].columns)
        found: list[Row] = []
        for (at, version), end in zip(self.held, ends, strict=True):
            made = sessions(
                [row for row in events if at <= row["ts"] < end],
                user="who",
                time="ts",
                key=("id",),
                gap=version.gap,
                aggregates=version.columns,
                where=version.where,
                ends=replace(version.ends, entries=tuple(self.entries)),
            )
            found += [dict.fromkeys(columns) | row for row in made]
        if self.held[-1][1].numbered:
            found = numbered(found, "who", lambda row: row["who"])
        return found

    def check(self) -> None:
        """The table has the sessions of the reference."""
        rows = stored(api.lake(self.project).rows("sessions").to_pylist(), ("session_id",))
        wanted = sorted(map(repr, map(frozen, self.expected())))
        assert sorted(map(repr, map(frozen, rows))) == wanted

    def verify(self) -> None:
        """Compare with the definitions over everything."""
        found = api.verify(self.project)
        wrong = [(v.model, v.note, v.differing[:3]) for v in found.models if not v.equal]
        assert not wrong, wrong


def action_of(done: RunResult) -> list[Action]:
    """What a run did to the sessions."""
    return [step.action for step, _ in done.steps if step.model == "sessions"]


def test_each_side_of_a_border_has_its_definition(tmp_path: Path) -> None:
    """Definitions change twice, from the first day that is not built and from a built one. Late,
    replaced and removed events on all sides are in the sessions of the definition in force there,
    no session reaches over a border, and numbers go on over it.
    """
    shop = Shop(tmp_path / "shop")
    shop.define(FIRST)
    for first, last, events in ((1, 3, 70), (3, 5, 70), (2, 4, 12), (3, 5, 12)):
        shop.land(first, last, events)
    shop.run()

    shop.land(2, 8, 20)  # late and new, together with the change
    shop.define(SECOND, day(6))
    assert action_of(shop.run()) == [Action.FOLD]
    assert not api.run(shop.project).steps
    shop.land(1, 4, 15)
    shop.put("02.json", shop.files["02.json"][::2])
    shop.remove("03.json")
    shop.say("ann", "bob")
    assert action_of(shop.run()) == [Action.FOLD]

    # The third from a day that is built. Runs die over it; the next one goes on, as was asked.
    shop.define(THIRD, day(4))
    shop.land(1, 9, 20)
    asked = PlanOptions(forward_only={"sessions": day(4)})
    for point in ("table sessions: before commit", "table sessions: after commit"):
        with living(met=EveryPointBut(point)) as life:
            api.run(shop.project, asked=asked if point.endswith("before commit") else None)
        assert life.dead
    shop.run()
    shop.verify()
    before = shop.expected()

    kept = max((row for row in before if row["session_start"] < day(4)), key=_start)
    [told] = api.session_history(shop.project, shop.id_of(kept)).histories
    assert "Its definition is in force before 2024-03-04: sessions end there." in told.notes
    nobody = sum(row["who"] is None and bool(by.where(row)) for by, row in shop.events())
    assert api.show(shop.project, "set_aside").num_rows == nobody

    # Built again, each side is as it was; what would change the earlier side is refused.
    api.restate(shop.project, ["sessions"])
    shop.check()
    for wrong, slug in ((DROPPED, "not-forward-only"), (RETYPED, "forward-only-types")):
        shop.model("sessions", wrong.text)
        with pytest.raises(RunFailed) as caught:
            api.run(shop.project)
        assert [one.error.slug for one in caught.value.result.failures] == [slug]
        assert shop.expected() == before
        shop.check()

    shop.define(replace(SECOND, keys=""))  # not forward-only: all is built by the newest one
    shop.run()
    assert not api.ledger(shop.project).traces()["sessions"].earlier
