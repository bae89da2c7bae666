"""Events that join lookups while they are ingested follow every change of the lookup.

Models read the same files and rates: with the version that orders copies from the lookup, with a
key of more columns, and with the event time from the lookup. The reference is plain Python over all
rows of all files.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.crash.scenario import living
from tests.spark.events.clicks_project import AllBut

from infold import api
from infold.core import interval
from infold.core.model import SET_ASIDE, table_name
from infold.core.record import Receipt
from infold.core.report import RunResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NOW = "2024-03-10 00:00"
PROJECT = """name: enriched{number}
sources:
  raw.clicks:
    path: clicks/*.csv
    event_time_column: at
    columns: {{id: string, who: string, at: timestamp, v: int, cur: string}}
  raw.rates:
    path: rates/*.csv
    columns: {{code: string, rate: int, seen: timestamp}}
targets:
  dev: {{storage: iceberg, warehouse: '{warehouse}'}}
"""
MODELS = {
    "priced": """---
materialization: events
unique_key: [id]
prefer: [rate desc, v desc, who, cur]
timeseries: {event_time_column: at}
---
SELECT e.*, r.rate FROM raw.clicks e LEFT JOIN raw.rates r ON e.cur = r.code""",
    "known": """---
materialization: events
unique_key: [id, v]
prefer: [rate]
timeseries: {event_time_column: at}
---
SELECT e.id, e.at, e.v, r.rate FROM raw.clicks e JOIN raw.rates r ON r.code = upper(e.cur)
WHERE r.rate > 0""",
    "dated": """---
materialization: events
unique_key: [id]
deduplicate: everywhere
prefer: [v desc, cur, who]
timeseries: {event_time_column: seen}
---
SELECT id, who, v, cur, seen FROM raw.clicks, raw.rates WHERE code = cur""",
    "rated": """---
materialization: view
---
SELECT c.*, rate FROM raw.clicks AS c LEFT JOIN raw.rates ON code = cur""",
    "viewed": """---
materialization: events
unique_key: [id]
prefer: [rate desc, v desc, who, cur]
timeseries: {event_time_column: at}
---
SELECT id, who, at, v, cur, rate FROM rated""",
    "plain": """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: at}
---
SELECT * FROM raw.clicks""",
}
Click = tuple[str, str, str, Any, str]
"""id, who, at, v (a number, or the row cannot be used) and cur, which may be empty: NULL."""
Rate = tuple[str, int, str]
"""code, rate, and when it was seen, which may be empty."""


@dataclass
class World:
    """A project in a folder, and all that its files hold."""

    root: Path
    warehouse: Path
    clicks: dict[str, list[Click]] = field(default_factory=dict)
    rates: dict[str, list[Rate]] = field(default_factory=dict)

    def made(self, models: Sequence[str], number: int) -> World:
        """The project with some of the models."""
        for name in ("models", "clicks", "rates"):
            (self.root / name).mkdir(parents=True)
        text = PROJECT.format(number=number, warehouse=self.warehouse)
        (self.root / "infold.yml").write_text(text)
        for name in [*models, *(["rated"] if "viewed" in models else [])]:
            (self.root / "models" / f"{name}.sql").write_text(MODELS[name])
        return self

    def run(self, now: str = NOW) -> RunResult:
        """One run over what the files hold now."""
        for folder, header, files in (
            ("clicks", "id,who,at,v,cur", self.clicks),
            ("rates", "code,rate,seen", self.rates),
        ):
            for path in (self.root / folder).iterdir():
                if path.stem not in files:
                    path.unlink()
            for name, rows in files.items():
                path = self.root / folder / f"{name}.csv"
                text = "\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n"
                if not path.exists() or path.read_text() != text:
                    path.write_text(text)
        at = interval.parse_instant_text(now)
        return api.run(api.open_project(self.root), as_of=at, allow_removals=True)

    def table(self, name: str) -> Counter[Any]:
        """The rows of a table, times as people write them."""
        rows = api.lake(api.open_project(self.root)).rows(table_name(name)).to_pylist()
        return Counter(
            tuple(
                interval.show_instant(interval.micros_of(value))
                if hasattr(value, "tzinfo")
                else value
                for value in row.values()
            )
            for row in rows
        )

    def aside(self) -> Counter[Any]:
        """The rows that each model could not use."""
        rows = api.lake(api.open_project(self.root)).rows(SET_ASIDE).to_pylist()
        return Counter((row["model"], row["raw"]) for row in rows)

    def joined(self, fold: Callable[[str], str] = str) -> Iterator[tuple[Click, Rate | None]]:
        """Each click with each rate of its currency, or none."""
        rates = [rate for rows in self.rates.values() for rate in rows]
        for click in (click for rows in self.clicks.values() for click in rows):
            if not isinstance(click[3], int):
                continue
            found = [rate for rate in rates if click[4] and fold(click[4]) == rate[0]]
            yield from ((click, rate) for rate in found)
            if not found:
                yield click, None

    def expected(self, name: str, now: str) -> Counter[Any]:
        """The rows that a table is to have."""
        if name == "known":
            return self.known()
        return self.dated(now) if name == "dated" else self.priced()

    def known(self) -> Counter[Any]:
        """Clicks of an id, time and v with the least rate that is above zero."""
        least: dict[tuple[str, str, int], int] = {}
        for (id_, _, at, v, _), rate in self.joined(str.upper):
            if rate is not None and rate[1] > 0:
                least[id_, at, v] = min(least.get((id_, at, v), rate[1]), rate[1])
        return Counter((*of, worth) for of, worth in least.items())

    def priced(self) -> Counter[Any]:
        """Of the clicks of an id and time the one with the greatest rate, then v."""
        best: dict[tuple[str, str], Any] = {}
        for click, rate in self.joined():
            id_, who, at, v, cur = click
            worth = rate[1] if rate else None
            order = worth is None, -(worth or 0), -v, who, not cur, cur
            one = order, (*click[:4], cur or None, worth)
            best[id_, at] = min(best.get((id_, at), one), one)
        return Counter(row for _, row in best.values())

    def dated(self, now: str) -> Counter[Any]:
        """Of the clicks of an id the one with the greatest v, at the time that the rate says."""
        best: dict[str, Any] = {}
        for (id_, who, _, v, cur), rate in self.joined():
            if rate is not None and rate[2] and rate[2] <= now:
                one = (-v, cur, who, rate[2]), (id_, who, v, cur, rate[2])
                best[id_] = min(best.get(id_, one), one)
        return Counter(row for _, row in best.values())

    def of(self, name: str, *ids: str) -> list[int | None]:
        """The rates of some events, in order of their ids."""
        return [row[-1] for row in sorted(self.table(name), key=str) if row[0] in ids]

    def compare(self, now: str = NOW) -> None:
        """Every table of events holds what it should, and of its files what the ledger says."""
        book = api.ledger(api.open_project(self.root))
        for name in ("priced", "known", "dated", "viewed"):
            if (self.root / "models" / f"{name}.sql").exists():
                found = self.table(name)
                assert found == self.expected(name, now), name
                assert found.total() == sum(f.rows - f.dropped for f in book.files(name)), name


def mutate(world: World, draw: random.Random, step: int) -> None:
    """Some of all that can happen to the files of events and rates before a run."""
    for _ in range(draw.randint(1, 3)):
        what = draw.choice(["clicks", "clicks", "rate", "rate", "rate", "gone", "no rates"])
        if what == "clicks":
            name = draw.choice([*world.clicks, f"c{step}", f"d{step}"])
            world.clicks[name] = [_click(draw) for _ in range(draw.randint(0, 6))]
        elif what == "gone" and len(world.clicks) > 1:
            del world.clicks[draw.choice([*world.clicks])]
        elif what == "no rates" and len(world.rates) > 1:
            del world.rates[draw.choice([*world.rates])]
        else:
            name = draw.choice([*world.rates, f"r{step}"])
            rows = [row for row in world.rates.get(name, []) if draw.random() < 0.6]
            world.rates[name] = [*rows, *(_rate(draw) for _ in range(draw.randint(0, 2)))]


def _click(draw: random.Random) -> Click:
    day, hour = draw.choice([1, 1, 2, 5, 9]), draw.choice([8, 9, 10])
    at = f"2024-03-0{day} {hour:02}:00"
    cur = draw.choice(["EUR", "USD", "GBP", "usd", "", "CHF"])
    return draw.choice("abcdef"), draw.choice(["ann", "bob"]), at, draw.randint(0, 2), cur


def _rate(draw: random.Random) -> Rate:
    seen = draw.choice(
        ["", "2024-03-01 00:10", "2024-03-04 12:00", "2024-03-08 09:00", "2024-03-20 00:10"]
    )
    return draw.choice(["EUR", "USD", "GBP"]), draw.randint(-1, 3), seen


@pytest.fixture
def world(tmp_path: Path, warehouse: Path, spark: SparkSession) -> World:
    """A project without files."""
    return World(tmp_path, warehouse)


def test_random_arrivals(world: World) -> None:
    """Every table equals the reference after each run of
    random events and rates that arrive, change and leave.
    """
    draw = random.Random(1)
    world.made(["viewed", "dated"], 1)
    world.clicks["c"] = [_click(draw) for _ in range(12)]
    world.rates["r"] = [("EUR", 1, "2024-03-01 00:10"), ("USD", 2, "")]
    for now in ("2024-03-10 00:00", "2024-03-11 00:00", "2024-03-25 00:00"):
        world.run(now)
        world.compare(now)
        mutate(world, draw, len(world.clicks))
    world.run(now)
    world.compare(now)


def test_a_lookup_key_is_removed_and_added(world: World) -> None:
    """Without its lookup row an event has NULL or is left
    out; a file is read again for its own keys only.
    """
    world.made(["priced", "known", "plain"], 0)
    for n in range(8):
        at = f"2024-03-02 {n + 10}:00"
        world.clicks[f"gbp{n}"] = [(f"g{n}{m}", "bob", at, m, "GBP") for m in range(5)]
    wrong = ("x", "ann", "2024-03-01 09:00", "many", "EUR")
    world.clicks["eur"] = [("a", "ann", "2024-03-01 09:00", 1, "EUR"), wrong]
    world.clicks["none"] = [("n", "ann", "2024-03-01 10:00", 1, "")]
    world.rates["gbp"] = [("GBP", 3, "")]
    world.run()
    assert world.of("priced", "a", "n") == [None, None]
    assert world.of("known", "a", "n") == []
    aside = Counter((name, ",".join(wrong)) for name in ("priced", "known", "plain"))
    assert world.aside() == aside, "joined or not, and once"

    world.rates["eur"] = [("EUR", 2, "")]
    world.clicks["late"] = [("b", "ann", "2024-03-01 09:30", 1, "EUR")]
    done = receipts(world.run())
    assert world.of("priced", "a", "b", "n") == [2, 2, None]
    assert world.of("known", "a", "b", "n") == [2, 2]
    assert done["plain"].read == 1, "the late one"
    for name in ("priced", "known"):
        assert (done[name].arrived, done[name].files_new) == (1, 1)
        assert done[name].read <= 5, "the late one, and the file with its key, before and after"
        assert done[name].scanned < 60
    assert (done["priced"].written, done["priced"].removed) == (2, 1)
    assert (done["known"].written, done["known"].removed) == (2, 0)
    assert world.aside() == aside
    world.compare()

    world.clicks["more"] = [("c", "ann", "2024-03-01 09:40", 1, "EUR")]
    del world.clicks["eur"]
    done = receipts(world.run())
    for name in ("priced", "known"):
        one, other = done[name], done["plain"]
        assert (one.read, one.written) == (other.read, other.written)
        assert one.scanned <= other.scanned, "no row more without a change of the rates"

    world.rates["eur"] = []
    done = receipts(world.run())
    assert world.of("priced", "a", "b", "c", "n") == [None, None, None]
    assert world.of("known", "a", "b", "c", "n") == []
    assert "plain" not in done
    world.compare()


def receipts(result: RunResult) -> dict[str, Receipt]:
    """What a run did to each model."""
    found: dict[str, Receipt] = {}
    for step, receipt in result.steps:
        found[step.model] = found.get(step.model, Receipt()) + receipt
    return found


def test_a_run_that_dies(world: World) -> None:
    """A run that dies while rates and events change is followed by a correct one."""
    world.made(["priced"], 1000)
    world.clicks["c"] = [("a", "ann", "2024-03-01 09:00", 1, "EUR")]
    world.clicks["d"] = [("a", "ann", "2024-03-01 09:00", 2, "USD")]
    world.rates["r"] = [("EUR", 2, ""), ("USD", 1, "")]
    world.run()
    assert [row[3:] for row in world.table("priced")] == [(1, "EUR", 2)]
    before = world.table("priced")
    world.rates["r"] = [("EUR", 2, ""), ("USD", 3, "")]
    world.clicks["e"] = [("b", "ann", "2024-03-02 09:00", 2, "USD")]
    with living(met=AllBut([("", "table priced: after commit")])) as life:
        world.run()
    assert life.dead
    assert before != world.table("priced") == world.expected("priced", NOW)
    world.run()
    world.compare()
