"""
A project in a notebook: ``infold.open(".")``.

A thin layer over the functions of ``infold.api``: it takes what people type, such as terms and
dates, and returns what shows itself. The project's files are read again by each call, so that an
edited model counts at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from infold import api
from infold.core import plan, report
from infold.core.arrow_values import rows_of
from infold.core.plan import PlanOptions, Step
from infold.core.ports import Progress, SilentProgress
from infold.core.record import Receipt
from infold.messages import command_errors
from infold.messages.errors import InfoldError
from infold.render.run import failed_line, name_width, step_line
from infold.render.table import cell, table_screen

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from infold.core import project as core


__all__ = ["Explanation", "Plan", "Project", "Run", "Status", "Table", "Verification"]

Time = str | date
"""A date or a time: as text, or as ``datetime`` has it; without an offset it is UTC."""


class _Printed(SilentProgress):
    """A line for each step as it ends, as the commands print them into a file."""

    def __init__(self, project: core.Project) -> None:
        self.index = 0
        self.width = name_width(node.name for node in project)

    def step(self, index: int, total: int | None, step: Step) -> None:
        """Remember its number."""
        del total, step
        self.index = index

    def done(self, step: Step, receipt: Receipt) -> None:
        """The step's line."""
        _print_line(step_line(self.index, step, receipt, self.width))

    def failed(self, step: Step, error: InfoldError) -> None:
        """The step's line; the error is raised at the end."""
        _print_line(failed_line(self.index, step, error, self.width))

    def note(self, text: str) -> None:
        """The text, on a line of its own."""
        _print_line(f"     {text}")


def _print_line(line: str) -> None:
    print(line, flush=True)  # noqa: T201 (into the output of a notebook's cell)


