"""
Audits: what a model's author says of its rows, and what was found when they were judged.

``declare`` reads them, ``analysis`` checks them against the model's columns, ``spark.audits``
judges rows by them. They are no part of what a table's rows are: another audit changes no row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from infold.core.interval import MAX, MIN, Interval, Ranges
from infold.messages.errors import InfoldError, Spot

MOST_ROWS = 100
"""How many bad rows of one audit are kept."""


class AuditKind(StrEnum):
    """What an audit asks, by the key that declares it."""

    NOT_NULL = "not_null"
    UNIQUE = "unique"
    ACCEPTED_VALUES = "accepted_values"
    ACCEPTED_RANGE = "accepted_range"
    MATCHES = "matches"
    EXPRESSION = "expression"
    RELATIONSHIP = "relationship"
    ROW_COUNT = "row_count"
    FRESHNESS = "freshness"
    NO_GAPS = "no_gaps"
    QUERY = "query"
    """A file in ``audits/``: a SELECT of bad rows."""


OF_ONE_ROW = frozenset(
    {
        AuditKind.NOT_NULL,
        AuditKind.ACCEPTED_VALUES,
        AuditKind.ACCEPTED_RANGE,
        AuditKind.MATCHES,
        AuditKind.EXPRESSION,
    }
)
"""Audits that one row alone fulfils or not: they are judged while rows are written."""


class Severity(StrEnum):
    """What a failed audit means."""

    ERROR = "error"
    """The step fails; nothing of it is written."""
    WARN = "warn"
    """The rows are written, and the run says so."""


class Within(StrEnum):
    """The rows that an audit looks at together."""

    CELL = "cell"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class NamedTable:
    """Where a query names a table: ``sql[start:end]`` is the name as written."""

    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Audit:
    """
    One audit of one model; which fields it has depends on its kind.

    ``values``, ``minimum`` and ``maximum`` are SQL literals, or numbers for ``row_count``;
    ``max_age`` is microseconds. ``sql`` is an expression or a SELECT, as written. ``by_row`` says
    of a SELECT that its bad rows follow from each row alone, whatever others there are.
    """

    name: str
    kind: AuditKind
    severity: Severity = Severity.ERROR
    columns: tuple[str, ...] = ()
    where: str = ""
    sql: str = ""
    values: tuple[str, ...] = ()
    minimum: str = ""
    maximum: str = ""
    inclusive: bool = True
    within: Within = Within.TABLE
    to: str = ""
    to_columns: tuple[str, ...] = ()
    max_age: int = 0
    pattern: str = ""
    tables: tuple[NamedTable, ...] = ()
    by_row: bool = False
    file: str = field(default="", compare=False)
    line: int = field(default=1, compare=False)
    sql_line: int = field(default=1, compare=False)

    @property
    def at(self) -> Spot:
        """Where it is declared."""
        return Spot(self.file, self.line)

    @property
    def of_one_row(self) -> bool:
        """Whether it is judged row by row, while rows are written."""
        return self.kind in OF_ONE_ROW

    @property
    def of_step(self) -> bool:
        """Whether the rows that a step writes are enough to judge it."""
        if self.kind is AuditKind.QUERY:
            return self.by_row
        return self.of_one_row or self.kind is AuditKind.RELATIONSHIP

    @property
    def waits(self) -> bool:
        """Whether it is judged only once none of the table's cells is pending."""
        whole = self.kind is AuditKind.ROW_COUNT and self.within is Within.TABLE
        return whole or self.kind in (AuditKind.FRESHNESS, AuditKind.NO_GAPS)

    def reads(self, model: str) -> tuple[str, ...]:
        """The other tables that it reads, where it is an audit of ``model``."""
        named = (self.to, *(table.name for table in self.tables))
        others = (name for name in named if name and name.lower() != model.lower())
        return tuple(dict.fromkeys(others))

    def __str__(self) -> str:
        """What differs when a definition's audits differ."""
        parts = [self.name, self.severity.value]
        parts += [f"where {self.where}"] if self.where else []
        return " ".join(parts)


class AuditState(StrEnum):
    """What was found by an audit."""

    PASSED = "passed"
    FAILED = "failed"
    WAITING = "waiting"
    """It is not judged before no cell of the table is pending."""


EVER = Interval(MIN, MAX)


@dataclass(frozen=True, slots=True)
class AuditResult:
    """
    What one audit found: ``bad`` rows (or keys, or cells), and what that is in words.

    ``rows`` are some of them as JSON objects, ``cells`` the stretch of time that was written.
    ``stored`` says that it is about all stored rows, as `infold audit` judges them.
    """

    model: str
    audit: str
    severity: Severity
    state: AuditState
    bad: int = 0
    what: str = ""
    rows: tuple[str, ...] = ()
    cells: Interval = EVER
    file: str = ""
    line: int = 1
    stored: bool = False

    @property
    def fails(self) -> bool:
        """Whether it is a failure that counts as an error."""
        return self.state is AuditState.FAILED and self.severity is Severity.ERROR

    @property
    def place(self) -> str:
        """Where it is declared, as it is shown."""
        return f"{self.file}:{self.line}" if self.file else ""


@dataclass(frozen=True, slots=True)
class JudgedAudit:
    """A result as the ledger keeps it: with the run and the step, and when it was judged."""

    result: AuditResult
    at: int
    run: str = ""
    step: str = ""


@dataclass(frozen=True, slots=True)
class AuditReport:
    """
    What the audits of some models find in their stored rows, as of the clock ``as_of``.

    ``not_built`` are models with audits that were never built.
    """

    results: tuple[AuditResult, ...]
    not_built: tuple[str, ...] = ()
    as_of: int = 0
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether no audit of severity error failed."""
        return not any(result.fails for result in self.results)


class AuditsFailed(InfoldError):  # noqa: N818 (what happened, as RunFailed)
    """What a step was about to write fails audits; ``results`` are of all that were judged."""

    results: tuple[AuditResult, ...] = ()

    @classmethod
    def of(cls, error: InfoldError, results: Iterable[AuditResult]) -> AuditsFailed:
        """The error with the results behind it."""
        failed = cls(error.slug, error.what, error.facts, error.todo, error.exit_code)
        failed.results = tuple(results)
        return failed


def audits_of(error: BaseException) -> tuple[AuditResult, ...]:
    """What audits found of a step that failed, if they made it fail."""
    return error.results if isinstance(error, AuditsFailed) else ()


def hull(cells: Ranges) -> Interval:
    """The stretch from the first of some cells to the last; all time, if there are none."""
    parts = tuple(cells)
    return Interval(parts[0].start, parts[-1].end) if parts else EVER


def failed(results: Sequence[AuditResult]) -> tuple[AuditResult, ...]:
    """Those that failed, errors first."""
    failures = [result for result in results if result.state is AuditState.FAILED]
    return tuple(sorted(failures, key=lambda one: one.severity is Severity.WARN))
