"""
Generates event files as they would be delivered: one Parquet file for each day of arrival.

Users have sessions of a few events; each event arrives within half a minute, except for 5 % that
are late as the profile says, and 0.5 % arrive twice. ``web``: lateness is log-uniform from a minute
to 90 days, as with phones out of reach. ``spread``: uniform over a year, so that a day's delivery
touches nearly every day of the year before it.

    python -m bench.generate FOLDER --events 10_000_000 --users 300_000 --days 365 --profile web

A history is made day by day of event time, so memory holds only the rows that are still under way.
:class:`Deliveries` makes what arrives after it, late rows beside sessions that exist.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

SECOND = 1_000_000
MINUTE = 60 * SECOND
DAY = 86_400 * SECOND
LATE = 0.05
TWICE = 0.005
EVENTS_PER_SESSION = 5
URLS = 5_000
FIRST_DAY = 19_358  # 2023-01-01, days since 1970

Int = npt.NDArray[np.int64]


def _web(rng: np.random.Generator, count: int) -> Int:
    low, high = np.log(MINUTE), np.log(90 * DAY)
    return np.asarray(np.exp(rng.uniform(low, high, count)), dtype=np.int64)


def _spread(rng: np.random.Generator, count: int) -> Int:
    return rng.integers(0, 365 * DAY, count, dtype=np.int64)


PROFILES: dict[str, Callable[[np.random.Generator, int], Int]] = {"web": _web, "spread": _spread}


@dataclass(frozen=True)
class Shape:
    """How much of what: events over days by users, late as the profile says."""

    events: int = 10_000_000
    users: int = 300_000
    days: int = 365
    profile: str = "web"
    user_type: str = "string"
    seed: int = 1

    @property
    def end(self) -> int:
        """The first instant after the history."""
        return (FIRST_DAY + self.days) * DAY


@dataclass(frozen=True)
class Rows:
    """Events as columns of numbers; strings are made when they are written."""

    number: Int
    user: Int
    at: Int
    url: Int
    cents: Int

    def __len__(self) -> int:
        return len(self.number)

    def take(self, which: npt.NDArray[np.bool_] | Int) -> Rows:
        """The rows at these positions, or where this is true."""
        return Rows(
            self.number[which], self.user[which], self.at[which], self.url[which], self.cents[which]
        )

    @staticmethod
    def concat(parts: list[Rows]) -> Rows:
        """The rows of all parts."""
        return Rows(
            np.concatenate([part.number for part in parts]),
            np.concatenate([part.user for part in parts]),
            np.concatenate([part.at for part in parts]),
            np.concatenate([part.url for part in parts]),
            np.concatenate([part.cents for part in parts]),
        )


def sessions(
    rng: np.random.Generator, events: int, users: int, day: int, first_number: int
) -> Rows:
    """The events of a day's new sessions: as many as asked for, more or less."""
    count = max(1, events // EVENTS_PER_SESSION)
    lengths = rng.geometric(1 / EVENTS_PER_SESSION, count)
    total = int(lengths.sum())
    of = np.repeat(np.arange(count), lengths)
    starts = day * DAY + rng.integers(0, DAY, count)
    steps = np.minimum(rng.exponential(3 * MINUTE, total), 29 * MINUTE).astype(np.int64)
    firsts = np.cumsum(lengths) - lengths
    steps[firsts] = 0
    elapsed = np.cumsum(steps)
    elapsed -= np.repeat(elapsed[firsts], lengths)
    return Rows(
        number=np.arange(first_number, first_number + total, dtype=np.int64),
        user=rng.integers(0, users, count)[of],
        at=starts[of] + elapsed,
        url=_urls(rng, total),
        cents=_cents(rng, total),
    )


def _urls(rng: np.random.Generator, count: int) -> Int:
    return np.asarray(URLS * rng.random(count) ** 3, dtype=np.int64)  # some are much more common


def _cents(rng: np.random.Generator, count: int) -> Int:
    return rng.integers(-2_000, 50_000, count, dtype=np.int64)


# -- files ----------------------------------------------------------------------------------------


def write(path: Path, rows: Rows, user_type: str = "string") -> None:
    """Write rows as one Parquet file, as a source's columns are declared in ``bench.project``."""
    users = _strings("u", rows.user, 8) if user_type == "string" else pa.array(rows.user)
    table = pa.table(
        {
            "event_id": _hex(rows.number),
            "user_id": users,
            "event_ts": pa.array(rows.at).cast(pa.timestamp("us", tz="UTC")),
            "url": pa.DictionaryArray.from_arrays(pa.array(rows.url, pa.int64()), _ALL_URLS).cast(
                pa.string()
            ),
            "amount": _decimal(rows.cents),
        }
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, compression="zstd", row_group_size=1_000_000)


_ALL_URLS = pa.array([f"/shop/{'abcdefgh'[n % 8]}/page-{n:05}" for n in range(URLS)])


def _fixed(text: npt.NDArray[np.bytes_], width: int) -> pa.Array:
    """Byte strings of one width as an Arrow string column, without touching them one by one."""
    offsets = np.arange(0, (len(text) + 1) * width, width, dtype=np.int32)
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(text.tobytes())]
    return pa.Array.from_buffers(pa.string(), len(text), buffers)


def _hex(numbers: Int) -> pa.Array:
    """Sixteen hexadecimal digits that look random and are as distinct as the numbers."""
    mixed = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return _fixed(np.frombuffer(mixed.astype(">u8").tobytes().hex().encode(), "S16"), 16)