class Project:
    """A project's folder, and one of its targets."""

    def __init__(self, root: str | Path = ".", target: str | None = None) -> None:
        self.root = Path(root).resolve()
        self.target = target
        self.opened()  # mistakes are raised at once

    def opened(self, *, declared: bool = False) -> core.Project:
        """The project as it is now, for the functions of ``infold.api``."""
        return api.open_project(self.root, self.target, declared=declared)

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models, each after those that it reads."""
        return tuple(node.name for node in self.opened() if not node.landed)

    def plan(
        self,
        *terms: str,
        exclude: Sequence[str] = (),
        start: Time | None = None,
        end: Time | None = None,
        as_of: Time | None = None,
    ) -> Plan:
        """
        What :meth:`run` would do, and why; nothing is written, and no Spark started.

        ``terms`` name the models, as for ``--select``; ``start`` and ``end`` say for which times
        tables are built cell by cell; ``as_of`` is the clock.
        """
        from infold.render import json_shapes
        from infold.render.plan import plan_screen

        project = api.to_apply(self.opened(declared=True), terms, exclude)
        asked, at = _window(project, terms, start, end), _instant("as_of", as_of)
        project = api.project_to_run(project, asked, select=terms, exclude=exclude, as_of=at)
        observed = api.observe_all(project, as_of=at, asked=asked)
        plan = api.make_plan(project, observed, asked, select=terms, exclude=exclude)
        covered = api.coverage(project, plan) if plan else {}
        text = plan_screen(project, observed, plan, covered, _typed(terms, exclude, start, end))
        return Plan(plan, text, lambda: json_shapes.plan(plan))

    def run(
        self,
        *terms: str,
        exclude: Sequence[str] = (),
        start: Time | None = None,
        end: Time | None = None,
        as_of: Time | None = None,
        jobs: int | None = None,
        wait: float = 0.0,
        allow_refresh: bool = False,
        allow_removals: bool = False,
        progress: Progress | None = None,
    ) -> Run:
        """
        Bring the tables up to date: all, or those of some terms; asked as :meth:`plan`.

        The other arguments have the meaning of the options of ``infold run``. Spark starts if there
        is something to do, and stays for later calls. A line is printed for each step, unless there
        is a ``progress`` that is called instead. Raises ``infold.api.RunFailed`` where some
        tables are not up to date, once all others are.
        """
        from infold.render import json_shapes
        from infold.render.plan import nothing_screen
        from infold.render.run import summary_screen

        project = self.opened()
        result = api.run(
            project,
            asked=_window(project, terms, start, end),
            select=terms,
            exclude=exclude,
            as_of=_instant("as_of", as_of),
            jobs=jobs,
            wait=wait,
            allow_refresh=allow_refresh,
            allow_removals=allow_removals,
            progress=progress or _Printed(project),
        )
        if result.steps:
            text = summary_screen(result)
        else:
            text = nothing_screen(project, None, result.plans[-1], notes=result.notes)
        return Run(result, text, lambda: json_shapes.run(result))

    def table(
        self,
        name: str,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """
        A model, or another table that ``infold show`` has; its rows are read without a JVM.

        ``where`` is a predicate of Spark SQL that compares columns with values. The rows of a view
        are computed by Spark.
        """

        def read(most: int | None) -> pa.Table:
            rows = api.show(self.opened(), name, columns=columns, where=where, limit=most)
            return rows if most is None else rows.slice(0, most)

        return Table(name, read, limit)

    def explain(
        self, model: str, cell: Time | None = None, *, as_of: Time | None = None
    ) -> Explanation:
        """What is known about a model, or about the cell of it that has a date or time."""
        from infold.planning.selection import unknown_model
        from infold.render import json_shapes
        from infold.render.explain import explain_screen

        project = self.opened()
        if model not in project:
            raise unknown_model(project, model)
        at, granularity = _instant("cell", cell), project[model].model.granularity
        if at is not None and granularity is None:
            raise command_errors.not_a_cell(model=model, text=_instant_text(cell))
        chosen = None if at is None or granularity is None else granularity.cell(at)
        result = api.explain(project, model, chosen, _instant("as_of", as_of))
        return Explanation(result, explain_screen(result), lambda: json_shapes.explanation(result))

    def status(self, *terms: str, as_of: Time | None = None) -> Status:
        """The state of each model, or of those of some terms."""
        from infold.planning.selection import select_models
        from infold.render import json_shapes
        from infold.render.status import status_screen

        project = api.with_apart(self.opened())
        chosen = select_models(project, terms)
        every = api.status(project, _instant("as_of", as_of))
        statuses = tuple(one for one in every if one.model in chosen)
        gaps = {one.model: one.covered.gaps for one in statuses if one.covered}
        text = status_screen(project, statuses, gaps)
        return Status(statuses, text, lambda: json_shapes.status(project, statuses, gaps))

    def verify(
        self, *terms: str, sample: int | None = None, progress: Progress | None = None
    ) -> Verification:
        """Compare tables with a full rebuild of them: all cells, or ``sample`` of each table."""
        from infold.render import json_shapes
        from infold.render.verification import verification_screen

        project = self.opened()
        shown = progress or _Printed(project)
        report = api.verify(project, select=terms, sample=sample, progress=shown)
        text = verification_screen(report)
        return Verification(report, text, lambda: json_shapes.verification(report))

    def __repr__(self) -> str:
        project = self.opened()
        named = ", ".join(self.models) or "none"
        return f"{project.name} · {project.target.name} · {self.root}\nmodels: {named}"


def _instant_text(time: Time | None) -> str:
    return time if isinstance(time, str) else "" if time is None else time.isoformat()


def _instant(name: str, time: Time | None) -> int | None:
    from infold.planning.selection import parse_instant

    return None if time is None else parse_instant(name, _instant_text(time))


def _window(
    project: core.Project, terms: Sequence[str], start: Time | None, end: Time | None
) -> PlanOptions:
    """The options of a plan for the times from ``start`` to before ``end``."""
    first, last = (None if time is None else _instant_text(time) for time in (start, end))
    return PlanOptions(window=api.window_of(project, first, last, terms))


def _typed(
    terms: Sequence[str], exclude: Sequence[str], start: Time | None, end: Time | None
) -> str:
    """The same options as a command has them, for the line that says how to go on."""
    import shlex

    given = [("start", _instant_text(start)), ("end", _instant_text(end))]
    given += [("select", term) for term in terms] + [("exclude", term) for term in exclude]
    return "".join(f" --{name} {shlex.quote(value)}" for name, value in given if value)


# Each prints as the command of its name does, and a notebook draws it. `value` is what the function
# of `infold.api` returns, `to_dict()` the result as the command has it with `--json`.

Value = TypeVar("Value")
JsonObject = dict[str, Any]

SHOWN_ROWS = 20
"""How many rows of a table are drawn; the conversions have all."""


@dataclass(frozen=True, repr=False)
class _Displayed(Generic[Value]):
    """A result of ``infold.api`` with the screen that the command prints of it."""

    value: Value
    text: str = field(compare=False)
    _shape: Callable[[], JsonObject] = field(compare=False)

    def to_dict(self) -> JsonObject:
        """The result as the command prints it with ``--json``."""
        return self._shape()

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return screen_html(self.text)


class Plan(_Displayed[plan.Plan]):
    """What a run would do, and why; true if that is anything."""

    def __bool__(self) -> bool:
        return bool(self.value.steps)


class Run(_Displayed[report.RunResult]):
    """What a run did."""


class Explanation(_Displayed[report.Explanation]):
    """What is known about a model, or about one cell of it."""


class Status(_Displayed[tuple[report.ModelStatus, ...]]):
    """The state of each model."""


class Verification(_Displayed[report.VerificationReport]):
    """Whether the tables equal a rebuild; true if they do."""

    def __bool__(self) -> bool:
        return self.value.equal


@dataclass(frozen=True, repr=False)
class Table:
    """
    Rows of a table, which are read when they are asked for, each time as they are then.

    A notebook draws the first ones.
    """

    name: str
    _read: Callable[[int | None], pa.Table] = field(compare=False)
    limit: int | None = None

    def to_arrow(self) -> pa.Table:
        """All rows as a table of pyarrow."""
        return self._read(self.limit)

    def to_pandas(self) -> pd.DataFrame:
        """All rows as a data frame of pandas, which has to be installed."""
        _check_installed("pandas", "to_pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """All rows as a data frame of Polars, which has to be installed."""
        _check_installed("polars", "to_polars")
        import polars as pl

        frame = pl.from_arrow(self.to_arrow())
        assert isinstance(frame, pl.DataFrame), "a table of columns is no series"
        return frame

    def to_duckdb(
        self, connection: duckdb.DuckDBPyConnection | None = None
    ) -> duckdb.DuckDBPyRelation:
        """
        All rows as a relation of DuckDB, which has to be installed.

        In ``connection``, or in DuckDB's own, which ``duckdb.sql`` uses.
        """
        _check_installed("duckdb", "to_duckdb")
        import duckdb

        return (connection or duckdb.default_connection()).from_arrow(self.to_arrow())

    def __repr__(self) -> str:
        columns, rows, more = self._first_rows()
        return table_screen(self.name, columns, rows, more=None if more else 0)

    def _repr_html_(self) -> str:
        columns, rows, more = self._first_rows()
        note = f"{self.name}: {len(rows)} rows" + (" shown, there are more." if more else ".")
        return rows_html(columns, rows, note)

    def _first_rows(self) -> tuple[Sequence[str], list[list[Any]], bool]:
        """The columns, the first rows, and whether there are more."""
        most = SHOWN_ROWS + 1 if self.limit is None else min(self.limit, SHOWN_ROWS + 1)
        table = self._read(most)
        rows = [list(row.values()) for row in rows_of(table.slice(0, SHOWN_ROWS))]
        return table.column_names, rows, table.num_rows > SHOWN_ROWS


def _check_installed(package: str, method: str) -> None:
    from importlib.util import find_spec

    if find_spec(package) is None:
        raise command_errors.package_missing(package=package, method=method)


_SCREEN = "white-space:pre;overflow-x:auto;line-height:1.3;text-align:left"
_RIGHT = ' style="text-align:right"'


def screen_html(text: str) -> str:
    """A screen as a terminal shows it: strips of cells keep their columns."""
    return f'<pre style="{_SCREEN}">{escape(text)}</pre>'


def rows_html(columns: Sequence[str], rows: Sequence[Sequence[Any]], note: str) -> str:
    """Rows under their names, numbers to the right; NULL differs from an empty text."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"{table}<p>{escape(note)}</p>"


def _cell(value: Any) -> str:
    if value is None:
        return '<td style="opacity:0.5">NULL</td>'
    number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return f"<td{_RIGHT if number else ''}>{escape(cell(value))}</td>"
