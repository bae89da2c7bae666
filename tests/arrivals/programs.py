"""
Programs of arrivals: what happens to a project's files, queries and clock, cut into runs.

A program is a short list of rounds; each is some operations and then one run. An operation is a
kind and a seed, and what it does to each of many independent users follows from the seed and the
user alone, so Hypothesis can drop operations and rounds without changing what the others draw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from random import Random

from hypothesis import strategies as st
from tests.reference.world import Aside, Broken, Record, Row

from infold.core import interval
from infold.core.interval import DAY, HOUR, MINUTE, SECOND

START = interval.parse_instant_text("2024-03-01")
"""Where every user's own clock starts, give or take a day."""

GAP = 30 * MINUTE

ARRIVALS = ("arrive", "arrive", "arrive", "burst", "again", "replace", "delete", "touch", "empty")
"""Operations on files, as often as they are drawn."""

OTHERS = ("lookup", "query", "advance", "advance", "speak", "erase")

RUNS = ("all", "all", "all", "all", "select", "window", "nothing")


@dataclass(frozen=True)
class Op:
    """One operation; all that is random about it follows from its seed."""

    kind: str
    seed: int


@dataclass(frozen=True)
class Round:
    """Operations, and then one run."""

    ops: tuple[Op, ...]
    run: Op


@dataclass(frozen=True)
class Program:
    """Rounds over a number of independent users."""

    users: int
    rounds: tuple[Round, ...]

    @property
    def kinds(self) -> set[str]:
        """The kinds of operations and runs in it."""
        return {op.kind for each in self.rounds for op in (*each.ops, each.run)}


def programs(
    users: int,
    rounds: tuple[int, int],
    ops: tuple[int, int] = (1, 5),
    more: tuple[str, ...] = (),
) -> st.SearchStrategy[Program]:
    """
    Programs of so many users, runs (from, to) and operations before each run (from, to).

    ``more`` operations are drawn besides, as often as they are named.
    """
    seeds = st.integers(0, 2**32 - 1)
    some = st.lists(
        st.builds(Op, st.sampled_from((*ARRIVALS, *OTHERS, *more)), seeds),
        min_size=ops[0],
        max_size=ops[1],
    )
    first = st.builds(
        Round,
        some.map(lambda found: (Op("arrive", 1), *found)),
        st.builds(Op, st.sampled_from(("all", "all", "select")), seeds),
    )
    later = st.builds(
        Round,
        some.map(tuple),
        st.builds(Op, st.sampled_from(RUNS), seeds),
    )
    return st.builds(
        lambda head, tail: Program(users, (head, *tail)),
        first,
        st.lists(later, min_size=rounds[0] - 1, max_size=rounds[1] - 1),
    )


USER_NAMES = ("ann", "Bob", "zoë", "o'hara", "d–e", 'say "hi"', "a,b", "x y", "NULL", "日本")
URLS = ("/", "/pay", "/pay/now", "/health", "/Ä?q=1,2", 'a"b', "/a b", "/long" * 20, None)


def user_name(number: int | None) -> str | None:
    """The name of a user; awkward ones among them."""
    return None if number is None else f"{USER_NAMES[number % len(USER_NAMES)]}-{number}"


@dataclass
class Person:
    """One user: a clock of their own and every good row they ever sent, deleted or not."""

    number: int
    clock: int
    sent: list[Row]
    ids: int = 0

    def new_id(self) -> str:
        """A key nobody else uses."""
        self.ids += 1
        return f"{self.number:x}-{self.ids}"


