"""Events that join lookups while they are ingested follow every change of the lookup.

Models read the same files and rates: with the version that orders copies from the lookup, with a
key of more columns, and with the event time from the lookup. The reference is plain Python over all
rows of all files.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.spark.events.clicks_project import ClicksProject

from infold import api
from infold.core.model import SET_ASIDE
from infold.core.record import Receipt

pytestmark = pytest.mark.spark

NOW = "2024-03-10 00:00"
SOURCES = """    event_time_column: at
    columns: {id: string, who: string, at: timestamp, v: int, cur: string}
  raw.rates:
    path: rates/*.csv
    columns: {code: string, rate: int, seen: timestamp}
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


class World(ClicksProject):
    """A project with some of the models, and all that its files hold."""

    def __init__(self, root: Path, warehouse: Path) -> None:
        super().__init__(root, warehouse, "", SOURCES)
        self.clicks: dict[str, list[Click]] = {}
        self.rates: dict[str, list[Rate]] = {}

    def made(self, *models: str) -> World:
        """The project with some of the models."""
        self.models(**{name: MODELS[name] for name in models})
        return self

    def take_in(self, now: str = NOW) -> dict[str, Receipt]:
        """One run over what the files hold now."""
        for folder, header, files in (
            ("landing", "id,who,at,v,cur", self.clicks),
            ("rates", "code,rate,seen", self.rates),
        ):
            there = {file.stem: file for file in (self.root / folder).glob("*")}
            for name in there.keys() - files.keys():
                there[name].unlink()
            for name, rows in files.items():
                text = "\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n"
                if name not in there or there[name].read_text() != text:
                    self.write(f"{folder}/{name}.csv", text)
        return self.receipts(now=now)

    def table(self, name: str) -> Counter[Any]:
        """The rows of a table."""
        return Counter(self.rows(name))

    def unusable(self) -> Counter[Any]:
        """The rows that each model could not use."""
        return Counter(self.rows(SET_ASIDE, "model", "raw"))

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
        book = api.ledger_of(self.project())
        for name in ("priced", "known", "dated", "viewed"):
            if name in self.project():
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
def world(tmp_path: Path, warehouse: Path) -> World:
    """A project without files."""
    return World(tmp_path, warehouse)


def test_random_arrivals(world: World) -> None:
    """Every table equals the reference after each run of
    random events and rates that arrive, change and leave.
    """
    draw = random.Random(1)
    world.made("viewed", "dated", "rated")
    world.clicks["c"] = [_click(draw) for _ in range(12)]
    world.rates["r"] = [("EUR", 1, "2024-03-01 00:10"), ("USD", 2, "")]
    for now in ("2024-03-10 00:00", "2024-03-25 00:00"):
        world.take_in(now)
        world.compare(now)
        mutate(world, draw, len(world.clicks))
    world.take_in(now)
    world.compare(now)


def test_a_lookup_key_is_removed_and_added(world: World) -> None:
    """Without its lookup row an event has NULL or is left
    out; a file is read again for its own keys only.
    """
    world.made("priced", "known", "plain")
    for n in range(8):
        at = f"2024-03-02 {n + 10}:00"
        world.clicks[f"gbp{n}"] = [(f"g{n}{m}", "bob", at, m, "GBP") for m in range(5)]
    wrong = ("x", "ann", "2024-03-01 09:00", "many", "EUR")
    world.clicks["eur"] = [("a", "ann", "2024-03-01 09:00", 1, "EUR"), wrong]
    world.clicks["none"] = [("n", "ann", "2024-03-01 10:00", 1, "")]
    world.rates["gbp"] = [("GBP", 3, "")]
    world.take_in()
    assert world.of("priced", "a", "n") == [None, None]
    assert world.of("known", "a", "n") == []
    aside = Counter((name, ",".join(wrong)) for name in ("priced", "known", "plain"))
    assert world.unusable() == aside, "joined or not, and once"

    world.rates["eur"] = [("EUR", 2, "")]
    world.clicks["late"] = [("b", "ann", "2024-03-01 09:30", 1, "EUR")]
    done = world.take_in()
    assert world.of("priced", "a", "b", "n") == [2, 2, None]
    assert world.of("known", "a", "b", "n") == [2, 2]
    assert done["plain"].read == 1, "the late one"
    for name in ("priced", "known"):
        assert (done[name].arrived, done[name].files_new) == (1, 1)
        assert done[name].read <= 5, "the late one, and the file with its key, before and after"
        assert done[name].scanned < 60
    assert (done["priced"].written, done["priced"].removed) == (2, 1)
    assert (done["known"].written, done["known"].removed) == (2, 0)
    assert world.unusable() == aside
    world.compare()

    world.clicks["more"] = [("c", "ann", "2024-03-01 09:40", 1, "EUR")]
    del world.clicks["eur"]
    done = world.take_in()
    for name in ("priced", "known"):
        one, other = done[name], done["plain"]
        assert (one.read, one.written) == (other.read, other.written)
        assert one.scanned <= other.scanned, "no row more without a change of the rates"

    world.rates["eur"] = []
    done = world.take_in()
    assert world.of("priced", "a", "b", "c", "n") == [None, None, None]
    assert world.of("known", "a", "b", "c", "n") == []
    assert "plain" not in done
    world.compare()
