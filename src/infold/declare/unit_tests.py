"""
Reads the unit tests of a project: ``tests/*.md``, tables as Markdown draws them.

A line of an arrival is a statement, a line of a table, or a note (after ``>``); anything else is an
error, so that no misspelled line is passed over. ``docs/how-to/test-models.md`` shows the form.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from infold.core.interval import parse_instant_text, show_instant
from infold.core.unit_tests import (
    Arrival,
    Cell,
    Change,
    Delivery,
    Entry,
    Expectation,
    UnitTest,
    WrittenTable,
)
from infold.core.yaml_tree import decoded
from infold.messages import unit_test_errors
from infold.messages.errors import InfoldError, Spot

FOLDER = "tests"
PATTERN = f"{FOLDER}/*.md"
README = "README.md"
"""A file about tests, which has none."""
GIVEN = "given"
"""The heading of what is given to all tests of a file, in lower case."""

_NAME = r"[A-Za-z_][\w.]*"
_HEADING = re.compile(r"(#{1,2})\s+(.*?)\s*#*\s*\Z")
_ROWS = re.compile(
    rf"(?P<replace>replace\s+)?(?P<of>{_NAME})(?:\s+in\s+(?P<file>[\w./-]+))?\s*:"
    r"\s*(?P<none>no rows)?\s*\Z"
)
_DELETE = re.compile(rf"delete\s+(?P<of>{_NAME})\s+in\s+(?P<file>[\w./-]+)\s*\Z")
_ENTRY = re.compile(
    rf"quarantine\s+(?P<action>add|release|auto)\s+(?P<of>{_NAME})\s+of\s+"
    r"(?:(?P<kind>user|identifier)\s+)?"
    r"(?P<owner>\"(?:[^\"\\]|\\.)*\"|[^\s\"]\S*)(?:\s+at\s+(?P<instant>.+?))?\s*\Z"
)
_ASIDE = re.compile(rf"expect\s+set_aside\s+of\s+(?P<of>{_NAME})\s*:\s*(?P<none>no rows)?\s*\Z")
_EXPECT = re.compile(
    rf"expect\s+(?P<of>{_NAME})(?:\s+in\s+(?P<cell>[^|]+?))?\s*:\s*(?P<none>no rows)?\s*\Z"
)
_CLOCK = re.compile(r"clock:\s*(.+?)\s*\Z")
_FIXED = re.compile(r"no shuffle:\s*(.+?)\s*\Z")
_SPLIT = re.compile(r"(?<!\\)\|")
_DASHES = re.compile(r"\s*:?-+:?\s*\Z")


def read_tests(root: Path) -> tuple[tuple[UnitTest, ...], tuple[InfoldError, ...]]:
    """The tests of a project in the order of their files, and all that is wrong with the files."""
    tests: list[UnitTest] = []
    errors: list[InfoldError] = []
    for path in sorted((root / FOLDER).glob("*.md")):
        if path.name == README:
            continue
        name = path.relative_to(root).as_posix()
        try:
            text = decoded(name, path.read_bytes())
        except InfoldError as error:
            errors.append(error)
            continue
        read, wrong = read_test_file(name, text)
        tests += read
        errors += wrong
    first: dict[str, UnitTest] = {}
    for test in tests:
        if (other := first.setdefault(test.name, test)) is not test:
            errors.append(unit_test_errors.duplicate_test(test.at, name=test.name, other=other.at))
    return tuple(tests), tuple(errors)


def read_test_file(file: str, text: str) -> tuple[list[UnitTest], list[InfoldError]]:
    """The tests of one file, and all that is wrong with it."""
    reading = _Reading(file, text.splitlines())
    for number, line in enumerate(reading.lines):
        reading.line(number, line.rstrip("\r"))
    reading.end_test()
    return reading.tests, reading.errors


@dataclass
class _Reading:
    file: str
    lines: Sequence[str]
    errors: list[InfoldError] = field(default_factory=list)
    tests: list[UnitTest] = field(default_factory=list)
    shared: tuple[Arrival, ...] = ()
    name: str | None = None
    """The test that is being read, ``""`` where it is what is given to all."""
    at: Spot = Spot("")
    fixed: str | None = None
    arrivals: list[Arrival] = field(default_factory=list)
    waiting: tuple[Delivery | Expectation, list[tuple[int, str]]] | None = None
    """What the next table has the rows of, and the lines of that table so far."""

    def spot(self, number: int, column: int = 0, width: int | None = None) -> Spot:
        """A place by 0-based line and column."""
        text = self.lines[number]
        return Spot(self.file, number + 1, column + 1, text, max(1, width or len(text) - column))

    def wrong(self, error: InfoldError) -> None:
        """Note what is wrong."""
        self.errors.append(error)

    def line(self, number: int, line: str) -> None:
        """Take in the line with this number; the first is 0, a mistake in it is noted."""
        text = line.strip()
        if heading := _HEADING.match(line):
            self._heading(number, len(heading[1]), heading[2])
        elif text.startswith("|"):
            if self.waiting is not None:
                self.waiting[1].append((number, line))
            elif self.arrivals:
                self.wrong(unit_test_errors.table_alone(self.spot(number)))
        elif not text or text.startswith((">", "<!--")) or not self.arrivals:
            if not text and self.waiting is not None and self.waiting[1]:
                self.end_table()
        else:
            self.end_table()
            self._statement(number, text)

    def _heading(self, number: int, level: int, title: str) -> None:
        self.end_table()
        at = self.spot(number)
        if level == 1:
            self.end_test()
            self.name, self.at = title, at
            if title.lower() == GIVEN:
                self.name = ""
                if self.tests or self.shared:
                    self.wrong(unit_test_errors.given_late(at))
        elif self.name is None:
            self.wrong(unit_test_errors.outside_arrival(at))
        else:
            count = len(self.arrivals) + (len(self.shared) if self.name else 0)
            self.arrivals.append(Arrival(count + 1, at))

    def _statement(self, number: int, text: str) -> None:
        at = self.spot(number)
        if match := _CLOCK.match(text):
            self._clock(at, match[1])
        elif match := _FIXED.match(text):
            self.fixed = match[1]
        elif match := _DELETE.match(text):
            self._add(Delivery(Change.DELETE, match["of"], match["file"], at))
        elif match := _ENTRY.match(text):
            self._entry(at, match)
        elif match := _ASIDE.match(text):
            self._begin(Expectation(match["of"], at, aside=True), bool(match["none"]))
        elif match := _EXPECT.match(text):
            cell = match["cell"]
            within = Cell(cell, at) if cell else None
            self._begin(Expectation(match["of"], at, within=within), bool(match["none"]))
        elif match := _ROWS.match(text):
            change = Change.REPLACE if match["replace"] else Change.ADD
            file = match["file"] or f"line_{number + 1}"
            self._begin(Delivery(change, match["of"], file, at), bool(match["none"]))
        else:
            self.wrong(unit_test_errors.bad_line(at))

    def _clock(self, at: Spot, text: str) -> None:
        try:
            clock = parse_instant_text(text)
        except ValueError:
            self.wrong(unit_test_errors.bad_clock(at, text=text))
            return
        before = [one.clock for one in (*self.shared, *self.arrivals) if one.clock is not None]
        if before and clock < before[-1]:
            self.wrong(unit_test_errors.clock_back(at, before=show_instant(before[-1])))
        self.arrivals[-1] = replace(self.arrivals[-1], clock=clock)

    def _entry(self, at: Spot, match: re.Match[str]) -> None:
        owner, instant = match["owner"], None
        try:
            owner = json.loads(owner) if owner.startswith('"') else owner
            instant = parse_instant_text(match["instant"]) if match["instant"] else None
        except ValueError:
            self.wrong(unit_test_errors.bad_clock(at, text=match["instant"] or match["owner"]))
        kind, last = match["kind"] or "", self.arrivals[-1]
        entry = Entry(match["of"], match["action"], owner, at, kind, instant)
        self.arrivals[-1] = replace(last, entries=(*last.entries, entry))

    def _begin(self, item: Delivery | Expectation, no_rows: bool) -> None:
        if no_rows:
            self._add(item)
        else:
            self.waiting = item, []

    def _add(self, item: Delivery | Expectation) -> None:
        last = self.arrivals[-1]
        if isinstance(item, Delivery):
            self.arrivals[-1] = replace(last, deliveries=(*last.deliveries, item))
        else:
            self.arrivals[-1] = replace(last, expected=(*last.expected, item))

    def end_table(self) -> None:
        """What was waiting for a table has it, or has none."""
        if self.waiting is None:
            return
        (item, lines), self.waiting = self.waiting, None
        if not lines:
            self.wrong(unit_test_errors.no_table(item.at))
            return
        table = self._table(lines)
        if table is not None:
            self._add(replace(item, written=table))

    def _table(self, lines: Sequence[tuple[int, str]]) -> WrittenTable | None:
        head, *rows = ([*self._cells(*line)] for line in lines)
        if not rows or not all(_DASHES.match(cell.text) for cell in rows[0]):
            self.wrong(unit_test_errors.no_separator(self.spot(lines[0][0])))
            return None
        before = len(self.errors)
        names: set[str] = set()
        for cell in head:
            if cell.text.lower() in names:
                self.wrong(unit_test_errors.duplicate_column(cell.at, column=cell.text))
            names.add(cell.text.lower())
        for (number, _), row in zip(lines[1:], rows, strict=True):
            if len(row) != len(head):
                self.wrong(
                    unit_test_errors.ragged_row(self.spot(number), found=len(row), wanted=len(head))
                )
        if len(self.errors) > before:
            return None
        return WrittenTable(tuple(head), tuple(map(tuple, rows[1:])))

    def _cells(self, number: int, line: str) -> Iterator[Cell]:
        """The cells between the bars of a line."""
        inner = line.rstrip()
        ends = [bar.start() for bar in _SPLIT.finditer(inner)]
        if ends[-1] != len(inner) - 1:
            ends.append(len(inner))
        for start, end in itertools.pairwise(ends):
            part = inner[start + 1 : end]
            text = part.strip()
            column = start + 1 + len(part) - len(part.lstrip()) if text else start + 1
            at = self.spot(number, column, len(text))
            yield Cell(text.replace("\\|", "|"), at)

    def end_test(self) -> None:
        """The test that is being read is complete."""
        self.end_table()
        name, arrivals = self.name, tuple(self.arrivals)
        self.name, self.arrivals = None, []
        fixed, self.fixed = self.fixed, None
        if name is None:
            return
        if not arrivals:
            self.wrong(unit_test_errors.no_arrivals(self.at, name=name or GIVEN))
        elif not name:
            self.shared = arrivals
        else:
            arrivals = (*self.shared, *arrivals)
            if not any(arrival.expected for arrival in arrivals) and not self.errors:
                self.wrong(unit_test_errors.expects_nothing(self.at, name=name))
            self.tests.append(UnitTest(name, self.at, arrivals, fixed))