def people(users: int) -> list[Person]:
    """All users at the start."""
    return [
        Person(n, START + Random(n).randrange(DAY // SECOND) * SECOND, []) for n in range(users)
    ]


@dataclass(frozen=True)
class Drawer:
    """Draws what one user sends; ``tick`` is the finest time the files can hold."""

    tick: int
    tolerance: int | None
    """With a received column: how much later than received an event may be dated."""
    broken: Sequence[str]
    """Texts that no file of this format can be parsed from."""
    columns: Mapping[str, str]

    def send(self, person: Person, random: Random, as_of: int) -> list[Record]:
        """The records of one arrival of one user: mostly one or two, now and then a burst."""
        [kind] = random.choices(list(_KINDS), weights=list(_KINDS.values()))
        found: list[Record] = getattr(self, kind)(person, random, as_of)
        return found

    def burst(self, person: Person, random: Random, as_of: int) -> list[Record]:
        """A whole session at once, many of its events at equal times."""
        at = self._near(person, random) + random.randint(-2, 2) * HOUR
        found: list[Record] = []
        for _ in range(random.randint(3, 8)):
            at += random.choice((0, 0, 0, self.tick, MINUTE, GAP))
            found.append(self._row(person, random, at))
        return found

    def on_time(self, person: Person, random: Random, as_of: int) -> list[Record]:
        """The next events of a user's own clock: within a session, at its edge, after a pause."""
        found: list[Record] = []
        for _ in range(random.randint(1, 4)):
            person.clock += random.choices(
                (
                    random.randint(1, 29 * 60) * SECOND,
                    GAP,
                    GAP + self.tick,
                    random.randint(31 * 60, 72 * 3600) * SECOND,
                ),
                (14, 2, 2, 3),
            )[0]
            found.append(self._row(person, random, person.clock))
        return found

    def late(self, person: Person, random: Random, as_of: int) -> list[Record]:
        """Log-uniformly late, from a minute to more than a year."""
        back = int(MINUTE * (400 * DAY / MINUTE) ** random.random())
        return [self._row(person, random, self._floor(person.clock - back))]

    def bridge(self, person: Person, random: Random, as_of: int) -> list[Record]:
        """Between two neighbours, or within reach of one: merges, extends or falls inside."""
        times = sorted({row["event_ts"] for row in person.sent})
        if len(times) < 2:
            return self.on_time(person, random, as_of)
        at = random.randrange(len(times) - 1)
        left, right = times[at], times[at + 1]
        when = random.choice(
            (
                (left + right) // 2,
                left + GAP,
                right - GAP,
                left + GAP + self.tick,
                left - GAP,
                left,
                left + random.randint(-35, 35) * MINUTE,
            )
        )
        return [self._row(person, random, self._floor(when))]

    def duplicate(self, person: Person, random: Random, as_of: int) -> list[Record]:
        """Exactly what was sent before."""
        if not person.sent:
            return self.on_time(person, random, as_of)
        return [dict(random.choice(person.sent)) for _ in range(random.randint(1, 2))]

    def conflict(self, person: Person, random: Random, as_of: int) -> list[Record]:
        """Another copy of an event, with other content; now and then of another user."""
        if not person.sent:
            return self.on_time(person, random, as_of)
        old = random.choice(person.sent)
        row = self._row(person, random, old["event_ts"], key=old["event_id"])
        row["revision"] = old["revision"] + random.choice((-1, 0, 0, 1, 1, 2))
        if random.random() < 0.15:
            row["user_id"] = user_name(person.number + 1)
        return [row]

    def moved(self, person: Person, random: Random, as_of: int) -> list[Record]:
        """The key of an event at another time: another event, or a copy from another day."""
        if not person.sent:
            return self.on_time(person, random, as_of)
        old = random.choice(person.sent)
        by = random.choice((5 * MINUTE, GAP, DAY, random.randint(1, 400) * DAY))
        row = self._row(
            person, random, old["event_ts"] + random.choice((-1, 1)) * by, key=old["event_id"]
        )
        if random.random() < 0.4:  # nothing else is another, or nothing that is preferred
            row |= {name: old[name] for name in old if name != "event_ts"}
        elif random.random() < 0.5:
            row["revision"] = old["revision"]
        return [row]

    def nothing_known(self, person: Person, random: Random, as_of: int) -> list[Record]:
        """A row without time, key or user; the last is an event of no session."""
        row = self._row(person, random, person.clock, keep=False)
        row[random.choice(("event_ts", "event_id", "user_id"))] = None
        return [row]

    def future(self, person: Person, random: Random, as_of: int) -> list[Record]:
        """Dated later than now, or later than received."""
        when = as_of + random.choice((self.tick, HOUR, random.randint(1, 30) * DAY))
        row = self._row(person, random, self._floor(when))
        if self.tolerance is not None:
            ahead = random.choice((0, self.tick, -self.tick, DAY))
            row["received_ts"] = row["event_ts"] - self.tolerance - ahead
        return [row]

    def unparsable(self, person: Person, random: Random, as_of: int) -> list[Record]:
        """A record that is none."""
        if not self.broken:
            return self.on_time(person, random, as_of)
        return [Broken(random.choice(self.broken), Aside.UNPARSABLE)]

    def _near(self, person: Person, random: Random) -> int:
        if person.sent and random.random() < 0.7:
            return int(random.choice(person.sent)["event_ts"])
        return person.clock

    def _floor(self, at: int) -> int:
        return at - at % self.tick

    def _row(
        self, person: Person, random: Random, at: int, *, key: str | None = None, keep: bool = True
    ) -> Row:
        delay = random.choice((0, random.randint(0, 30) * SECOND, random.randint(0, 90) * DAY))
        row: Row = {
            "event_id": person.new_id() if key is None else key,
            "user_id": user_name(person.number),
            "event_ts": at,
            "received_ts": at + delay,
            "url": random.choice(URLS),
            "amount": random.choice((None, Decimal(random.randint(-5_000, 9_999)).scaleb(-2))),
            "weight": random.choice((None, random.random(), random.randint(0, 8) / 4, 0.1)),
            "n": random.choice((None, random.randint(-5, 5), random.randint(0, 10**12))),
            "ok": random.choice((True, False, None)),
            "revision": random.randint(1, 3),
        }
        if keep:
            person.sent.append(row)
        return row


_KINDS = {
    "on_time": 30,
    "late": 14,
    "bridge": 16,
    "duplicate": 10,
    "conflict": 10,
    "moved": 8,
    "nothing_known": 5,
    "future": 6,
    "unparsable": 3,
    "burst": 4,
}
"""What one user sends (a method of :class:`Drawer`), and how often."""
