"""
Unit tests of models, as they are written and as they ended: values only.

A test is a sequence of arrivals. Each changes some files of sources (or of models whose rows are
given), moves the clock, and says which rows models have after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, ClassVar

from infold.core.sessions import ManualEntry
from infold.messages.errors import InfoldError, Spot

Row = Mapping[str, Any]

SHUFFLES = 1
"""In how many other orders each test is run, unless another number is asked for."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a written table: its text without the spaces around it, and its place."""

    text: str
    at: Spot


@dataclass(frozen=True, slots=True)
class WrittenTable:
    """A table as it is written; each row has as many cells as there are columns."""

    columns: tuple[Cell, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()


class Change(StrEnum):
    """What happens to a file."""

    ADD = "add"
    REPLACE = "replace"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Delivery:
    """
    One changed file ``file`` of the source or model ``of``.

    ``rows`` are those of the file from now on, once ``written`` is typed; a column that is not
    there is NULL, or what an optional one defaults to.
    """

    change: Change
    of: str
    file: str
    at: Spot
    written: WrittenTable = WrittenTable()
    rows: tuple[Row, ...] = ()

    @property
    def key(self) -> tuple[Any, ...]:
        """What decides about the file's bytes."""
        rows = [sorted((name, repr(value)) for name, value in row.items()) for row in self.rows]
        return self.change, self.of, self.file, repr(rows)


@dataclass(frozen=True, slots=True)
class Entry:
    """
    An entry that is made by hand in the quarantine of the sessions model ``of``.

    It is about all sessions of an owner, or with ``instant`` about the one that has it in it.
    ``kind`` says what the owner is: user, identifier, or (empty) what the sessions are of.
    """

    of: str
    action: str
    owner: str
    at: Spot
    kind: str = ""
    instant: int | None = None
    owner_in_ledger: str = ""
    """The owner as entries name it, once the model is known."""

    file: ClassVar[str] = ""
    """Entries of one model keep their order, as changes of one file do."""
    rows: ClassVar[tuple[Row, ...]] = ()

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells one entry from another: two with one key say the same of one owner."""
        return self.action, self.of, self.owner_in_ledger, self.instant

    @property
    def entry(self) -> ManualEntry:
        """The same in the words of the ledger."""
        in_quarantine = {"add": True, "release": False, "auto": None}[self.action]
        return ManualEntry(0, self.owner_in_ledger, in_quarantine, self.instant, self.instant)


@dataclass(frozen=True, slots=True)
class Expectation:
    """
    The rows that a model has; only the columns that are ``written`` are compared.

    With ``within``, only the rows in that cell are. With ``aside``, the rows that it sets aside.
    """

    model: str
    at: Spot
    written: WrittenTable = WrittenTable()
    within: Cell | None = None
    rows: tuple[Row, ...] = ()
    aside: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are compared; none where no row is expected."""
        return tuple(cell.text for cell in self.written.columns)


@dataclass(frozen=True, slots=True)
class Arrival:
    """One run: what changed before it, the ``clock`` (None: as before), what holds after it."""

    number: int
    at: Spot
    deliveries: tuple[Delivery, ...] = ()
    entries: tuple[Entry, ...] = ()
    expected: tuple[Expectation, ...] = ()
    clock: int | None = None


@dataclass(frozen=True, slots=True)
class UnitTest:
    """One test; ``place`` is its file and line. ``fixed`` says why its order is not shuffled."""

    name: str
    at: Spot
    arrivals: tuple[Arrival, ...]
    fixed: str | None = None

    @property
    def file(self) -> str:
        """The file it is written in, relative to the project."""
        return self.at.file

    @property
    def given(self) -> tuple[str, ...]:
        """The sources and models whose rows are given."""
        names = (each.of for arrival in self.arrivals for each in arrival.deliveries)
        return tuple(dict.fromkeys(names))

    @property
    def judged(self) -> tuple[str, ...]:
        """The models whose quarantine has entries made by hand."""
        return tuple(dict.fromkeys(e.of for arrival in self.arrivals for e in arrival.entries))

    @property
    def aside(self) -> tuple[str, ...]:
        """The models that it expects to set rows aside, or none."""
        every = (each for arrival in self.arrivals for each in arrival.expected)
        return tuple(dict.fromkeys(each.model for each in every if each.aside))

    @property
    def models(self) -> tuple[str, ...]:
        """The models that it expects rows of."""
        names = (each.model for arrival in self.arrivals for each in arrival.expected)
        return tuple(dict.fromkeys(names))

    def with_clocks(self, default: int) -> UnitTest:
        """The same with a clock in each arrival; before the first that is set it is that one's."""
        clocks = [arrival.clock for arrival in self.arrivals if arrival.clock is not None]
        clock = clocks[0] if clocks else default
        arrivals = []
        for arrival in self.arrivals:
            clock = clock if arrival.clock is None else arrival.clock
            arrivals.append(replace(arrival, clock=clock))
        return replace(self, arrivals=tuple(arrivals))


# -- how they ended


class Side(StrEnum):
    """Whose row a line of a comparison shows."""

    SAME = ""
    EXPECTED = "expected"
    ACTUAL = "actual"
    MISSING = "missing"
    SURPLUS = "too many"


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """A line of a comparison: its values in the order of the columns, and which of them differ."""

    side: Side
    values: tuple[Any, ...]
    differing: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Comparison:
    """The expected rows of a table beside its actual ones."""

    columns: tuple[str, ...]
    rows: tuple[ComparedRow, ...]

    @property
    def equal(self) -> bool:
        """Whether they are the same, each as often."""
        return all(row.side is Side.SAME for row in self.rows)


@dataclass(frozen=True, slots=True)
class Failure:
    """
    Why a test failed: rows that differ (``compared``), or an ``error``.

    ``order`` says in which other order and cuts the arrivals came; empty for that of the file.
    ``strip`` is the plan of the arrival at fault, ``notes`` what may have been overlooked.
    """

    model: str
    after: str
    at: Spot
    compared: Comparison | None = None
    error: InfoldError | None = None
    order: tuple[str, ...] = ()
    strip: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TestResult:
    """
    How a test ended: its failures (none: it passed), and in how many other orders it ran.

    ``cached`` says that it passed before and nothing that it follows from has changed since.
    """

    __test__ = False  # not one of pytest's

    test: UnitTest
    failures: tuple[Failure, ...]
    seconds: float = 0.0
    shuffles: int = 0
    cached: bool = False

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return not self.failures


@dataclass(frozen=True, slots=True)
class TestReport:
    """How all tests ended; ``branches`` are what they leave untested, where that was asked for."""

    __test__ = False

    results: Sequence[TestResult]
    seed: int
    seconds: float = 0.0
    runs: int = 0
    branches: Sequence[Untested] | None = None
    models: int = 0
    """How many models there are, for the coverage."""

    @property
    def passed(self) -> bool:
        """Whether every test passed; a branch that no test takes is no failure."""
        return all(result.passed for result in self.results)


@dataclass(frozen=True, slots=True)
class Untested:
    """
    A model without a test (``branch`` None), or a branch of its query that no row of a test takes.

    ``unknown`` says why it could not be found out.
    """

    model: str
    at: Spot
    branch: str | None = None
    unknown: str = ""
    tests: tuple[str, ...] = field(default=())
