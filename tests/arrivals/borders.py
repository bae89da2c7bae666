"""
Which definitions hold where in a table that is changed forward-only: known without the ledger.

What holds in a table is a list of versions, each with the instant that it holds from; the first one
holds from the beginning on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from random import Random

from tests.arrivals.programs import START
from tests.arrivals.shape import TableSpec

from infold.core.interval import DAY, HOUR, MIN, Ranges, show_instant
from infold.core.trace import UNKNOWN, Trace

Held = tuple[tuple[int, TableSpec], ...]
"""The instants from which versions hold, the earliest first."""

SAID = 0.5
"""How often it is said from when a change is in force."""
INSIDE = 0.1
"""How often that is inside a cell."""


def effective_from(last: int, random: Random) -> int | None:
    """From when a change is to be in force; mostly near the end of a table's last cell."""
    if random.random() >= SAID:
        return None
    at = (START if last == MIN else last) + random.randint(-4, 3) * DAY
    return at + HOUR if random.random() < INSIDE else at


def whole(spec: TableSpec) -> Held:
    """A version that holds everywhere."""
    return ((MIN, spec),)


def changed(held: Held, spec: TableSpec, at: int) -> Held:
    """What holds once a version holds from an instant on."""
    return _merged((*(one for one in held if one[0] < at), (at, spec)))


def by_ledger(trace: Trace, specs: Mapping[str, TableSpec]) -> Held:
    """What holds by a trace, of ``specs`` by digest; nothing where a dead run left unknown rows."""
    if trace.fingerprint == UNKNOWN:
        return ()
    parts = [(part.start, trace.definition) for part in Ranges.ever() - trace.earlier_ranges]
    parts += [(part.start, one.definition) for one in trace.earlier for part in one.cells]
    return _merged((at, specs[digest]) for at, digest in sorted(parts))


def _merged(held: Iterable[tuple[int, TableSpec]]) -> Held:
    found: list[tuple[int, TableSpec]] = []
    for at, spec in held:
        if not found or found[-1][1] is not spec:
            found.append((at, spec))
    return tuple(found)


def shown(held: Held | None) -> str:
    """For a message: instants, and the last lines of the versions."""
    return "; ".join(
        f"{'ever' if at == MIN else show_instant(at)}: {spec.text.splitlines()[-1]}"
        for at, spec in held or ()
    )


@dataclass
class Borders:
    """What holds in production's tables, as commands were given; after a death nobody knows."""

    held: dict[str, Held] = field(default_factory=dict)
    replaced: list[dict[str, Held | None]] = field(default_factory=list)
    """What held in the tables that the promotes since the last death replaced."""
    before_deaths: list[Mapping[str, Held | None]] = field(default_factory=list)
    """What held when somebody died, in the tables then and in those that they had replaced."""
    asked: dict[str, tuple[TableSpec, int | None]] = field(default_factory=dict)
    """The last change of a model that was to be forward-only, and from when."""
    lost: bool = False

    def after_run(
        self, name: str, now: Held, *, asked: tuple[bool, int | None], by_file: bool, last: int
    ) -> str:
        """
        What is wrong with what holds in a table after a run; empty for nothing.

        ``asked`` says whether its change was to be forward-only, and from when; so does its file.
        ``last`` is the end of the last cell that had rows before the run.
        """
        before = self.held.get(name)
        self.held[name] = now
        if not now or "late: new" in now[-1][1].text:
            return ""  # which of its cells late rows came to is known to the ledger alone
        spec = now[-1][1]
        allowed = [whole(spec)]
        if before and before[-1][1] is spec:
            allowed = [before]
        elif before:
            (forward, at), doubted = asked, self.asked.pop(name, None)
            if last != MIN and (forward or by_file):
                allowed = [changed(before, spec, last if at is None else at)]
            elif last != MIN and doubted is not None and doubted[0] is spec:
                at = doubted[1]
                allowed.append(changed(before, spec, last if at is None else at))
        if now in allowed:
            return ""
        return f"{name} has {shown(now)}, not {' or '.join(map(shown, allowed))}"

    def after_death(self, name: str, now: Held) -> str:
        """What is wrong with what holds in a table after somebody died; empty for nothing."""
        before = self.held.get(name)
        self.held[name] = now
        if not before or not now or "late: new" in now[-1][1].text:
            return ""
        at, spec = now[-1]
        olds = [before, *(old for one in self.before_deaths if (old := one.get(name)))]
        if now == whole(spec) or any(now in (old, changed(old, spec, at)) for old in olds):
            return ""
        return f"{name} has {shown(now)} after a death, where it had {shown(before)}"

    def after_somebody_died(self) -> None:
        """Nobody knows what holds, nor which promotes and rollbacks were completed."""
        self.lost = True
        self.before_deaths += [*self.replaced, dict(self.held)]
        self.replaced.clear()

    def replace(self, models: Mapping[str, TableSpec]) -> None:
        """Tables of an environment became production's."""
        self.replaced.append({name: self.held.get(name) for name in models})
        self.held |= {name: whole(spec) for name, spec in models.items()}

    def give_back(self) -> None:
        """The last promote is taken back."""
        for name, held in self.replaced.pop().items():
            self.held.pop(name, None)
            if held is not None:
                self.held[name] = held
