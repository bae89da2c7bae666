"""Rows over time as a strip of shades for each table."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.cli import sample

from infold.core.interval import DAY, EVER, MAX, Interval, Ranges
from infold.core.model import Kind
from infold.core.report import ModelStatus, State
from infold.core.trace import CellState
from infold.render.pictures.look import Look
from infold.render.pictures.status import status_plot

PROJECT = sample.project()


def table(
    model: str, rows: dict[int, int], stale: str = "", *, partly: bool = False
) -> tuple[ModelStatus, Ranges]:
    """The state of a table with so many rows on days of March, and its gaps."""
    cells = tuple(CellState(sample.day(at), many, 0) for at, many in rows.items())
    covered = Ranges.of(one.cell for one in cells)
    hull = Ranges((covered.span,)) if covered.span else Ranges()
    state = ModelStatus(
        model=model, kind=Kind.EVENTS, state=State.STANDARD_RUN, rows=sum(rows.values()),
        covered=covered, stale=sample.days(stale), partly=partly, cells=cells,
    )  # fmt: skip
    return state, hull - covered


def drawn(*tables: tuple[ModelStatus, Ranges], width: int = 60, plain: bool = True) -> str:
    """The picture, without colours."""
    gaps = {state.model: missing for state, missing in tables}
    text = status_plot(PROJECT, [state for state, _ in tables], gaps, Look(width, plain=plain))
    return re.sub(r"\x1b\[\d+m", "", text)


def test_shades_are_parts_of_each_tables_most_rows() -> None:
    """Days without rows and stale days are marked; a project of views has a sentence."""
    countries = ModelStatus(
        "countries",
        Kind.TABLE,
        State.STANDARD_RUN,
        7,
        Ranges.ever(),
        cells=(CellState(EVER, 7, 0),),
    )
    new = ModelStatus("daily", Kind.INCREMENTAL_TABLE, State.NEW_MODEL)
    view = ModelStatus("latest", Kind.VIEW, State.VIEW)

    assert (
        drawn(
            table("clicks", {4: 1, 5: 250, 6: 251, 8: 1000, 9: 750}),
            table("sessions", {5: 1, 6: 1}, "6 10"),
            (countries, Ranges()),
            (new, Ranges()),
            (view, Ranges()),
        )
        == """\
infold status - shop - dev

             March 2024
             04 05 06 07 08 09 10
  clicks     .. .. :: __ ## **         2,252
  sessions      ## !!          !!          2
  countries  one cell                      7
  daily      no rows                       0

  . 1/4  : 2/4  * 3/4  # 4/4 of its most rows
  _ no rows  ! stale"""
    )
    assert "There are no tables to draw." in drawn((view, Ranges()))


def test_what_is_stale_in_part_is_named() -> None:
    """An endless range of which only some is built would hide all shades."""
    state, gaps = table("clicks", {4: 1}, "4", partly=True)
    text = drawn((state, gaps))

    assert "!" not in text.split("\n")[4]
    assert text.endswith("  stale in part: clicks")


def test_a_table_that_is_stale_for_all_time() -> None:
    """An open end has no place on the axis, and marks what is there."""
    state, gaps = table("clicks", {4: 1, 5: 1})
    endless = replace(state, stale=Ranges((Interval(sample.day(5).start, MAX),)))

    assert "  clicks  ## !!" in drawn((endless, gaps))


@given(
    st.lists(st.dictionaries(st.integers(1, 31), st.integers(1, 10**14)), min_size=1, max_size=4),
    st.integers(40, 160),
    st.booleans(),
)
def test_no_picture_is_too_wide(tables: list[dict[int, int]], width: int, plain: bool) -> None:
    """Whatever the rows and the width are, all numbers of rows are in one column."""
    names = ("clicks", "sessions", "daily", "countries")
    made = [
        table(name, dict(sorted(rows.items()))) for name, rows in zip(names, tables, strict=False)
    ]

    text = drawn(*made, width=width, plain=plain)

    lines = text.split("\n")
    assert max(map(len, lines)) <= width
    assert text.isascii() or not plain
    strips = [line for line in lines if line.startswith(tuple(f"  {name} " for name in names))]
    assert len({len(line) for line in strips}) == 1


def test_years_of_hours() -> None:
    """Cells are added up in the columns that there is room for."""
    cells = tuple(
        CellState(
            Interval(sample.day(1).start + at * DAY, sample.day(1).start + (at + 1) * DAY), 1, 0
        )
        for at in range(2000)
    )
    state = replace(table("clicks", {1: 1})[0], rows=2000, cells=cells)
    strip = drawn((state, Ranges())).split("\n")[4]

    assert set(strip.removeprefix("  clicks  ").removesuffix("2,000").strip()) <= set(".:*#")