def _strings(prefix: str, numbers: Int, digits: int) -> pa.Array:
    powers = 10 ** np.arange(digits - 1, -1, -1, dtype=np.int64)
    text = np.empty((len(numbers), digits + 1), dtype=np.uint8)
    text[:, 0] = ord(prefix)
    text[:, 1:] = (numbers[:, None] // powers) % 10 + ord("0")
    return _fixed(text.reshape(-1).view(f"S{digits + 1}"), digits + 1)


def _decimal(cents: Int) -> pa.Array:
    words = np.empty((len(cents), 2), dtype=np.int64)  # 128 bits, low word first, sign extended
    words[:, 0] = cents
    words[:, 1] = cents >> 63
    return pa.Array.from_buffers(
        pa.decimal128(18, 2), len(cents), [None, pa.py_buffer(words.tobytes())]
    )


def file_name(day: int) -> str:
    """The name of the file of what arrived on a day, counted from the first."""
    at = np.datetime64(FIRST_DAY + day, "D")
    return f"received-{at}.parquet"


# -- a history ------------------------------------------------------------------------------------


@dataclass
class _UnderWay:
    """Rows that happened and have not arrived, by the day on which they will."""

    shape: Shape
    parts: dict[int, list[Rows]] = field(default_factory=lambda: defaultdict(list))

    def send(self, rows: Rows, arrival: Int) -> None:
        days = arrival // DAY - FIRST_DAY
        order = np.argsort(days, kind="stable")
        edges = np.flatnonzero(np.diff(days[order])) + 1
        for part in np.split(order, edges):
            day = int(days[part[0]]) if len(part) else self.shape.days
            if day < self.shape.days:
                self.parts[day].append(rows.take(part))

    def arrived(self, day: int) -> Rows | None:
        parts = self.parts.pop(day, [])
        return Rows.concat(parts) if parts else None


def history(folder: Path, shape: Shape) -> int:
    """Write the files of a history, and say how many rows they have."""
    rng = np.random.default_rng(shape.seed)
    under_way = _UnderWay(shape)
    number = written = 0
    for day in range(shape.days):
        rows = sessions(rng, shape.events // shape.days, shape.users, FIRST_DAY + day, number)
        number += len(rows)
        arrival = rows.at + rng.integers(0, 30 * SECOND, len(rows))
        late = rng.random(len(rows)) < LATE
        arrival[late] += PROFILES[shape.profile](rng, int(late.sum()))
        under_way.send(rows, arrival)
        again = rng.random(len(rows)) < TWICE
        under_way.send(rows.take(again), arrival[again] + rng.integers(0, 3 * DAY, again.sum()))
        delivered = under_way.arrived(day)
        if delivered is not None:
            write(folder / file_name(day), delivered, shape.user_type)
            written += len(delivered)
    return written


@dataclass
class Deliveries:
    """
    What arrives after a history, as many days and as many rows as asked for.

    Late rows lie within 20 minutes of an event of the history, so that most of them extend or
    merge sessions that exist.
    """

    shape: Shape
    folder: Path
    day: int = 0
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.day = max(self.day, self.shape.days)
        self.rng = np.random.default_rng((self.shape.seed, self.day))

    def deliver(self, events: int) -> int:
        """Write the next day's file; 5 % of its rows are late, 0.5 % are there twice."""
        late = int(events * LATE)
        today = FIRST_DAY + self.day
        new = sessions(self.rng, events - late, self.shape.users, today, self._numbers())
        ages = PROFILES[self.shape.profile](self.rng, late)
        rows = Rows.concat([new, self.beside((today + 1) * DAY - ages, self._numbers() + len(new))])
        twice = self.rng.random(len(rows)) < TWICE
        return self._write(Rows.concat([rows, rows.take(twice)]))

    def deliver_one(self, age_days: int) -> int:
        """Write a file with a single event, so many days old."""
        at = np.array([(FIRST_DAY + self.day - age_days) * DAY + DAY // 2])
        return self._write(self.beside(at, self._numbers()))

    def beside(self, wanted: Int, first_number: int) -> Rows:
        """An event for each instant, moved beside an event that was delivered around that day."""
        days = np.clip(wanted // DAY - FIRST_DAY, 0, self.shape.days - 1)
        user = self.rng.integers(0, self.shape.users, len(wanted))
        at = wanted.copy()
        for day in np.unique(days):
            path = self.folder / file_name(int(day))
            which = np.flatnonzero(days == day)
            if path.exists():
                table = pq.read_table(path, columns=["user_id", "event_ts"])
                chosen = table.take(self.rng.integers(0, len(table), len(which)))
                users = chosen.column("user_id")
                if self.shape.user_type == "string":
                    users = pc.utf8_slice_codeunits(users, 1).cast(pa.int64())
                user[which] = users.to_numpy()
                at[which] = chosen.column("event_ts").cast(pa.int64()).to_numpy()
        at += self.rng.integers(-20 * MINUTE, 20 * MINUTE, len(wanted))
        return Rows(
            number=np.arange(first_number, first_number + len(wanted), dtype=np.int64),
            user=user,
            at=at,
            url=_urls(self.rng, len(wanted)),
            cents=_cents(self.rng, len(wanted)),
        )

    def _numbers(self) -> int:
        return (1 << 40) + (self.day << 24)  # beyond those of the history, and of other days

    def _write(self, rows: Rows) -> int:
        write(self.folder / file_name(self.day), rows, self.shape.user_type)
        self.day += 1
        return len(rows)


def main() -> None:
    """Reads the command line and writes a history."""
    parser = argparse.ArgumentParser(description="Generate event files by day of arrival.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--users", type=int, default=300_000)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--profile", choices=sorted(PROFILES), default="web")
    parser.add_argument("--user-type", choices=["string", "bigint"], default="string")
    parser.add_argument("--seed", type=int, default=1)
    options = vars(parser.parse_args())
    folder = options.pop("folder")
    print(f"{history(folder, Shape(**options)):,} rows")


if __name__ == "__main__":
    main()
